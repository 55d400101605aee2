//! Maps: Gymnasium's, the user's, and random ones.

use std::sync::LazyLock;

use envcore::rng::Rng;
use envcore::{Error, Result};

use super::env::FrozenLakeConfig;
use crate::toy_text::walk::{Transition, Transitions, table};

const START: u8 = b'S';
const ICE: u8 = b'F';
const HOLE: u8 = b'H';
const GOAL: u8 = b'G';

const FOUR: [&str; 4] = ["SFFF", "FHFH", "FFFH", "HFFG"];
const EIGHT: [&str; 8] =
    ["SFFFFFFF", "FFFFFFFF", "FFFHFFFF", "FFFFFHFF", "FFFHFFFF", "FHHFFFHF", "FHFFHFHF", "FFFHFFFG"];

/// The largest side of a random map, and the most fields of one's own.
const MAX_SIDE: u32 = 64;
const MAX_FIELDS: usize = 1 << 16;
/// So many random maps are tried.
const MAX_TRIES: usize = 10_000;

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Start,
    Ice,
    Hole,
    Goal,
}

/// A map.
pub(super) struct Lake {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// The fields, row by row.
    pub(super) fields: Box<[Field]>,
    /// The numbers of the fields where an episode may start.
    pub(super) starts: Box<[usize]>,
}

impl Lake {
    /// The map that a config asks for.
    ///
    /// # Errors
    /// [`Error::OptionValue`], which names the option.
    pub(super) fn of<const SIDE: usize>(config: &FrozenLakeConfig<SIDE>) -> Result<Self> {
        let FrozenLakeConfig { desc, map_name, .. } = config;
        let map: Vec<Vec<u8>> = match (desc, map_name.as_deref()) {
            (Some(rows), _) => rows.iter().map(|row| row.clone().into_bytes()).collect(),
            (None, Some("4x4")) => FOUR.map(|row| row.into()).into(),
            (None, Some("8x8")) => EIGHT.map(|row| row.into()).into(),
            (None, Some(other)) => {
                return Err(wrong(format!(
                    "map_name is \"{other}\": the maps are \"4x4\" and \"8x8\"; desc gives one of your own, \
                     and without both there is a random one"
                )));
            }
            (None, None) => random(config.map_size, config.map_p, config.map_seed)?,
        };
        Lake::new(&map)
    }

    fn new(map: &[Vec<u8>]) -> Result<Self> {
        let (rows, columns) = (map.len(), map.first().map_or(0, Vec::len));
        if columns == 0 || rows * columns > MAX_FIELDS {
            return Err(wrong(format!("desc has {} fields: a map has 1 to {MAX_FIELDS}", rows * columns)));
        }
        let mut fields = Vec::with_capacity(rows * columns);
        for (k, row) in map.iter().enumerate() {
            if row.len() != columns {
                let length = row.len();
                return Err(wrong(format!(
                    "row {k} of desc has {length} letters, and the first has {columns}"
                )));
            }
            for letter in row {
                fields.push(match *letter {
                    START => Field::Start,
                    ICE => Field::Ice,
                    HOLE => Field::Hole,
                    GOAL => Field::Goal,
                    other => {
                        let other = other.escape_ascii();
                        return Err(wrong(format!(
                            "row {k} of desc holds '{other}': the letters are S (start), F (ice), H (hole), G (goal)"
                        )));
                    }
                });
            }
        }
        let starts: Box<[usize]> = (0..fields.len()).filter(|cell| fields[*cell] == Field::Start).collect();
        if starts.is_empty() {
            return Err(wrong("desc has no S: an episode needs a field to start from".into()));
        }
        Ok(Lake { rows, columns, fields: fields.into(), starts })
    }

    /// Where a step in a direction leads. Rewards are numbered as in `reward_schedule`. A map has at most
    /// 65,536 fields, so that each has a number of 16 bits.
    #[inline]
    pub(super) fn walked(&self, cell: usize, direction: i64) -> Transition {
        let next = self.next(cell, direction);
        let (reward, is_over) = match self.fields[next] {
            Field::Goal => (0, true),
            Field::Hole => (1, true),
            Field::Start | Field::Ice => (2, false),
        };
        Transition { next: next as u16, reward, is_over }
    }

    /// The field that a step in a direction leads to: 0 left, 1 down, 2 right, 3 up.
    #[inline]
    fn next(&self, cell: usize, direction: i64) -> usize {
        let column = cell % self.columns;
        match direction {
            0 if column > 0 => cell - 1,
            1 if cell + self.columns < self.fields.len() => cell + self.columns,
            2 if column + 1 < self.columns => cell + 1,
            3 if cell >= self.columns => cell - self.columns,
            _ => cell,
        }
    }
}

/// The steps on Gymnasium's maps; `None` for a name that none of them has.
pub(super) fn usual(map_name: Option<&str>) -> Option<&'static Transitions<4>> {
    static USUAL: LazyLock<[Transitions<4>; 2]> =
        LazyLock::new(|| [steps_on(&FOUR.map(|row| row.into())), steps_on(&EIGHT.map(|row| row.into()))]);
    match map_name {
        Some("4x4") => Some(&USUAL[0]),
        Some("8x8") => Some(&USUAL[1]),
        _ => None,
    }
}

fn steps_on(map: &[Vec<u8>]) -> Transitions<4> {
    let lake = Lake::new(map).expect("Gymnasium's maps are maps");
    table(lake.fields.len(), |cell, direction| lake.walked(cell, direction as i64))
}

/// Gymnasium's `generate_random_map`.
fn random(size: u32, p: f64, seed: u64) -> Result<Vec<Vec<u8>>> {
    if !(2..=MAX_SIDE).contains(&size) {
        return Err(wrong(format!("map_size is {size}: a random map has 2 to {MAX_SIDE} fields a side")));
    }
    if p.is_nan() || p <= 0.0 {
        return Err(wrong(format!("map_p is {p}, and is the probability of ice: above 0, up to 1")));
    }
    let (p, size) = (p.min(1.0), size as usize);
    // `Generator.choice` divides by the sum of the probabilities.
    let ice = p / (p + (1.0 - p));
    let mut rng = Rng::new(seed);
    for _ in 0..MAX_TRIES {
        let mut map = vec![vec![ICE; size]; size];
        for field in map.iter_mut().flatten() {
            if rng.random() >= ice {
                *field = HOLE;
            }
        }
        (map[0][0], map[size - 1][size - 1]) = (START, GOAL);
        if is_crossable(&map) {
            return Ok(map);
        }
    }
    Err(wrong(format!(
        "none of {MAX_TRIES} random maps of {size}×{size} fields with map_p = {p} has a way to the goal: \
         choose a larger map_p or a smaller map_size"
    )))
}

/// Whether a way leads from the top left to a goal.
fn is_crossable(map: &[Vec<u8>]) -> bool {
    let size = map.len();
    let mut seen = vec![false; size * size];
    let mut frontier = vec![(0, 0)];
    while let Some((row, column)) = frontier.pop() {
        if map[row][column] == GOAL {
            return true;
        }
        if map[row][column] == HOLE || std::mem::replace(&mut seen[row * size + column], true) {
            continue;
        }
        let around = [
            (row + 1, column),
            (row, column + 1),
            (row.wrapping_sub(1), column),
            (row, column.wrapping_sub(1)),
        ];
        frontier.extend(around.into_iter().filter(|(row, column)| *row < size && *column < size));
    }
    false
}

fn wrong(why: String) -> Error {
    Error::OptionValue(format!("FrozenLake: {why}"))
}
