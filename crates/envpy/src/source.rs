//! `corral._native.Source`: what vec envs are made of.
//!
//! Built-in envs and Python envs in this process are made of here, on every system. For all others
//! the core has code on Linux alone; elsewhere they are refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(all(target_os = "linux", not(portable)))]
use envcore::{
    DType,
    abi::env_c_api::load::{EnvCApiConfig, EnvCApiSource},
    abi::libenv::load::{Function, LibenvConfig, LibenvOption, LibenvSource},
    net::{Asked, ClientConfig, ClientTls, Token},
};
use envcore::{Error, Options, Result, Value, VecConfig, VecEnv, start};
use pyo3::prelude::*;
#[cfg(not(all(target_os = "linux", not(portable))))]
use pyo3::types::PyTuple;
use pyo3::types::{PyDict, PyInt, PyList};

use crate::closing::Closing;
use crate::errors::{self, OrRaise};
#[cfg(all(target_os = "linux", not(portable)))]
use crate::foreign::{RemoteEnvs, Workers, look, pause, unpack};
#[cfg(all(target_os = "linux", not(portable)))]
use crate::plugin::Plugin;
use crate::py_env::{BatchSource, Hosting, PySource};
#[cfg(not(all(target_os = "linux", not(portable))))]
use crate::refused::{refused, unpack};
use crate::values;
use crate::vec_env::seconds;

enum Where {
    Here(Arc<dyn envcore::Source>),
    Elsewhere(Box<dyn Elsewhere>),
}

/// Envs that are stepped outside this process.
pub(crate) trait Elsewhere: Send + Sync {
    /// How far a vec env of them is on its way to being closed.
    fn closing(&self) -> Arc<Closing>;

    /// A vec env of them, and, of workers, what they tell of their envs.
    fn start(&self, config: VecConfig) -> Result<(Box<dyn VecEnv>, About)>;
}

/// What workers told of their envs, if there are any.
pub(crate) type About = Option<Vec<u8>>;

/// What a vec env is made of: a built-in env with its options, or Python envs,
/// in this process or in workers.
#[pyclass(module = "corral._native", frozen)]
pub(crate) struct Source {
    kind: Where,
    /// What a sink shows of Python envs; of those in workers the workers tell.
    about: Option<Py<PyAny>>,
}

#[pymethods]
impl Source {
    /// A built-in env.
    #[staticmethod]
    #[pyo3(signature = (id, options=None))]
    fn builtin(py: Python<'_>, id: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = config(id, options)?;
        let source = envs::find(id).and_then(|entry| entry.source(&options)).or_raise(py)?;
        Ok(Source { kind: Where::Here(source.into()), about: None })
    }

    /// An env of a plugin, which messages call `namespace/id`.
    #[cfg(all(target_os = "linux", not(portable)))]
    #[staticmethod]
    #[pyo3(signature = (plugin, namespace, id, options=None))]
    fn plugin(
        py: Python<'_>,
        plugin: &Bound<'_, Plugin>,
        namespace: &str,
        id: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let options = config(&format!("{namespace}/{id}"), options)?;
        let source = plugin.get().0.source(namespace, id, &options).or_raise(py)?;
        Ok(Source { kind: Where::Here(Arc::new(source)), about: None })
    }

    /// Python envs in this process: `factories` make one each, the first at once.
    /// Unless they are `seeded`, their first reset is given no seed.
    #[staticmethod]
    #[pyo3(signature = (id, factories, *, check_nan=true, seeded=false))]
    fn python(
        py: Python<'_>,
        id: &str,
        factories: &Bound<'_, PyList>,
        check_nan: bool,
        seeded: bool,
    ) -> PyResult<Self> {
        let factories = factories.iter().map(Bound::unbind).collect();
        let how = Hosting { check_nan, seeded };
        let source = PySource::new(py, id, factories, 0, how).or_raise(py)?;
        let about = source.about(py);
        Ok(Source { kind: Where::Here(Arc::new(source)), about: Some(about) })
    }

    /// Python envs that one object steps together, by one call; see
    /// `corral._python_batch.PythonBatch`.
    #[staticmethod]
    fn python_batch(py: Python<'_>, id: &str, envs: &Bound<'_, PyAny>) -> PyResult<Self> {
        let about = py.import("corral._python_env")?.call_method1("about", (envs,))?;
        let source = BatchSource::new(py, id, envs)?;
        Ok(Source { kind: Where::Here(Arc::new(source)), about: Some(about.unbind()) })
    }

