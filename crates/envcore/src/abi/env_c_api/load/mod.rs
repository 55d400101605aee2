//! Libraries of DeepMind's EnvCApi as sources: DeepMind Lab's and Lab2D's, and those that
//! Corral exported.
//!
//! A chunk has a context for each slot, and steps and resets each by itself. What a library
//! says of itself, and what it shows, is looked at before it is believed; but it is code in
//! this process, and may end it: where that must not be, load it in a worker of
//! [`Process`](crate::Process).
//!
//! Each `start` is told an episode and a seed. Slot i's own stream counts its episodes from
//! 0. The first one is played from the slot's seed, the k-th from 31 bits of NumPy's
//! `SeedSequence([seed, k])`, and so is the first where the seed is larger than a C `int`.
//! Index `ix` is `start(ix, ix)`.

mod actions;
mod chunk;
mod context;
mod copies;
mod interface;
mod library;
mod observation;
mod properties;

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use context::Pause;

use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::source::{Chunk, Source, SourceSpec};
use crate::space::{Leaf, Options, Space};
use chunk::EnvCApiChunk;
use context::{LoadedContext, Patience};
use copies::{CopyKey, LibraryInUse};
use interface::Interface;
use library::EnvCApiLibrary;

/// The info of a row whose observation is that of the row before: the episode is over, and
/// the library shows nothing of its end.
const REPEATED: &str = "observation_repeated";

/// How a library of EnvCApi is loaded.
#[derive(Clone)]
pub struct EnvCApiConfig {
    /// The function that makes contexts, where the library has several that may.
    pub connect: Option<String>,
    /// The path of the library's own files, which libraries of DeepMind take first.
    pub params: Option<PathBuf>,
    /// The settings of each slot, or one list for all.
    pub settings: Vec<Vec<(String, String)>>,
    /// Whether each context has a copy of the library for itself.
    pub copies: bool,
    /// Whether nothing is asked of an episode that is over, as the header has it: its last
    /// row then repeats the observation before, and says so.
    pub strict_finals: bool,
    /// Steps of the library that an action is applied for.
    pub steps_per_action: std::ffi::c_int,
    /// For how long a `start` may say EAGAIN.
    pub eagain_limit: Duration,
    /// What waits between two tries of a `start` that said EAGAIN.
    pub pause: Pause,
    /// Observations of changing shape that become arrays of one shape, zeros behind what is
    /// there, each with a leaf `<name>_shape` beside it.
    pub max_shape: Vec<(String, Vec<usize>)>,
}

impl Default for EnvCApiConfig {
    fn default() -> Self {
        EnvCApiConfig {
            connect: None,
            params: None,
            settings: vec![Vec::new()],
            copies: false,
            strict_finals: false,
            steps_per_action: 1,
            eagain_limit: Duration::from_secs(10),
            pause: Arc::new(|pause| {
                std::thread::sleep(pause);
                Ok(())
            }),
            max_shape: Vec::new(),
        }
    }
}

/// How contexts are made, and what they are like.
struct LibraryPlan {
    config: EnvCApiConfig,
    /// By slot, or one for all.
    settings: Vec<Vec<(CString, CString)>>,
    library: LibraryChoice,
    interface: Interface,
    patience: Patience,
}

enum LibraryChoice {
    Shared(Arc<EnvCApiLibrary>),
    /// A copy for each context.
    Copies(CopyKey),
}

impl LibraryChoice {
    fn take(&self) -> Result<LibraryInUse> {
        match self {
            LibraryChoice::Shared(library) => Ok(LibraryInUse::Shared(library.clone())),
            // SAFETY: the duty of whoever called `EnvCApiSource::new`, of the same file.
            LibraryChoice::Copies(key) => unsafe { key.take() },
        }
    }
}

impl LibraryPlan {
    /// A new context for `slot`.
    ///
    /// # Errors
    /// As [`LoadedContext::open`]'s; [`Error::Space`] where it is not like the first.
    fn context(&self, slot: usize) -> Result<LoadedContext> {
        let settings = if self.settings.len() == 1 { &self.settings[0] } else { &self.settings[slot] };
        let context = LoadedContext::open(self.library.take()?, settings)?;
        let found = Interface::of(&context, &self.config.max_shape)?;
        if found != self.interface {
            return Err(context.misfit(format_args!(
                "the actions or observations of env {slot} are others than those of env 0: give all envs \
                 settings of equal spaces"
            )));
        }
        Ok(context)
    }
}

