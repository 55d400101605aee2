//! One context of a library: its functions, called as the header says.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::copies::LibraryInUse;
use super::library::EnvCApiVersion;
use super::observation::{SeenObservation, extents};
use crate::abi::env_c_api::sys::{
    EnvCApi, Event as RawEvent, Observation, ObservationSpec, Payload, TextAction, status,
};
use crate::error::{Cause, Error, Failure, Phase, Result};
use crate::event::Event;
use crate::space::Value;

/// What waits between two tries of a `start` that said EAGAIN; the failure that ends the
/// wait, where Ctrl-C came.
pub type Pause = Arc<dyn Fn(Duration) -> Result<(), Failure> + Send + Sync>;

/// How the contexts of a source wait, in whichever threads they are.
pub(super) struct Patience {
    pause: Pause,
    /// How often Ctrl-C has ended a wait: one thread sees it, and the others' waits end too.
    interrupts: AtomicU64,
}

impl Patience {
    pub(super) fn new(pause: Pause) -> Self {
        Patience { pause, interrupts: AtomicU64::new(0) }
    }

    /// Waits for `time`, within a wait that began when there had been `known` interrupts.
    fn wait(&self, time: Duration, known: u64) -> Result<(), Failure> {
        if let Err(failure) = (self.pause)(time) {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
            return Err(failure);
        }
        if self.interrupts.load(Ordering::Relaxed) == known {
            Ok(())
        } else {
            Err(Failure::new(Phase::Reset, Cause::Interrupt, "Ctrl-C came while it waited for its start"))
        }
    }
}

/// What a library is to fill in.
const EMPTY: ObservationSpec = ObservationSpec { kind: 0, dims: 0, shape: ptr::null() };

/// The shortest and the longest pause between two tries.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(50)];

/// What `advance` said of the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EpisodeStatus {
    Running,
    Terminated,
    Interrupted,
}

/// A context, which is released when it is dropped.
pub(super) struct LoadedContext {
    pub(super) library: LibraryInUse,
    pub(super) api: EnvCApi,
    pub(super) version: EnvCApiVersion,
    pub(super) handle: *mut c_void,
}

// SAFETY: a context has no thread of its own: EnvCApi asks only that its calls come one
// after another, and `&mut self` sees to that.
unsafe impl Send for LoadedContext {}

/// Calls a function of the context's table, which the library has.
macro_rules! call {
    ($context:expr, $function:ident $(, $argument:expr)*) => {{
        let context: &LoadedContext = $context;
        match context.api.$function {
            // SAFETY: the library is EnvCApi's (the duty of whoever loads it), the context is
            // open, and what addresses point to is as the header says.
            Some(function) => Ok(unsafe { function(context.handle $(, $argument)*) }),
            None => Err($crate::error::Failure::new(
                $crate::error::Phase::Step,
                $crate::error::Cause::Error,
                concat!("the library's ", stringify!($function), " is NULL"),
            )),
        }
    }};
}

pub(super) use call;

impl LoadedContext {
    /// Makes a context, with these settings.
    ///
    /// # Errors
    /// [`Error::Library`] where the library makes none; [`Error::OptionValue`] for a setting
    /// that it does not take; [`Error::Env`] where it cannot be initialised.
    pub(super) fn open(library: LibraryInUse, settings: &[(CString, CString)]) -> Result<Self> {
        let connected = library.connect()?;
        let context = LoadedContext {
            library,
            api: connected.api,
            version: connected.version,
            handle: connected.context,
        };
        for (key, value) in settings {
            let code = call!(&context, setting, key.as_ptr(), value.as_ptr()).map_err(Error::from)?;
            if code != 0 {
                let (key, value) = (key.to_string_lossy(), value.to_string_lossy());
                return Err(Error::OptionValue(format!(
                    "{}: setting '{key}' cannot be '{value}'{}",
                    context.library.path().display(),
                    context.reason()
                )));
            }
        }
        match call!(&context, init).map_err(Error::from)? {
            0 => Ok(context),
            code => Err(context.fault(format_args!("init failed (with {code}){}", context.reason()))),
        }
    }

    /// An error of the envs of this library.
    pub(super) fn fault(&self, why: impl std::fmt::Display) -> Error {
        Error::env(format!("{}: {why}", self.library.path().display()))
    }

