//! The rules.

use std::ops::Range;

use envcore::rng::Streams;
use envcore::{
    ByField, Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, RowsMut, Space, Step, StepArgs,
    state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::draw;
use super::lake::{Lake, usual};
use crate::toy_text::chance::{Chance, check_probability, outcome};
use crate::toy_text::walk::{FEW, Transition, Walk, slipped};

/// FrozenLake's options. `SIDE` says which of Gymnasium's maps is the usual one.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct FrozenLakeConfig<const SIDE: usize> {
    /// A map of one's own: rows of S (start), F (ice), H (hole) and G (goal).
    pub desc: Option<Vec<String>>,
    /// Where there is no `desc`: "4x4", "8x8", or none for a random map.
    #[option(choices = ["4x4", "8x8"])]
    pub map_name: Option<String>,
    /// Whether a step may go to a side of where it is meant to go.
    pub is_slippery: bool,
    /// On slippery ice, the probability that a step goes where it is meant to go, 0 to 1.
    #[option(low = 0, high = 1)]
    pub success_rate: f64,
    /// The rewards for the goal, for a hole and for ice.
    pub reward_schedule: [f64; 3],
    /// The fields per side of a random map, 2 to 64.
    #[option(low = 2, high = 64)]
    pub map_size: u32,
    /// The probability that a field of a random map is ice, above 0, up to 1.
    #[option(low = 0)]
    pub map_p: f64,
    /// The seed of a random map.
    pub map_seed: u64,
}

impl<const SIDE: usize> Default for FrozenLakeConfig<SIDE> {
    fn default() -> Self {
        FrozenLakeConfig {
            desc: None,
            map_name: Some(format!("{SIDE}x{SIDE}")),
            is_slippery: true,
            success_rate: 1.0 / 3.0,
            reward_schedule: [1.0, 0.0, 0.0],
            map_size: 8,
            map_p: 0.8,
            map_seed: 0,
        }
    }
}

/// The environment; see the module.
pub struct FrozenLake<const SIDE: usize> {
    lake: Lake,
    /// The probabilities of a step to the left of, towards and to the right of where it is meant to
    /// go, on slippery ice.
    slips: Option<[f64; 3]>,
    /// For goal, hole and ice.
    rewards: [f64; 3],
    streams: Streams,
    now: LakeState,
}

/// Where the walker is.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct LakeState {
    cell: usize,
    /// The last action of this episode.
    action: Option<u8>,
}

/// The probabilities of a step to the left of, towards and to the right of where it is meant to go.
fn slips(rate: f64) -> [f64; 3] {
    let side = (1.0 - rate) / 2.0;
    [side, rate, side]
}

impl<const SIDE: usize> FrozenLake<SIDE> {
    fn begin(&mut self) -> i64 {
        let starts = &self.lake.starts;
        let share = 1.0 / starts.len() as f64;
        let start = outcome(starts.iter().map(|_| share), self.streams.rng().random());
        self.now = LakeState { cell: start.map_or(0, |k| starts[k]), action: None };
        self.now.cell as i64
    }

    /// The direction that a step takes, and with which probability.
    #[inline]
    fn slip(&mut self, action: i64) -> (i64, f64) {
        // Ice that is not slippery draws a number, too.
        let draw = self.streams.rng().random();
        let Some(slips) = self.slips else { return (action, 1.0) };
        slipped(slips, action, draw)
    }
}

impl<const SIDE: usize> Env for FrozenLake<SIDE> {
    type Config = FrozenLakeConfig<SIDE>;
    type Obs = i64;
    type Act = Discrete<4>;
    type Info = Chance;

    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::BRIEF);

    fn build(config: &Self::Config, seed: i64) -> Result<Self> {
        let FrozenLakeConfig { is_slippery, success_rate: rate, reward_schedule: rewards, .. } = *config;
        check_probability("FrozenLake", "success_rate", rate)?;
        let slips = is_slippery.then(|| slips(rate));
        let (lake, streams) = (Lake::of(config)?, Streams::new(seed));
        Ok(FrozenLake { lake, slips, rewards, streams, now: LakeState::default() })
    }

    fn observation_space(config: &Self::Config) -> Result<Space> {
        Ok(Leaf::discrete(Lake::of(config)?.fields.len() as u64).into())
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        let (direction, prob) = self.slip(a.0);
        let Transition { next, reward, is_over } = self.lake.walked(self.now.cell, direction);
        self.now = LakeState { cell: next.into(), action: Some(a.0 as u8) };
        let step = Step::new(*a, next.into(), self.rewards[usize::from(reward)], Chance { prob });
        Ok((step.terminated_if(is_over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i64> {
        if !wants_reset(is_done)? {
            return Ok(self.now.cell as i64);
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<i64> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn reseed(&mut self, _config: &Self::Config, seed: i64) -> Result<()> {
        self.streams = Streams::new(seed);
        Ok(())
    }

    fn info(&self) -> Option<Chance> {
        Some(Chance::SURE)
    }

    fn render(&mut self) -> Result<Frame> {
        draw::picture(&self.lake, self.now.cell)
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(draw::text(&self.lake, self.now.cell, self.now.action))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.streams, self.now))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (streams, now): (Streams, LakeState) = state::from_bytes(bytes)?;
        if now.cell >= self.lake.fields.len() || now.action.is_some_and(|action| action > 3) {
            return Err(Error::State(format!("field {} is not on this map", now.cell)));
        }
        (self.streams, self.now) = (streams, now);
        Ok(())
    }
}

/// The walker's field, the last action or −1, and the draw.
impl<const SIDE: usize> ByField<3> for FrozenLake<SIDE> {
    const FEWEST: usize = FEW;
    const DRAWS: Option<usize> = Some(2);

    /// On Gymnasium's maps, which have one table for all envs.
    fn is_wanted(config: &Self::Config) -> bool {
        config.desc.is_none() && usual(config.map_name.as_deref()).is_some()
    }

    fn fields(&self) -> [f64; 3] {
        [self.now.cell as f64, self.now.action.map_or(-1.0, f64::from), 0.0]
    }

    fn set_fields(&mut self, [cell, action, _]: [f64; 3]) {
        self.now = LakeState { cell: cell as usize, action: (action >= 0.0).then_some(action as u8) };
    }

    fn draw(&mut self) -> f64 {
        self.streams.rng().random()
    }

    fn step_fields(
        config: &Self::Config,
        [cells, played, draws]: [&mut [f64]; 3],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        _left: &mut Vec<Range<usize>>,
    ) {
        let table = usual(config.map_name.as_deref()).expect("is_wanted says that there is one");
        for (played, action) in played.iter_mut().zip(actions.leaf::<i64>(0, slots.clone())) {
            *played = f64::from(*action as u8);
        }
        let (rewards, slips) =
            (config.reward_schedule, config.is_slippery.then(|| slips(config.success_rate)));
        Walk { table, rewards, slips }.step([cells, draws], slots, actions, rows);
    }
}
