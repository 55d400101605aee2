//! An env with struct observations, actions and infos, records, episodes of
//! random length, and any fault on demand.

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, FromRow, Leaf, Options, Record, Result, Row, Space, Step,
    ToRow, Value, state, wants_reset,
};
use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Fault {
    #[default]
    None,
    PanicInBuild,
    ErrorInBuild,
    PanicInReset,
    ErrorInReset,
    PanicInStep,
    ErrorInStep,
    SleepInReset,
    SleepInStep,
    SleepInEveryStep,
    PanicInRender,
    PanicInClose,
    IncompleteObservation,
    WrongDtype,
    /// The conformance check must see each of these.
    IgnoresSeed,
    IndexDisturbsStream,
    IndexDependsOnHistory,
    OutOfBounds,
    SaveForgets,
    NotDeterministic,
    /// Draws from the stream in `build`, and shows what was drawn in every episode.
    DrawsInBuild,
    /// Is built from a seed in another way than it is seeded anew.
    ReseedDiffers,
    NanObservation,
    NanReward,
    InfoOutOfBounds,
}

/// Faulty's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct FaultyConfig {
    /// What goes wrong.
    pub fault: Fault,
    /// The step of an episode, from 0, at which a fault in a step shows.
    pub at_step: u32,
    /// The seed of the instances that have the fault; -1 for all.
    pub of_seed: i64,
    /// The episode, from 0, in which a fault in a reset shows.
    pub in_episode: u32,
    /// Seconds that a sleep lasts.
    pub sleep: f64,
}

impl Default for FaultyConfig {
    fn default() -> Self {
        FaultyConfig { fault: Fault::None, at_step: 2, of_seed: -1, in_episode: 1, sleep: 3600.0 }
    }
}

/// What it shows.
#[derive(ToRow)]
pub struct Seen {
    #[leaf(low = 0.0, high = 1.0)]
    level: f32,
    body: Body,
    count: i32,
}

/// A nested part of what it shows.
#[derive(ToRow)]
pub struct Body {
    #[leaf(low = -1.0, high = 1.0)]
    joints: [[f64; 2]; 3],
    awake: bool,
}

/// What it takes.
#[derive(Clone, FromRow)]
pub struct Push {
    #[leaf(low = -1.0, high = 1.0)]
    force: [f32; 2],
    gear: Discrete<3, 1>,
}

/// What it tells, at resets too.
#[derive(ToRow)]
pub struct FaultyInfo {
    #[leaf(low = 0, high = 100)]
    left: i32,
    nested: FaultyPair,
}

/// A nested part of what it tells.
#[derive(ToRow)]
pub struct FaultyPair {
    pair: [i16; 2],
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct Faulty {
    config: FaultyConfig,
    seed: i64,
    streams: Streams,
    episodes: u32,
    count: u32,
    length: u32,
    level: f32,
    bias: f64,
    /// Changes with every reset, whoever asks.
    history: u32,
}

/// Counts instances, for [`Fault::NotDeterministic`].
static INSTANCES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Faulty {
    fn has(&self, fault: Fault) -> bool {
        self.config.fault == fault && (self.config.of_seed < 0 || self.config.of_seed == self.seed)
    }

    fn due(&self, fault: Fault) -> bool {
        self.has(fault) && self.count == self.config.at_step
    }

    fn sleep(&self) {
        std::thread::sleep(std::time::Duration::from_secs_f64(self.config.sleep));
    }

    fn begin(&mut self) -> Result<Seen> {
        if self.episodes == self.config.in_episode {
            assert!(!self.has(Fault::PanicInReset), "a fault on demand");
            if self.has(Fault::ErrorInReset) {
                return Err(Error::env("a fault on demand"));
            }
            if self.has(Fault::SleepInReset) {
                self.sleep();
            }
        }
        self.episodes += 1;
        self.history += 1;
        self.count = 0;
        let rng = self.streams.rng();
        self.length = rng.integers(3, 12) as u32;
        self.level = rng.random() as f32;
        Ok(self.seen())
    }

    fn seen(&self) -> Seen {
        let level = match self.config.fault {
            Fault::OutOfBounds if self.due(Fault::OutOfBounds) => 1.5,
            _ => self.level,
        };
        let mut joint = (f64::from(self.level) + self.bias).clamp(-1.0, 1.0);
        if self.due(Fault::NanObservation) {
            joint = f64::NAN;
        }
        Seen {
            level,
            body: Body { joints: [[joint, -joint]; 3], awake: self.count.is_multiple_of(2) },
            count: self.count as i32,
        }
    }

    fn told(&self) -> FaultyInfo {
        let wrong = if self.due(Fault::InfoOutOfBounds) { -200 } else { 0 };
        FaultyInfo {
            left: self.length as i32 - self.count as i32 + wrong,
            nested: FaultyPair { pair: [self.count as i16, -(self.count as i16)] },
        }
    }
}

/// What Faulty shows, or, on demand, fails to.
pub struct Shown {
    seen: Seen,
    broken: Option<Fault>,
}

impl ToRow for Shown {
    fn space() -> Result<Space> {
        Seen::space()
    }

