//! The rules.

use envcore::rng::Streams;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, Space, Step, state, wants_reset,
};
use serde::{Deserialize, Serialize};

use super::draw;
use super::town::{self, IN_TAXI, Ride, STANDS, STATES};
use crate::toy_text::chance::{Chance, check_probability, outcome};

/// The sides of a drive: to the left and to the right of south, north, east and west.
const SIDES: [[usize; 2]; 4] = [[2, 3], [3, 2], [1, 0], [0, 1]];
const PICK_UP: usize = 4;

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

/// The ride after the passenger was picked up or let out, the reward, and whether he is where he
/// wants to go.
fn serve(mut ride: Ride, action: usize) -> (Ride, f64, bool) {
    let stand = ride.stand();
    match (action, stand) {
        (PICK_UP, Some(stand)) if ride.passenger == stand => {
            ride.passenger = IN_TAXI;
            (ride, -1.0, false)
        }
        (PICK_UP, _) => (ride, -10.0, false),
        (_, Some(stand)) if ride.passenger == IN_TAXI => {
            ride.passenger = stand;
            let arrived = stand == ride.destination;
            (ride, if arrived { 20.0 } else { -1.0 }, arrived)
        }
        _ => (ride, -10.0, false),
    }
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
            (ride, -1.0, false, prob)
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
        let step = Step::new(*a, self.now.ride as i64, reward, Chance { prob });
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
        let ride = self.ride();
        for (direction, is_open) in mask[..PICK_UP].iter_mut().enumerate() {
            *is_open = ride.is_open(direction);
        }
        let stand = ride.stand();
        mask[PICK_UP] = stand == Some(ride.passenger);
        mask[PICK_UP + 1] = ride.passenger == IN_TAXI && stand.is_some();
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