    /// Envs of the libenv library at `path`: `instances` are the options of
    /// each, as (name, dtype, bytes), which have the envs divided among them;
    /// `functions` the library's own, as (name, declaration).
    #[cfg(all(target_os = "linux", not(portable)))]
    #[staticmethod]
    #[pyo3(signature = (path, num_envs, instances, *, seeded=false, functions=Vec::new()))]
    fn libenv(
        py: Python<'_>,
        path: PathBuf,
        num_envs: usize,
        instances: Vec<Vec<(String, String, Vec<u8>)>>,
        seeded: bool,
        functions: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let function = |(name, declared): &(String, String)| Function::new(name, declared);
        let functions = functions.iter().map(function).collect::<Result<_>>().or_raise(py)?;
        let option = |(name, dtype, bytes): (String, String, Vec<u8>)| {
            let dtype = DType::from_name(&dtype)
                .ok_or_else(|| Error::Argument(format!("option '{name}': there is no dtype {dtype}")))?;
            LibenvOption::new(&name, dtype, bytes)
        };
        let options = |options: Vec<_>| options.into_iter().map(option).collect::<Result<_>>();
        let instances = instances.into_iter().map(options).collect::<Result<_>>().or_raise(py)?;
        let config = LibenvConfig { instances, num_slots: num_envs, seeded, functions };
        // Its code is foreign, and may take its time.
        // SAFETY: whoever names a library wants its code run, and whoever declares its
        // functions says what they are.
        #[allow(unsafe_code)]
        let source = py.detach(|| unsafe { LibenvSource::new(&path, config) }).or_raise(py)?;
        Ok(Source { kind: Where::Here(Arc::new(source)), about: None })
    }

    /// Envs of the EnvCApi library at `path`: `settings` of each env, or one list for all,
    /// as (key, value); see [`EnvCApiConfig`] for the others.
    #[cfg(all(target_os = "linux", not(portable)))]
    #[staticmethod]
    #[pyo3(signature = (path, settings, *, connect=None, params=None, copies=false, strict=false,
                        steps=1, eagain_limit=10.0, max_shape=Vec::new()))]
    #[expect(clippy::too_many_arguments, reason = "each is given by name")]
    fn env_c_api(
        py: Python<'_>,
        path: PathBuf,
        settings: Vec<Vec<(String, String)>>,
        connect: Option<String>,
        params: Option<PathBuf>,
        copies: bool,
        strict: bool,
        steps: i32,
        eagain_limit: f64,
        max_shape: Vec<(String, Vec<usize>)>,
    ) -> PyResult<Self> {
        let config = EnvCApiConfig {
            connect,
            params,
            settings,
            copies,
            strict_finals: strict,
            steps_per_action: steps,
            eagain_limit: Duration::try_from_secs_f64(eagain_limit).unwrap_or(Duration::MAX),
            pause: Arc::new(pause),
            max_shape,
        };
        // SAFETY: whoever names a library wants its code run.
        #[allow(unsafe_code)]
        let source = py.detach(|| unsafe { EnvCApiSource::new(&path, config) }).or_raise(py)?;
        Ok(Source { kind: Where::Here(Arc::new(source)), about: None })
    }

    /// Envs in the netenv server at `address`, which makes them with `env_options`. `asked` is the id
    /// and the vec env's options that a server of Corral's takes; with `plain` netenv alone is spoken.
    #[cfg(all(target_os = "linux", not(portable)))]
    #[staticmethod]
    #[pyo3(signature = (address, env_options, *, asked, plain=false, token=None, fingerprint=None, authority=None,
                        shared_memory=false, connect_timeout=None))]
    #[expect(clippy::too_many_arguments, reason = "each is given by name")]
    fn netenv(
        py: Python<'_>,
        address: &str,
        env_options: &Bound<'_, PyDict>,
        asked: (Option<String>, Bound<'_, PyDict>),
        plain: bool,
        token: Option<&str>,
        fingerprint: Option<&str>,
        authority: Option<PathBuf>,
        shared_memory: bool,
        connect_timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let limit = |time: &Bound<'_, PyAny>| seconds("connect_timeout", time, false).or_raise(py);
        // A wait of this length has no end that a clock can tell.
        let longest = Duration::from_secs(1 << 32);
        let connect_timeout = connect_timeout.map_or(Ok(longest), limit)?.min(longest);
        let tls = match (fingerprint, authority) {
            (Some(fingerprint), _) => Some(ClientTls::pinned(fingerprint).or_raise(py)?),
            (None, Some(authority)) => Some(ClientTls::signed_by(&authority).or_raise(py)?),
            (None, None) => None,
        };
        let closing: Arc<Closing> = Arc::default();
        let told = closing.clone();
        let client = ClientConfig {
            tls,
            address: address.parse().or_raise(py)?,
            env_options: values::options(env_options)?,
            asked: Asked { is_extended: !plain, id: asked.0, settings: values::options(&asked.1)? },
            token: token.map(Token::new).transpose().or_raise(py)?,
            shared_memory,
            connect_timeout,
            pause: Arc::new(move || if told.is_asked() { Err(Error::Closed) } else { Ok(look()?) }),
        };
        let remote = RemoteEnvs { client, closing };
        Ok(Source { kind: Where::Elsewhere(Box::new(remote)), about: None })
    }

    /// Envs in worker processes.
    ///
    /// `payload(start, stop)` gives the bytes from which a worker makes those
    /// slots' envs; `launcher.launch(worker, control_fd, stderr_fd)` starts a
    /// worker, and gives the pid of a child of this process, or what has `pid`,
    /// `poll()` and `kill()`; `what` they make is for messages. A worker that
    /// takes longer than `make_timeout` seconds to make its envs is ended.
    #[cfg(all(target_os = "linux", not(portable)))]
    #[staticmethod]
    #[pyo3(signature = (payload, launcher, *, num_workers=None, what=None, make_timeout=None))]
    fn workers(
        payload: Py<PyAny>,
        launcher: Py<PyAny>,
        num_workers: Option<usize>,
        what: Option<String>,
        make_timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let limit =
            |timeout: &Bound<'_, PyAny>| seconds("make_timeout", timeout, false).or_raise(timeout.py());
        let make_timeout = make_timeout.map(limit).transpose()?;
        let workers = Workers::new(payload, launcher, what, make_timeout, num_workers);
        Ok(Source { kind: Where::Elsewhere(Box::new(workers)), about: None })
    }

    #[cfg(not(all(target_os = "linux", not(portable))))]
    #[staticmethod]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn plugin(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Err(refused(py, "plugins, which are libraries of envs,"))
    }

    #[cfg(not(all(target_os = "linux", not(portable))))]
    #[staticmethod]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn libenv(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Err(refused(py, "libenv libraries"))
    }

    #[cfg(not(all(target_os = "linux", not(portable))))]
    #[staticmethod]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn env_c_api(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Err(refused(py, "EnvCApi libraries"))
    }

    #[cfg(not(all(target_os = "linux", not(portable))))]
    #[staticmethod]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn netenv(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Err(refused(py, "envs in a server of netenv"))
    }

    #[cfg(not(all(target_os = "linux", not(portable))))]
    #[staticmethod]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn workers(
        py: Python<'_>,
        _args: &Bound<'_, PyTuple>,
        _kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Err(refused(py, "envs in worker processes"))
    }
}

