//! `Walk-v0`: gather the gems of a cave.
//!
//! - **Observation**: `body`, which has the `position` (row and column) and what
//!   it is `facing`; and `picture`, the cave from above, drawn into the batch.
//! - **Action**: 0 to 3, a move up, right, down, left. Rock stops a move.
//! - **Reward**: 1 for a gem, less 0.01 for each step.
//! - **End**: terminated when the last gem is gathered. The time limit is not
//!   the env's: it stands in `lib.rs`.
//! - **Infos**: `gems_left` and `since_gem` in every row, `action_mask`, and
//!   `steps_per_gem` in the row that ends the episode.
//! - **Index**: ix is the cave of level ix. A reset draws one of `levels`.

use std::sync::Arc;

use envcore::rng::Rng;
use envcore::{
    Caps, Config, Discrete, Env, Error, Frame, Leaf, Record, Result, Row, Space, Step, ToRow,
    state, wants_reset,
};
use serde::{Deserialize, Serialize};

/// Rows and columns that an action adds.
const MOVES: [(isize, isize); 4] = [(-1, 0), (0, 1), (1, 0), (0, -1)];
/// Pixels along the side of a field.
const FIELD: usize = 4;
/// Indices that there are.
const ALL_LEVELS: usize = 1_000_000;

/// The options: each field is one, with its default below. From Python:
/// `corral.make_vec("my_env/Walk-v0", 8, size=16)`.
#[derive(Clone, Debug, Config)]
pub struct WalkConfig {
    /// Fields along a side of the cave.
    #[option(low = 5, high = 64)]
    pub size: u32,
    /// Gems in a cave.
    #[option(low = 1)]
    pub gems: u32,
    /// How many caves the resets without an index draw from.
    #[option(low = 1, high = 1_000_000)]
    pub levels: u32,
}

impl Default for WalkConfig {
    fn default() -> Self {
        WalkConfig { size: 12, gems: 5, levels: 1000 }
    }
}

impl WalkConfig {
    /// An error that names the option, its range and the value, if one is out of range.
    fn check(&self) -> Result<()> {
        let ranges = [
            ("size", self.size, 5, 64),
            ("gems", self.gems, 1, self.open_fields() as u32 - 1),
            ("levels", self.levels, 1, ALL_LEVELS as u32),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                let why = format!("Walk-v0: {name} is an int from {low} to {high}, not {value}");
                return Err(Error::OptionValue(why));
            }
        }
        Ok(())
    }

    /// Half of the fields inside the outer rock.
    fn open_fields(&self) -> usize {
        let inside = self.size.clamp(5, 64) as usize - 2;
        inside * inside / 2
    }
}

/// What an agent sees: a struct is a dict in Python, and structs nest.
#[derive(ToRow)]
pub struct Observation {
    /// What the agent feels.
    pub body: Body,
    /// What it sees.
    pub picture: Picture,
}

/// The agent's place. Each field is a leaf of the observation.
#[derive(Clone, Copy, Debug, PartialEq, ToRow)]
pub struct Body {
    /// Row and column, from the top left.
    #[leaf(low = 0, high = 63)]
    pub position: [i32; 2],
    /// The direction of the last move, as an action.
    pub facing: Discrete<4>,
}

/// The cave from above, `uint8` of shape (4 · size, 4 · size, 3). It shares the
/// cave with the env until a row of the batch has been drawn.
pub struct Picture(Arc<World>);

impl ToRow for Picture {
    fn space() -> Result<Space> {
        Err(Error::Space("the picture's shape depends on the option size".into()))
    }

    fn write(&self, row: &mut Row<'_>) {
        self.0.draw(row.fixed::<u8>(), FIELD);
    }
}

/// What every row tells beside its observation: columns of the infos.
#[derive(Clone, Copy, Debug, PartialEq, ToRow)]
pub struct Told {
    /// Gems that are still in the cave.
    #[leaf(low = 0)]
    pub gems_left: i32,
    /// Steps since the last gem.
    #[leaf(low = 0)]
    pub since_gem: i32,
}

