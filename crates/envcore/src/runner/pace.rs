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

/// What a row has cost so far, in nanoseconds of the caller's time.
#[derive(Default)]
pub(super) struct Pace {
    alone: Option<f64>,
    together: Option<f64>,
    calls: u32,
}

impl Pace {
    /// Whether `work` is enough to wake a thread for.
    pub(super) fn is_worth(work: Duration) -> bool {
        work >= WORTH
    }

    /// The way for the next `rows` rows.
    pub(super) fn choose(&mut self, rows: usize) -> Way {
        let Some(alone) = self.alone else { return Way::Unknown };
        if alone * (rows as f64) < WORTH.as_nanos() as f64 {
            return Way::Alone;
        }
        let Some(together) = self.together else { return Way::Together };
        self.calls = self.calls.wrapping_add(1);
        let again = self.calls.is_multiple_of(AGAIN);
        // A try of the slower way costs the difference between both. So the caller
        // alone is tried only where that is small; the thread pool is always tried,
        // because it may have been slow by chance.
        if again && together >= alone {
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
        match way {
            Way::Together => {
                mix(&mut self.together, each(wall));
                self.alone.get_or_insert(each(busy));
            }
            _ => mix(&mut self.alone, each(wall)),
        }
    }
}

fn mix(mean: &mut Option<f64>, new: f64) {
    *mean = Some(mean.map_or(new, |mean| mean + (new - mean) / 16.0));
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
        assert_eq!(pace.choose(10), Way::Together);
        pace.note(Way::Together, 10, 2 * MS, 2 * MS);
        let ways: Vec<Way> = (0..AGAIN).map(|_| pace.choose(10)).collect();
        assert_eq!(ways.iter().filter(|way| **way == Way::Together).count(), 1);
        for _ in 0..100 {
            pace.note(Way::Together, 10, MS, MS / 2);
        }
        let ways: Vec<Way> = (0..AGAIN).map(|_| pace.choose(10)).collect();
        assert!(ways.iter().all(|way| *way == Way::Together), "half the time is no near thing");
    }
}
