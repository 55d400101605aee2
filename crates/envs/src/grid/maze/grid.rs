//! The cells of a maze and the passages between them: growing them, walking them, measuring them.

/// A way to move or to face; its number is the action minus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    Up,
    Right,
    Down,
    Left,
}

impl Direction {
    pub const ALL: [Self; 4] = [Self::Up, Self::Right, Self::Down, Self::Left];

    fn bit(self) -> u8 {
        1 << self as u8
    }

    fn opposite(self) -> Self {
        Self::ALL[(self as usize + 2) % 4]
    }
}

/// Square; its cells are numbered row by row from the top left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) size: usize,
    /// Per cell, the bits of the directions that are open.
    open: Vec<u8>,
}

impl Grid {
    /// A maze that `rng` decides: a spanning tree of the cells, grown from a random cell ("growing
    /// tree"), mostly from the newest, which winds, sometimes from any, which branches; how often is
    /// the maze's own. Then `loops` percent of its dead ends are opened.
    pub(super) fn generate(rng: &mut impl FnMut(u64) -> u64, size: usize, loops: u32) -> Self {
        let mut grid = Self::closed(size);
        grid.grow(rng);
        grid.open_dead_ends(rng, loops);
        grid
    }

    fn closed(size: usize) -> Self {
        Self { size, open: vec![0; size * size] }
    }

    /// The cell next to `cell`, whether or not a wall is between; `None` outside the maze.
    fn beside(&self, cell: usize, direction: Direction) -> Option<usize> {
        let (x, y) = (cell % self.size, cell / self.size);
        match direction {
            Direction::Up => (y > 0).then(|| cell - self.size),
            Direction::Right => (x + 1 < self.size).then(|| cell + 1),
            Direction::Down => (y + 1 < self.size).then(|| cell + self.size),
            Direction::Left => (x > 0).then(|| cell - 1),
        }
    }

    pub(super) fn is_open(&self, cell: usize, direction: Direction) -> bool {
        self.open[cell] & direction.bit() != 0
    }

    /// Where a move from `cell` leads; `None` at a wall.
    pub(super) fn walk(&self, cell: usize, direction: Direction) -> Option<usize> {
        if self.is_open(cell, direction) { self.beside(cell, direction) } else { None }
    }

    fn carve(&mut self, cell: usize, direction: Direction, to: usize) {
        self.open[cell] |= direction.bit();
        self.open[to] |= direction.opposite().bit();
    }

    /// One of the directions from `cell` that `wanted` accepts, and where it leads.
    fn pick(
        &self,
        rng: &mut impl FnMut(u64) -> u64,
        cell: usize,
        wanted: impl Fn(Direction, usize) -> bool,
    ) -> Option<(Direction, usize)> {
        let mut found = [(Direction::Up, 0); 4];
        let mut count = 0;
        for direction in Direction::ALL {
            if let Some(to) = self.beside(cell, direction)
                && wanted(direction, to)
            {
                found[count] = (direction, to);
                count += 1;
            }
        }
        (count > 0).then(|| found[rng(count as u64) as usize])
    }

    fn grow(&mut self, rng: &mut impl FnMut(u64) -> u64) {
        let newest_percent = 60 + rng(41);
        let mut growing = vec![rng(self.open.len() as u64) as usize];
        while !growing.is_empty() {
            let at = if rng(100) < newest_percent {
                growing.len() - 1
            } else {
                rng(growing.len() as u64) as usize
            };
            let cell = growing[at];
            match self.pick(rng, cell, |_, to| self.open[to] == 0) {
                Some((direction, to)) => {
                    self.carve(cell, direction, to);
                    growing.push(to);
                }
                None => {
                    growing.remove(at);
                }
            }
        }
    }

    fn open_dead_ends(&mut self, rng: &mut impl FnMut(u64) -> u64, percent: u32) {
        for cell in 0..self.open.len() {
            if self.open[cell].count_ones() == 1
                && rng(100) < u64::from(percent)
                && let Some((direction, to)) =
                    self.pick(rng, cell, |direction, _| !self.is_open(cell, direction))
            {
                self.carve(cell, direction, to);
            }
        }
    }

    /// Every cell's number of steps to `target`.
    pub(super) fn distances(&self, target: usize) -> Vec<u16> {
        let mut distances = vec![u16::MAX; self.open.len()];
        distances[target] = 0;
        let mut reached = vec![target];
        let mut next = 0;
        while let Some(&cell) = reached.get(next) {
            next += 1;
            for direction in Direction::ALL {
                if let Some(to) = self.walk(cell, direction)
                    && distances[to] == u16::MAX
                {
                    distances[to] = distances[cell] + 1;
                    reached.push(to);
                }
            }
        }
        distances
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{many_levels, uniform};
    use super::*;

    #[test]
    fn a_passage_leads_one_cell_on_and_back() {
        for level in many_levels() {
            let size = level.size();
            for cell in 0..size * size {
                for (direction, (dx, dy)) in
                    Direction::ALL.into_iter().zip([(0, -1), (1, 0), (0, 1), (-1, 0)])
                {
                    let Some(to) = level.walk(cell, direction) else {
                        continue;
                    };
                    let at = |cell: usize| ((cell % size) as i32, (cell / size) as i32);
                    assert_eq!(at(to), (at(cell).0 + dx, at(cell).1 + dy));
                    assert_eq!(level.walk(to, direction.opposite()), Some(cell));
                }
            }
        }
    }

    fn passages(grid: &Grid) -> u32 {
        grid.open.iter().map(|bits| bits.count_ones()).sum::<u32>() / 2
    }

    #[test]
    fn without_loops_the_maze_is_a_tree() {
        for seed in 0..50 {
            let grid = Grid::generate(&mut uniform(seed), 9, 0);
            assert_eq!(passages(&grid), 9 * 9 - 1);
            assert!(grid.distances(0).iter().all(|distance| *distance != u16::MAX));
        }
    }

    #[test]
    fn at_100_percent_loops_there_is_no_dead_end() {
        for seed in 0..50 {
            let grid = Grid::generate(&mut uniform(seed), 9, 100);
            assert!(grid.open.iter().all(|bits| bits.count_ones() >= 2));
        }
    }

    #[test]
    fn more_loops_open_more_passages() {
        let total = |loops| -> u32 {
            (0..50).map(|seed| passages(&Grid::generate(&mut uniform(seed), 9, loops))).sum()
        };
        assert!(total(0) < total(20) && total(20) < total(60) && total(60) < total(100));
    }
}
