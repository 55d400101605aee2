//! [`Few`]: a short list without memory of its own on the heap.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A list of at most `MOST` things, in the order in which they were pushed.
#[derive(Clone, Debug)]
pub(super) struct Few<T, const MOST: usize> {
    things: [T; MOST],
    len: usize,
}

impl<T: Copy + Default, const MOST: usize> Few<T, MOST> {
    pub(super) fn new() -> Self {
        Few { things: [T::default(); MOST], len: 0 }
    }

    /// Adds a thing at the end. One that there is no room for is left out.
    #[inline]
    pub(super) fn push(&mut self, thing: T) {
        if let Some(place) = self.things.get_mut(self.len) {
            *place = thing;
            self.len += 1;
        }
    }

    /// Takes out the first thing that is like this; whether there is one.
    #[inline]
    pub(super) fn remove_first(&mut self, is_it: impl Fn(&T) -> bool) -> bool {
        let found = self.iter().position(is_it);
        if let Some(at) = found {
            self.things.copy_within(at + 1..self.len, at);
            self.len -= 1;
        }
        found.is_some()
    }

    /// Visits every thing from the last to the first, and keeps those of which `keep` says so.
    #[inline]
    pub(super) fn retain_backwards(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        for at in (0..self.len).rev() {
            if !keep(&mut self.things[at]) {
                self.things.copy_within(at + 1..self.len, at);
                self.len -= 1;
            }
        }
    }

    #[inline]
    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.things[..self.len].iter()
    }
}

impl<T: Serialize + Copy + Default, const MOST: usize> Serialize for Few<T, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de, T: DeserializeOwned + Copy + Default, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let things = Vec::<T>::deserialize(deserializer)?;
        if things.len() > MOST {
            return Err(D::Error::invalid_length(things.len(), &"no more than there is room for"));
        }
        let mut few = Few::new();
        things.into_iter().for_each(|thing| few.push(thing));
        Ok(few)
    }
}

#[cfg(test)]
mod tests {
    use envcore::state;

    use super::*;

    fn few(things: &[u8]) -> Few<u8, 4> {
        let mut few = Few::new();
        things.iter().for_each(|thing| few.push(*thing));
        few
    }

    #[test]
    fn what_is_taken_out_leaves_the_others_in_order() {
        let mut list = few(&[1, 2, 3, 2]);
        assert!(list.remove_first(|thing| *thing == 2));
        assert!(!list.remove_first(|thing| *thing == 7));
        assert_eq!(list.iter().collect::<Vec<_>>(), [&1, &3, &2]);
        let mut visited = Vec::new();
        list.retain_backwards(|thing| {
            visited.push(*thing);
            *thing += 10;
            *thing != 13
        });
        assert_eq!(visited, [2, 3, 1]);
        assert_eq!(list.iter().collect::<Vec<_>>(), [&11, &12]);
    }

    #[test]
    fn a_list_holds_no_more_than_it_has_room_for() {
        assert_eq!(few(&[1, 2, 3, 4, 5]).iter().count(), 4);
        let saved = |things: &[u8]| state::to_bytes(&things.to_vec()).unwrap();
        assert!(state::from_bytes::<Few<u8, 4>>(&saved(&[1, 2, 3, 4, 5])).is_err());
        let again: Few<u8, 4> = state::from_bytes(&state::to_bytes(&few(&[4, 2])).unwrap()).unwrap();
        assert_eq!(again.iter().collect::<Vec<_>>(), [&4, &2]);
    }
}
