//! The three spaces of an instance.
//!
//! Some infos are added to the env's because libenv has no field for them:
//! `terminated`, `truncated`, and for episodes that ended in this step
//! `episode_return`, `episode_length`, `failed`, `final_<leaf>` for each leaf of the
//! observation and, where that name is free, for each info. `failed` says that the env
//! failed, so that its `final_<leaf>` are zeros that no env has shown. In all other
//! rows these infos are zeros.

use std::collections::HashSet;

use super::face::Face;
use super::sums::Sums;
use crate::buffer::{Batch, Fixed};
use crate::error::{Error, Result};
use crate::source::SourceSpec;
use crate::space::Leaf;

/// The source of an info in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tell {
    Info(usize),
    Terminated,
    Truncated,
    Return,
    Length,
    Failed,
    FinalObservation(usize),
    FinalInfo(usize),
}

impl Tell {
    /// Whether only rows that end an episode have the info.
    pub(super) fn is_of_ends(self) -> bool {
        !matches!(self, Tell::Info(_) | Tell::Terminated | Tell::Truncated)
    }

    /// Whether only rows whose episode's last observation was seen have the info.
    pub(super) fn is_of_finals(self) -> bool {
        matches!(self, Tell::FinalObservation(_) | Tell::FinalInfo(_))
    }

    /// The bytes of all rows, where the batch has the info.
    pub(super) fn bytes<'a>(self, batch: &'a Batch, sums: &'a Sums) -> Option<&'a [u8]> {
        let finals = batch.finals.as_ref();
        match self {
            Tell::Info(leaf) => batch.infos.columns[leaf].as_fixed(),
            Tell::Terminated => Some(&batch.terminated),
            Tell::Truncated => Some(&batch.truncated),
            Tell::Return => return Some(bytemuck::cast_slice(&sums.last_returns)),
            Tell::Length => return Some(bytemuck::cast_slice(&sums.last_lengths)),
            Tell::Failed => return Some(bytemuck::cast_slice(&sums.last_failed)),
            Tell::FinalObservation(leaf) => finals.and_then(|finals| finals.observation[leaf].as_fixed()),
            Tell::FinalInfo(leaf) => finals.and_then(|finals| finals.infos.columns[leaf].as_fixed()),
        }
        .map(Fixed::bytes)
    }
}

/// The leaves of all spaces in libenv's form.
pub(super) struct Faces {
    pub(super) observation: Vec<Face>,
    pub(super) action: Vec<Face>,
    pub(super) info: Vec<Face>,
    /// The source of each info.
    pub(super) tells: Vec<Tell>,
}

impl Faces {
    /// The leaves of `num` slots of `spec`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for leaves that libenv cannot carry.
    pub(super) fn of(spec: &SourceSpec, num: usize, cast: bool) -> Result<Self> {
        let strict = |leaves: &[Leaf], what: &str, unnamed: &str| -> Result<Vec<Face>> {
            let faces = leaves.iter().map(|leaf| Face::strict(leaf, num, what, unnamed, cast));
            let faces = faces.collect::<Result<Vec<_>>>()?;
            check_names(&faces, what)?;
            Ok(faces)
        };
        let named = |error| match error {
            Error::Unsupported(why) => Error::Unsupported(format!("{}: {why}", spec.id)),
            other => other,
        };
        let observation = strict(spec.observation.leaves(), "observation", "obs").map_err(named)?;
        let action = strict(spec.action.leaves(), "action", "action").map_err(named)?;
        let (mut info, mut tells): (Vec<Face>, Vec<Tell>) = (Vec::new(), Vec::new());
        for (k, leaf) in spec.info.leaves().iter().enumerate() {
            if let Some(face) = Face::loose(leaf, num).map_err(named)? {
                info.push(face);
                tells.push(Tell::Info(k));
            }
        }
        check_names(&info, "info").map_err(named)?;
        let ours = [
            (Leaf::real::<bool>(&[]).named("terminated"), Tell::Terminated),
            (Leaf::real::<bool>(&[]).named("truncated"), Tell::Truncated),
            (Leaf::real::<f32>(&[]).named("episode_return"), Tell::Return),
            (Leaf::real::<i32>(&[]).named("episode_length"), Tell::Length),
            (Leaf::real::<bool>(&[]).named("failed"), Tell::Failed),
        ];
        let ours =
            ours.into_iter().filter_map(|(leaf, tell)| Some(Ok((Face::loose(&leaf, num).ok()??, tell))));
        let last = |(k, face): (usize, &Face)| {
            Ok((face.called(format!("final_{}", face.name))?, Tell::FinalObservation(k)))
        };
        for face in ours.chain(observation.iter().enumerate().map(last)) {
            let (face, tell) = face.map_err(named)?;
            if info.iter().any(|own| own.name == face.name) {
                let name = &face.name;
                let why =
                    format!("{}: libenv has an info '{name}' from us: give its own another name", spec.id);
                return Err(Error::Unsupported(why));
            }
            info.push(face);
            tells.push(tell);
        }
        for k in 0..tells.len() {
            let Tell::Info(leaf) = tells[k] else { break };
            let name = format!("final_{}", info[k].name);
            if info.iter().all(|other| other.name != name)
                && let Ok(face) = info[k].called(name)
            {
                info.push(face);
                tells.push(Tell::FinalInfo(leaf));
            }
        }
        Ok(Faces { observation, action, info, tells })
    }
}

/// # Errors
/// [`Error::Unsupported`] where two leaves have the same name, because libenv writes
/// the levels of a space with dots.
fn check_names(faces: &[Face], what: &str) -> Result<()> {
    let mut names = HashSet::new();
    match faces.iter().find(|face| !names.insert(&face.name)) {
        None => Ok(()),
        Some(Face { name, .. }) => Err(Error::Unsupported(format!(
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
        assert!(Faces::of(&spec(one(), one(), Space::empty()), 2, false).is_ok());
        let specs = [
            (spec(twice(), one(), Space::empty()), "observation"),
            (spec(one(), twice(), Space::empty()), "action"),
            (spec(one(), one(), twice()), "info"),
        ];
        for (spec, what) in specs {
            let error = Faces::of(&spec, 2, false).map(drop).unwrap_err().to_string();
            assert!(error.contains(&format!("two leaves of the {what} 'a.b'")), "{error}");
        }
    }
}
