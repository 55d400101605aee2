//! Levels of equal rooms in rows and columns, with doors between neighbours.

use envcore::Result;

use super::builder::{LevelBuilder, no_room};
use super::cell::{Colour, GridCell, Thing};
use super::world::{Area, Spot};

/// The most rooms.
const MAX_ROOMS: usize = 9;

/// So many draws place a thing or the agent in a room.
const TRIES: u32 = 1000;
/// So many draws look for doors that connect all rooms.
const DOOR_TRIES: u32 = 5000;

/// The sides of a room.
pub(super) const EAST: usize = 0;
pub(super) const WEST: usize = 2;
pub(super) const NORTH: usize = 3;

/// How many rooms there are, and how large they are.
#[derive(Clone, Copy)]
pub(super) struct RoomPlan {
    /// The side of a room, with both walls, which neighbours share.
    pub(super) side: i32,
    pub(super) columns: i32,
    pub(super) rows: i32,
}

impl RoomPlan {
    /// The grid's width and height.
    pub(super) fn size(self) -> (usize, usize) {
        let fields = |rooms: i32| ((self.side - 1) * rooms + 1) as usize;
        (fields(self.columns), fields(self.rows))
    }
}

#[derive(Clone, Copy, Default)]
struct Chamber {
    /// Where a door can be on each side, if a room is behind it.
    doors: [Option<Spot>; 4],
    /// Whether the way is open on each side: by a door or without a wall.
    ways: [bool; 4],
    /// Whether the last door that was made from here is locked.
    is_locked: bool,
}

/// The rooms of a level that is being made.
pub(super) struct RoomGrid<'b, 'a> {
    pub(super) level: &'b mut LevelBuilder<'a>,
    plan: RoomPlan,
    rooms: [Chamber; MAX_ROOMS],
}

impl<'b, 'a> RoomGrid<'b, 'a> {
    /// Rooms without doors, whose places are drawn; the agent is in the middle.
    pub(super) fn new(level: &'b mut LevelBuilder<'a>, plan: RoomPlan) -> Self {
        let mut grid = RoomGrid { level, plan, rooms: [Chamber::default(); MAX_ROOMS] };
        let each = || (0..plan.rows).flat_map(|row| (0..plan.columns).map(move |column| (column, row)));
        for room in each() {
            let area = grid.area(room);
            grid.level.walls(area);
        }
        for room @ (column, row) in each() {
            let (x, y) = grid.area(room).top;
            let last = plan.side - 1;
            if column < plan.columns - 1 {
                let door = (x + last, grid.level.int(y + 1, y + last));
                grid.set_door(room, EAST, door);
            }
            if row < plan.rows - 1 {
                let door = (grid.level.int(x + 1, x + last), y + last);
                grid.set_door(room, 1, door);
            }
        }
        let middle = |rooms: i32| (rooms / 2) * (plan.side - 1) + plan.side / 2;
        grid.level.put_agent((middle(plan.columns), middle(plan.rows)), 0);
        grid
    }

    fn area(&self, (column, row): Spot) -> Area {
        let (pitch, side) = (self.plan.side - 1, self.plan.side);
        Area { top: (column * pitch, row * pitch), size: (side, side) }
    }

    fn number(&self, (column, row): Spot) -> usize {
        (row * self.plan.columns + column) as usize
    }

    fn neighbour(&self, (column, row): Spot, side: usize) -> Spot {
        [(column + 1, row), (column, row + 1), (column - 1, row), (column, row - 1)][side]
    }

    fn set_door(&mut self, room: Spot, side: usize, door: Spot) {
        let (here, there) = (self.number(room), self.number(self.neighbour(room, side)));
        self.rooms[here].doors[side] = Some(door);
        self.rooms[there].doors[(side + 2) % 4] = Some(door);
    }

