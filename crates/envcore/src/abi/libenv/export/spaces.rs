//! The three spaces of an instance.
//!
//! Some infos are added to the env's because libenv has no field for them:
//! `terminated`, `truncated`, and for episodes that ended in this step
//! `episode_return`, `episode_length`, `failed`, `final_<leaf>` for each leaf of the
//! observation and, where that name is free, for each info. `failed` says that the env
//! failed, so that its `final_<leaf>` are zeros that no env has shown. In all other
//! rows these infos are zeros.

use std::collections::HashSet;

use super::sums::Sums;
use super::wire_leaf::WireLeaf;
use crate::buffer::{Batch, Fixed};
use crate::error::{Error, Result};
use crate::source::SourceSpec;
use crate::space::Leaf;

/// The source of an info in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum InfoSource {
    Info(usize),
    Terminated,
    Truncated,
    Return,
    Length,
    Failed,
    FinalObservation(usize),
    FinalInfo(usize),
}

impl InfoSource {
    /// Whether only rows that end an episode have the info.
    pub(super) fn is_of_ends(self) -> bool {
        !matches!(self, InfoSource::Info(_) | InfoSource::Terminated | InfoSource::Truncated)
    }

    /// Whether only rows whose episode's last observation was seen have the info.
    pub(super) fn is_of_finals(self) -> bool {
        matches!(self, InfoSource::FinalObservation(_) | InfoSource::FinalInfo(_))
    }

    /// The bytes of all rows, where the batch has the info.
    pub(super) fn bytes<'a>(self, batch: &'a Batch, sums: &'a Sums) -> Option<&'a [u8]> {
        let finals = batch.finals.as_ref();
        match self {
            InfoSource::Info(leaf) => batch.infos.columns[leaf].as_fixed(),
            InfoSource::Terminated => Some(&batch.terminated),
            InfoSource::Truncated => Some(&batch.truncated),
            InfoSource::Return => return Some(bytemuck::cast_slice(&sums.last_returns)),
            InfoSource::Length => return Some(bytemuck::cast_slice(&sums.last_lengths)),
            InfoSource::Failed => return Some(bytemuck::cast_slice(&sums.last_failed)),
            InfoSource::FinalObservation(leaf) => {
                finals.and_then(|finals| finals.observation[leaf].as_fixed())
            }
            InfoSource::FinalInfo(leaf) => finals.and_then(|finals| finals.infos.columns[leaf].as_fixed()),
        }
        .map(Fixed::bytes)
    }
}

/// The leaves of all spaces in libenv's form.
pub(super) struct WireSpaces {
    pub(super) observation: Vec<WireLeaf>,
    pub(super) action: Vec<WireLeaf>,
    pub(super) info: Vec<WireLeaf>,
    /// The source of each info.
    pub(super) info_sources: Vec<InfoSource>,
}

