//! `Count`, an env whose rows can be written down by hand.

use envcore::rng::Streams;
use envcore::{
    AutoresetMode, Caps, ColumnIn, Discrete, Env, Error, Options, Record, Result, RowKind, Serial, Slots,
    Step, ToRow, Value, VecEnv, wants_reset,
};

use super::{Cell, Seen, config, receive, source_of};

/// Counts its steps; action 1 ends the episode, action 2 cuts it, action 3 does
/// both. Shows (step, drawn at the reset, option); tells the step. The option
/// `shift` panics at `i64::MAX`.
pub struct Count {
    pub at: i64,
    pub drawn: i64,
    pub shift: i64,
    pub streams: Streams,
}

#[derive(ToRow)]
pub struct Shown {
    pub at: i64,
    pub drawn: i64,
    pub shift: i64,
}

#[derive(ToRow)]
pub struct Told {
    pub step: i64,
}

impl Count {
    fn shown(&self) -> Shown {
        Shown { at: self.at, drawn: self.drawn, shift: self.shift }
    }

    fn begin(&mut self) -> Result<Shown> {
        (self.at, self.drawn) = (0, self.streams.rng().integers(1, 1 << 40));
        Ok(self.shown())
    }
}

impl Env for Count {
    type Config = ();
    type Obs = Shown;
    type Act = Discrete<4>;
    type Info = Told;

    const CAPS: Caps = Caps::OPTIONS;

    fn build(_config: &(), seed: i64) -> Result<Self> {
        Ok(Count { at: 0, drawn: 0, shift: 0, streams: Streams::new(seed) })
    }

    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        self.at += 1;
        let step = Step::new(*a, self.shown(), self.at as f64, Told { step: self.at });
        Ok((step.terminated_if(a.0 & 1 == 1).truncated_if(a.0 & 2 == 2), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Shown> {
        if wants_reset(is_done)? {
            self.streams.begin_own();
            return self.begin();
        }
        Ok(self.shown())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Shown> {
        self.streams.begin_index(ix as u64);
        self.begin()
    }

    fn info(&self) -> Option<Told> {
        Some(Told { step: self.at })
    }

    fn set_options(&mut self, options: &Options) -> Result<()> {
        match options.get("shift") {
            Some(Value::Int(i64::MAX)) => panic!("a panic of the options"),
            Some(Value::Int(shift)) => self.shift = *shift,
            other => return Err(Error::OptionValue(format!("shift is {other:?}"))),
        }
        Ok(())
    }
}

/// What a row of `Count` says, with `drawn` left out.
#[derive(Debug, PartialEq)]
pub struct Says {
    pub kind: RowKind,
    pub at: i64,
    pub reward: f64,
    pub flags: (bool, bool),
    pub told: Option<i64>,
    /// The final observation's and info's step.
    pub last: Option<(i64, i64)>,
}

pub fn number(cell: &Cell) -> i64 {
    match cell {
        Cell::Bytes(bytes) => i64::from_ne_bytes(bytes.as_slice().try_into().unwrap()),
        Cell::Loose(other) => panic!("{other:?}"),
    }
}

pub fn says(seen: &Seen) -> Says {
    Says {
        kind: seen.kind,
        at: number(&seen.observation[0]),
        reward: seen.reward(),
        flags: (seen.terminated, seen.truncated),
        told: seen.infos.get("step").map(number),
        last: seen.last.as_ref().map(|(obs, infos)| (number(&obs[0]), number(&infos["step"]))),
    }
}

/// A row in the midst of an episode.
pub fn midst(at: i64) -> Says {
    Says { kind: RowKind::Step, at, reward: at as f64, flags: (false, false), told: Some(at), last: None }
}

/// A row of a reset alone.
pub fn first() -> Says {
    Says { kind: RowKind::Reset, reward: 0.0, ..midst(0) }
}

pub fn drawn(seen: &Seen) -> i64 {
    number(&seen.observation[1])
}

pub fn shift(seen: &Seen) -> i64 {
    number(&seen.observation[2])
}

pub fn count(num_slots: usize, autoreset: AutoresetMode) -> Serial {
    Serial::new(&source_of::<Count>(), config(num_slots, autoreset)).unwrap()
}

pub fn act(envs: &mut dyn VecEnv, actions: &[i64]) -> Vec<Seen> {
    envs.send(&Slots::All, &[ColumnIn::scalars(actions, &[actions.len()])]).unwrap();
    receive(envs)
}

pub fn reset_with(envs: &mut dyn VecEnv, begin: &[envcore::Begin], options: Options) -> Vec<Seen> {
    envs.send_reset(&Slots::All, begin, Some(&options)).unwrap();
    receive(envs)
}

/// What a fresh `Count` of `seed` draws at its first resets.
pub fn draws(seed: i64) -> impl Iterator<Item = i64> {
    let mut env = Count::build(&(), seed).unwrap();
    std::iter::repeat_with(move || env.reset(None).unwrap().drawn)
}
