//! Whether it pays to wake threads, as measured call by call.

use std::time::Duration;

/// The caller does less work than this alone. To hand the work over and wait for it
/// costs about as much where threads must be woken.
const WORTH: Duration = Duration::from_micros(30);

/// Calls between two tries of the slower way.
const AGAIN: u32 = 256;

/// Who does a batch's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Not known yet. The first group's time tells.
    Unknown,
    /// The caller alone.
    Alone,
    /// The caller and its thread pool.
    Together,
}

/// Calls of one try of the thread pool.
const TRY: u32 = 8;

/// What a row has cost so far, in nanoseconds of the caller's time.
#[derive(Default)]
pub(super) struct Pace {
    alone: Option<f64>,
    together: Option<f64>,
    calls: u32,
    /// How many further calls the try of the thread pool goes on.
    to_try: u32,
    /// How many calls in a row, the current one included, the thread pool has had a part in.
    in_a_row: u32,
}

impl Pace {
    /// Whether `work` is enough to wake a thread for.
    pub(super) fn is_worth(work: Duration) -> bool {
        work >= WORTH
    }

    /// The way for the next `rows` rows.
    pub(super) fn choose(&mut self, rows: usize) -> Way {
        let way = self.way(rows);
        self.in_a_row = if way == Way::Together { self.in_a_row.saturating_add(1) } else { 0 };
        way
    }

    fn way(&mut self, rows: usize) -> Way {
        let Some(alone) = self.alone else { return Way::Unknown };
        if alone * (rows as f64) < WORTH.as_nanos() as f64 {
            return Way::Alone;
        }
        let Some(together) = self.together else { return Way::Together };
        self.calls = self.calls.wrapping_add(1);
        let again = self.calls.is_multiple_of(AGAIN);
        // A try of the slower way costs the difference between both. So the caller
        // alone is tried only where that is small; the thread pool is always tried,
        // because it may have been slow by chance. Its threads sleep after a while
        // without work, so that only several calls in a row tell how fast they are.
        if again && together >= alone {
            self.to_try = TRY;
        }
        if self.to_try > 0 {
            self.to_try -= 1;
            Way::Together
        } else if again && together > 0.75 * alone {
            Way::Alone
        } else if together < alone {
            Way::Together
        } else {
            Way::Alone
        }
    }

    /// Notes the time that `rows` rows took: `wall` for the caller, `busy` as the sum
    /// over all threads.
    pub(super) fn note(&mut self, way: Way, rows: usize, busy: Duration, wall: Duration) {
        let each = |time: Duration| time.as_nanos() as f64 / rows as f64;
        if way != Way::Together {
            return mix(&mut self.alone, each(wall));
        }
        self.alone.get_or_insert(each(busy));
        match self.in_a_row {
            // The threads may have been asleep, or not there yet.
            0 | 1 => {}
            // The first call of a try that counts. What was measured long ago does not.
            2 => self.together = Some(each(wall)),
            _ => mix(&mut self.together, each(wall)),
        }
    }
}

/// Moves a mean towards a new number. A call that the system interrupted counts no more than
/// twice the mean.
fn mix(mean: &mut Option<f64>, new: f64) {
    *mean = Some(mean.map_or(new, |mean| mean + (new.min(2.0 * mean) - mean) / 16.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn little_work_stays_with_the_caller() {
        let mut pace = Pace::default();
        assert_eq!(pace.choose(8), Way::Unknown);
        pace.note(Way::Alone, 8, Duration::from_micros(4), Duration::from_micros(4));
        for _ in 0..3 * AGAIN {
            assert_eq!(pace.choose(8), Way::Alone);
        }
        assert_eq!(pace.choose(8000), Way::Together);
    }

    #[test]
    fn the_faster_way_is_taken_and_a_thread_pool_that_was_slow_gets_another_try() {
        let mut pace = Pace::default();
        pace.note(Way::Alone, 10, MS, MS);
        for _ in 0..2 {
            assert_eq!(pace.choose(10), Way::Together);
            pace.note(Way::Together, 10, 2 * MS, 2 * MS);
        }
        let ways: Vec<Way> = (0..AGAIN + TRY).map(|_| pace.choose(10)).collect();
        assert_eq!(ways.iter().filter(|way| **way == Way::Together).count(), TRY as usize);
        for _ in 0..2 * AGAIN {
            let way = pace.choose(10);
            pace.note(way, 10, MS, if way == Way::Together { MS / 2 } else { MS });
        }
        let ways: Vec<Way> = (0..AGAIN).map(|_| pace.choose(10)).collect();
        assert!(ways.iter().all(|way| *way == Way::Together), "half the time is no near thing");
    }

    #[test]
    fn what_the_start_of_threads_and_single_interruptions_cost_does_not_count() {
        let mut pace = Pace::default();
        let mut play = |wall: Duration| {
            let way = pace.choose(10);
            let took = if way == Way::Together { wall } else { MS };
            pace.note(way, 10, MS, took);
            way
        };
        play(MS);
        // Threads start in the first call, and each is ten times as slow in every hundredth.
        let slow_at = |call: usize| call == 0 || call % 100 == 99;
        let walls = (0..1000).map(|call| if slow_at(call) { 10 * MS } else { MS / 2 });
        assert!(walls.map(&mut play).all(|way| way == Way::Together));
    }
}