    /// What the library says of the call that has just failed, behind a colon; else that
    /// the library does not say.
    fn reason(&self) -> String {
        let text = call!(self, error_message).ok().filter(|text| !text.is_null());
        // SAFETY: a text ends with a NUL, and holds until the next call.
        let text = text.map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
        match text.filter(|text| !text.is_empty()) {
            Some(text) => format!(": {text}"),
            None => " and gave no reason".into(),
        }
    }

    /// A count, 0 where the library has no such function.
    ///
    /// # Errors
    /// [`Error::Space`] for a negative one.
    pub(super) fn count(
        &self,
        what: &str,
        function: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    ) -> Result<usize> {
        // SAFETY: as in `call!`.
        let count = function.map_or(0, |function| unsafe { function(self.handle) });
        usize::try_from(count).map_err(|_| self.misfit(format_args!("its {what} is {count}")))
    }

    /// The text that `function` gives of number `k`.
    ///
    /// # Errors
    /// [`Error::Space`] where there is none, or it is not UTF-8.
    pub(super) fn name(
        &self,
        what: &str,
        function: Option<unsafe extern "C" fn(*mut c_void, c_int) -> *const c_char>,
        k: usize,
    ) -> Result<String> {
        let null = || self.misfit(format_args!("{what} {k} has no name (NULL)"));
        let function = function.ok_or_else(null)?;
        // SAFETY: as in `call!`; `k` is below the count.
        let name = unsafe { function(self.handle, k as c_int) };
        if name.is_null() {
            return Err(null());
        }
        // SAFETY: a text ends with a NUL, and holds until the next call.
        match unsafe { CStr::from_ptr(name) }.to_str() {
            Ok(name) => Ok(name.to_string()),
            Err(_) => Err(self.misfit(format_args!("the name of {what} {k} is not UTF-8"))),
        }
    }

    /// An error of what the library says of itself.
    pub(super) fn misfit(&self, why: impl std::fmt::Display) -> Error {
        Error::Space(format!("{}: {why}", self.library.path().display()))
    }

    /// The least and greatest value of discrete action `k`.
    pub(super) fn discrete_bounds(&self, k: usize) -> Result<(c_int, c_int)> {
        let (mut low, mut high) = (0, 0);
        call!(self, action_discrete_bounds, k as c_int, &raw mut low, &raw mut high)?;
        Ok((low, high))
    }

    /// The least and greatest value of continuous action `k`.
    pub(super) fn continuous_bounds(&self, k: usize) -> Result<(f64, f64)> {
        let (mut low, mut high) = (0.0, 0.0);
        call!(self, action_continuous_bounds, k as c_int, &raw mut low, &raw mut high)?;
        Ok((low, high))
    }

    /// What the library says of observation `k`: its type, its number of axes, and their
    /// extents where it has a number of them.
    pub(super) fn observation_spec(&self, k: usize) -> Result<(c_int, c_int, Vec<c_int>)> {
        let mut spec = EMPTY;
        call!(self, observation_spec, k as c_int, &raw mut spec)?;
        // SAFETY: the library has just filled it in.
        let shape = unsafe { extents(&spec) };
        let shape = shape.map_err(|why| self.misfit(format_args!("observation {k}: {why}")))?;
        Ok((spec.kind, spec.dims, shape.to_vec()))
    }

    /// The library's own name for the environment; empty where it has none.
    pub(super) fn environment_name(&self) -> String {
        match call!(self, environment_name) {
            // SAFETY: a text ends with a NUL, and holds until the next call.
            Ok(name) if !name.is_null() => unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
            _ => String::new(),
        }
    }

    /// Steps per second of real time, where the library says.
    pub(super) fn fps(&self) -> Option<i64> {
        call!(self, fps).ok().map(i64::from)
    }

    /// Begins an episode; tries again for `limit` as long as the library says EAGAIN.
    pub(super) fn start(
        &mut self,
        episode: c_int,
        seed: c_int,
        limit: Duration,
        patience: &Patience,
    ) -> Result<(), Failure> {
        let fail = |message: String| Failure::new(Phase::Reset, Cause::Error, message);
        let began = Instant::now();
        let [mut wait, longest] = PAUSES;
        let mut tries = 0u64;
        let known = patience.interrupts.load(Ordering::Relaxed);
        loop {
            tries += 1;
            match call!(self, start, episode, seed)? {
                0 => return Ok(()),
                libc::EAGAIN if began.elapsed() >= limit => {
                    return Err(fail(format!(
                        "start({episode}, {seed}) said EAGAIN {tries} times in {:.1} s (eagain_limit)",
                        began.elapsed().as_secs_f64()
                    )));
                }
                libc::EAGAIN => {
                    let left = limit.saturating_sub(began.elapsed());
                    patience.wait(wait.min(left), known)?;
                    wait = (wait * 2).min(longest);
                }
                code => {
                    let reason = self.reason();
                    return Err(fail(format!("start({episode}, {seed}) failed (with {code}){reason}")));
                }
            }
        }
    }

