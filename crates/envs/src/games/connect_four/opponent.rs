//! Who plays against the player.

use envcore::rng::Rng;
use serde::{Deserialize, Serialize};

use super::board::{COLUMNS, dropped, has_four, has_room};

/// How the opponent picks its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpponentKind {
    /// Any column with room.
    Random,
    /// Wins or blocks at once.
    Greedy,
    /// Looks some stones ahead.
    Minimax,
}

/// Further than any value.
const INFINITE: i32 = 1000;

/// Columns in the order in which a search for the best one ends soonest.
const CENTRE_FIRST: [usize; COLUMNS] = [3, 2, 4, 1, 5, 0, 6];

/// By column, whether it is one of them.
type ColumnSet = [bool; COLUMNS];

/// The column that the opponent picks, of which one or more have room.
pub(super) fn pick(kind: OpponentKind, depth: u32, own: u64, other: u64, rng: &mut Rng) -> usize {
    let chosen = match kind {
        OpponentKind::Random => columns(own | other, |_| true),
        OpponentKind::Greedy => greedy(own, other),
        OpponentKind::Minimax => best(own, other, depth as i32),
    };
    let count = chosen.iter().filter(|is_chosen| **is_chosen).count();
    let k = rng.choice(count);
    (0..COLUMNS).filter(|column| chosen[*column]).nth(k).unwrap_or_default()
}

/// The columns with room that fulfil a condition.
#[inline]
fn columns(all: u64, condition: impl Fn(usize) -> bool) -> ColumnSet {
    let mut chosen = [false; COLUMNS];
    for (column, is_chosen) in chosen.iter_mut().enumerate() {
        *is_chosen = has_room(all, column) && condition(column);
    }
    chosen
}

/// The columns that win at once; else those that keep the other player from winning at once; else
/// all with room.
fn greedy(own: u64, other: u64) -> ColumnSet {
    let all = own | other;
    for stones in [own, other] {
        let winning = columns(all, |column| has_four(stones | dropped(all, column)));
        if winning.contains(&true) {
            return winning;
        }
    }
    columns(all, |_| true)
}

/// The columns of the highest value.
fn best(own: u64, other: u64, depth: i32) -> ColumnSet {
    let (mut chosen, mut highest) = ([false; COLUMNS], -INFINITE);
    for column in CENTRE_FIRST {
        if !has_room(own | other, column) {
            continue;
        }
        // A value below the highest so far need not be known.
        let value = value_of(own, other, column, depth, highest - 1, INFINITE);
        if value > highest {
            (chosen, highest) = ([false; COLUMNS], value);
        }
        chosen[column] |= value == highest;
    }
    chosen
}

/// What a stone in a column with room is worth to its owner, who looks `depth` stones ahead with
/// this one: exact between `low` and `high`, else a value on the same side of them.
fn value_of(own: u64, other: u64, column: usize, depth: i32, low: i32, high: i32) -> i32 {
    let own = own | dropped(own | other, column);
    if has_four(own) { depth } else { -value(other, own, depth - 1, -high, -low) }
}

/// What the stones are worth to the owner of `own`, whose turn it is.
fn value(own: u64, other: u64, depth: i32, mut low: i32, high: i32) -> i32 {
    if depth == 0 {
        return 0;
    }
    let mut highest = None;
    for column in CENTRE_FIRST.into_iter().filter(|column| has_room(own | other, *column)) {
        let value = value_of(own, other, column, depth, low, high);
        highest = highest.max(Some(value));
        low = low.max(value);
        if low >= high {
            break;
        }
    }
    // A full board is a draw.
    highest.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same without bounds.
    fn plain_value(own: u64, other: u64, depth: i32) -> i32 {
        let open = (0..COLUMNS).filter(|column| has_room(own | other, *column));
        let value = |column| {
            let own = own | dropped(own | other, column);
            if has_four(own) { depth } else { -plain_value(other, own, depth - 1) }
        };
        if depth == 0 { 0 } else { open.map(value).max().unwrap_or(0) }
    }

    /// The stones of two players after some of a game at random that nobody has won.
    fn drawn(rng: &mut Rng, stones: i64) -> (u64, u64) {
        let (mut own, mut other) = (0, 0);
        for _ in 0..stones {
            let column = rng.choice(COLUMNS);
            if !has_room(own | other, column) {
                continue;
            }
            let stone = dropped(own | other, column);
            if !has_four(own | stone) {
                (own, other) = (other, own | stone);
            }
        }
        (own, other)
    }

    #[test]
    fn the_bounds_of_the_search_change_no_choice() {
        let mut rng = Rng::new(2);
        let mut narrow = 0;
        for game in 0..300 {
            let stones = rng.integers(0, 50);
            let (own, other) = drawn(&mut rng, stones);
            let depth = 1 + game % 4;
            let values: Vec<Option<i32>> = (0..COLUMNS)
                .map(|column| {
                    let own_after = own | dropped(own | other, column);
                    has_room(own | other, column).then(|| {
                        if has_four(own_after) { depth } else { -plain_value(other, own_after, depth - 1) }
                    })
                })
                .collect();
            let highest = values.iter().copied().max().flatten();
            let expected: Vec<bool> =
                values.iter().map(|value| value.is_some() && *value == highest).collect();
            assert_eq!(best(own, other, depth).to_vec(), expected, "{own:x} {other:x} {depth}");
            narrow += usize::from(expected.iter().filter(|is_best| **is_best).count() < 3);
        }
        assert!(narrow > 50, "{narrow}");
    }
}
