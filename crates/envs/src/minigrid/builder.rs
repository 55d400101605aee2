//! What levels are made with: walls, things and the agent on a grid, by draws from a stream.

use envcore::rng::Rng;
use envcore::{Error, Result, Text};

use super::aim::Aim;
use super::cell::{Colour, GridCell, Thing};
use super::world::{Area, GridWorld, Spot};

/// A kind of level, which draws another level of its kind from each stretch of a stream.
pub(super) trait LevelGenerator: Sync {
    /// The grid's width and height.
    fn size(&self) -> (usize, usize);

    /// After how many steps an episode is usually cut.
    fn max_steps(&self) -> u32;

    /// Whether the agent usually sees through walls.
    fn see_through_walls(&self) -> bool {
        false
    }

    /// How many of the actions there are.
    fn num_actions(&self) -> u64 {
        7
    }

    /// Builds a level on an empty grid; the mission and the task.
    ///
    /// # Errors
    /// Where there is no room for what the level needs, as the package has it.
    fn generate(&self, level: &mut LevelBuilder<'_>) -> Result<(Text, Aim)>;
}

/// A level that is being made.
pub(super) struct LevelBuilder<'a> {
    world: &'a mut GridWorld,
    rng: &'a mut Rng,
}

/// The number that no field has: the agent is nowhere yet.
const NOWHERE: usize = usize::MAX;

/// "For ever": a level of this kind always has room.
const FOR_EVER: u32 = u32::MAX;

impl<'a> LevelBuilder<'a> {
    /// Of an empty grid.
    pub(super) fn new(world: &'a mut GridWorld, rng: &'a mut Rng) -> Self {
        world.clear();
        world.agent = NOWHERE;
        LevelBuilder { world, rng }
    }

    pub(super) fn width(&self) -> i32 {
        self.world.width as i32
    }

    pub(super) fn height(&self) -> i32 {
        self.world.height as i32
    }

    /// The whole grid.
    pub(super) fn everywhere(&self) -> Area {
        Area { top: (0, 0), size: (self.width(), self.height()) }
    }

    /// The number of a field, as tasks name it.
    pub(super) fn number(&self, spot: Spot) -> u16 {
        self.world.number(spot) as u16
    }

    pub(super) fn set(&mut self, spot: Spot, cell: GridCell) {
        let number = self.world.number(spot);
        self.world.set(number, cell);
    }

    /// A row of `length` fields to the east of `from`.
    pub(super) fn horizontal(&mut self, from: Spot, length: i32, cell: GridCell) {
        (0..length).for_each(|k| self.set((from.0 + k, from.1), cell));
    }

    /// A column of `length` fields to the south of `from`.
    pub(super) fn vertical(&mut self, from: Spot, length: i32, cell: GridCell) {
        (0..length).for_each(|k| self.set((from.0, from.1 + k), cell));
    }

    /// Walls along the inside of a rectangle's edge.
    pub(super) fn walls(&mut self, area: Area) {
        let ((x, y), (width, height)) = (area.top, area.size);
        self.horizontal((x, y), width, GridCell::WALL);
        self.horizontal((x, y + height - 1), width, GridCell::WALL);
        self.vertical((x, y), height, GridCell::WALL);
        self.vertical((x + width - 1, y), height, GridCell::WALL);
    }

    /// Walls along the grid's edge.
    pub(super) fn outer_walls(&mut self) {
        self.walls(self.everywhere());
    }

    /// The goal in the bottom right corner within the outer walls.
    pub(super) fn goal_in_corner(&mut self) {
        self.set((self.width() - 2, self.height() - 2), GridCell::GOAL);
    }

    /// A number from `low` to `high` - 1.
    pub(super) fn int(&mut self, low: i32, high: i32) -> i32 {
        self.rng.integers(low.into(), high.into()) as i32
    }

    /// One of `items`.
    pub(super) fn one<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.rng.choice(items.len())]
    }

    pub(super) fn colour(&mut self) -> Colour {
        self.one(&Colour::BY_NAME)
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        self.rng.shuffle(items);
    }

    /// Puts a thing on an empty field of an area.
    ///
    /// # Errors
    /// As [`place_where`](Self::place_where).
    pub(super) fn place(&mut self, cell: GridCell, area: Area) -> Result<Spot> {
        self.place_where(cell, area, FOR_EVER, |_| false)
    }

    /// The same within `tries` + 1 draws, on a field that `refuses` does not refuse.
    ///
    /// # Errors
    /// Where no draw hit such a field.
    pub(super) fn place_where(
        &mut self,
        cell: GridCell,
        area: Area,
        tries: u32,
        refuses: impl Fn(Spot) -> bool,
    ) -> Result<Spot> {
        let placed = self.world.place(self.rng, cell, area, tries, refuses);
        placed.map(|number| self.world.spot(number)).ok_or_else(no_room)
    }

    /// Where the agent is; outside the grid at first.
    pub(super) fn agent(&self) -> Spot {
        if self.world.agent == NOWHERE { (-1, -1) } else { self.world.spot(self.world.agent) }
    }

    /// Puts the agent on a field, facing east, south, west or north.
    pub(super) fn put_agent(&mut self, spot: Spot, facing: u8) {
        (self.world.agent, self.world.facing) = (self.world.number(spot), facing);
    }

    /// Puts the agent on any empty field of an area, facing anywhere.
    ///
    /// # Errors
    /// As [`place_where`](Self::place_where).
    pub(super) fn place_agent(&mut self, area: Area) -> Result<()> {
        self.place_agent_within(area, FOR_EVER)
    }

    /// The same within `tries` + 1 draws.
    ///
    /// # Errors
    /// As [`place_where`](Self::place_where).
    pub(super) fn place_agent_within(&mut self, area: Area, tries: u32) -> Result<()> {
        self.world.agent = NOWHERE;
        let spot = self.place_where(GridCell::EMPTY, area, tries, |_| false)?;
        let facing = self.int(0, 4) as u8;
        self.put_agent(spot, facing);
        Ok(())
    }

    /// What is before the agent.
    pub(super) fn front(&self) -> GridCell {
        self.world.at(self.world.front())
    }
}

/// A thing that can be carried, in any colour: its kind is drawn before its colour.
pub(super) fn any_of(level: &mut LevelBuilder<'_>, kinds: &[Thing]) -> (Thing, Colour) {
    (level.one(kinds), level.colour())
}

#[cold]
pub(super) fn no_room() -> Error {
    Error::env("there is no room for all that this level needs: reset with another seed or index")
}
