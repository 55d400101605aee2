//! What the integration tests share: batches as plain comparable rows, actions
//! as columns, ways to drive a vec env, and (`oracle`) what each row must be.

// Each test binary uses its own part of this.
#![allow(dead_code)]

pub mod count;
pub mod host;
pub mod oracle;
pub mod plugin;
pub mod process;
pub mod runners;
pub mod slow;

use std::collections::BTreeMap;

use envcore::rng::Rng;
use envcore::{
    ActionBounds, AutoresetMode, Batch, Begin, Column, ColumnIn, Config, DType, Env, EnvSource, Extra, Fixed,
    Infos, LeafKind, Options, RowKind, Serial, Slots, Source, Space, Spec, Value, VecConfig, VecEnv, Want,
};

pub const MODES: [AutoresetMode; 3] =
    [AutoresetMode::NextStep, AutoresetMode::SameStep, AutoresetMode::Disabled];

/// One leaf of one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Of fixed shape: its bytes.
    Bytes(Vec<u8>),
    /// Any other. A boxed `u8` counts as the number that it holds.
    Loose(Value),
}

impl Cell {
    pub fn of(column: &Column, row: usize) -> Self {
        match column {
            Column::Fixed(fixed) => {
                let n = fixed.row_bytes();
                Cell::Bytes(fixed.bytes()[row * n..(row + 1) * n].to_vec())
            }
            Column::Values(values) => Cell::loose(&values[row]),
        }
    }

    pub fn loose(value: &Value) -> Self {
        Cell::Loose(match value {
            Value::Object(object) => {
                Value::Int(i64::from(*object.downcast_ref::<u8>().expect("a test's object is a u8")))
            }
            other => other.clone(),
        })
    }

    pub fn float(value: f64) -> Self {
        Cell::Bytes(value.to_ne_bytes().to_vec())
    }

    pub fn int(value: i64) -> Self {
        Cell::Bytes(value.to_ne_bytes().to_vec())
    }

    fn is_empty(&self) -> bool {
        match self {
            Cell::Bytes(bytes) => bytes.iter().all(|byte| *byte == 0),
            Cell::Loose(value) => *value == Value::None,
        }
    }
}

/// The infos that a row has, by name. What was not declared has a `*` before it.
/// `episode.t` is there without its value.
pub type Told = BTreeMap<String, Cell>;

/// All that a row says.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub kind: RowKind,
    pub observation: Vec<Cell>,
    /// The reward's bits.
    pub reward: u64,
    pub terminated: bool,
    pub truncated: bool,
    pub infos: Told,
    /// In SAME_STEP: the episode's last observation and infos.
    pub last: Option<(Vec<Cell>, Told)>,
}

impl Seen {
    /// A row that ends nothing and pays nothing.
    pub fn quiet(kind: RowKind, observation: Vec<Cell>, infos: Told) -> Self {
        let (terminated, truncated) = (false, false);
        Seen { kind, observation, reward: 0f64.to_bits(), terminated, truncated, infos, last: None }
    }

    pub fn done(&self) -> bool {
        self.terminated || self.truncated
    }

    pub fn reward(&self) -> f64 {
        f64::from_bits(self.reward)
    }
}

fn told(space: &Space, infos: &Infos, row: usize) -> Told {
    let mut told = Told::new();
    for ((leaf, column), mask) in space.leaves().iter().zip(&infos.columns).zip(&infos.masks) {
        let cell = Cell::of(column, row);
        if mask.as_slice::<bool>()[row] {
            let is_time = leaf.name == "episode.t";
            told.insert(leaf.name.clone(), if is_time { Cell::Loose(Value::None) } else { cell });
        } else {
            assert!(cell.is_empty(), "info '{}' is masked out and not zero: {cell:?}", leaf.name);
        }
    }
    for Extra { key, value, .. } in infos.extras.iter().filter(|extra| extra.row == row) {
        told.insert(format!("*{key}"), Cell::loose(value));
    }
    told
}

/// The batch's rows with their slots, in row order.
pub fn rows_of(spec: &Spec, batch: &Batch) -> Vec<(usize, Seen)> {
    let flag = |column: &Fixed, row: usize| column.as_slice::<bool>()[row];
    let all =
        |columns: &[Column], row| columns.iter().map(|column| Cell::of(column, row)).collect::<Vec<_>>();
    let seen = |row: usize| Seen {
        kind: batch.kind(row),
        observation: all(&batch.observation, row),
        reward: batch.reward.as_slice::<f64>()[row].to_bits(),
        terminated: flag(&batch.terminated, row),
        truncated: flag(&batch.truncated, row),
        infos: told(&spec.info, &batch.infos, row),
        last: batch
            .finals
            .as_ref()
            .filter(|finals| flag(&finals.ended, row))
            .map(|finals| (all(&finals.observation, row), told(&spec.info, &finals.infos, row))),
    };
    (0..batch.rows()).map(|row| (batch.slots.at(row), seen(row))).collect()
}

