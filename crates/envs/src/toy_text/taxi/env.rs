//! The rules.

use std::ops::Range;
use std::sync::LazyLock;

use envcore::rng::Streams;
use envcore::{
    ByField, Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, RowsMut, Space, Step, StepArgs,
    state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::draw;
use super::town::{self, IN_TAXI, Ride, STANDS, STATES};
use crate::toy_text::chance::{Chance, check_probability, outcome};
use crate::toy_text::walk::{FEW, Transition, Transitions, Walk, table};

/// The sides of a drive: to the left and to the right of south, north, east and west.
const SIDES: [[usize; 2]; 4] = [[2, 3], [3, 2], [1, 0], [0, 1]];
const PICK_UP: usize = 4;
/// The number of actions.
const ACTIONS: usize = 6;
/// The rewards of a drive, of what the passenger does not want, and of an arrival.
const REWARDS: [f64; 3] = [-1.0, -10.0, 20.0];

/// Taxi's options.
#[derive(Clone, Debug, PartialEq, Config)]
pub struct TaxiConfig {
    /// Whether a drive may go to a side of where it is meant to go.
    pub is_rainy: bool,
    /// Whether the passenger may change his destination once.
    pub fickle_passenger: bool,
    /// In rain, the probability that a drive goes where it is meant to go, 0 to 1.
    #[option(low = 0, high = 1)]
    pub rainy_probability: f64,
    /// The probability that a fickle passenger does change his destination, 0 to 1.
    #[option(low = 0, high = 1)]
    pub fickle_probability: f64,
}

impl Default for TaxiConfig {
    fn default() -> Self {
        TaxiConfig {
            is_rainy: false,
            fickle_passenger: false,
            rainy_probability: 0.8,
            fickle_probability: 0.3,
        }
    }
}

/// The environment; see the module.
pub struct Taxi {
    config: TaxiConfig,
    streams: Streams,
    now: TaxiState,
}

/// What an episode's rest depends on.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct TaxiState {
    /// The number of the ride.
    ride: usize,
    /// Whether the passenger is going to change his mind.
    is_fickle: bool,
    /// The last action of this episode.
    action: Option<u8>,
    /// Where the taxi points, for pictures: the last drive of this episode.
    heading: u8,
}

impl Taxi {
    fn begin(&mut self) -> i64 {
        let rng = self.streams.rng();
        let ride = town::start(rng.random());
        let is_fickle = self.config.fickle_passenger && rng.random() < self.config.fickle_probability;
        self.now = TaxiState { ride, is_fickle, ..TaxiState::default() };
        ride as i64
    }

    fn ride(&self) -> Ride {
        Ride::of(self.now.ride)
    }

    /// The drive in a direction: the ride after it, and its probability.
    #[inline(always)]
    fn drive(&self, ride: Ride, direction: usize, draw: f64) -> (Ride, f64) {
        if !self.config.is_rainy {
            return (ride.driven(direction), 1.0);
        }
        let straight = self.config.rainy_probability;
        let side = (1.0 - straight) / 2.0;
        let k = outcome([straight, side, side], draw).unwrap_or(0);
        let [left, right] = SIDES[direction];
        // A taxi that is held slides to no side.
        let driven = match k {
            _ if !ride.is_open(direction) => ride,
            0 => ride.driven(direction),
            1 => ride.driven(left),
            _ => ride.driven(right),
        };
        (driven, if k == 0 { straight } else { side })
    }
}

/// The ride after the passenger was picked up or let out, the number of the reward, and whether he is
/// where he wants to go.
fn serve(mut ride: Ride, action: usize) -> (Ride, u8, bool) {
    let stand = ride.stand();
    match (action, stand) {
        (PICK_UP, Some(stand)) if ride.passenger == stand => {
            ride.passenger = IN_TAXI;
            (ride, 0, false)
        }
        (PICK_UP, _) => (ride, 1, false),
        (_, Some(stand)) if ride.passenger == IN_TAXI => {
            ride.passenger = stand;
            let arrived = stand == ride.destination;
            (ride, if arrived { 2 } else { 0 }, arrived)
        }
        _ => (ride, 1, false),
    }
}

/// Writes which actions change something: drives that are open, and what the passenger wants.
#[inline(always)]
fn mask_of(ride: Ride, mask: &mut [bool]) {
    for (direction, is_open) in mask[..PICK_UP].iter_mut().enumerate() {
        *is_open = ride.is_open(direction);
    }
    let stand = ride.stand();
    mask[PICK_UP] = stand == Some(ride.passenger);
    mask[PICK_UP + 1] = ride.passenger == IN_TAXI && stand.is_some();
}

impl Env for Taxi {
    type Config = TaxiConfig;
    type Obs = i64;
    type Act = Discrete<6>;
    type Info = Chance;

    const CAPS: Caps =
        Caps::SAVE.union(Caps::RENDER).union(Caps::ANSI).union(Caps::BRIEF).union(Caps::ACTION_MASK);

    fn build(config: &TaxiConfig, seed: i64) -> Result<Self> {
        check_probability("Taxi-v4", "rainy_probability", config.rainy_probability)?;
        check_probability("Taxi-v4", "fickle_probability", config.fickle_probability)?;
        Ok(Taxi { config: config.clone(), streams: Streams::new(seed), now: TaxiState::default() })
    }