    fn set_way(&mut self, room: Spot, side: usize) {
        let (here, there) = (self.number(room), self.number(self.neighbour(room, side)));
        self.rooms[here].ways[side] = true;
        self.rooms[there].ways[(side + 2) % 4] = true;
    }

    /// Puts a thing in a room, not beside the agent.
    ///
    /// # Errors
    /// Where there is no room for it.
    pub(super) fn put(&mut self, room: Spot, cell: GridCell) -> Result<Spot> {
        let (x, y) = self.level.agent();
        let is_beside = |spot: Spot| (spot.0 - x).abs() + (spot.1 - y).abs() < 2;
        self.level.place_where(cell, self.area(room), TRIES, is_beside)
    }

    /// Puts a thing of a colour in a room; of a drawn one where it is none.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub(super) fn add(&mut self, room: Spot, thing: Thing, colour: Option<Colour>) -> Result<GridCell> {
        let colour = colour.unwrap_or_else(|| self.level.colour());
        let cell = GridCell::new(thing, colour);
        self.put(room, cell)?;
        Ok(cell)
    }

    /// Makes a door on a side of a room; of a drawn colour where it is none.
    pub(super) fn add_door(
        &mut self,
        room: Spot,
        side: usize,
        colour: Option<Colour>,
        is_locked: bool,
    ) -> Result<(Colour, Spot)> {
        let colour = colour.unwrap_or_else(|| self.level.colour());
        let number = self.number(room);
        let spot = self.rooms[number].doors[side].ok_or_else(no_room)?;
        let thing = if is_locked { Thing::LockedDoor } else { Thing::ClosedDoor };
        self.level.set(spot, GridCell::new(thing, colour));
        self.rooms[number].is_locked = is_locked;
        self.set_way(room, side);
        Ok((colour, spot))
    }

    /// Takes away the wall between a room and the one north of it.
    pub(super) fn remove_north_wall(&mut self, room: Spot) {
        let (x, y) = self.area(room).top;
        self.level.horizontal((x + 1, y), self.plan.side - 2, GridCell::EMPTY);
        self.set_way(room, NORTH);
    }

    /// Puts the agent in a room, with nothing or a wall before it.
    ///
    /// # Errors
    /// Where there is no room for it.
    pub(super) fn place_agent(&mut self, room: Spot) -> Result<()> {
        loop {
            self.level.place_agent_within(self.area(room), TRIES)?;
            if matches!(self.level.front(), GridCell::EMPTY | GridCell::WALL) {
                return Ok(());
            }
        }
    }

    /// Whether ways lead from the agent's room to all rooms.
    fn is_connected(&self) -> bool {
        let RoomPlan { side, columns, rows } = self.plan;
        let (x, y) = self.level.agent();
        let mut reached = 1u32 << self.number((x / (side - 1), y / (side - 1)));
        loop {
            let before = reached;
            for room in (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row))) {
                let number = self.number(room);
                let is_reached = reached >> number & 1 == 1;
                for side in (0..4).filter(|side| is_reached && self.rooms[number].ways[*side]) {
                    reached |= 1 << self.number(self.neighbour(room, side));
                }
            }
            if reached == before {
                return reached == (1 << (columns * rows)) - 1;
            }
        }
    }

    /// Makes closed doors until every room can be reached, none of them to a locked room.
    ///
    /// # Errors
    /// Where too many draws found no more doors.
    pub(super) fn connect_all(&mut self) -> Result<()> {
        for _ in 0..=DOOR_TRIES {
            if self.is_connected() {
                return Ok(());
            }
            let room = (self.level.int(0, self.plan.columns), self.level.int(0, self.plan.rows));
            let side = self.level.int(0, 4) as usize;
            let here = self.rooms[self.number(room)];
            if here.doors[side].is_none() || here.ways[side] {
                continue;
            }
            let there = self.rooms[self.number(self.neighbour(room, side))];
            if here.is_locked || there.is_locked {
                continue;
            }
            self.add_door(room, side, None, false)?;
        }
        Err(no_room())
    }
}
