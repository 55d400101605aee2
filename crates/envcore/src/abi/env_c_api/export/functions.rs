//! The functions themselves. Each takes what its host hands in to the context, and
//! gives back what C can hold.
//!
//! Above 400 lines because the interface has 31 functions.

#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "the one duty of each caller is the host's: `context` is NULL or open, and other addresses are \
              as `env_c_api.h` says, or NULL"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Write;
use std::ptr;

use super::super::sys::{self, EnvCApi, property, status};
use super::context::{Context, RunningEnv};
use super::observations::SeenValue;
use super::properties::PropertyRefusal;
use super::{FAILED, c_text, number};
use crate::abi::handle::{CallStop, Handle, Misuse};
use crate::error::{Error, Phase, Result};
use crate::guard::guard;

/// All of them.
pub(super) const FUNCTIONS: EnvCApi = EnvCApi {
    setting: Some(setting),
    init: Some(init),
    start: Some(start),
    release_context: Some(release_context),
    error_message: Some(error_message),
    write_property: Some(write_property),
    read_property: Some(read_property),
    list_property: Some(list_property),
    environment_name: Some(environment_name),
    action_discrete_count: Some(action_discrete_count),
    action_continuous_count: Some(action_continuous_count),
    action_text_count: Some(action_text_count),
    action_discrete_name: Some(action_discrete_name),
    action_continuous_name: Some(action_continuous_name),
    action_text_name: Some(action_text_name),
    action_discrete_bounds: Some(action_discrete_bounds),
    action_continuous_bounds: Some(action_continuous_bounds),
    observation_count: Some(observation_count),
    observation_name: Some(observation_name),
    observation_spec: Some(observation_spec),
    event_type_count: Some(event_type_count),
    event_type_name: Some(event_type_name),
    fps: Some(fps),
    observation: Some(observation),
    event_count: Some(event_count),
    event: Some(event),
    act: Some(act),
    act_discrete: Some(act_discrete),
    act_continuous: Some(act_continuous),
    act_text: Some(act_text),
    advance: Some(advance),
};

/// Does `work` on a context; where that fails, notes why and returns `instead`.
/// Every function comes through here.
///
/// # Safety
/// `context` must be NULL, or what `connect` gave and `release_context` has not taken.
unsafe fn on<R>(context: *mut c_void, instead: R, work: impl FnOnce(&mut Context) -> Result<R>) -> R {
    let Ok(mut hand) = Handle::<Context>::take(context) else { return instead };
    let fault = |why: &str| format!("a fault of Corral's, please report it: {why}; release this context");
    match hand.work(Phase::Call, work) {
        Ok(done) => done,
        Err(stop) => {
            let why = match stop {
                CallStop::Failed(error) => error.to_string(),
                CallStop::Panicked(failure) => fault(&failure.message),
                CallStop::Poisoned(why) => fault(&why),
            };
            hand.object().message = c_text(&why.replace('\0', "\\0"));
            instead
        }
    }
}

/// As [`on`], on the env, which must have been made.
///
/// # Safety
/// As [`on`]'s.
unsafe fn on_running<R>(
    context: *mut c_void,
    instead: R,
    work: impl FnOnce(&mut RunningEnv) -> Result<R>,
) -> R {
    on(context, instead, |context| work(context.running()?))
}

/// A host's text.
///
/// # Errors
/// [`Error::Argument`] where it is at NULL or no UTF-8.
///
/// # Safety
/// `text` must be NULL, or a NUL must end it.
unsafe fn text_of(text: *const c_char, what: &str) -> Result<String> {
    if text.is_null() {
        return Err(Error::Argument(format!("the {what} is NULL")));
    }
    let text = CStr::from_ptr(text);
    let read = text.to_str().map_err(|_| Error::Argument(format!("the {what} is no UTF-8: {text:?}")))?;
    Ok(read.to_string())
}

/// The address of a text of the context's own; an empty text's in its stead.
fn address(text: &CStr) -> *const c_char {
    text.as_ptr()
}

unsafe extern "C" fn setting(context: *mut c_void, key: *const c_char, value: *const c_char) -> c_int {
    on(context, FAILED, |context| {
        let (key, value) = (text_of(key, "setting's key")?, text_of(value, "setting's value")?);
        context.setting(key, value).map(|()| 0)
    })
}

unsafe extern "C" fn init(context: *mut c_void) -> c_int {
    on(context, FAILED, |context| context.init().map(|()| 0))
}

unsafe extern "C" fn start(context: *mut c_void, episode: c_int, seed: c_int) -> c_int {
    on_running(context, FAILED, |running| running.start(episode, seed).map(|()| 0))
}

unsafe extern "C" fn release_context(context: *mut c_void) {
    let Ok(mut hand) = Handle::<Context>::take(context) else { return };
    let closed = guard(Phase::Close, || match &mut hand.object().running {
        Some(running) => running.envs.close(),
        None => Ok(()),
    });
    if let Err(error) = closed.unwrap_or_else(|failure| Err(Error::env(failure))) {
        let _ = writeln!(std::io::stderr(), "corral: release_context: {error}");
    }
    hand.close();
}

