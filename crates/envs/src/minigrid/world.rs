//! The grid, the agent in it, and what an action does.

use std::ops::Range;

use envcore::Text;
use envcore::rng::Rng;

use super::aim::Aim;
use super::cell::{GridCell, Thing};
use super::config::Sight;

/// A field's column and row, from the top left.
pub(super) type Spot = (i32, i32);

/// The actions.
pub(super) const LEFT: u8 = 0;
pub(super) const RIGHT: u8 = 1;
pub(super) const FORWARD: u8 = 2;
pub(super) const PICK_UP: u8 = 3;
pub(super) const DROP: u8 = 4;
pub(super) const TOGGLE: u8 = 5;
pub(super) const DONE: u8 = 6;

/// A rectangle of fields.
#[derive(Clone, Copy)]
pub(super) struct Area {
    /// Its top left field.
    pub(super) top: Spot,
    /// Its width and height.
    pub(super) size: Spot,
}

/// What a step was worth.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub(super) reward: f64,
    pub(super) terminated: bool,
}

impl Verdict {
    pub(super) const NOTHING: Verdict = Verdict { reward: 0.0, terminated: false };
    /// The episode is over, without a reward.
    pub(super) const OVER: Verdict = Verdict { reward: 0.0, terminated: true };
}

/// A level that is being played.
#[derive(Clone)]
pub(super) struct GridWorld {
    pub(super) width: usize,
    pub(super) height: usize,
    /// How many fields of wall are around the grid, so that what an agent at its edge sees is in
    /// `cells`, too.
    margin: usize,
    /// The fields, row by row, those of the margin among them.
    cells: Box<[GridCell]>,
    /// From a field to the next one in each direction: east, south, west, north.
    ahead: [isize; 4],
    /// The number of the agent's field.
    pub(super) agent: usize,
    /// 0 east, 1 south, 2 west, 3 north.
    pub(super) facing: u8,
    /// What the agent carries; empty for nothing.
    pub(super) carried: GridCell,
    pub(super) steps: u32,
    pub(super) max_steps: u32,
    pub(super) sight: Sight,
    pub(super) mission: Text,
    pub(super) aim: Aim,
}

impl GridWorld {
    /// An empty grid, with the agent in a corner.
    pub(super) fn new(width: usize, height: usize, max_steps: u32, sight: Sight) -> Self {
        let margin = sight.size - 1;
        let stride = width + 2 * margin;
        let ahead = [1, stride as isize, -1, -(stride as isize)];
        let cells = vec![GridCell::WALL; stride * (height + 2 * margin)].into_boxed_slice();
        let mut world = GridWorld {
            width,
            height,
            margin,
            cells,
            ahead,
            agent: 0,
            facing: 0,
            carried: GridCell::EMPTY,
            steps: 0,
            max_steps,
            sight,
            mission: Text::default(),
            aim: Aim::Goal,
        };
        world.clear();
        world
    }

    /// Begins a level: an empty grid.
    pub(super) fn clear(&mut self) {
        for row in 0..self.height {
            let fields = self.row(row);
            self.cells[fields].fill(GridCell::EMPTY);
        }
        (self.agent, self.facing) = (self.number((1, 1)), 0);
        (self.carried, self.steps) = (GridCell::EMPTY, 0);
    }

    /// The numbers of a row's fields.
    fn row(&self, row: usize) -> Range<usize> {
        let start = self.number((0, row as i32));
        start..start + self.width
    }

    /// The fields of a row.
    pub(super) fn cells_of_row(&self, row: usize) -> &[GridCell] {
        &self.cells[self.row(row)]
    }

    pub(super) fn cells_of_row_mut(&mut self, row: usize) -> &mut [GridCell] {
        let fields = self.row(row);
        &mut self.cells[fields]
    }

    fn stride(&self) -> usize {
        self.ahead[1] as usize
    }

    /// The number of a field.
    #[inline]
    pub(super) fn number(&self, (x, y): Spot) -> usize {
        (y as usize + self.margin) * self.stride() + x as usize + self.margin
    }

    /// The field of a number. Those of the margin are outside the grid.
    #[inline]
    pub(super) fn spot(&self, number: usize) -> Spot {
        let (x, y) = (number % self.stride(), number / self.stride());
        (x as i32 - self.margin as i32, y as i32 - self.margin as i32)
    }

    pub(super) fn has(&self, (x, y): Spot) -> bool {
        (0..self.width as i32).contains(&x) && (0..self.height as i32).contains(&y)
    }

    #[inline]
    pub(super) fn at(&self, number: usize) -> GridCell {
        self.cells[number]
    }

    #[inline]
    pub(super) fn set(&mut self, number: usize, cell: GridCell) {
        self.cells[number] = cell;
    }

    /// From a field to the next one, as an agent with this facing goes.
    #[inline]
    pub(super) fn way(&self, facing: u8) -> isize {
        self.ahead[usize::from(facing & 3)]
    }

    /// The number of the field before the agent.
    #[inline]
    pub(super) fn front(&self) -> usize {
        self.agent.wrapping_add_signed(self.way(self.facing))
    }

    /// What an action does that leaves the task alone.
    #[inline]
    pub(super) fn act(&mut self, action: u8) -> Verdict {
        let front = self.front();
        let cell = self.at(front);
        match action {
            LEFT => self.facing = (self.facing + 3) & 3,
            RIGHT => self.facing = (self.facing + 1) & 3,
            FORWARD => {
                if cell.is_walkable() {
                    self.agent = front;
                }
                match cell.thing() {
                    Thing::Goal => return self.won(),
                    Thing::Lava => return Verdict::OVER,
                    _ => {}
                }
            }
            PICK_UP if cell.is_portable() && self.carried == GridCell::EMPTY => {
                self.carried = cell;
                self.set(front, GridCell::EMPTY);
            }
            DROP if cell == GridCell::EMPTY => {
                self.set(front, self.carried);
                self.carried = GridCell::EMPTY;
            }
            TOGGLE => self.set(front, cell.toggled(self.carried)),
            _ => {}
        }
        Verdict::NOTHING
    }

    /// The verdict on a task that is done; less, the later.
    pub(super) fn won(&self) -> Verdict {
        let share = f64::from(self.steps) / f64::from(self.max_steps);
        Verdict { reward: 1.0 - 0.9 * share, terminated: true }
    }

    /// Puts `cell` on an empty field of `area` that is not the agent's and that `refuses` does not
    /// refuse: the first such field of up to `tries` + 1 draws.
    pub(super) fn place(
        &mut self,
        rng: &mut Rng,
        cell: GridCell,
        area: Area,
        tries: u32,
        refuses: impl Fn(Spot) -> bool,
    ) -> Option<usize> {
        let Area { top: (x, y), size: (width, height) } = area;
        let (x, y) = (x.max(0), y.max(0));
        let (right, below) = ((x + width).min(self.width as i32), (y + height).min(self.height as i32));
        for _ in 0..=tries {
            let column = rng.integers(x.into(), right.into()) as i32;
            let row = rng.integers(y.into(), below.into()) as i32;
            let number = self.number((column, row));
            if self.at(number) == GridCell::EMPTY && number != self.agent && !refuses((column, row)) {
                self.set(number, cell);
                return Some(number);
            }
        }
        None
    }
}