impl WireSpaces {
    /// The leaves of `num` slots of `spec`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for leaves that libenv cannot carry.
    pub(super) fn of(spec: &SourceSpec, num: usize, cast: bool) -> Result<Self> {
        let strict = |leaves: &[Leaf], what: &str, unnamed: &str| -> Result<Vec<WireLeaf>> {
            let wire_leaves = leaves.iter().map(|leaf| WireLeaf::strict(leaf, num, what, unnamed, cast));
            let wire_leaves = wire_leaves.collect::<Result<Vec<_>>>()?;
            check_names(&wire_leaves, what)?;
            Ok(wire_leaves)
        };
        let named = |error| match error {
            Error::Unsupported(why) => Error::Unsupported(format!("{}: {why}", spec.id)),
            other => other,
        };
        let observation = strict(spec.observation.leaves(), "observation", "obs").map_err(named)?;
        let action = strict(spec.action.leaves(), "action", "action").map_err(named)?;
        let (mut info, mut info_sources): (Vec<WireLeaf>, Vec<InfoSource>) = (Vec::new(), Vec::new());
        for (k, leaf) in spec.info.leaves().iter().enumerate() {
            if let Some(wire_leaf) = WireLeaf::loose(leaf, num).map_err(named)? {
                info.push(wire_leaf);
                info_sources.push(InfoSource::Info(k));
            }
        }
        check_names(&info, "info").map_err(named)?;
        let ours = [
            (Leaf::real::<bool>(&[]).named("terminated"), InfoSource::Terminated),
            (Leaf::real::<bool>(&[]).named("truncated"), InfoSource::Truncated),
            (Leaf::real::<f32>(&[]).named("episode_return"), InfoSource::Return),
            (Leaf::real::<i32>(&[]).named("episode_length"), InfoSource::Length),
            (Leaf::real::<bool>(&[]).named("failed"), InfoSource::Failed),
        ];
        let ours =
            ours.into_iter().filter_map(|(leaf, tell)| Some(Ok((WireLeaf::loose(&leaf, num).ok()??, tell))));
        let last = |(k, wire_leaf): (usize, &WireLeaf)| {
            Ok((wire_leaf.called(format!("final_{}", wire_leaf.name))?, InfoSource::FinalObservation(k)))
        };
        for wire_leaf in ours.chain(observation.iter().enumerate().map(last)) {
            let (wire_leaf, tell) = wire_leaf.map_err(named)?;
            if info.iter().any(|own| own.name == wire_leaf.name) {
                let name = &wire_leaf.name;
                let why =
                    format!("{}: libenv has an info '{name}' from us: give its own another name", spec.id);
                return Err(Error::Unsupported(why));
            }
            info.push(wire_leaf);
            info_sources.push(tell);
        }
        for k in 0..info_sources.len() {
            let InfoSource::Info(leaf) = info_sources[k] else { break };
            let name = format!("final_{}", info[k].name);
            if info.iter().all(|other| other.name != name)
                && let Ok(wire_leaf) = info[k].called(name)
            {
                info.push(wire_leaf);
                info_sources.push(InfoSource::FinalInfo(leaf));
            }
        }
        Ok(WireSpaces { observation, action, info, info_sources })
    }

    /// What a host should be told of the infos of `spec` that lose precision or range.
    pub(super) fn narrowed(&self, spec: &SourceSpec) -> Option<String> {
        let own = self.info.iter().zip(&self.info_sources);
        let own = own.filter(|(_, tell)| matches!(tell, InfoSource::Info(_)));
        let told: Vec<String> = own.filter_map(|(leaf, _)| leaf.narrowed()).collect();
        let what = told.join(", ");
        (!told.is_empty()).then(|| {
            format!("{}: {what}; the option cast=1 says that this is meant, and nothing is said", spec.id)
        })
    }
}

/// # Errors
/// [`Error::Unsupported`] where two leaves have the same name, because libenv writes
/// the levels of a space with dots.
fn check_names(wire_leaves: &[WireLeaf], what: &str) -> Result<()> {
    let mut names = HashSet::new();
    match wire_leaves.iter().find(|wire_leaf| !names.insert(&wire_leaf.name)) {
        None => Ok(()),
        Some(WireLeaf { name, .. }) => Err(Error::Unsupported(format!(
            "libenv has no levels, and would call two leaves of the {what} '{name}': give one another name"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::Caps;
    use crate::space::{Options, Space};

    #[test]
    fn two_leaves_that_libenv_would_call_alike_are_refused() {
        let one = || Space::from(Leaf::real::<f32>(&[]));
        let twice = || Space::dict([("a.b", one()), ("a", Space::dict([("b", one())]))]);
        let spec = |observation, action, info| SourceSpec {
            id: "Odd".into(),
            observation,
            action,
            info,
            caps: Caps::ENV,
            autoreset: None,
            max_episode_steps: None,
            metadata: Options::new(),
            num_agents: 1,
            config: String::new(),
        };
        assert!(WireSpaces::of(&spec(one(), one(), Space::empty()), 2, false).is_ok());
        let specs = [
            (spec(twice(), one(), Space::empty()), "observation"),
            (spec(one(), twice(), Space::empty()), "action"),
            (spec(one(), one(), twice()), "info"),
        ];
        for (spec, what) in specs {
            let error = WireSpaces::of(&spec, 2, false).map(drop).unwrap_err().to_string();
            assert!(error.contains(&format!("two leaves of the {what} 'a.b'")), "{error}");
        }
    }
}
