//! The bound of each env that Gymnasium, minigrid or minatar has too, and of games: a plain loop over a list of one
//! env type, which writes observations, rewards, flags, infos and masks as a vec
//! env does (NEXT_STEP), and nothing more.
//!
//! `bare_envs Taxi-v4 1024`: `corral bench` lets it and Python run in turns.

mod common;

use common::{take_turns, words};
use envcore::{Caps, Discrete, Env, Text};
use envs::classic::{Acrobot, MountainCar, MountainCarContinuous, Pendulum};
use envs::games::{Catch, CatchSeen, ConnectFour, ConnectFourSeen, Game2048, Snake, SnakeSeen};
use envs::minatar::{
    Asterix, Breakout, Freeway, MinAtar, MinAtarConfig, MinAtarGame, MinAtarSeen, Planes, Seaquest,
    SpaceInvaders,
};
use envs::minigrid::{MiniGrid, MiniGridConfig, MiniGridSeen};
use envs::toy_text::{Blackjack, CliffWalking, FrozenLake, Taxi};

/// Batches of actions that are prepared.
const PREPARED: usize = 64;

/// The observations of a batch.
trait Column<O>: Sized {
    fn of(observations: Vec<O>) -> Self;
    fn put(&mut self, slot: usize, observation: O);
}

impl<O> Column<O> for Vec<O> {
    fn of(observations: Vec<O>) -> Self {
        observations
    }

    fn put(&mut self, slot: usize, observation: O) {
        self[slot] = observation;
    }
}

/// The bytes of what an agent sees of 7×7 fields.
const IMAGE: usize = 7 * 7 * 3;

/// A column for each leaf of MiniGrid's observations.
struct Grids {
    images: Vec<u8>,
    directions: Vec<i64>,
    missions: Vec<Text>,
}

impl Column<MiniGridSeen> for Grids {
    fn of(observations: Vec<MiniGridSeen>) -> Self {
        let n = observations.len();
        let mut grids =
            Grids { images: vec![0; n * IMAGE], directions: vec![0; n], missions: vec![Text::default(); n] };
        observations.into_iter().enumerate().for_each(|(slot, seen)| grids.put(slot, seen));
        grids
    }

    fn put(&mut self, slot: usize, seen: MiniGridSeen) {
        seen.write_image(&mut self.images[slot * IMAGE..][..IMAGE]);
        self.directions[slot] = seen.direction();
        self.missions[slot] = seen.mission();
    }
}

/// MinAtar's boards.
struct MinAtarBoards {
    cells: Vec<bool>,
    size: usize,
}

impl<P: Planes> Column<MinAtarSeen<P>> for MinAtarBoards {
    fn of(observations: Vec<MinAtarSeen<P>>) -> Self {
        let size = 100 * P::COUNT;
        let mut boards = MinAtarBoards { cells: vec![false; observations.len() * size], size };
        observations.into_iter().enumerate().for_each(|(slot, seen)| boards.put(slot, seen));
        boards
    }

    fn put(&mut self, slot: usize, seen: MinAtarSeen<P>) {
        seen.write_board(&mut self.cells[slot * self.size..][..self.size]);
    }
}

/// Boards of one size, each drawn into its place by its own observation.
struct Boards<T, const FIELDS: usize>(Vec<T>);

macro_rules! boards {
    ($seen:ty, $element:ty, $fields:expr, $write:ident) => {
        impl Column<$seen> for Boards<$element, { $fields }> {
            fn of(observations: Vec<$seen>) -> Self {
                let mut boards = Boards(vec![<$element>::default(); observations.len() * $fields]);
                observations.into_iter().enumerate().for_each(|(slot, seen)| boards.put(slot, seen));
                boards
            }

            fn put(&mut self, slot: usize, seen: $seen) {
                seen.$write(&mut self.0[slot * $fields..][..$fields]);
            }
        }
    };
}

boards!(CatchSeen, f32, 10 * 5, write_board);
boards!(SnakeSeen, f32, 12 * 12 * 5, write_planes);
boards!(ConnectFourSeen, i8, 6 * 7, write_board);

/// Envs with what an episode needs, and a batch, allocated once.
struct BareEnvs<E: Env, C> {
    envs: Vec<E>,
    limit: u64,
    age: Vec<u64>,
    over: Vec<bool>,
    observation: C,
    info: Vec<Option<E::Info>>,
    masks: Vec<bool>,
    choices: usize,
    reward: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
}

impl<E: Env, C: Column<E::Obs>> BareEnvs<E, C> {
    fn new(config: E::Config, num_envs: usize, limit: Option<u64>, choices: usize) -> envcore::Result<Self> {
        let mut envs = (0..num_envs).map(|i| E::build(&config, i as i64)).collect::<Result<Vec<_>, _>>()?;
        Ok(BareEnvs {
            observation: C::of(envs.iter_mut().map(|env| env.reset(None)).collect::<Result<_, _>>()?),
            info: envs.iter().map(Env::info).collect(),
            envs,
            limit: limit.unwrap_or(u64::MAX),
            age: vec![0; num_envs],
            over: vec![false; num_envs],
            masks: vec![false; num_envs * choices],
            choices,
            reward: vec![0.0; num_envs],
            terminated: vec![false; num_envs],
            truncated: vec![false; num_envs],
        })
    }