unsafe extern "C" fn error_message(context: *mut c_void) -> *const c_char {
    match Handle::<Context>::take(context) {
        Ok(mut hand) => address(&hand.object().message),
        Err(Misuse::Null) => c"the context is NULL".as_ptr(),
        Err(Misuse::Strange) => c"this is no context of this library, or it is released".as_ptr(),
        Err(Misuse::Busy) => c"another thread is in a call of this context: one at a time".as_ptr(),
    }
}

/// What a call about a property returns; notes why it was refused.
fn settle<R>(context: &mut Context, done: Result<R, PropertyRefusal>) -> (c_int, Option<R>) {
    match done {
        Ok(done) => (property::SUCCESS, Some(done)),
        Err((result, why)) => {
            context.message = c_text(&why);
            (result, None)
        }
    }
}

unsafe extern "C" fn write_property(context: *mut c_void, key: *const c_char, value: *const c_char) -> c_int {
    on(context, property::INVALID_ARGUMENT, |context| {
        let (key, value) = (text_of(key, "property's key")?, text_of(value, "property's value")?);
        let done = context.running()?.write_property(&key, &value);
        Ok(settle(context, done).0)
    })
}

unsafe extern "C" fn read_property(
    context: *mut c_void,
    key: *const c_char,
    value: *mut *const c_char,
) -> c_int {
    on(context, property::NOT_FOUND, |context| {
        let key = text_of(key, "property's key")?;
        let done = context.running()?.read_property(&key).and_then(|text| {
            let why = || (property::PERMISSION_DENIED, format!("property '{key}' is a text with a NUL"));
            CString::new(text).map_err(|_| why())
        });
        let (result, text) = settle(context, done);
        if let Some(text) = text {
            context.given.text = text;
            if !value.is_null() {
                value.write_unaligned(address(&context.given.text));
            }
        }
        Ok(result)
    })
}

unsafe extern "C" fn list_property(
    context: *mut c_void,
    userdata: *mut c_void,
    key: *const c_char,
    callback: Option<sys::PropertyCallback>,
) -> c_int {
    let (result, listed) = on(context, (property::NOT_FOUND, None), |context| {
        let key = text_of(key, "property's key")?;
        let done = context.running()?.list_property(&key);
        Ok(settle(context, done))
    });
    // The context is in nobody's hands now: a host may call it from within.
    if let Some(callback) = callback {
        for (key, attributes) in listed.into_iter().flatten() {
            let key = c_text(&key);
            callback(userdata, key.as_ptr(), attributes);
        }
    }
    result
}

unsafe extern "C" fn environment_name(context: *mut c_void) -> *const c_char {
    on_running(context, c"".as_ptr(), |running| Ok(address(&running.name)))
}

unsafe extern "C" fn fps(context: *mut c_void) -> c_int {
    on_running(context, 0, |running| Ok(running.fps))
}

unsafe extern "C" fn action_discrete_count(context: *mut c_void) -> c_int {
    on_running(context, 0, |running| Ok(running.actions.discrete.len() as c_int))
}

unsafe extern "C" fn action_continuous_count(context: *mut c_void) -> c_int {
    on_running(context, 0, |running| Ok(running.actions.continuous.len() as c_int))
}

unsafe extern "C" fn action_text_count(context: *mut c_void) -> c_int {
    on_running(context, 0, |running| Ok(running.actions.texts.len() as c_int))
}

unsafe extern "C" fn action_discrete_name(context: *mut c_void, index: c_int) -> *const c_char {
    on_running(context, c"".as_ptr(), |running| {
        let all = &running.actions.discrete;
        Ok(address(&all[number(index, all.len(), "discrete action")?].name))
    })
}

unsafe extern "C" fn action_continuous_name(context: *mut c_void, index: c_int) -> *const c_char {
    on_running(context, c"".as_ptr(), |running| {
        let all = &running.actions.continuous;
        Ok(address(&all[number(index, all.len(), "continuous action")?].name))
    })
}

unsafe extern "C" fn action_text_name(context: *mut c_void, index: c_int) -> *const c_char {
    on_running(context, c"".as_ptr(), |running| {
        let all = &running.actions.texts;
        Ok(address(&all[number(index, all.len(), "text action")?].1))
    })
}

/// Writes a pair where a host wants it.
///
/// # Safety
/// Each must be NULL or have room.
unsafe fn put<T>((low, high): (T, T), (to_low, to_high): (*mut T, *mut T)) {
    if !to_low.is_null() {
        to_low.write_unaligned(low);
    }
    if !to_high.is_null() {
        to_high.write_unaligned(high);
    }
}

unsafe extern "C" fn action_discrete_bounds(
    context: *mut c_void,
    index: c_int,
    min: *mut c_int,
    max: *mut c_int,
) {
    let bounds = on_running(context, (0, 0), |running| {
        let all = &running.actions.discrete;
        Ok(all[number(index, all.len(), "discrete action")?].whole_bounds())
    });
    put(bounds, (min, max));
}

