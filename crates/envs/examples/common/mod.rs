//! How `corral bench` and a program that it measures take turns.

use std::io::{BufRead, Write};
use std::time::Instant;

/// Says `ready`, and answers every line of seconds on the standard input with a line of steps and
/// seconds. `play` plays for a while and says how many steps it made.
pub fn take_turns(
    mut play: impl FnMut() -> envcore::Result<usize>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    for line in std::io::stdin().lock().lines() {
        let seconds: f64 = line?.trim().parse()?;
        let (began, mut steps) = (Instant::now(), 0);
        while began.elapsed().as_secs_f64() < seconds {
            steps += play()?;
        }
        writeln!(out, "{steps} {}", began.elapsed().as_secs_f64())?;
    }
    Ok(())
}

/// Random words; any generator will do.
pub fn words() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 33
    }
}