impl Source {
    /// What steps here, if it does.
    pub(crate) fn here(&self) -> Option<Arc<dyn envcore::Source>> {
        match &self.kind {
            Where::Here(source) => Some(source.clone()),
            Where::Elsewhere(_) => None,
        }
    }

    /// How far a vec env of it is on its way to being closed.
    pub(crate) fn closing(&self) -> Arc<Closing> {
        match &self.kind {
            Where::Here(_) => Arc::default(),
            Where::Elsewhere(envs) => envs.closing(),
        }
    }

    pub(crate) fn usual_limit(&self) -> Option<u64> {
        self.here().and_then(|source| source.spec().max_episode_steps)
    }

    /// A text that tells its config.
    pub(crate) fn config(&self) -> String {
        self.here().map_or_else(String::new, |source| source.spec().config.clone())
    }

    /// A vec env of it, and, of workers, what they tell of their envs.
    pub(crate) fn start(&self, config: VecConfig) -> Result<(Box<dyn VecEnv>, About)> {
        match &self.kind {
            Where::Here(source) => Ok((start(source.clone(), config)?, None)),
            Where::Elsewhere(envs) => envs.start(config),
        }
    }

    /// What sinks show of its envs, if the core does not know.
    pub(crate) fn about(&self, py: Python<'_>, told: About) -> PyResult<Option<Py<PyAny>>> {
        match (&self.about, told) {
            (Some(about), _) => Ok(Some(about.clone_ref(py))),
            (None, Some(told)) if !told.is_empty() => Ok(Some(unpack(py, &told)?.unbind())),
            (None, _) => Ok(None),
        }
    }
}

/// An env's own options.
///
/// # Errors
/// `OptionValueError` for a value that no option can be, with the option's name.
fn config(id: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::new();
    // Converting a value may run code of its own, which may change the dict.
    for item in given.map(|given| given.items()).into_iter().flatten() {
        let (name, value): (String, Bound<'_, PyAny>) = item.extract()?;
        let py = value.py();
        let wrong = |why: String| errors::to_py(py, Error::OptionValue(format!("{id}: {name} {why}")));
        let read = values::from_py(&value).map_err(|error| match errors::is(py, &error, "CorralError") {
            true => wrong(format!("is no option's value: {}", error.value(py))),
            false => error,
        })?;
        if read.holds_objects() {
            let what = match (value.cast::<PyInt>().is_ok(), &read) {
                (true, _) => "is an int of more than 64 bits".into(),
                (false, Value::Object(_)) => format!("is an object of type {}", value.get_type().name()?),
                (false, _) => format!("is a {} that holds other objects", value.get_type().name()?),
            };
            let kinds = "None, a bool, a number of 64 bits, a text, or a list, dict or array of these";
            return Err(wrong(format!("{what}: an option takes {kinds}")));
        }
        options.set(name, read);
    }
    Ok(options)
}
