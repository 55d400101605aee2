//! Corral's built-in environments.
//!
//! One file per environment, grouped in families; each family's `mod.rs` holds
//! a table, and everything else (ids, registry, listing, conformance tests)
//! follows from the tables.

#![forbid(unsafe_code)]

pub mod classic;
pub mod grid;
pub mod testing;

pub use envcore::Entry;
use envcore::{Error, Result};

/// All environments, family by family.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    [classic::TABLE, grid::TABLE].into_iter().flatten()
}

/// The environment of this id, with or without the `corral/` before it.
///
/// # Errors
/// [`Error::UnknownEnv`], with the nearest ids.
pub fn find(id: &str) -> Result<&'static Entry> {
    let name = id.strip_prefix("corral/").unwrap_or(id);
    all().chain(testing::TABLE).find(|entry| entry.id == name).ok_or_else(|| {
        let near = envcore::nearest(name, all().map(|entry| entry.id));
        let hint = near.map(|near| format!(" Did you mean '{near}'?")).unwrap_or_default();
        let ids: Vec<&str> = all().map(|entry| entry.id).collect();
        Error::UnknownEnv(format!("unknown env '{id}'.{hint} There are: {}", ids.join(", ")))
    })
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
        for entry in all().chain(testing::TABLE) {
            assert!(seen.insert(entry.id), "{} twice", entry.id);
            let source = entry.source(&envcore::Options::new()).unwrap();
            assert_eq!(source.spec().id, entry.id);
            assert!(!entry.about.is_empty());
        }
    }
}
