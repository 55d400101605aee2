//! The board and the snake on it.

use envcore::rng::Rng;

/// What a field of the observation tells: one number for each plane.
pub(super) const PLANES: usize = 5;
/// The moves: up, right, down, left.
const MOVES: usize = 4;

/// The board during an episode.
#[derive(Clone)]
pub(super) struct SnakeWorld {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// The fields of the snake from its tail to its head, in a ring: the first `length` places from
    /// `tail` on.
    ring: Box<[u16]>,
    tail: usize,
    length: usize,
    /// By field, whether the snake is there.
    taken: Box<[bool]>,
    /// None only where the snake fills the board.
    pub(super) fruit: Option<u16>,
}

impl SnakeWorld {
    /// A board with a snake of one field, and a fruit beside it. It has two fields or more.
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let fields = rows * columns;
        let (ring, taken) = (vec![0; fields].into_boxed_slice(), vec![false; fields].into_boxed_slice());
        let mut world = SnakeWorld { rows, columns, ring, tail: 0, length: 0, taken, fruit: Some(1) };
        world.grow(0);
        world
    }

    /// Begins an episode.
    pub(super) fn begin(&mut self, rng: &mut Rng) {
        self.clear();
        self.grow(rng.choice(self.ring.len()) as u16);
        self.fruit = self.free_field(rng);
    }

    fn clear(&mut self) {
        self.taken.fill(false);
        (self.tail, self.length) = (0, 0);
    }

    /// The fields of the snake, from its tail to its head.
    pub(super) fn snake(&self) -> impl Iterator<Item = u16> {
        let (to_end, from_start) = (&self.ring[self.tail..], &self.ring[..self.tail]);
        to_end.iter().chain(from_start).take(self.length).copied()
    }

    #[inline]
    pub(super) fn head(&self) -> u16 {
        self.ring[self.place(self.length - 1)]
    }

    #[inline]
    fn tail(&self) -> u16 {
        self.ring[self.tail]
    }

    /// The place in the ring of the `k`-th field from the tail.
    #[inline]
    fn place(&self, k: usize) -> usize {
        let place = self.tail + k;
        if place < self.ring.len() { place } else { place - self.ring.len() }
    }

    /// Adds a head.
    #[inline]
    fn grow(&mut self, field: u16) {
        self.ring[self.place(self.length)] = field;
        self.length += 1;
        self.taken[usize::from(field)] = true;
    }

    #[inline]
    fn drop_tail(&mut self) {
        self.taken[usize::from(self.tail())] = false;
        self.tail = self.place(1);
        self.length -= 1;
    }

    /// A field without snake, each as likely.
    fn free_field(&self, rng: &mut Rng) -> Option<u16> {
        let free = self.ring.len() - self.length;
        if free == 0 {
            return None;
        }
        let chosen = rng.choice(free);
        let fields = self.taken.iter().enumerate().filter(|(_, taken)| !**taken);
        fields.map(|(field, _)| field as u16).nth(chosen)
    }

    /// Which moves do not end the game in a wall or in the snake.
    #[inline]
    pub(super) fn free_moves(&self) -> [bool; MOVES] {
        let head = u32::from(self.head());
        let columns = self.columns as u32;
        let (row, column) = (head / columns, head % columns);
        let is_free = |is_on_board: bool, field: u32| {
            is_on_board && (!self.taken[field as usize] || field == u32::from(self.tail()))
        };
        [
            is_free(row > 0, head.wrapping_sub(columns)),
            is_free(column + 1 < columns, head + 1),
            is_free(row + 1 < self.rows as u32, head + columns),
            is_free(column > 0, head.wrapping_sub(1)),
        ]
    }

    /// Plays a move: whether a fruit was eaten, and whether the game is over.
    #[inline]
    pub(super) fn play(&mut self, action: usize, rng: &mut Rng) -> (bool, bool) {
        if !self.free_moves()[action] {
            return (false, true);
        }
        let ahead = [-(self.columns as i16), 1, self.columns as i16, -1];
        let field = self.head().wrapping_add_signed(ahead[action]);
        if self.fruit == Some(field) {
            self.grow(field);
            self.fruit = self.free_field(rng);
            return (true, self.fruit.is_none());
        }
        self.drop_tail();
        self.grow(field);
        (false, false)
    }

    /// Writes the planes of all fields.
    pub(super) fn write_planes(&self, planes: &mut [f32]) {
        planes.fill(0.0);
        let length = self.length as f32;
        for (k, field) in self.snake().enumerate() {
            let at = usize::from(field) * PLANES;
            planes[at] = 1.0;
            planes[at + 4] = (k + 1) as f32 / length;
        }
        planes[usize::from(self.head()) * PLANES + 1] = 1.0;
        planes[usize::from(self.tail()) * PLANES + 2] = 1.0;
        if let Some(fruit) = self.fruit {
            planes[usize::from(fruit) * PLANES + 3] = 1.0;
        }
    }

    /// Puts a snake, from its tail to its head, and a fruit on the board. `None` where no episode has
    /// them; then the board is in disorder.
    pub(super) fn put(&mut self, snake: &[u16], fruit: Option<u16>) -> Option<()> {
        self.clear();
        let fields = self.ring.len();
        for field in snake {
            let beside = self.length == 0 || self.is_beside(self.head(), *field);
            if usize::from(*field) >= fields || self.taken[usize::from(*field)] || !beside {
                return None;
            }
            self.grow(*field);
        }
        let is_apart = match fruit {
            Some(fruit) => self.taken.get(usize::from(fruit)) == Some(&false),
            None => self.length == fields,
        };
        self.fruit = fruit;
        (is_apart && self.length > 0).then_some(())
    }

    fn is_beside(&self, a: u16, b: u16) -> bool {
        let place = |field: u16| (usize::from(field) / self.columns, usize::from(field) % self.columns);
        let (a, b) = (place(a), place(b));
        a.0.abs_diff(b.0) + a.1.abs_diff(b.1) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snake_that_follows_its_tail_round_a_board_never_bites_itself() {
        let mut rng = Rng::new(0);
        let mut world = SnakeWorld::new(2, 3);
        // Round the board: fields 0, 1, 2, 5, 4, 3; the snake is of five fields.
        world.put(&[0, 1, 2, 5, 4], Some(3)).unwrap();
        assert_eq!(world.play(3, &mut rng), (true, true));
        assert_eq!(world.fruit, None);
        for action in [0, 1, 1, 2, 3, 3, 0, 1] {
            assert_eq!(world.play(action, &mut rng), (false, false));
        }
        assert_eq!(world.snake().collect::<Vec<_>>(), [2, 5, 4, 3, 0, 1]);
        assert_eq!(world.play(2, &mut rng), (false, true));
    }

    #[test]
    fn only_snakes_and_fruit_that_an_episode_has_are_put() {
        let mut world = SnakeWorld::new(2, 3);
        let wrong: [(&[u16], _); 7] = [
            (&[], Some(1)),
            (&[0], Some(0)),
            (&[0], Some(6)),
            (&[0], None),
            (&[6], Some(0)),
            (&[2, 3], Some(0)),
            (&[0, 1, 0], Some(5)),
        ];
        for (snake, fruit) in wrong {
            assert_eq!(world.put(snake, fruit), None, "{snake:?} {fruit:?}");
        }
        assert_eq!(world.put(&[0, 1, 4], Some(5)), Some(()));
    }
}