/// A library of EnvCApi, and how its contexts are made.
pub struct EnvCApiSource {
    spec: SourceSpec,
    plan: Arc<LibraryPlan>,
    /// The first context, made to learn the spaces.
    first: Mutex<Option<LoadedContext>>,
}

impl EnvCApiSource {
    /// Loads the library at `path`, an absolute one, and makes the context of slot 0.
    ///
    /// # Errors
    /// Each names the library: [`Error::Library`] where it is no library of EnvCApi 1.4 or
    /// 2, or makes no context; [`Error::OptionValue`] for a setting that it does not take;
    /// [`Error::Space`] for spaces that make no sense; [`Error::Env`] where it fails.
    ///
    /// # Safety
    /// Loading a library runs its code, and every use of the source does. It must keep to
    /// `env_c_api.h`; contexts of one copy of the library are used by several threads, each
    /// by one at a time.
    pub unsafe fn new(path: &Path, config: EnvCApiConfig) -> Result<Self> {
        let (connect, params) = (config.connect.as_deref(), config.params.as_deref());
        let library = if config.copies {
            LibraryChoice::Copies(CopyKey::new(path, connect, params)?)
        } else {
            // SAFETY: the caller's duty.
            LibraryChoice::Shared(Arc::new(unsafe { EnvCApiLibrary::open(path, path, connect, params) }?))
        };
        let settings =
            config.settings.iter().map(|settings| c_settings(settings)).collect::<Result<Vec<_>>>()?;
        let none = Vec::new();
        let first = LoadedContext::open(library.take()?, settings.first().unwrap_or(&none))?;
        let interface = Interface::of(&first, &config.max_shape)?;
        let mut caps = Caps::ENV | Caps::EVENTS;
        caps.set(Caps::CALL, first.api.list_property.is_some() || first.api.read_property.is_some());
        let repeated = Leaf::real::<bool>(&[]);
        let info =
            if config.strict_finals { Space::dict([(REPEATED, repeated.into())]) } else { Space::empty() };
        let mut metadata = Options::new();
        metadata.set("environment_name", first.environment_name());
        if let Some(fps) = first.fps() {
            metadata.set("fps", fps);
        }
        let spec = SourceSpec {
            id: path.display().to_string(),
            observation: interface.observation.clone(),
            action: interface.action.clone(),
            info,
            caps,
            autoreset: None,
            max_episode_steps: None,
            metadata,
            num_agents: 1,
            config: format!("{:?}", config.settings),
        };
        let patience = Patience::new(config.pause.clone());
        let plan = Arc::new(LibraryPlan { config, settings, library, interface, patience });
        Ok(EnvCApiSource { spec, plan, first: Mutex::new(Some(first)) })
    }
}

/// Settings as C has them.
fn c_settings(settings: &[(String, String)]) -> Result<Vec<(CString, CString)>> {
    let c = |key: &str, text: &str| {
        let nul = |_| {
            Error::OptionValue(format!(
                "setting '{}' has a NUL in it, which ends a text in C",
                key.escape_debug()
            ))
        };
        CString::new(text).map_err(nul)
    };
    settings.iter().map(|(key, value)| Ok((c(key, key)?, c(key, value)?))).collect()
}

impl Source for EnvCApiSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        let lists = self.plan.settings.len();
        if lists != 1 && first_slot + seeds.len() > lists {
            let n = first_slot + seeds.len();
            return Err(Error::Argument(format!("there are settings for {lists} envs, and {n} envs")));
        }
        let mut kept = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let first = if first_slot == 0 && !seeds.is_empty() { kept.take() } else { None };
        drop(kept);
        Ok(Box::new(EnvCApiChunk::new(self.plan.clone(), first_slot, seeds, first)?))
    }

    fn vacant(&self, slot: usize) -> Result<Box<dyn Chunk>> {
        Ok(Box::new(EnvCApiChunk::vacant(self.plan.clone(), slot)))
    }
}