    fn write(&self, row: &mut Row<'_>) {
        match self.broken {
            Some(Fault::IncompleteObservation) => self.seen.level.write(row),
            Some(_) => row.scalar(1u8),
            None => self.seen.write(row),
        }
    }
}

impl Env for Faulty {
    type Config = FaultyConfig;
    type Obs = Shown;
    type Act = Push;
    type Info = FaultyInfo;

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::OPTIONS);

    fn build(config: &FaultyConfig, seed: i64) -> Result<Self> {
        let instance = INSTANCES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut faulty = Faulty {
            config: config.clone(),
            seed,
            streams: Streams::new(match config.fault {
                Fault::IgnoresSeed => 7,
                Fault::NotDeterministic => instance as i64,
                _ => seed,
            }),
            episodes: 0,
            count: 0,
            length: 0,
            level: 0.0,
            bias: 0.0,
            history: 0,
        };
        assert!(!faulty.has(Fault::PanicInBuild), "a fault on demand");
        if faulty.has(Fault::ErrorInBuild) {
            return Err(Error::env("a fault on demand"));
        }
        if faulty.has(Fault::DrawsInBuild) {
            faulty.streams.begin_own();
            faulty.bias = faulty.streams.rng().random() - 0.5;
        }
        Ok(faulty)
    }

    fn reseed(&mut self, config: &FaultyConfig, seed: i64) -> Result<()> {
        *self = Self::build(config, seed)?;
        if self.has(Fault::ReseedDiffers) {
            self.bias = 0.25;
        }
        Ok(())
    }

    fn record_space(_config: &FaultyConfig) -> Result<Space> {
        Ok(Leaf::real::<f64>(&[]).named("energy").into())
    }

    fn step(&mut self, a: &Push) -> Result<(Step<Self>, Record)> {
        assert!(!self.due(Fault::PanicInStep), "a fault on demand");
        if self.due(Fault::ErrorInStep) {
            return Err(Error::env("a fault on demand"));
        }
        if self.due(Fault::SleepInStep) || self.has(Fault::SleepInEveryStep) {
            self.sleep();
        }
        let breaks = [Fault::IncompleteObservation, Fault::WrongDtype];
        let broken = breaks.into_iter().find(|&fault| self.due(fault));
        self.count += 1;
        let drawn = self.streams.rng().random() as f32;
        self.level = (drawn + a.force[0].clamp(-1.0, 1.0)).clamp(0.0, 1.0);
        let reward = match self.due(Fault::NanReward) {
            true => f64::NAN,
            false => f64::from(self.level) * a.gear.0 as f64,
        };
        let done = self.count >= self.length;
        let mut record = Record::empty();
        if self.count.is_multiple_of(3) {
            record.insert("energy", f64::from(a.force[1]));
            record.insert("note", format!("step {}", self.count));
        }
        let step = Step::new(a.clone(), Shown { seen: self.seen(), broken }, reward, self.told())
            .terminated_if(done && self.length.is_multiple_of(2))
            .truncated_if(done && self.length % 2 == 1);
        Ok((step, record))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Shown> {
        if wants_reset(is_done)? {
            self.streams.begin_own();
            self.begin()?;
        }
        Ok(Shown { seen: self.seen(), broken: None })
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Shown> {
        let mut index = ix as u64;
        if self.has(Fault::IndexDisturbsStream) {
            self.streams.begin_own();
            self.streams.rng().random();
        }
        if self.has(Fault::IndexDependsOnHistory) {
            index += u64::from(self.history);
        }
        self.streams.begin_index(index);
        self.begin()?;
        Ok(Shown { seen: self.seen(), broken: None })
    }

    fn info(&self) -> Option<FaultyInfo> {
        Some(self.told())
    }

    /// `bias`: added to the joints.
    fn set_options(&mut self, options: &Options) -> Result<()> {
        for (name, value) in options.iter() {
            match (name, value) {
                ("bias", Value::Float(bias)) => self.bias = *bias,
                ("bias", other) => {
                    return Err(Error::OptionValue(format!("bias is a float, not {other:?}")));
                }
                _ => return Err(Error::UnknownOption(format!("unknown reset option '{name}'; valid: bias"))),
            }
        }
        Ok(())
    }

    fn render(&mut self) -> Result<Frame> {
        assert!(!self.has(Fault::PanicInRender), "a fault on demand");
        Frame::new(4, 6, vec![self.count as u8; 72])
    }

    fn save(&self) -> Result<Vec<u8>> {
        let mut saved = self.clone();
        if self.has(Fault::SaveForgets) {
            saved.streams = Streams::new(0);
        }
        state::to_bytes(&saved)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        assert!(!self.has(Fault::PanicInClose), "a fault on demand");
        Ok(())
    }
}