    /// One step of every env, or its reset after an end.
    fn step(&mut self, actions: &[E::Act]) -> envcore::Result<()> {
        for (slot, (env, action)) in self.envs.iter_mut().zip(actions).enumerate() {
            if self.over[slot] {
                self.observation.put(slot, env.reset(None)?);
                self.info[slot] = env.info();
                self.reward[slot] = 0.0;
                (self.terminated[slot], self.truncated[slot]) = (false, false);
                (self.age[slot], self.over[slot]) = (0, false);
            } else {
                let (step, _) = env.step(action)?;
                self.age[slot] += 1;
                self.observation.put(slot, step.obs);
                self.info[slot] = Some(step.info);
                self.reward[slot] = step.reward;
                self.terminated[slot] = step.is_terminated;
                self.truncated[slot] = step.is_truncated || self.age[slot] >= self.limit;
                self.over[slot] = self.terminated[slot] || self.truncated[slot];
            }
            if E::CAPS.contains(Caps::ACTION_MASK) {
                let mask = &mut self.masks[slot * self.choices..][..self.choices];
                mask.fill(true);
                env.action_mask(mask);
            }
        }
        std::hint::black_box(self);
        Ok(())
    }
}

/// Plays `E` as `id` is registered, with actions made of random words.
fn play<E: Env>(
    id: &str,
    num_envs: usize,
    choices: usize,
    action: fn(u64) -> E::Act,
) -> Result<(), Box<dyn std::error::Error>> {
    play_into::<E, Vec<E::Obs>>(E::Config::default(), id, num_envs, choices, action)
}

/// The same under a config, with observations in a column of their own kind.
fn play_into<E: Env, C: Column<E::Obs>>(
    config: E::Config,
    id: &str,
    num_envs: usize,
    choices: usize,
    action: fn(u64) -> E::Act,
) -> Result<(), Box<dyn std::error::Error>> {
    let limit = envs::find(id)?.max_episode_steps;
    let mut envs = BareEnvs::<E, C>::new(config, num_envs, limit, choices)?;
    let mut word = words();
    let actions: Vec<Vec<E::Act>> =
        (0..PREPARED).map(|_| (0..num_envs).map(|_| action(word())).collect()).collect();
    take_turns(|| {
        actions.iter().try_for_each(|batch| envs.step(batch))?;
        Ok(num_envs * PREPARED)
    })
}

/// Plays a game of MinAtar with the action set of `id`.
fn play_minatar<G: MinAtarGame>(id: &str, num_envs: usize) -> Result<(), Box<dyn std::error::Error>> {
    let is_minimal = id.ends_with("-v1");
    let config = MinAtarConfig { use_minimal_action_set: Some(is_minimal), ..MinAtarConfig::default() };
    let action = if is_minimal { |word| Discrete((word % G::MOVES.len() as u64) as i64) } else { choice };
    play_into::<MinAtar<G>, MinAtarBoards>(config, id, num_envs, 0, action)
}

fn choice<const N: u64>(word: u64) -> Discrete<N> {
    Discrete((word % N) as i64)
}

/// A force from -1 to 1.
fn force(word: u64) -> [f32; 1] {
    [(word % 2001) as f32 / 1000.0 - 1.0]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [id, num_envs] = &arguments[..] else { return Err("usage: bare_envs ID NUM_ENVS".into()) };
    let n = num_envs.parse()?;
    match id.as_str() {
        "Pendulum-v1" => play::<Pendulum>(id, n, 0, |word| force(word).map(|force| 2.0 * force)),
        "MountainCar-v0" => play::<MountainCar>(id, n, 3, choice),
        "MountainCarContinuous-v0" => play::<MountainCarContinuous>(id, n, 0, force),
        "Acrobot-v1" => play::<Acrobot>(id, n, 3, choice),
        "FrozenLake-v1" => play::<FrozenLake<4>>(id, n, 4, choice),
        "FrozenLake8x8-v1" => play::<FrozenLake<8>>(id, n, 4, choice),
        "CliffWalking-v1" => play::<CliffWalking<false>>(id, n, 4, choice),
        "CliffWalkingSlippery-v1" => play::<CliffWalking<true>>(id, n, 4, choice),
        "Taxi-v4" => play::<Taxi>(id, n, 6, choice),
        "Blackjack-v1" => play::<Blackjack>(id, n, 2, choice),
        "Catch-v0" => play_into::<Catch, Boards<f32, 50>>(Default::default(), id, n, 0, choice),
        "Snake-v0" => play_into::<Snake, Boards<f32, 720>>(Default::default(), id, n, 4, choice),
        "2048-v0" => play::<Game2048>(id, n, 4, choice),
        "ConnectFour-v0" => play_into::<ConnectFour, Boards<i8, 42>>(Default::default(), id, n, 7, choice),
        level if level.starts_with("MiniGrid-") => {
            let config = MiniGridConfig::default().with_level(level);
            let action = if level.contains("Dynamic") { |word| Discrete((word % 3) as i64) } else { choice };
            play_into::<MiniGrid, Grids>(config, id, n, 0, action)
        }
        game if game.starts_with("MinAtar-Asterix") => play_minatar::<Asterix>(id, n),
        game if game.starts_with("MinAtar-Breakout") => play_minatar::<Breakout>(id, n),
        game if game.starts_with("MinAtar-Freeway") => play_minatar::<Freeway>(id, n),
        game if game.starts_with("MinAtar-Seaquest") => play_minatar::<Seaquest>(id, n),
        game if game.starts_with("MinAtar-SpaceInvaders") => play_minatar::<SpaceInvaders>(id, n),
        other => Err(format!(
            "{other} is no game and none of the envs that Gymnasium, minigrid or minatar has too"
        )
        .into()),
    }
}
