//! Corral's built-in environments.
//!
//! One file per environment, grouped in families; each family's `mod.rs` holds
//! a table, and everything else (ids, registry, listing, conformance tests)
//! follows from the tables.

#![forbid(unsafe_code)]

mod canvas;
pub mod classic;
#[cfg(test)]
mod damaged;
pub mod games;
mod glyphs;
pub mod grid;
pub mod minatar;
pub mod minigrid;
pub mod testing;
pub mod toy_text;

pub use envcore::Entry;
use envcore::Result;

const FAMILIES: [&[Entry]; 7] = [
    classic::TABLE,
    toy_text::TABLE,
    games::TABLE,
    grid::TABLE,
    minigrid::TABLE,
    minatar::TABLE,
    testing::TABLE,
];

const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES.len() {
        count += FAMILIES[family].len();
        family += 1;
    }
    count
};

/// All environments, family by family, the hidden ones last: what a library of
/// them exports.
pub static TABLE: &[Entry] = &{
    let mut all = [classic::TABLE[0]; COUNT];
    let (mut at, mut family) = (0, 0);
    while family < FAMILIES.len() {
        let mut k = 0;
        while k < FAMILIES[family].len() {
            all[at] = FAMILIES[family][k];
            (at, k) = (at + 1, k + 1);
        }
        family += 1;
    }
    all
};

/// All environments that are listed, family by family.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    TABLE.iter().filter(|entry| !entry.hidden)
}

/// The environment of this id, with or without the `corral/` before it, or by the id that the
/// package `minatar` has for it.
///
/// # Errors
/// [`Error::UnknownEnv`](envcore::Error::UnknownEnv), with the nearest ids.
pub fn find(id: &str) -> Result<&'static Entry> {
    let id = id.strip_prefix("corral/").unwrap_or(id);
    envcore::find(TABLE, minatar::id_of_package(id).as_deref().unwrap_or(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_id_gets_the_nearest_one_and_the_list() {
        assert_eq!(find("corral/CartPole-v1").unwrap().id, "CartPole-v1");
        let text = find("cartpole-v1").err().unwrap().to_string();
        assert!(text.contains("Did you mean 'CartPole-v1'?"), "{text}");
        assert!(text.contains("Maze-v0"), "{text}");
    }

    #[test]
    fn every_entry_makes_its_source_and_ids_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for entry in TABLE {
            assert!(seen.insert(entry.id), "{} twice", entry.id);
            let source = entry.source(&envcore::Options::new()).unwrap();
            assert_eq!(source.spec().id, entry.id);
            assert!(!entry.about.is_empty());
        }
    }
}
