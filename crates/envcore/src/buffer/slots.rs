//! The slots that a call or a batch is about.

use crate::error::{Error, Result};

/// Some slots of a vec env.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slots {
    /// All slots, in order.
    All,
    /// The slots of the list, in its order, each at most once.
    List(Vec<usize>),
}

impl Slots {
    /// The slots of `list`, out of `num_slots` slots.
    pub(crate) fn of(list: Vec<usize>, num_slots: usize) -> Self {
        if list.iter().copied().eq(0..num_slots) { Slots::All } else { Slots::List(list) }
    }

    /// How many slots these are, out of `num_slots` slots.
    pub fn len(&self, num_slots: usize) -> usize {
        match self {
            Slots::All => num_slots,
            Slots::List(list) => list.len(),
        }
    }

    /// The slot of row `row`.
    pub fn at(&self, row: usize) -> usize {
        match self {
            Slots::All => row,
            Slots::List(list) => list[row],
        }
    }

    /// The slots in row order, out of `num_slots` slots.
    pub fn iter(&self, num_slots: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.len(num_slots)).map(|row| self.at(row))
    }

    /// Errors unless each slot is one of `num_slots` slots and is named once.
    pub(crate) fn check(&self, num_slots: usize) -> Result<()> {
        let Slots::List(list) = self else { return Ok(()) };
        if let [slot] = list[..]
            && slot < num_slots
        {
            return Ok(());
        }
        let mut named = vec![false; num_slots];
        for &slot in list {
            if slot >= num_slots {
                return Err(Error::Argument(format!("env {slot} does not exist: there are {num_slots}")));
            }
            if std::mem::replace(&mut named[slot], true) {
                return Err(Error::Argument(format!("env {slot} is named twice")));
            }
        }
        Ok(())
    }
}
