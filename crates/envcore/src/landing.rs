//! Slots whose rows come back one by one: in which order they were sent, and whose
//! rows have landed.

use std::collections::VecDeque;

use crate::buffer::Slots;

/// See the module.
pub(crate) struct Landing {
    /// In the order in which they landed.
    landed: VecDeque<usize>,
    /// When each slot was last sent on a list, counted.
    turns: Vec<u64>,
    turn: u64,
    /// When all were last sent together.
    together: u64,
}

impl Landing {
    pub(crate) fn new(num_slots: usize) -> Self {
        Landing { landed: VecDeque::new(), turns: vec![0; num_slots], turn: 0, together: 0 }
    }

    /// Notes that `slots` are sent, in this order.
    pub(crate) fn send(&mut self, slots: &Slots) {
        self.turn += 1;
        match slots {
            Slots::All => self.together = self.turn,
            Slots::List(list) => {
                for &slot in list {
                    self.turns[slot] = self.turn;
                    self.turn += 1;
                }
            }
        }
    }

    /// Notes that the row of `slot` is there.
    pub(crate) fn land(&mut self, slot: usize) {
        self.landed.push_back(slot);
    }

    /// How many rows are there.
    pub(crate) fn len(&self) -> usize {
        self.landed.len()
    }

    /// The slots whose rows are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.landed.iter().copied()
    }

    /// The `rows` slots that landed first, in the order in which they were sent.
    pub(crate) fn first(&self, rows: usize) -> Slots {
        let mut list: Vec<usize> = self.iter().take(rows).collect();
        list.sort_unstable_by_key(|&slot| (self.turns[slot].max(self.together), slot));
        Slots::of(list, self.turns.len())
    }

    /// Forgets the `rows` that landed first: they were received.
    pub(crate) fn receive(&mut self, rows: usize) {
        self.landed.drain(..rows);
    }

    /// Forgets all that landed.
    pub(crate) fn clear(&mut self) {
        self.landed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_received_as_they_land_and_ordered_as_they_were_sent() {
        let mut landing = Landing::new(4);
        landing.send(&Slots::List(vec![3, 1]));
        landing.send(&Slots::List(vec![0]));
        [0, 1, 3].into_iter().for_each(|slot| landing.land(slot));
        assert_eq!(landing.first(2), Slots::List(vec![1, 0]));
        assert_eq!(landing.first(3), Slots::List(vec![3, 1, 0]));
        landing.receive(2);
        assert_eq!(landing.iter().collect::<Vec<_>>(), [3]);
        landing.clear();
        landing.send(&Slots::All);
        [2, 1, 3, 0].into_iter().for_each(|slot| landing.land(slot));
        assert_eq!(landing.first(3), Slots::List(vec![1, 2, 3]));
        assert_eq!(landing.first(4), Slots::All);
        // Sent after all, a slot comes after them.
        landing.receive(4);
        landing.send(&Slots::List(vec![0]));
        [0, 1].into_iter().for_each(|slot| landing.land(slot));
        assert_eq!(landing.first(2), Slots::List(vec![1, 0]));
    }
}
