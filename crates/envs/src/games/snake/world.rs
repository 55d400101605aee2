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
    /// The fields where the snake is.
    taken: FieldSet,
    /// None only where the snake fills the board.
    pub(super) fruit: Option<u16>,
}

/// Fields of a board, which has at most 64 × 64.
#[derive(Clone)]
struct FieldSet([u64; 64]);

impl Default for FieldSet {
    fn default() -> Self {
        FieldSet([0; 64])
    }
}

impl FieldSet {
    #[inline]
    fn has(&self, field: u16) -> bool {
        self.0[usize::from(field / 64)] >> (field % 64) & 1 == 1
    }

    #[inline]
    fn insert(&mut self, field: u16) {
        self.0[usize::from(field / 64)] |= 1 << (field % 64);
    }

    #[inline]
    fn remove(&mut self, field: u16) {
        self.0[usize::from(field / 64)] &= !(1 << (field % 64));
    }

    /// The field before which `k` others are not in the set, and which is not in it itself.
    ///
    /// # Panics
    /// Where there is no such field.
    fn nth_absent(&self, mut k: usize) -> u16 {
        for (word, bits) in self.0.iter().enumerate() {
            let mut absent = !bits;
            let count = absent.count_ones() as usize;
            if k < count {
                (0..k).for_each(|_| absent &= absent - 1);
                return (64 * word) as u16 + absent.trailing_zeros() as u16;
            }
            k -= count;
        }
        panic!("the set lacks fewer fields than were asked for")
    }
}

impl SnakeWorld {
    /// A board with a snake of one field, and a fruit beside it. It has two fields or more.
    pub(super) fn new(rows: usize, columns: usize) -> Self {
        let fields = rows * columns;
        let (ring, taken) = (vec![0; fields].into_boxed_slice(), FieldSet::default());
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
        self.taken = FieldSet::default();
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
        self.taken.insert(field);
    }

    #[inline]
    fn drop_tail(&mut self) {
        self.taken.remove(self.tail());
        self.tail = self.place(1);
        self.length -= 1;
    }

    /// A field without snake, each as likely.
    fn free_field(&self, rng: &mut Rng) -> Option<u16> {
        let free = self.ring.len() - self.length;
        if free == 0 {
            return None;
        }
        Some(self.taken.nth_absent(rng.choice(free)))
    }

    /// Which moves do not end the game in a wall or in the snake.
    #[inline]
    pub(super) fn free_moves(&self) -> [bool; MOVES] {
        let head = self.head();
        let columns = self.columns as u16;
        let (row, column) = (head / columns, head % columns);
        let is_free =
            |is_on_board: bool, field: u16| is_on_board && (!self.taken.has(field) || field == self.tail());
        [
            is_free(row > 0, head.wrapping_sub(columns)),
            is_free(column + 1 < columns, head + 1),
            is_free(row + 1 < self.rows as u16, head + columns),
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
            if usize::from(*field) >= fields || self.taken.has(*field) || !beside {
                return None;
            }
            self.grow(*field);
        }
        let is_apart = match fruit {
            Some(fruit) => usize::from(fruit) < fields && !self.taken.has(fruit),
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
    fn fields_beside_the_snake_are_counted_as_one_by_one() {
        let mut rng = Rng::new(3);
        for size in [2usize, 63, 64, 65, 128, 4096] {
            let mut taken = FieldSet::default();
            (0..size / 2).for_each(|_| taken.insert(rng.choice(size) as u16));
            taken.insert(0);
            let absent: Vec<u16> = (0..size as u16).filter(|field| !taken.has(*field)).collect();
            let counted: Vec<u16> = (0..absent.len()).map(|k| taken.nth_absent(k)).collect();
            assert_eq!(counted, absent, "{size} fields");
        }
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
