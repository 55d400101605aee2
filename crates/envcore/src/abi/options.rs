//! What the options of a C interface ask for, whatever form its options have: the env, its
//! seed and first episodes, its limits, and the env's own config.

use serde_json::Value as Json;

use crate::begin::Begin;
use crate::entry::{Entry, find};
use crate::error::{Error, Result};
use crate::space::{Options, Value};

/// The options that every env has in such an interface. An env's own option of one of these
/// names cannot be given.
const OWN: &str = "env_id, seed, index, indices, max_episode_steps, num_threads";

/// One option in the form in which a host gives it.
pub(super) trait HostOption {
    fn name(&self) -> &str;

    /// The option as text.
    fn text(&self) -> Result<String>;

    /// The option as one number that is not negative.
    fn natural(&self) -> Result<u64>;

    /// The option as an array of numbers that are not negative.
    fn naturals(&self) -> Result<Vec<u64>>;

    /// Whether the option is -1.
    fn is_minus_one(&self) -> bool;

    /// The values that the option may mean where an env's option has this default, the most
    /// likely one first.
    fn values(&self, default: Option<&Json>) -> Result<Vec<Value>>;
}

/// What options ask for.
pub(super) struct Chosen {
    pub(super) entry: &'static Entry,
    /// The env's own options.
    pub(super) config: Options,
    pub(super) seed: Option<i64>,
    /// How the first episode of each slot begins.
    pub(super) begin: Vec<Begin>,
    /// The indices that slots play, slot after slot, before their own streams.
    pub(super) indices: Vec<u64>,
    /// The time limit; `Some(None)` for no limit.
    pub(super) max_episode_steps: Option<Option<u64>>,
    /// The number of threads; `None` for as many as there are cores.
    pub(super) num_threads: Option<usize>,
}

/// Removes the option `name` from `given`.
pub(super) fn take<G: HostOption>(given: &mut Vec<G>, name: &str) -> Option<G> {
    let at = given.iter().position(|given| given.name() == name);
    at.map(|at| given.remove(at))
}

impl Chosen {
    /// What `given` asks for, for `num` slots of an env of `table`.
    ///
    /// # Errors
    /// Each error names the option.
    pub(super) fn read<G: HostOption>(
        table: &'static [Entry],
        num: usize,
        mut given: Vec<G>,
    ) -> Result<Self> {
        let mut own = |name: &str| take(&mut given, name);
        let id = own("env_id").map(|given| given.text()).transpose()?;
        let entry = choose(table, id.as_deref())?;
        let seed = own("seed").map(|given| given.natural()).transpose()?;
        let indices = own("indices").map(|given| given.naturals()).transpose()?.unwrap_or_default();
        let mut begin: Vec<Begin> = vec![Begin::Own; num];
        if let Some(index) = own("index") {
            if !indices.is_empty() {
                return Err(Error::Argument(
                    "options 'index' and 'indices' say the same thing: give one".into(),
                ));
            }
            let first = index.natural()?;
            (first..).zip(&mut begin).for_each(|(index, begin)| *begin = Begin::Index(index));
        }
        indices.iter().zip(&mut begin).for_each(|(index, begin)| *begin = Begin::Index(*index));
        let max_episode_steps = match own("max_episode_steps") {
            Some(given) if given.is_minus_one() => Some(None),
            Some(given) => Some(Some(given.natural()?)),
            None => None,
        };
        let num_threads = match own("num_threads").map(|given| given.natural()).transpose()? {
            Some(0) => None,
            Some(threads) => Some(threads as usize),
            None => Some(1),
        };
        let config = config(entry, &given)?;
        let seed = seed.map(|seed| seed as i64);
        Ok(Chosen { entry, config, seed, begin, indices, max_episode_steps, num_threads })
    }
}

/// The entry with this id; without an id, the only listed entry.
fn choose(table: &'static [Entry], id: Option<&str>) -> Result<&'static Entry> {
    if let Some(id) = id {
        return find(table, id);
    }
    let mut listed = table.iter().filter(|entry| !entry.hidden);
    match (listed.next(), listed.next()) {
        (Some(only), None) => Ok(only),
        _ => {
            let ids: Vec<&str> = table.iter().filter(|entry| !entry.hidden).map(|entry| entry.id).collect();
            Err(Error::UnknownEnv(format!("option 'env_id' is missing; there are: {}", ids.join(", "))))
        }
    }
}

/// The env's own options.
fn config<G: HostOption>(entry: &Entry, given: &[G]) -> Result<Options> {
    let defaults: Json = serde_json::from_str(&entry.defaults()).unwrap_or_default();
    let mut options = Options::new();
    for given in given {
        let values = given.values(defaults.get(given.name()))?;
        let fits = |value: &Value| {
            let tried = entry.source(&options.clone().with(given.name(), value.clone()));
            !matches!(tried, Err(Error::OptionValue(_)))
        };
        let best = if values.len() > 1 { values.iter().find(|value| fits(value)) } else { None };
        let best = best.or(values.first()).cloned().unwrap_or_default();
        options.set(given.name(), best);
    }
    Ok(options)
}

/// `error`, whose list of valid options also names those of every env in `interface`, and
/// `more`.
pub(super) fn explain(error: Error, interface: &str, more: &str) -> Error {
    match error {
        Error::UnknownOption(why) => {
            Error::UnknownOption(format!("{why}; and those of every env in {interface}: {OWN}{more}"))
        }
        other => other,
    }
}