unsafe extern "C" fn action_continuous_bounds(
    context: *mut c_void,
    index: c_int,
    min: *mut f64,
    max: *mut f64,
) {
    let bounds = on_running(context, (0.0, 0.0), |running| {
        let all = &running.actions.continuous;
        Ok(all[number(index, all.len(), "continuous action")?].bounds())
    });
    put(bounds, (min, max));
}

unsafe extern "C" fn observation_count(context: *mut c_void) -> c_int {
    on_running(context, 0, |running| Ok(running.observations.len() as c_int))
}

unsafe extern "C" fn observation_name(context: *mut c_void, index: c_int) -> *const c_char {
    on_running(context, c"".as_ptr(), |running| {
        let all = &running.observations;
        Ok(address(&all[number(index, all.len(), "observation")?].name))
    })
}

unsafe extern "C" fn observation_spec(context: *mut c_void, index: c_int, spec: *mut sys::ObservationSpec) {
    let none = sys::ObservationSpec { kind: 0, dims: 0, shape: NO_SHAPE.as_ptr() };
    let found = on_running(context, none, |running| {
        let all = &running.observations;
        Ok(all[number(index, all.len(), "observation")?].spec())
    });
    if !spec.is_null() {
        spec.write_unaligned(found);
    }
}

/// The shape of what there is not.
static NO_SHAPE: [c_int; 1] = [0];

unsafe extern "C" fn event_type_count(context: *mut c_void) -> c_int {
    on_running(context, 0, |running| Ok(running.events.names().len() as c_int))
}

unsafe extern "C" fn event_type_name(context: *mut c_void, index: c_int) -> *const c_char {
    on_running(context, c"".as_ptr(), |running| {
        let all = running.events.names();
        Ok(address(&all[number(index, all.len(), "type of events")?]))
    })
}

unsafe extern "C" fn observation(context: *mut c_void, index: c_int, to: *mut sys::Observation) {
    let done = on(context, false, |context| {
        // Where there is none, a host finds an observation without elements.
        let seen = context.running().and_then(|running| running.observation(index));
        let (seen, why) = match seen {
            Ok(seen) => (seen, None),
            Err(why) => (SeenValue::nothing(), Some(why)),
        };
        let raw = context.given.seen.insert(seen).raw();
        if !to.is_null() {
            to.write_unaligned(raw);
        }
        why.map_or(Ok(true), Err)
    });
    if !done && !to.is_null() && Handle::<Context>::take(context).is_err() {
        to.write_unaligned(NOTHING);
    }
}

/// An observation without elements, for whom there is no context.
const NOTHING: sys::Observation = sys::Observation {
    spec: sys::ObservationSpec { kind: 0, dims: 1, shape: NO_SHAPE.as_ptr() },
    payload: sys::Payload { doubles: ptr::null() },
};

unsafe extern "C" fn event_count(context: *mut c_void) -> c_int {
    on_running(context, 0, |running| Ok(running.events.count()))
}

unsafe extern "C" fn event(context: *mut c_void, index: c_int, to: *mut sys::Event) {
    let none = sys::Event { id: 0, observation_count: 0, observations: ptr::null() };
    let found = on(context, none, |context| {
        let Context { running, given, .. } = context;
        let running = running.as_deref().ok_or_else(|| Error::NeedsReset("call init first".into()))?;
        let pending = &running.events.pending;
        let (id, seen) = &pending[number(index, pending.len(), "pending event")?];
        given.event = seen.iter().map(SeenValue::raw).collect();
        let (id, observation_count) = (*id as c_int, seen.len() as c_int);
        Ok(sys::Event { id, observation_count, observations: given.event.as_ptr() })
    });
    if !to.is_null() {
        to.write_unaligned(found);
    }
}

unsafe extern "C" fn act(context: *mut c_void, discrete: *const c_int, continuous: *const f64) {
    act_discrete(context, discrete);
    act_continuous(context, continuous);
}

unsafe extern "C" fn act_discrete(context: *mut c_void, values: *const c_int) {
    on_running(context, (), |running| {
        running.actions.set_discrete(values);
        Ok(())
    });
}

unsafe extern "C" fn act_continuous(context: *mut c_void, values: *const f64) {
    on_running(context, (), |running| {
        running.actions.set_continuous(values);
        Ok(())
    });
}

unsafe extern "C" fn act_text(context: *mut c_void, values: *const sys::TextAction) {
    on_running(context, (), |running| {
        running.actions.set_texts(values);
        Ok(())
    });
}

unsafe extern "C" fn advance(context: *mut c_void, steps: c_int, reward: *mut f64) -> c_int {
    let (status, sum) = on_running(context, (status::ERROR, 0.0), |running| running.advance(steps));
    if !reward.is_null() {
        reward.write_unaligned(sum);
    }
    status
}
