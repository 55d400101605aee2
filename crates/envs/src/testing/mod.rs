//! Environments for tests: made by `testing/…` ids, listed nowhere.
//!
//! They ship in the built package so that its Python half is tested against the
//! same binary that users get.

mod caller;
mod chooser;
mod dotted;
mod faulty;
mod nested;
mod odd;

pub use caller::{Caller, CallerConfig};
pub use chooser::{Chooser, ChooserConfig, ChooserMask};
pub use dotted::Dotted;
pub use faulty::{Fault, Faulty, FaultyConfig};
pub use nested::Nested;
pub use odd::OddSource;

use envcore::{Config, Options, Result, Source};

use crate::Entry;

/// The table of hidden entries.
pub const TABLE: &[Entry] = &[
    Entry::new::<Faulty>("testing/Faulty-v0", "Every kind of leaf, and any fault on demand.").hidden(),
    Entry::new::<Dotted>("testing/Dotted-v0", "Names with dots that are letters, and levels.").hidden(),
    Entry::custom("testing/Odd-v0", "Ragged and text leaves; resets itself, takes no seed.", odd).hidden(),
    Entry::new::<Caller>("testing/Caller-v0", "Takes words, answers calls, tells of events.").hidden(),
    Entry::new::<Chooser>("testing/Chooser-v0", "Tells which actions it allows.").hidden(),
    Entry::new::<Nested>("testing/Nested-v0", "Tuples within structs within tuples.").hidden(),
];

fn odd(entry: &Entry, options: &Options) -> Result<Box<dyn Source>> {
    <()>::from_options(entry.id, options)?;
    Ok(Box::new(OddSource::new(entry.id)))
}
