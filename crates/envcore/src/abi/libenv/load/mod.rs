//! libenv libraries as sources: those of gym3 and procgen, and those that Corral
//! exported.
//!
//! A chunk is one instance of `libenv_make`. The instance's addresses are fixed, so each
//! batch is one copy. The spaces that a library declares and the values that it shows
//! are checked. But the library is code in this process and may end the process. Where
//! that must not happen, load the library in a worker of [`Process`](crate::Process).
//!
//! A foreign library only tells `first`, so the end of an episode is reported as
//! terminated. Its first reset observes; any other makes a new instance, because
//! libenv has no reset. A library that Corral exported has a reset by slot, with a seed
//! or an index, tells terminated from truncated, and shows final observations.

mod chunk;
mod functions;
mod instance;
mod library;
mod option;
mod tensors;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

pub use functions::Function;
pub use library::is_ours;
pub use option::LibenvOption;

use crate::abi::library::Address;
use chunk::{InstancePlan, LibenvChunk};
use instance::LoadedInstance;
use library::LibenvLibrary;
use tensors::{Spaces, tensor};

use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::source::{Chunk, Source, SourceSpec};
use crate::space::{DType, Leaf, Options, Space};
use crate::vec_config::AutoresetMode;

/// The purposes of a library's infos.
struct Extras {
    /// The infos that a user sees.
    shown: Vec<usize>,
    /// The infos `terminated` and `truncated`.
    flags: Option<[usize; 2]>,
    /// The infos that hold the final observation, leaf by leaf.
    finals: Option<Vec<usize>>,
    /// For each of `shown`, the info of the same name of the episode that ended.
    final_infos: Vec<Option<usize>>,
}

impl Extras {
    fn of(spaces: &Spaces, ours: bool) -> Self {
        let infos = spaces.info.leaves();
        if !ours {
            let shown = (0..infos.len()).collect();
            return Extras { shown, flags: None, finals: None, final_infos: Vec::new() };
        }
        let find = |name: &str| infos.iter().position(|leaf| leaf.name == name);
        let flag = |name| find(name).filter(|&k| tensor(&infos[k]).row_bytes() == DType::U8.size());
        let last = |leaf: &Leaf| {
            let (k, of) = (find(&format!("final_{}", leaf.name))?, tensor(leaf));
            let found = tensor(&infos[k]);
            (found.dtype == of.dtype && found.shape == of.shape).then_some(k)
        };
        let finals = spaces.observation.leaves().iter().map(last).collect::<Option<Vec<usize>>>();
        let final_infos: Vec<Option<usize>> = infos.iter().map(last).collect();
        let flags = flag("terminated").zip(flag("truncated")).map(|(a, b)| [a, b]);
        let told = ["terminated", "truncated", "episode_return", "episode_length", "failed"].map(find);
        let hidden = |k: &usize| {
            let k = Some(*k);
            told.contains(&k) || final_infos.contains(&k) || finals.iter().flatten().any(|f| Some(*f) == k)
        };
        let shown: Vec<usize> = (0..infos.len()).filter(|k| !hidden(k)).collect();
        let final_infos = shown.iter().map(|&k| final_infos[k]).collect();
        Extras { shown, flags, finals, final_infos }
    }
}

/// How a libenv library is loaded.
#[derive(Clone, Debug, Default)]
pub struct LibenvConfig {
    /// The options of each instance. The slots are divided among the instances.
    pub instances: Vec<Vec<LibenvOption>>,
    /// How many slots there are in all.
    pub num_slots: usize,
    /// Whether every slot is seeded at its first reset, which only Corral's libraries allow.
    pub seeded: bool,
    /// Functions of the library beyond libenv's, to be called by name.
    pub functions: Vec<Function>,
}

/// A libenv library, and how its instances are made.
pub struct LibenvSource {
    spec: SourceSpec,
    library: Arc<LibenvLibrary>,
    config: LibenvConfig,
    spaces: Arc<[Space; 3]>,
    extras: Arc<Extras>,
    functions: Arc<[(Function, Address)]>,
    /// The first instance, made to learn its spaces.
    first: Mutex<Option<LoadedInstance>>,
}

