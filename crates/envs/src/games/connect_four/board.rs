//! Stones as bits: the field in a column and a row from below is bit 7 · column + row. The seventh
//! bit of a column is always 0, so that no row goes on in the next column.

/// The fields of a row.
pub(super) const COLUMNS: usize = 7;
/// The fields of a column.
pub(super) const ROWS: usize = 6;
/// The bits of a column.
const STRIDE: usize = ROWS + 1;

const COLUMN: u64 = (1 << ROWS) - 1;
/// All fields.
pub(super) const BOARD: u64 = {
    let (mut fields, mut column) = (0, 0);
    while column < COLUMNS {
        fields |= COLUMN << (column * STRIDE);
        column += 1;
    }
    fields
};

/// The bit of a field, the row counted from below.
#[inline]
pub(super) const fn field(row: usize, column: usize) -> u64 {
    1 << (column * STRIDE + row)
}

/// Whether a column has room among all stones.
#[inline]
pub(super) const fn has_room(all: u64, column: usize) -> bool {
    all & field(ROWS - 1, column) == 0
}

/// The field where a stone comes to lie; none in a full column.
#[inline]
pub(super) const fn dropped(all: u64, column: usize) -> u64 {
    (all + field(0, column)) & (COLUMN << (column * STRIDE))
}

/// The first fields of all fours in a row among some stones, in each direction with the way to the
/// next field.
#[inline]
pub(super) fn fours(stones: u64) -> [(u64, usize); 4] {
    // Up, right, right and down, right and up.
    [1, STRIDE, STRIDE - 1, STRIDE + 1].map(|way| {
        let pairs = stones & stones >> way;
        (pairs & pairs >> (2 * way), way)
    })
}

/// Whether four of some stones are in a row.
#[inline]
pub(super) fn has_four(stones: u64) -> bool {
    fours(stones).into_iter().any(|(first, _)| first != 0)
}

/// Whether a game can have these stones, as far as their number and gravity tell.
pub(super) fn are_possible(mine: u64, theirs: u64) -> bool {
    let all = mine | theirs;
    let lies = |column: usize| {
        let stones = all >> (column * STRIDE) & COLUMN;
        stones & (stones + 1) == 0
    };
    mine & theirs == 0
        && all & !BOARD == 0
        && (0..COLUMNS).all(lies)
        && mine.count_ones().abs_diff(theirs.count_ones()) <= 1
}

#[cfg(test)]
mod tests {
    use envcore::rng::Rng;

    use super::*;

    /// The fields of every line of four, one by one.
    fn lines() -> Vec<[(usize, usize); 4]> {
        let mut lines = Vec::new();
        for row in 0..ROWS as i32 {
            for column in 0..COLUMNS as i32 {
                for (up, right) in [(0, 1), (1, 0), (1, 1), (-1, 1)] {
                    let line = [0, 1, 2, 3].map(|k| (row + k * up, column + k * right));
                    if line.iter().all(|(r, c)| (0..6).contains(r) && (0..7).contains(c)) {
                        lines.push(line.map(|(r, c)| (r as usize, c as usize)));
                    }
                }
            }
        }
        lines
    }

    #[test]
    fn four_in_a_row_are_found_on_the_69_lines_and_nowhere_else() {
        let lines = lines();
        assert_eq!(lines.len(), 69);
        for line in &lines {
            assert!(has_four(line.iter().map(|(row, column)| field(*row, *column)).sum()));
        }
        let mut rng = Rng::new(1);
        let mut found = [0, 0];
        for _ in 0..20_000 {
            let share = rng.random();
            let mut fields = [[false; COLUMNS]; ROWS];
            fields.iter_mut().flatten().for_each(|stone| *stone = rng.random() < share);
            let stones = (0..ROWS * COLUMNS)
                .filter(|k| fields[k / COLUMNS][k % COLUMNS])
                .fold(0, |stones, k| stones | field(k / COLUMNS, k % COLUMNS));
            let expected = lines.iter().any(|line| line.iter().all(|(r, c)| fields[*r][*c]));
            assert_eq!(has_four(stones), expected, "{fields:?}");
            found[usize::from(expected)] += 1;
        }
        assert!(found.iter().all(|count| *count > 2000), "{found:?}");
    }

    #[test]
    fn a_stone_falls_on_those_below_it() {
        for column in 0..COLUMNS {
            // A full column beside it does not matter.
            let beside = COLUMN << ((column + 1) % COLUMNS * STRIDE);
            let mut all = beside;
            for row in 0..ROWS {
                assert!(has_room(all, column));
                assert_eq!(dropped(all, column), field(row, column));
                all |= dropped(all, column);
            }
            assert!(!has_room(all, column));
            assert_eq!(dropped(all, column), 0);
        }
    }

    #[test]
    fn stones_that_float_or_share_a_field_are_no_game() {
        assert!(are_possible(field(0, 3), field(1, 3)));
        assert!(!are_possible(field(1, 3), 0));
        assert!(!are_possible(field(0, 3), field(0, 3)));
        assert!(!are_possible(field(0, 0) | field(0, 1), 0));
        assert!(!are_possible(1 << 6, 0));
        assert!(!are_possible(1 << 49, 0));
    }
}
