//! What the source can do and the user has asked for, decided once.

use std::sync::Arc;

use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::source::SourceSpec;
use crate::space::{Leaf, Space};
use crate::vec_config::{AutoresetMode, VecConfig};

/// The rules that follow from the source's spec and the user's config.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) autoreset: AutoresetMode,
    /// Whether the source resets itself.
    pub(super) self_resetting: bool,
    /// Whether the source shows an episode's final observation.
    shows_finals: bool,
    /// The time limit in steps; `u64::MAX` for none.
    pub(super) limit: u64,
    /// The info leaf `episode.r`; `episode.l` and `episode.t` follow it.
    pub(super) statistics: Option<usize>,
    /// Whether what the source shows is held to its spaces.
    pub(super) debug: bool,
    /// The slots whose last picture is told.
    pub(super) final_frames: Arc<[usize]>,
}

impl Rules {
    /// The rules for a source under `config`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the source cannot do what is asked.
    pub(crate) fn new(source: &SourceSpec, config: &VecConfig) -> Result<Self> {
        let autoreset = match (source.autoreset, config.autoreset) {
            (Some(only), Some(asked)) if only != asked => {
                return Err(Error::Unsupported(format!(
                    "{} resets itself and has no autoreset mode but {only}",
                    source.id
                )));
            }
            (Some(only), _) => only,
            (None, asked) => asked.unwrap_or_default(),
        };
        if config.episode_statistics && source.info.has_key("episode") {
            return Err(Error::Unsupported(format!(
                "{} has an info 'episode' of its own, where episode_statistics would be",
                source.id
            )));
        }
        if config.max_episode_steps == Some(0) {
            return Err(Error::Argument("max_episode_steps must be at least 1".into()));
        }
        if config.max_episode_steps.is_some() {
            source.caps.require(Caps::TIME_LIMIT, &source.id, "bear a time limit")?;
        }
        if !config.final_frames.is_empty() {
            source.caps.require(Caps::RENDER, &source.id, "draw a picture, as final_frames asks")?;
        }
        Ok(Rules {
            autoreset,
            self_resetting: source.autoreset.is_some(),
            shows_finals: source.caps.contains(Caps::FINAL_OBS),
            limit: config.max_episode_steps.unwrap_or(u64::MAX),
            statistics: config.episode_statistics.then_some(source.info.leaves().len()),
            debug: config.debug,
            final_frames: config.final_frames.as_slice().into(),
        })
    }

    /// The source's infos and, where these are asked for, the episode statistics.
    ///
    /// # Errors
    /// [`Error::Space`] where the source's infos have no names.
    pub(crate) fn info(&self, source: &SourceSpec) -> Result<Space> {
        let statistics = [
            Leaf::real::<f64>(&[]).named("episode.r"),
            Leaf::real::<i64>(&[]).named("episode.l"),
            Leaf::real::<f64>(&[]).named("episode.t"),
        ];
        let wanted = if self.statistics.is_some() { Space::of(statistics) } else { Space::empty() };
        let joined = source.info.clone().join(wanted);
        joined.map_err(|_| {
            Error::Space(format!("{}: info space: infos are a struct of named leaves", source.id))
        })
    }

    /// Whether batches carry final observations beside the next first ones.
    pub(crate) fn keeps_finals(&self) -> bool {
        self.autoreset == AutoresetMode::SameStep && self.shows_finals
    }
}