/// A cave, the gems in it, and who walks there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct World {
    size: usize,
    /// By field, whether one can be there.
    open: Vec<bool>,
    /// By field, whether a gem is there.
    gems: Vec<bool>,
    at: usize,
    facing: usize,
    steps: u32,
    since_gem: u32,
}

impl World {
    /// The cave of a level: the same for the same config and level.
    fn of_level(config: &WalkConfig, level: u64) -> Self {
        let size = config.size as usize;
        let mut rng = Rng::new(level);
        let middle = size / 2 * size + size / 2;
        let mut cave = World {
            size,
            open: vec![false; size * size],
            gems: vec![false; size * size],
            at: middle,
            facing: 0,
            steps: 0,
            since_gem: 0,
        };
        // Who strolls through the rock and leaves it open makes a cave in one piece.
        cave.open[middle] = true;
        let (mut field, mut left) = (middle, config.open_fields() - 1);
        while left > 0 {
            field = cave.inside(field, rng.choice(4)).unwrap_or(field);
            left -= usize::from(!cave.open[field]);
            cave.open[field] = true;
        }
        let mut free: Vec<usize> =
            (0..size * size).filter(|field| cave.open[*field] && *field != middle).collect();
        rng.shuffle(&mut free);
        free[..config.gems as usize].iter().for_each(|field| cave.gems[*field] = true);
        cave
    }

    /// The field beside `field`, unless it is of the outer rock.
    fn inside(&self, field: usize, way: usize) -> Option<usize> {
        let (rows, columns) = MOVES[way];
        let row = (field / self.size).checked_add_signed(rows)?;
        let column = (field % self.size).checked_add_signed(columns)?;
        let last = self.size - 2;
        ((1..=last).contains(&row) && (1..=last).contains(&column))
            .then_some(row * self.size + column)
    }

    /// Where a move leads, unless rock stops it.
    fn ahead(&self, way: usize) -> Option<usize> {
        self.inside(self.at, way).filter(|field| self.open[*field])
    }

    /// Moves, and says whether that gathered a gem.
    fn go(&mut self, way: usize) -> bool {
        self.facing = way;
        self.at = self.ahead(way).unwrap_or(self.at);
        let is_gem = std::mem::take(&mut self.gems[self.at]);
        self.steps += 1;
        self.since_gem = if is_gem { 0 } else { self.since_gem + 1 };
        is_gem
    }

    fn gems_left(&self) -> usize {
        self.gems.iter().filter(|is_gem| **is_gem).count()
    }

    /// Draws the cave into RGB pixels, row by row from the top left, `side` pixels a field.
    fn draw(&self, pixels: &mut [u8], side: usize) {
        let line = self.size * side * 3;
        for (row, band) in pixels.chunks_exact_mut(line * side).enumerate() {
            let (first, others) = band.split_at_mut(line);
            for (column, field) in first.chunks_exact_mut(side * 3).enumerate() {
                let colour = self.colour(row * self.size + column);
                field.as_chunks_mut::<3>().0.fill(colour);
            }
            others.chunks_exact_mut(line).for_each(|other| other.copy_from_slice(first));
        }
    }

    fn colour(&self, field: usize) -> [u8; 3] {
        match () {
            () if field == self.at => [240, 200, 60],
            () if self.gems[field] => [80, 200, 240],
            () if self.open[field] => [40, 32, 28],
            () => [110, 96, 84],
        }
    }
}

/// The environment: all that an episode depends on. Corral makes as many as are
/// asked for, and sees to threads, batches and time limits.
pub struct Walk {
    config: WalkConfig,
    /// Draws levels. Seeds mean something because no other randomness is used.
    rng: Rng,
    world: Arc<World>,
}