/// Columns of actions, owned.
#[derive(Clone)]
pub enum Owned {
    Fixed { dtype: DType, shape: Vec<usize>, bytes: Vec<u8> },
    Values(Vec<Value>),
}

/// The columns of `space` from one list of values (one per leaf) for each row.
pub fn columns(space: &Space, rows: &[&[Value]]) -> Vec<Owned> {
    let column = |(k, leaf): (usize, &envcore::Leaf)| match &leaf.kind {
        LeafKind::Fixed(tensor) => {
            let bytes = rows.iter().flat_map(|row| match &row[k] {
                Value::Array(array) => array.bytes().to_vec(),
                other => panic!("{other:?} is no array"),
            });
            let shape = [&[rows.len()], tensor.shape.as_slice()].concat();
            Owned::Fixed { dtype: tensor.dtype, shape, bytes: bytes.collect() }
        }
        _ => Owned::Values(rows.iter().map(|row| row[k].clone()).collect()),
    };
    space.leaves().iter().enumerate().map(column).collect()
}

/// The columns as a vec env takes them.
pub fn view(columns: &[Owned]) -> Vec<ColumnIn<'_>> {
    let view = |column| match column {
        &Owned::Fixed { dtype, ref shape, ref bytes } => {
            ColumnIn::Fixed { dtype, shape, bytes: bytes.into() }
        }
        Owned::Values(values) => ColumnIn::Values(values),
    };
    columns.iter().map(view).collect()
}

/// Some action of `space`, the same for the same `t` and `slot`.
pub fn some_action(space: &Space, t: usize, slot: usize) -> Vec<Value> {
    let mut action = space.sample(&mut Rng::new((t * 1000 + slot) as u64));
    for (leaf, value) in space.leaves().iter().zip(&mut action) {
        if matches!(leaf.kind, LeafKind::Text { .. }) {
            *value = ["", "a", "süß"][(t + slot) % 3].into();
        }
    }
    action
}

/// Actions of all of `n` slots at time `t`.
pub fn some_actions(space: &Space, t: usize, n: usize) -> Vec<Owned> {
    let rows: Vec<Vec<Value>> = (0..n).map(|slot| some_action(space, t, slot)).collect();
    columns(space, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// A reset or step of all slots and its rows, in slot order. Nothing may fail.
pub fn reset(envs: &mut dyn VecEnv, begin: &[Begin]) -> Vec<Seen> {
    envs.send_reset(&Slots::All, begin, None).unwrap();
    receive(envs)
}

/// See [`reset`].
pub fn step(envs: &mut dyn VecEnv, t: usize) -> Vec<Seen> {
    let actions = some_actions(&envs.spec().action, t, envs.spec().num_slots);
    envs.send(&Slots::All, &view(&actions)).unwrap();
    receive(envs)
}

/// All that is in flight, which is every slot, in order.
pub fn receive(envs: &mut dyn VecEnv) -> Vec<Seen> {
    let batch = recv(envs);
    assert_eq!(batch.failures, []);
    assert_eq!(batch.slots, Slots::All);
    rows_of(envs.spec(), &batch).into_iter().map(|(_, seen)| seen).collect()
}

pub fn recv(envs: &mut dyn VecEnv) -> Box<Batch> {
    envs.recv(Want::all()).unwrap().unwrap()
}

/// Every slot's state: equal before and after a call that moved nothing.
pub fn saved(envs: &mut dyn VecEnv) -> Vec<Vec<u8>> {
    (0..envs.spec().num_slots).map(|slot| envs.save(slot).unwrap()).collect()
}

/// The built-in source of this id, with options for its config.
pub fn source(id: &str, options: &Options) -> Box<dyn Source> {
    envs::find(id).unwrap().source(options).unwrap()
}

/// The source of an env made for one test.
pub fn source_of<E: Env>() -> EnvSource<E> {
    EnvSource::new("testing/Own-v0", E::Config::from_options("", &Options::new()).unwrap()).unwrap()
}

pub fn config(num_slots: usize, autoreset: AutoresetMode) -> VecConfig {
    VecConfig {
        num_slots,
        seed: Some(100),
        autoreset: Some(autoreset),
        max_episode_steps: None,
        episode_statistics: false,
        action_bounds: ActionBounds::Env,
        ..VecConfig::default()
    }
}

/// `num_slots` slots of a built-in env with default options, run serially.
pub fn serial(id: &str, num_slots: usize, autoreset: AutoresetMode) -> Serial {
    Serial::new(&*source(id, &Options::new()), config(num_slots, autoreset)).unwrap()
}

/// The error of a call that must not succeed, as text.
pub fn refusal<T>(result: envcore::Result<T>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}
