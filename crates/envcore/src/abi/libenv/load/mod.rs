//! libenv libraries as sources: gym3's and procgen's, and those that Corral
//! exported.
//!
//! A chunk is one instance, of `libenv_make`. Its addresses are fixed, so each
//! batch is one copy. What a library says of itself is looked at before it is
//! believed, and what it shows is looked at too; but it is code in this process,
//! and may end it: where that must not be, load it in a worker of
//! [`Process`](crate::Process).
//!
//! Of a foreign library `first` is all that is known of an episode's end, which
//! is told as terminated. Its first reset observes; another makes the instance
//! anew, since libenv has no reset. Ours have one, by slot, seed or index, tell
//! terminated from truncated, and show final observations.

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
use chunk::{LibenvChunk, Recipe};
use instance::LoadedInstance;
use library::LibenvLibrary;
use tensors::{Spaces, tensor};

use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::source::{Chunk, Source, SourceSpec};
use crate::space::{DType, Leaf, Options, Space};
use crate::vec_config::AutoresetMode;

/// What the infos of a library are for.
struct Extras {
    /// Those that a user sees.
    shown: Vec<usize>,
    /// `terminated` and `truncated`.
    flags: Option<[usize; 2]>,
    /// The final observation's, leaf by leaf.
    finals: Option<Vec<usize>>,
    /// For each of `shown`, the same of the episode that ended.
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
    /// The options of each instance: the slots are divided among them.
    pub instances: Vec<Vec<LibenvOption>>,
    /// How many slots there are in all.
    pub num_slots: usize,
    /// Seed every slot at its first reset; ours alone can.
    pub seeded: bool,
    /// Functions of its own, to be called by name.
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
    /// Loads the library at `path`, an absolute one, and makes its first
    /// instance.
    ///
    /// # Errors
    /// Each names the library: [`Error::Argument`] where it is no library,
    /// [`Error::Unsupported`] where it is not of libenv 1, [`Error::Space`] for
    /// spaces that make no sense, [`Error::Env`] where it fails.
    ///
    /// # Safety
    /// Loading a library runs its code, and every use of the source does. It must
    /// keep to `libenv.h`: write no more than its spaces say, only where it was told
    /// to, and only from `libenv_act` on until the `libenv_observe` after it is over
    /// (or during another call). Functions of its own must be of the types that
    /// `config` declares.
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

    /// Whether Corral exported it.
    pub fn is_ours(&self) -> bool {
        self.library.reset.is_some()
    }
}

/// Where the library has `declared`, and the two that need no declaration.
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

/// Errors where an instance has other spaces than the first.
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
        let recipe = Recipe {
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
            // The first knew no seed.
            .filter(|instance| instance.num == seeds.len() && !self.config.seeded);
        let instance = kept.map_or_else(|| recipe.make(), Ok)?;
        Ok(Box::new(LibenvChunk::new(recipe, instance)))
    }

    fn chunks(&self) -> Option<usize> {
        Some(self.config.instances.len())
    }
}