impl LibenvSource {
    /// Loads the library at `path`, which must be absolute, and makes the library's first
    /// instance.
    ///
    /// # Errors
    /// Each names the library: [`Error::Argument`] where the file is no library,
    /// [`Error::Unsupported`] where it is not of libenv 1, [`Error::Space`] for spaces that
    /// make no sense, [`Error::Env`] where the library fails.
    ///
    /// # Safety
    /// To load a library runs its code, and so does every use of the source. The library
    /// must keep to `libenv.h`: it may write no more than its spaces say, only to the
    /// memory that it was given, and only from `libenv_act` on until the `libenv_observe`
    /// after it is over, or during another call. The library's other functions must have
    /// the types that `config` declares.
    pub unsafe fn new(path: &Path, config: LibenvConfig) -> Result<Self> {
        let instances = config.instances.len();
        if instances == 0 || instances > config.num_slots {
            return Err(Error::Argument(format!(
                "{} envs cannot be divided among {instances} instances: each has at least 1",
                config.num_slots
            )));
        }
        let library = Arc::new(LibenvLibrary::open(path)?);
        let ours = library.reset.is_some();
        if config.seeded && !ours {
            return Err(Error::Unsupported(format!(
                "{} cannot be seeded: libenv has options for that, if the library knows any",
                path.display()
            )));
        }
        let (first, spaces) =
            LoadedInstance::make(&library, config.num_slots / instances, &config.instances[0])?;
        let functions = functions(&library, &config.functions)?;
        let extras = Extras::of(&spaces, ours);
        let mut caps = Caps::RESET;
        caps.set(Caps::SEED | Caps::INDEX | Caps::MASK, ours);
        caps.set(Caps::TRUNCATION, extras.flags.is_some());
        caps.set(Caps::FINAL_OBS, extras.finals.is_some());
        caps.set(Caps::SAVE, library.state.is_some());
        caps.set(Caps::CALL, !functions.is_empty());
        let shown = extras.shown.iter().map(|&k| &spaces.info.leaves()[k]);
        let info = Space::dict(shown.map(|leaf| (leaf.name.clone(), leaf.clone().named("").into())));
        let spec = SourceSpec {
            id: path.display().to_string(),
            observation: spaces.observation.clone(),
            action: spaces.action.clone(),
            info,
            caps,
            autoreset: Some(AutoresetMode::SameStep),
            max_episode_steps: None,
            metadata: Options::new(),
            num_agents: 1,
            config: format!("{:?}", config.instances[0]),
        };
        let spaces = Arc::new([spaces.observation, spaces.action, spaces.info]);
        let first = Mutex::new(Some(first));
        Ok(LibenvSource { spec, library, config, spaces, extras: Arc::new(extras), functions, first })
    }

    /// Whether Corral exported the library.
    pub fn is_ours(&self) -> bool {
        self.library.reset.is_some()
    }
}

/// The addresses of `declared`, and of the two functions that need no declaration.
fn functions(library: &LibenvLibrary, declared: &[Function]) -> Result<Arc<[(Function, Address)]>> {
    let found = |function: &Function| {
        let address = library.opened.address(&function.name);
        let address = address.ok_or_else(|| library.unknown(&function.name))?;
        Ok((function.clone(), address))
    };
    let mut all = declared.iter().map(found).collect::<Result<Vec<_>>>()?;
    if library.state.is_some() {
        for function in [Function::get_state(), Function::set_state()] {
            if all.iter().all(|(other, _)| other.name != function.name) {
                all.push(found(&function)?);
            }
        }
    }
    Ok(all.into())
}

/// Errors where the instance's spaces differ from those of the first instance.
fn matches_spaces(library: &LibenvLibrary, first: &[Space; 3], found: &Spaces) -> Result<()> {
    let found = [&found.observation, &found.action, &found.info];
    for ((what, first), found) in ["observation", "action", "info"].iter().zip(first).zip(found) {
        if first != found {
            return Err(library.misfit(format!(
                "its {what} space is another than that of its first instance: give all the same options"
            )));
        }
    }
    Ok(())
}

impl Source for LibenvSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        if seeds.is_empty() {
            return Err(Error::Argument(format!("{}: an instance has at least 1 env", self.spec.id)));
        }
        let (n, instances) = (self.config.num_slots, self.config.instances.len());
        let number = (0..instances).find(|k| n * k / instances == first_slot);
        let options = number.and_then(|number| self.config.instances.get(number));
        let plan = InstancePlan {
            library: self.library.clone(),
            options: options.unwrap_or(&self.config.instances[0]).clone(),
            num: seeds.len(),
            spaces: self.spaces.clone(),
            extras: self.extras.clone(),
            functions: self.functions.clone(),
            seeds: None,
        }
        .seeded(self.config.seeded.then_some(seeds))?;
        let kept = (number == Some(0))
            .then(|| self.first.lock().unwrap_or_else(PoisonError::into_inner).take())
            .flatten()
            // The first instance was made without a seed.
            .filter(|instance| instance.num == seeds.len() && !self.config.seeded);
        let instance = kept.map_or_else(|| plan.make(), Ok)?;
        Ok(Box::new(LibenvChunk::new(plan, instance)))
    }

    fn chunks(&self) -> Option<usize> {
        Some(self.config.instances.len())
    }
}
