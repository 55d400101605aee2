//! The formulas of sines, cosines and squares beside this machine's C library, at random numbers.
//!
//! `CORRAL_SINES_POINTS` says at how many; a million unless told. `make test-all` asks for 10⁹.

use std::process::Command;
use std::thread;

use envcore::rng::Rng;
use envcore::sines::squares::{is_squared_by, is_squared_f32_by};
use envcore::sines::{FAR, NEAR, SinesForm, difference};

/// The upper ends of the ranges from which angles are drawn: those of the formulas and a few more.
const ENDS: [f64; 7] = [0.126, 0.25, NEAR, 2.426_265, 10.0, 1e3, FAR];

fn points() -> usize {
    std::env::var("CORRAL_SINES_POINTS").map_or(1_000_000, |points| points.parse().unwrap())
}

/// Angles of every range, and of every magnitude.
fn angle(rng: &mut Rng, k: usize) -> f64 {
    let size = match ENDS.get(k % (ENDS.len() + 1)) {
        Some(end) => rng.uniform(0.0, *end),
        None => f64::powf(2.0, rng.uniform(-60.0, 26.5)),
    };
    if rng.uniform(0.0, 1.0) < 0.5 { -size } else { size }
}

/// Compares `count` random angles and numbers. Returns the first at which something differs.
fn compare(form: SinesForm, seed: u64, count: usize) -> Option<f64> {
    let mut rng = Rng::new(seed);
    for from in (0..count).step_by(1 << 16) {
        let angles: Vec<f64> = (from..count.min(from + (1 << 16))).map(|k| angle(&mut rng, k)).collect();
        let different = match form {
            SinesForm::Fused => difference::<true>(f64::sin, f64::cos, &angles),
            _ => difference::<false>(f64::sin, f64::cos, &angles),
        };
        let number = |x: &&f64| !is_squared_by(f64::powf, **x) || !is_squared_f32_by(f32::powf, **x as f32);
        let different = different.or_else(|| angles.iter().find(number).copied());
        if different.is_some() {
            return different;
        }
    }
    None
}

#[test]
fn the_form_of_this_machine_has_its_librarys_bits() {
    let form = SinesForm::of(f64::sin, f64::cos);
    println!("sines are {}", form.name());
    if form == SinesForm::Other {
        return;
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let different: Vec<f64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|k| scope.spawn(move || compare(form, k as u64, points().div_ceil(threads))))
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(different, Vec::<f64>::new(), "{form:?}");
}

/// glibc can be told to use the functions that it has for CPUs without fused multiply-adds.
#[test]
fn the_form_of_a_machine_without_fused_operations_has_its_librarys_bits() {
    let test = "the_form_of_this_machine_has_its_librarys_bits";
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4,-FMA4_Usable")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    // Other libraries know no such variable.
    println!("{said}");
}