impl Walk {
    fn begin(&mut self, level: u64) -> Observation {
        self.world = Arc::new(World::of_level(&self.config, level));
        self.observation()
    }

    fn observation(&self) -> Observation {
        let cave = &self.world;
        let position = [cave.at / cave.size, cave.at % cave.size].map(|place| place as i32);
        let body = Body { position, facing: Discrete(cave.facing as i64) };
        Observation { body, picture: Picture(cave.clone()) }
    }

    fn told(&self) -> Told {
        let cave = &self.world;
        Told { gems_left: cave.gems_left() as i32, since_gem: cave.since_gem as i32 }
    }
}

impl Env for Walk {
    type Config = WalkConfig;
    type Obs = Observation;
    type Act = Discrete<4>;
    type Info = Told;

    // What the env does beyond the required methods. `BRIEF`: a step takes well
    // under a microsecond. Here it draws a picture, so that is left out.
    const CAPS: Caps = Caps::SAVE.union(Caps::RENDER).union(Caps::ACTION_MASK);

    fn observation_space(config: &WalkConfig) -> Result<Space> {
        config.check()?;
        let side = FIELD * config.size as usize;
        let picture = Leaf::image(&[side, side, 3]);
        Ok(Space::dict([("body", Body::space()?), ("picture", picture.into())]))
    }

    fn record_space(_config: &WalkConfig) -> Result<Space> {
        Ok(Space::of([Leaf::real::<f64>(&[]).named("steps_per_gem")]))
    }

    fn build(config: &WalkConfig, seed: i64) -> Result<Self> {
        config.check()?;
        let cave = Arc::new(World::of_level(config, 0));
        Ok(Walk { config: config.clone(), rng: Rng::new(seed as u64), world: cave })
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Observation> {
        if !wants_reset(is_done)? {
            return Ok(self.observation());
        }
        let level = self.rng.choice(self.config.levels as usize);
        Ok(self.begin(level as u64))
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<Observation> {
        if ix >= ALL_LEVELS {
            let why =
                format!("Walk-v0: levels are numbered from 0 to {}, not {ix}", ALL_LEVELS - 1);
            return Err(Error::env(why));
        }
        Ok(self.begin(ix as u64))
    }

    fn step(&mut self, a: &Discrete<4>) -> Result<(Step<Self>, Record)> {
        // The picture of the last step is drawn by now, so this copies nothing.
        let is_gem = Arc::make_mut(&mut self.world).go(a.0 as usize);
        let told = self.told();
        let is_over = told.gems_left == 0;
        let reward = if is_gem { 0.99 } else { -0.01 };
        let record = if is_over {
            let steps = f64::from(self.world.steps) / f64::from(self.config.gems);
            Record::empty().with("steps_per_gem", steps)
        } else {
            Record::empty()
        };
        let step = Step::new(*a, self.observation(), reward, told);
        Ok((step.terminated_if(is_over), record))
    }

    fn info(&self) -> Option<Told> {
        Some(self.told())
    }

    fn action_mask(&self, mask: &mut [bool]) {
        for (way, is_allowed) in mask.iter_mut().enumerate() {
            *is_allowed = self.world.ahead(way).is_some();
        }
    }

    fn render(&mut self) -> Result<Frame> {
        let field = 480 / self.world.size;
        let side = field * self.world.size;
        let mut pixels = vec![0; side * side * 3];
        self.world.draw(&mut pixels, field);
        Frame::new(side, side, pixels)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.rng, &*self.world))
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        let (rng, cave): (Rng, World) = state::from_bytes(bytes)?;
        let fields = self.world.open.len();
        if cave.size != self.world.size
            || cave.open.len() != fields
            || cave.gems.len() != fields
            || cave.at >= fields
            || cave.facing >= MOVES.len()
        {
            return Err(Error::State("this is no state of a cave of this size".into()));
        }
        (self.rng, self.world) = (rng, Arc::new(cave));
        Ok(())
    }
}