    fn observation_space(_config: &TaxiConfig) -> Result<Space> {
        Ok(Leaf::discrete(STATES as u64).into())
    }

    #[inline(always)]
    fn step(&mut self, a: &Discrete<6>) -> Result<(Step<Self>, Record)> {
        let action = a.0 as usize;
        let before = self.ride();
        // Every action draws a number, those without chance too.
        let draw = self.streams.rng().random();
        let (mut ride, reward, is_over, prob) = if action < PICK_UP {
            self.now.heading = action as u8;
            let (ride, prob) = self.drive(before, action, draw);
            (ride, 0, false, prob)
        } else {
            let (ride, reward, is_over) = serve(before, action);
            (ride, reward, is_over, 1.0)
        };
        let has_moved = (ride.row, ride.column) != (before.row, before.column);
        if self.now.is_fickle && before.passenger == IN_TAXI && has_moved {
            self.now.is_fickle = false;
            let other = self.streams.rng().choice(STANDS.len() - 1);
            ride.destination = other + usize::from(other >= before.destination);
        }
        (self.now.ride, self.now.action) = (ride.state(), Some(a.0 as u8));
        let step = Step::new(*a, self.now.ride as i64, REWARDS[usize::from(reward)], Chance { prob });
        Ok((step.terminated_if(is_over), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<i64> {
        if !wants_reset(is_done)? {
            return Ok(self.now.ride as i64);
        }
        self.streams.begin_own();
        Ok(self.begin())
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<i64> {
        self.streams.begin_index(ix as u64);
        Ok(self.begin())
    }

    fn info(&self) -> Option<Chance> {
        Some(Chance::SURE)
    }

    #[inline(always)]
    fn action_mask(&self, mask: &mut [bool]) {
        mask_of(self.ride(), mask);
    }

    fn render(&mut self) -> Result<Frame> {
        draw::picture(self.ride(), self.now.heading)
    }

    fn ansi(&mut self) -> Result<String> {
        Ok(draw::text(self.ride(), self.now.action))
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.streams, self.now))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (streams, now): (Streams, TaxiState) = state::from_bytes(bytes)?;
        if now.ride >= STATES || now.action.is_some_and(|action| action > 5) || now.heading > 3 {
            return Err(Error::State(format!("the town has no ride {}", now.ride)));
        }
        (self.streams, self.now) = (streams, now);
        Ok(())
    }
}

/// What each action does in each ride, in dry weather and with a passenger of one mind; and its mask.
struct Rides {
    steps: Transitions<ACTIONS>,
    masks: Vec<[i8; ACTIONS]>,
}

static RIDES: LazyLock<Rides> = LazyLock::new(|| Rides {
    steps: table(STATES, |ride, action| {
        let before = Ride::of(ride);
        let (ride, reward, is_over) =
            if action < PICK_UP { (before.driven(action), 0, false) } else { serve(before, action) };
        Transition { next: ride.state() as u16, reward, is_over }
    }),
    masks: (0..STATES)
        .map(|ride| {
            let mut mask = [false; ACTIONS];
            mask_of(Ride::of(ride), &mut mask);
            mask.map(i8::from)
        })
        .collect(),
});

/// The ride, the last action or −1, where the taxi points, and the draw.
impl ByField<4> for Taxi {
    const FEWEST: usize = FEW;
    const DRAWS: Option<usize> = Some(3);
    const WRITES_MASKS: bool = true;

    fn is_wanted(config: &TaxiConfig) -> bool {
        !config.is_rainy && !config.fickle_passenger
    }

    fn fields(&self) -> [f64; 4] {
        let TaxiState { ride, action, heading, .. } = self.now;
        [ride as f64, action.map_or(-1.0, f64::from), heading.into(), 0.0]
    }

    fn set_fields(&mut self, [ride, action, heading, _]: [f64; 4]) {
        let action = (action >= 0.0).then_some(action as u8);
        self.now = TaxiState { ride: ride as usize, action, heading: heading as u8, is_fickle: false };
    }

    fn draw(&mut self) -> f64 {
        self.streams.rng().random()
    }

    fn step_fields(
        _config: &TaxiConfig,
        [rides, played, headings, draws]: [&mut [f64]; 4],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        _left: &mut Vec<Range<usize>>,
    ) {
        let Rides { steps, masks } = &*RIDES;
        for ((played, heading), action) in
            played.iter_mut().zip(headings).zip(actions.leaf::<i64>(0, slots.clone()))
        {
            *played = f64::from(*action as u8);
            *heading = if *played < PICK_UP as f64 { *played } else { *heading };
        }
        Walk { table: steps, rewards: REWARDS, slips: None }.step([&mut *rides, draws], slots, actions, rows);
        let (mut infos, _) = rows.columns_and_infos();
        // The mask comes after the probability.
        for (mask, ride) in infos.leaf::<i8>(1).as_chunks_mut().0.iter_mut().zip(rides) {
            *mask = masks[*ride as usize];
        }
    }
}
