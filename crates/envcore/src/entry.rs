//! [`Entry`]: an environment in the form in which tables and plugins list it.

use std::any::TypeId;

use crate::by_field::ByField;
use crate::config::{Config, OptionDoc, docs_to_json, nearest};
use crate::env::Env;
use crate::env_source::EnvSource;
use crate::error::{Error, Result};
use crate::source::Source;
use crate::space::Options;

/// One environment of a table: its id, what users should know of it, and how to make it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The env's id, without the text before the `/`.
    pub id: &'static str,
    /// One line on what the env is.
    pub about: &'static str,
    /// The env's usual time limit in steps.
    pub max_episode_steps: Option<u64>,
    /// The mean return from which the env counts as solved.
    pub reward_threshold: Option<f64>,
    /// The frames per second at which the env's episodes look natural.
    pub render_fps: u32,
    /// Whether the env is not listed, so that only those who know its id can make it.
    pub hidden: bool,
    make: fn(&Entry, &Options) -> Result<Box<dyn Source>>,
    /// The type of the env; `()` where the source is no env.
    env: fn() -> TypeId,
    defaults: fn() -> String,
    docs: fn() -> Vec<OptionDoc>,
}

impl Entry {
    /// The entry of `E`, without time limit or threshold, at 30 frames a second.
    pub const fn new<E: Env>(id: &'static str, about: &'static str) -> Self {
        Entry {
            id,
            about,
            max_episode_steps: None,
            reward_threshold: None,
            render_fps: 30,
            hidden: false,
            make: make::<E>,
            env: TypeId::of::<E>,
            defaults: || E::Config::default().to_json().to_string(),
            docs: E::Config::docs,
        }
    }

    /// This entry with the kernel of `E`, the entry's own env, for the configs that ask for it.
    pub const fn by_field<E: ByField<N>, const N: usize>(mut self) -> Self {
        self.make = make_by_field::<E, N>;
        self
    }

    /// An entry of `E` for one of several ids that the type serves: `make` tells by the id what
    /// to build, and gives it to [`source_of`](Self::source_of).
    pub const fn one_of<E: Env>(
        id: &'static str,
        about: &'static str,
        make: fn(&Entry, &Options) -> Result<Box<dyn Source>>,
    ) -> Self {
        Entry { make, ..Entry::new::<E>(id, about) }
    }

    /// An entry whose source is no [`Env`] and takes no options.
    pub const fn custom(
        id: &'static str,
        about: &'static str,
        make: fn(&Entry, &Options) -> Result<Box<dyn Source>>,
    ) -> Self {
        Entry {
            id,
            about,
            max_episode_steps: None,
            reward_threshold: None,
            render_fps: 30,
            hidden: false,
            make,
            env: TypeId::of::<()>,
            defaults: || "null".to_string(),
            docs: Vec::new,
        }
    }

    /// This entry with one line on what the env is.
    pub const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// This entry with a time limit.
    pub const fn steps(mut self, max_episode_steps: u64) -> Self {
        self.max_episode_steps = Some(max_episode_steps);
        self
    }

    /// This entry with a threshold.
    pub const fn solved_at(mut self, mean_return: f64) -> Self {
        self.reward_threshold = Some(mean_return);
        self
    }

    /// This entry with another frame rate.
    pub const fn fps(mut self, render_fps: u32) -> Self {
        self.render_fps = render_fps;
        self
    }

    /// This entry, not listed.
    pub const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// A source of this environment. `options` replace values of the env's default config.
    ///
    /// # Errors
    /// An option that is unknown or of the wrong type; the message names it.
    pub fn source(&self, options: &Options) -> Result<Box<dyn Source>> {
        (self.make)(self, options)
    }

    /// The source of `E` under `config`, with this entry's id, time limit and frame rate.
    ///
    /// # Errors
    /// [`Error::Space`] where one of the env's spaces contradicts itself.
    pub fn source_of<E: Env>(&self, config: E::Config) -> Result<EnvSource<E>> {
        let metadata = Options::new().with("render_fps", self.render_fps);
        Ok(EnvSource::<E>::new(self.id, config)?
            .with_max_episode_steps(self.max_episode_steps)
            .with_metadata(metadata))
    }

    /// The default config, as JSON text.
    pub fn defaults(&self) -> String {
        (self.defaults)()
    }

    /// The options: what each takes, and what it means.
    pub fn docs(&self) -> Vec<OptionDoc> {
        (self.docs)()
    }

    /// The options as a JSON object, by name; see [`OptionDoc::to_json`].
    pub fn docs_json(&self) -> String {
        docs_to_json(&self.docs())
    }
}

/// The entry of `table` with this id, listed or not.
///
/// # Errors
/// [`Error::UnknownEnv`], which names the nearest id and all listed ids.
pub fn find<'a>(table: &'a [Entry], id: &str) -> Result<&'a Entry> {
    table.iter().find(|entry| entry.id == id).ok_or_else(|| {
        let ids: Vec<&str> = table.iter().filter(|entry| !entry.hidden).map(|entry| entry.id).collect();
        let near = nearest(id, ids.iter().copied());
        let hint = near.map(|near| format!(" Did you mean '{near}'?")).unwrap_or_default();
        Error::UnknownEnv(format!("unknown env '{id}'.{hint} There are: {}", ids.join(", ")))
    })
}

fn make<E: Env>(entry: &Entry, options: &Options) -> Result<Box<dyn Source>> {
    Ok(Box::new(entry.source_of::<E>(E::Config::from_options(entry.id, options)?)?))
}

fn make_by_field<E: ByField<N>, const N: usize>(entry: &Entry, options: &Options) -> Result<Box<dyn Source>> {
    if (entry.env)() != TypeId::of::<E>() {
        let id = entry.id;
        return Err(Error::Argument(format!(
            "{id}: its entry names the kernel of another env, by_field::<{}>",
            std::any::type_name::<E>()
        )));
    }
    let config = E::Config::from_options(entry.id, options)?;
    let wanted = E::is_wanted(&config);
    let source = entry.source_of::<E>(config)?;
    Ok(if wanted { Box::new(source.by_field()) } else { Box::new(source) })
}
