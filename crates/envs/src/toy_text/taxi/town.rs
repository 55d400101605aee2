//! The town, and the numbers of states.

/// The fields of a row, and of a column.
pub(super) const SIDE: usize = 5;
/// The rows and columns of the stands: red, green, yellow and blue.
pub(super) const STANDS: [(usize, usize); 4] = [(0, 0), (0, 4), (4, 0), (4, 3)];
/// The place of a passenger who is in the taxi.
pub(super) const IN_TAXI: usize = STANDS.len();
/// How many states there are.
pub(super) const STATES: usize = SIDE * SIDE * (STANDS.len() + 1) * STANDS.len();

/// Whether the way between a field and its eastern neighbour is open, by row and column.
const OPEN_EAST: [[bool; SIDE]; SIDE] = [
    [true, false, true, true, false],
    [true, false, true, true, false],
    [true, true, true, true, false],
    [false, true, false, true, false],
    [false, true, false, true, false],
];

/// Where everyone is, and where the passenger wants to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ride {
    pub(super) row: usize,
    pub(super) column: usize,
    /// The number of a stand, or [`IN_TAXI`].
    pub(super) passenger: usize,
    pub(super) destination: usize,
}

impl Ride {
    /// The ride whose number is `state`.
    #[inline]
    pub(super) const fn of(state: usize) -> Self {
        Ride {
            row: state / 100,
            column: state / 20 % SIDE,
            passenger: state / 4 % (IN_TAXI + 1),
            destination: state % 4,
        }
    }

    /// The number of this ride.
    #[inline]
    pub(super) const fn state(self) -> usize {
        ((self.row * SIDE + self.column) * (IN_TAXI + 1) + self.passenger) * STANDS.len() + self.destination
    }

    /// The number of the stand where the taxi is.
    #[inline]
    pub(super) fn stand(self) -> Option<usize> {
        STANDS.iter().position(|stand| *stand == (self.row, self.column))
    }

    /// Whether the taxi can drive: 0 south, 1 north, 2 east, 3 west.
    #[inline]
    pub(super) fn is_open(self, direction: usize) -> bool {
        match direction {
            0 => self.row + 1 < SIDE,
            1 => self.row > 0,
            2 => OPEN_EAST[self.row][self.column],
            _ => self.column > 0 && OPEN_EAST[self.row][self.column - 1],
        }
    }

    /// The ride after a drive, which may be held.
    #[inline]
    pub(super) fn driven(mut self, direction: usize) -> Self {
        if self.is_open(direction) {
            match direction {
                0 => self.row += 1,
                1 => self.row -= 1,
                2 => self.column += 1,
                _ => self.column -= 1,
            }
        }
        self
    }
}

/// How many states an episode may start from.
const STARTS: usize = 300;

/// The states that an episode may start from, in order, each with the sum of the probabilities up
/// to it, as NumPy adds them.
static SUMS: [(f64, usize); STARTS] = {
    let mut sums = [(0.0, 0); STARTS];
    let (mut sum, mut at, mut state) = (0.0, 0, 0);
    while state < STATES {
        let ride = Ride::of(state);
        if ride.passenger < IN_TAXI && ride.passenger != ride.destination {
            sum += 1.0 / STARTS as f64;
            sums[at] = (sum, state);
            at += 1;
        }
        state += 1;
    }
    sums
};

/// The start that `draw`, uniform in [0, 1), falls on. State 0 takes what rounding leaves over.
pub(super) fn start(draw: f64) -> usize {
    let at = SUMS.partition_point(|(sum, _)| *sum <= draw);
    SUMS.get(at).map_or(0, |(_, state)| *state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_numbered_without_gaps() {
        for state in 0..STATES {
            assert_eq!(Ride::of(state).state(), state);
        }
        let ride = Ride { row: 3, column: 1, passenger: 2, destination: 0 };
        assert_eq!(ride.state(), ((3 * 5 + 1) * 5 + 2) * 4);
    }

    #[test]
    fn a_way_is_open_in_both_directions() {
        for state in (0..STATES).step_by(20) {
            let ride = Ride::of(state);
            for (there, back) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
                let driven = ride.driven(there);
                assert_eq!(driven != ride, ride.is_open(there));
                if driven != ride {
                    assert_eq!(driven.driven(back), ride);
                }
            }
        }
    }

    #[test]
    fn starts_are_where_the_passenger_is_neither_in_the_taxi_nor_at_his_destination() {
        let found: std::collections::BTreeSet<usize> =
            (0..STARTS).map(|k| start((k as f64 + 0.5) / STARTS as f64)).collect();
        assert_eq!(found.len(), STARTS);
        for state in found {
            let ride = Ride::of(state);
            assert!(ride.passenger < IN_TAXI && ride.passenger != ride.destination);
        }
    }
}