    /// Says what the next `advance` is to apply. An empty list is not handed over: some
    /// libraries abort at one.
    pub(super) fn act(
        &mut self,
        discrete: &[c_int],
        continuous: &[f64],
        texts: &[Vec<u8>],
    ) -> Result<(), Failure> {
        if !discrete.is_empty() {
            call!(self, act_discrete, discrete.as_ptr())?;
        }
        if !continuous.is_empty() {
            call!(self, act_continuous, continuous.as_ptr())?;
        }
        if !texts.is_empty() {
            let text = |bytes: &Vec<u8>| TextAction {
                data: bytes.as_ptr().cast(),
                // The NUL at the end does not count.
                len: bytes.len() as u64 - 1,
            };
            let texts: Vec<_> = texts.iter().map(text).collect();
            call!(self, act_text, texts.as_ptr())?;
        }
        Ok(())
    }

    /// Takes `steps` steps; the status of the episode and the reward.
    pub(super) fn advance(&mut self, steps: c_int) -> Result<(EpisodeStatus, f64), Failure> {
        let mut reward = 0.0;
        let code = call!(self, advance, steps, &raw mut reward)?;
        let status = match code {
            status::RUNNING => EpisodeStatus::Running,
            status::TERMINATED => EpisodeStatus::Terminated,
            status::INTERRUPTED => EpisodeStatus::Interrupted,
            status::ERROR => {
                let message = format!("advance failed{}", self.reason());
                return Err(Failure::new(Phase::Step, Cause::Error, message));
            }
            other => {
                let message = format!("advance returned {other}, which is no status");
                return Err(Failure::new(Phase::Step, Cause::Error, message));
            }
        };
        Ok((status, reward))
    }

    /// What observation `k` is now. It holds until the next call, which `&mut` puts off.
    pub(super) fn observation(&mut self, k: usize) -> Result<SeenObservation<'_>, Failure> {
        let mut raw = Observation { spec: EMPTY, payload: Payload { bytes: ptr::null() } };
        call!(self, observation, k as c_int, &raw mut raw)?;
        // SAFETY: the library has just filled it in.
        unsafe { SeenObservation::new(raw) }
            .map_err(|why| Failure::new(Phase::Step, Cause::Error, format!("observation {k}: {why}")))
    }

    /// What has happened since the last `start` or `advance`.
    pub(super) fn events(&mut self) -> Result<Vec<Event>, Failure> {
        let fail = |message: String| Failure::new(Phase::Step, Cause::Error, message);
        let error = |error: Error| fail(error.to_string());
        let count = self.count("number of events", self.api.event_count).map_err(error)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut events = Vec::new();
        for k in 0..count {
            let mut raw = RawEvent { id: 0, observation_count: 0, observations: ptr::null() };
            call!(&*self, event, k as c_int, &raw mut raw)?;
            let values = event_values(&raw).map_err(|why| fail(format!("event {k}: {why}")))?;
            let types = self.count("number of event types", self.api.event_type_count).map_err(error)?;
            let Some(id) = usize::try_from(raw.id).ok().filter(|id| *id < types) else {
                return Err(fail(format!("event {k} is of type {}, and there are {types} types", raw.id)));
            };
            let name = self.name("event type", self.api.event_type_name, id).map_err(error)?;
            events.push(Event { name: name.into(), values });
        }
        Ok(events)
    }
}

/// What belongs to an event.
fn event_values(raw: &RawEvent) -> Result<Vec<Value>, String> {
    let count = usize::try_from(raw.observation_count)
        .map_err(|_| format!("it has {} observations", raw.observation_count))?;
    if count > 0 && raw.observations.is_null() {
        return Err(format!("it has {count} observations, and they are NULL"));
    }
    let one = |k: usize| {
        // SAFETY: the library says that there are so many.
        let raw: Observation = unsafe { raw.observations.add(k).read() };
        // SAFETY: the library has just filled it in, and nothing is called meanwhile.
        unsafe { SeenObservation::new(raw) }.and_then(|seen| seen.to_value())
    };
    (0..count).map(one).collect()
}

impl Drop for LoadedContext {
    fn drop(&mut self) {
        let _ = call!(&*self, release_context);
    }
}
