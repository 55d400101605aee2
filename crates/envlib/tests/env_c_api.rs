//! The built-in envs through EnvCApi: a host sees what a runner gives, and whatever
//! it does wrong is told.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use envcore::abi::env_c_api::sys::{
    self, EnvCApi, TextAction, attributes, observation_type, property, status,
};
use envcore::rng::Rng;
use envcore::{
    AutoresetMode, Begin, Column, ColumnIn, DType, Element, Fixed, Leaf, LeafKind, Options, Scalar, Serial,
    Slots, Space, Value, VecConfig, VecEnv, Want, with_element,
};

envcore::export_env_c_api!(envs::TABLE, "tests");

unsafe extern "C" {
    fn tests_connect(api: *mut EnvCApi, context: *mut *mut c_void) -> c_int;
    fn tests_connect_v(major: c_int, minor: c_int, api: *mut EnvCApi, context: *mut *mut c_void) -> c_int;
}

/// What a host sees of an observation.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Doubles(Vec<c_int>, Vec<f64>),
    Bytes(Vec<c_int>, Vec<u8>),
    Text(String),
}

impl Seen {
    /// # Safety
    /// The observation must be as its spec says.
    unsafe fn of(raw: &sys::Observation) -> Self {
        assert!(raw.spec.dims >= 1 && !raw.spec.shape.is_null());
        // SAFETY: the caller's duty.
        unsafe {
            let shape = std::slice::from_raw_parts(raw.spec.shape, raw.spec.dims as usize).to_vec();
            let count = shape.iter().product::<c_int>() as usize;
            match raw.spec.kind {
                observation_type::DOUBLES => {
                    Seen::Doubles(shape, std::slice::from_raw_parts(raw.payload.doubles, count).to_vec())
                }
                observation_type::BYTES => {
                    Seen::Bytes(shape, std::slice::from_raw_parts(raw.payload.bytes, count).to_vec())
                }
                _ => {
                    assert_eq!((raw.spec.kind, raw.spec.dims), (observation_type::STRING, 1));
                    let bytes = std::slice::from_raw_parts(raw.payload.string.cast::<u8>(), count);
                    Seen::Text(String::from_utf8(bytes.to_vec()).unwrap())
                }
            }
        }
    }
}

/// A context and its functions.
struct Host {
    api: EnvCApi,
    context: *mut c_void,
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the context is open.
        unsafe { self.api.release_context.unwrap()(self.context) }
    }
}

/// Calls a function of a host's table on its context.
macro_rules! call {
    ($host:expr, $name:ident $(, $argument:expr)*) => {
        // SAFETY: the context is open, and the arguments are what the test means.
        unsafe { $host.api.$name.unwrap()($host.context $(, $argument)*) }
    };
}

impl Host {
    fn connected() -> Self {
        let (mut api, mut context) = (EnvCApi::default(), null_mut());
        // SAFETY: both have room.
        assert_eq!(unsafe { tests_connect(&raw mut api, &raw mut context) }, 0);
        Host { api, context }
    }

    fn new(settings: &[(&str, &str)]) -> Self {
        let host = Host::connected();
        for (key, value) in settings {
            assert_eq!(host.setting(key, value), 0);
        }
        assert_eq!(call!(host, init), 0, "{}", host.message());
        host
    }

    fn setting(&self, key: &str, value: &str) -> c_int {
        let (key, value) = (CString::new(key).unwrap(), CString::new(value).unwrap());
        call!(self, setting, key.as_ptr(), value.as_ptr())
    }

    fn message(&self) -> String {
        text(call!(self, error_message))
    }

    fn start(&self, episode: c_int, seed: c_int) {
        assert_eq!(call!(self, start, episode, seed), 0, "{}", self.message());
    }

    fn advance(&self, steps: c_int) -> (c_int, f64) {
        let mut reward = f64::NAN;
        (call!(self, advance, steps, &raw mut reward), reward)
    }

    fn observation(&self, index: c_int) -> Seen {
        let mut raw = nothing();
        call!(self, observation, index, &raw mut raw);
        // SAFETY: it has just been given.
        unsafe { Seen::of(&raw) }
    }

    fn observations(&self) -> BTreeMap<String, Seen> {
        let each = 0..call!(self, observation_count);
        each.map(|k| (text(call!(self, observation_name, k)), self.observation(k))).collect()
    }

    fn events(&self) -> Vec<(String, Vec<Seen>)> {
        let event = |k| {
            let mut raw = sys::Event { id: -1, observation_count: -1, observations: null() };
            call!(self, event, k, &raw mut raw);
            // SAFETY: it has just been given.
            let seen = (0..raw.observation_count)
                .map(|k| unsafe { Seen::of(&*raw.observations.add(k as usize)) })
                .collect();
            assert!(raw.id < call!(self, event_type_count));
            (text(call!(self, event_type_name, raw.id)), seen)
        };
        (0..call!(self, event_count)).map(event).collect()
    }

    fn read(&self, key: &str) -> Result<String, c_int> {
        let (key, unset) = (CString::new(key).unwrap(), c"unset");
        let mut value = unset.as_ptr();
        match call!(self, read_property, key.as_ptr(), &raw mut value) {
            property::SUCCESS => Ok(text(value)),
            refused => {
                assert_eq!(value, unset.as_ptr(), "a property that cannot be read leaves the value");
                Err(refused)
            }
        }
    }

    fn write(&self, key: &str, value: &str) -> c_int {
        let (key, value) = (CString::new(key).unwrap(), CString::new(value).unwrap());
        call!(self, write_property, key.as_ptr(), value.as_ptr())
    }

    fn list(&self, key: &str) -> Result<Vec<(String, c_int)>, c_int> {
        unsafe extern "C" fn note(found: *mut c_void, key: *const c_char, attributes: c_int) {
            // SAFETY: `list` gives the vector.
            unsafe { (*found.cast::<Vec<(String, c_int)>>()).push((text(key), attributes)) }
        }
        let (key, mut found) = (CString::new(key).unwrap(), Vec::<(String, c_int)>::new());
        match call!(self, list_property, (&raw mut found).cast(), key.as_ptr(), Some(note)) {
            property::SUCCESS => Ok(found),
            refused => Err(refused),
        }
    }

    fn act_text(&self, word: &str) {
        let action = TextAction { data: word.as_ptr().cast(), len: word.len() as u64 };
        call!(self, act_text, &raw const action);
    }
}

fn text(at: *const c_char) -> String {
    assert!(!at.is_null(), "no function gives NULL for a text");
    // SAFETY: a NUL ends it.
    unsafe { CStr::from_ptr(at) }.to_str().unwrap().to_string()
}

fn nothing() -> sys::Observation {
    let spec = sys::ObservationSpec { kind: -1, dims: -1, shape: null() };
    sys::Observation { spec, payload: sys::Payload { doubles: null() } }
}

/// The runner that a context of these options has inside.
fn serial(id: &str, limit: Option<u64>, options: &Options) -> Serial {
    let source = envs::find(id).unwrap().source(options).unwrap();
    let config = VecConfig {
        num_slots: 1,
        autoreset: Some(AutoresetMode::Disabled),
        max_episode_steps: limit,
        ..VecConfig::default()
    };
    Serial::new(&*source, config).unwrap()
}

fn numbers(column: &Fixed) -> Vec<f64> {
    with_element!(column.dtype(), T => {
        column.row::<T>(0).iter().map(|v| v.to_scalar().as_f64()).collect()
    })
}

/// What a host is to see of the only row of a column.
fn shown(leaf: &Leaf, column: &Column) -> Seen {
    match (&leaf.kind, column) {
        (LeafKind::Fixed(tensor), Column::Fixed(fixed)) => {
            let shape: Vec<c_int> = match &tensor.shape[..] {
                [] => vec![1],
                shape => shape.iter().map(|&n| n as c_int).collect(),
            };
            match tensor.dtype {
                DType::U8 | DType::Bool => Seen::Bytes(shape, fixed.bytes().to_vec()),
                _ => Seen::Doubles(shape, numbers(fixed)),
            }
        }
        (_, Column::Values(values)) => match &values[0] {
            Value::Text(text) => Seen::Text(text.to_string()),
            Value::Array(array) => {
                let shape = array.shape().iter().map(|&n| n as c_int).collect();
                let doubles = with_element!(array.dtype(), T => {
                    array.to_vec::<T>().unwrap().iter().map(|v| v.to_scalar().as_f64()).collect()
                });
                Seen::Doubles(shape, doubles)
            }
            other => panic!("{other:?}"),
        },
        _ => unreachable!(),
    }
}

fn all_shown(space: &Space, columns: &[Column]) -> BTreeMap<String, Seen> {
    let name = |leaf: &Leaf| if leaf.name.is_empty() { "obs".to_string() } else { leaf.name.clone() };
    space.leaves().iter().zip(columns).map(|(leaf, column)| (name(leaf), shown(leaf, column))).collect()
}

/// Draws an action, gives it to the host, and is what a runner is given.
fn act(host: &Host, space: &Space, rng: &mut Rng) -> Vec<(DType, Vec<usize>, Vec<u8>)> {
    let (mut ints, mut doubles, mut owned) = (Vec::new(), Vec::new(), Vec::new());
    for (leaf, value) in space.leaves().iter().zip(space.sample(rng)) {
        let tensor = leaf.as_fixed().unwrap();
        let Value::Array(array) = value else { panic!("{leaf:?}") };
        with_element!(tensor.dtype, T => {
            for element in array.to_vec::<T>().unwrap() {
                match element.to_scalar() {
                    Scalar::Int(int) => ints.push(int as c_int),
                    Scalar::Real(real) => doubles.push(real),
                }
            }
        });
        let shape = std::iter::once(1).chain(tensor.shape.iter().copied()).collect();
        owned.push((tensor.dtype, shape, array.bytes().to_vec()));
    }
    assert_eq!(ints.len() as c_int, call!(host, action_discrete_count));
    assert_eq!(doubles.len() as c_int, call!(host, action_continuous_count));
    call!(host, act_discrete, ints.as_ptr());
    call!(host, act_continuous, doubles.as_ptr());
    owned
}

/// Plays one episode on both sides and compares all that is seen.
fn play_both(host: &Host, envs: &mut Serial, begin: Begin, draws: u64) -> usize {
    let spec = envs.spec().clone();
    let mut rng = Rng::new(draws);
    let batch = envs.reset(&Slots::All, &[begin], None, Want::all()).unwrap().unwrap();
    assert_eq!(host.observations(), all_shown(&spec.observation, &batch.observation));
    for step in 1.. {
        let owned = act(host, &spec.action, &mut rng);
        let columns: Vec<ColumnIn<'_>> = owned
            .iter()
            .map(|(dtype, shape, bytes)| ColumnIn::Fixed {
                dtype: *dtype,
                shape,
                bytes: bytes.as_slice().into(),
            })
            .collect();
        let batch = envs.step(&Slots::All, &columns, Want::all()).unwrap().unwrap();
        let (status, reward) = host.advance(1);
        assert_eq!(reward.to_bits(), batch.reward.as_slice::<f64>()[0].to_bits());
        let (terminated, truncated) =
            (batch.terminated.as_slice::<bool>()[0], batch.truncated.as_slice::<bool>()[0]);
        let due = match (terminated, truncated) {
            (true, _) => status::TERMINATED,
            (_, true) => status::INTERRUPTED,
            _ => status::RUNNING,
        };
        assert_eq!(status, due);
        // The last observation is there as well, as often as it is asked for.
        for _ in 0..2 {
            assert_eq!(host.observations(), all_shown(&spec.observation, &batch.observation));
        }
        let infos = spec.info.leaves().iter().zip(&batch.infos.columns).zip(&batch.infos.masks);
        let infos = infos.filter(|(_, mask)| mask.as_slice::<bool>()[0]);
        let infos: Vec<(String, Vec<Seen>)> =
            infos.map(|((leaf, column), _)| (leaf.name.clone(), vec![shown(leaf, column)])).collect();
        let extras = batch.infos.extras.iter().map(|extra| match &extra.value {
            Value::Text(text) => (extra.key.clone(), vec![Seen::Text(text.to_string())]),
            other => panic!("{other:?}"),
        });
        assert_eq!(host.events(), infos.into_iter().chain(extras).collect::<Vec<_>>());
        if due != status::RUNNING {
            return step;
        }
    }
    unreachable!()
}

#[test]
fn a_host_sees_what_a_runner_gives_from_seeds_and_indices() {
    for id in ["CartPole-v1", "Maze-v0", "testing/Faulty-v0", "testing/Dotted-v0", "testing/Nested-v0"] {
        for by_index in [false, true] {
            let host = Host::new(&[
                ("env_id", id),
                ("max_episode_steps", "30"),
                ("episode_id_is_index", if by_index { "1" } else { "false" }),
            ]);
            let mut envs = serial(id, Some(30), &Options::new());
            let mut steps = 0;
            for k in 0..3 {
                host.start(k, 40 + k);
                let begin = if by_index { Begin::Index(k as u64) } else { Begin::Seed(i64::from(40 + k)) };
                steps += play_both(&host, &mut envs, begin, k as u64);
            }
            assert_eq!(host.read("statistics.episodes"), Ok("3".into()));
            assert_eq!(host.read("statistics.steps"), Ok(steps.to_string()));
        }
    }
}

#[test]
fn names_bounds_and_specs_are_the_leaves() {
    let host = Host::new(&[("env_id", "testing/Faulty-v0")]);
    assert_eq!(text(call!(host, environment_name)), "testing/Faulty-v0");
    assert_eq!(call!(host, fps), 30);
    assert_eq!((call!(host, action_discrete_count), call!(host, action_continuous_count)), (1, 2));
    assert_eq!(call!(host, action_text_count), 0);
    assert_eq!(text(call!(host, action_discrete_name, 0)), "gear");
    let names = [0, 1].map(|k| text(call!(host, action_continuous_name, k)));
    assert_eq!(names, ["force.0", "force.1"]);
    let (mut low, mut high) = (-9, -9);
    call!(host, action_discrete_bounds, 0, &raw mut low, &raw mut high);
    assert_eq!((low, high), (1, 3));
    let (mut low, mut high) = (9.0, 9.0);
    call!(host, action_continuous_bounds, 1, &raw mut low, &raw mut high);
    assert_eq!((low, high), (-1.0, 1.0));
    let spec = |k| {
        let mut spec = nothing().spec;
        call!(host, observation_spec, k, &raw mut spec);
        // SAFETY: it has just been given.
        let shape = unsafe { std::slice::from_raw_parts(spec.shape, spec.dims as usize) };
        (text(call!(host, observation_name, k)), spec.kind, shape.to_vec())
    };
    let specs: Vec<_> = (0..call!(host, observation_count)).map(spec).collect();
    let due = [
        ("level", observation_type::DOUBLES, vec![1]),
        ("body.joints", observation_type::DOUBLES, vec![3, 2]),
        ("body.awake", observation_type::BYTES, vec![1]),
        ("count", observation_type::DOUBLES, vec![1]),
    ];
    assert_eq!(specs, due.map(|(name, kind, shape)| (name.to_string(), kind, shape)));
    // Types of events are there before anything has happened, and nothing is pending.
    let types: Vec<String> =
        (0..call!(host, event_type_count)).map(|k| text(call!(host, event_type_name, k))).collect();
    assert_eq!(types, ["left", "nested.pair", "energy"]);
    assert_eq!(call!(host, event_count), 0);
}

#[test]
fn actions_stick_across_starts_and_begin_nearest_to_zero() {
    let host = Host::new(&[("env_id", "testing/Faulty-v0")]);
    let mut envs = serial("testing/Faulty-v0", None, &Options::new());
    let mut play = |force: [f32; 2], gear: i64, seed: c_int, both: bool| {
        host.start(0, seed);
        if both {
            call!(host, act, [gear as c_int].as_ptr(), force.map(f64::from).as_ptr());
        }
        envs.reset(&Slots::All, &[Begin::Seed(seed.into())], None, Want::all()).unwrap();
        let gears = [gear];
        let columns = [ColumnIn::scalars(&force, &[1, 2]), ColumnIn::scalars(&gears, &[1])];
        for _ in 0..2 {
            let batch = envs.step(&Slots::All, &columns, Want::all()).unwrap().unwrap();
            let (_, reward) = host.advance(1);
            assert_eq!(reward, batch.reward.as_slice::<f64>()[0]);
            assert_eq!(host.observations(), all_shown(&envs.spec().observation.clone(), &batch.observation));
        }
    };
    play([0.0, 0.0], 1, 3, false);
    play([0.5, -0.25], 3, 4, true);
    play([0.5, -0.25], 3, 5, false);
}

#[test]
fn several_steps_add_their_rewards_up_and_stop_at_the_end() {
    let host = Host::new(&[("env_id", "CartPole-v1"), ("max_episode_steps", "7")]);
    host.start(0, 1);
    assert_eq!(host.advance(3), (status::RUNNING, 3.0));
    assert_eq!(host.advance(100), (status::INTERRUPTED, 4.0));
    assert_eq!(host.read("statistics.episode_return"), Ok("7".into()));
    assert_eq!(host.advance(1), (status::ERROR, 0.0));
    assert!(host.message().contains("call start first"), "{}", host.message());
    host.start(0, 1);
    for steps in [0, -3] {
        assert_eq!(host.advance(steps), (status::ERROR, 0.0));
        assert!(host.message().contains(&format!("num_steps is {steps}")), "{}", host.message());
        host.start(0, 1);
    }
    assert_eq!(host.advance(100), (status::INTERRUPTED, 7.0));
}

#[test]
fn texts_events_and_properties_go_to_and_fro() {
    let host = Host::new(&[("env_id", "testing/Caller-v0"), ("gravity", "0.5")]);
    assert_eq!((call!(host, action_text_count), call!(host, action_discrete_count)), (1, 0));
    assert_eq!(text(call!(host, action_text_name, 0)), "action");
    // Where there is none of a kind, NULL is fine.
    call!(host, act, null(), null());
    host.start(0, 0);
    let double = |value: f64| Seen::Doubles(vec![1], vec![value]);
    assert_eq!(host.events(), [("began".to_string(), vec![double(1.0)])]);
    host.act_text("up\0!");
    assert_eq!(host.advance(1), (status::RUNNING, 1.0));
    let said = ("said".to_string(), vec![Seen::Text("up\0!".into()), double(6.5)]);
    for _ in 0..2 {
        assert_eq!(host.events(), std::slice::from_ref(&said), "they are there until the next step");
    }
    host.act_text("");
    assert_eq!(host.advance(2), (status::RUNNING, 2.0));
    assert_eq!(host.events(), []);

    let own = [("gravity", 3), ("motto", 3), ("height", 1), ("config", 4), ("options", 4), ("statistics", 4)];
    assert_eq!(host.list("").unwrap(), own.map(|(name, how)| (name.to_string(), how)));
    let both = attributes::READABLE | attributes::WRITABLE;
    assert_eq!(host.list("config").unwrap(), [("config.gravity".to_string(), both)]);
    assert_eq!(host.list("statistics").unwrap().len(), 4);
    assert_eq!(host.list("gravity"), Err(property::PERMISSION_DENIED));
    assert_eq!(host.list("nothing"), Err(property::NOT_FOUND));
    assert_eq!(host.read("height"), Ok("5.5".into()));
    assert_eq!(host.read("config.gravity"), Ok("0.5".into()));
    assert_eq!(host.read("motto"), Ok("up".into()));
    assert_eq!(host.read(""), Err(property::PERMISSION_DENIED));
    assert_eq!(host.read("config.nothing"), Err(property::NOT_FOUND));
    for (key, value) in [("motto", "1"), ("motto", "\"quoted\""), ("gravity", "1e-300"), ("gravity", "-0.1")]
    {
        assert_eq!(host.write(key, value), property::SUCCESS);
        let read = host.read(key).unwrap();
        assert!(read == value || (key == "gravity" && read.parse::<f64>() == value.parse()), "{read}");
    }
    assert_eq!(host.write("gravity", "heavy"), property::INVALID_ARGUMENT);
    assert_eq!(host.write("height", "1"), property::PERMISSION_DENIED);
    assert_eq!(host.write("nothing", "1"), property::NOT_FOUND);
    assert_eq!(host.write("statistics.steps", "1"), property::PERMISSION_DENIED);

    // Text that is no UTF-8 is told of when it is played.
    let action = TextAction { data: c"\xff".as_ptr(), len: 1 };
    call!(host, act_text, &raw const action);
    assert_eq!(host.advance(1).0, status::ERROR);
    assert!(host.message().contains("no UTF-8"), "{}", host.message());
    // Properties are there after an episode's end.
    assert_eq!(host.read("motto"), Ok("\"quoted\"".into()));
}

#[test]
fn options_are_properties_that_hold_from_the_next_start_on() {
    let host = Host::new(&[("env_id", "testing/Faulty-v0"), ("at_step", "1")]);
    assert_eq!(host.read("config.at_step"), Ok("1".into()));
    assert_eq!(host.read("config.fault"), Ok("none".into()));
    let told = "an int from 0 to 4294967295; default 2. The step of an episode, from 0, at which a fault in a \
                step shows.";
    assert_eq!(host.read("options.at_step"), Ok(told.into()));
    assert_eq!(host.write("options.at_step", "1"), property::PERMISSION_DENIED);
    assert_eq!(host.write("options.none", "1"), property::NOT_FOUND);
    assert_eq!(host.write("config.fault", "error_in_step"), property::SUCCESS);
    assert_eq!(host.write("config.fault", "no_fault"), property::INVALID_ARGUMENT);
    assert_eq!(host.read("config.fault"), Ok("error_in_step".into()));
    host.start(0, 1);
    assert_eq!(host.advance(1).0, status::RUNNING);
    assert_eq!(host.advance(1), (status::ERROR, 0.0));
    assert!(host.message().contains("a fault on demand"), "{}", host.message());
    assert_eq!(host.write("config.fault", "none"), property::SUCCESS);
    host.start(0, 1);
    assert_eq!(host.advance(3).0, status::RUNNING);
}

#[test]
fn an_env_that_panics_or_fails_is_an_error_with_its_message_and_starts_again() {
    for (fault, at) in
        [("panic_in_step", "advance"), ("error_in_reset", "start"), ("panic_in_reset", "start")]
    {
        let host = Host::new(&[("env_id", "testing/Faulty-v0"), ("fault", fault), ("in_episode", "0")]);
        if at == "start" {
            assert_ne!(call!(host, start, 0, 1), 0);
        } else {
            host.start(0, 1);
            assert_eq!(host.advance(9), (status::ERROR, 0.0));
        }
        assert!(host.message().contains("a fault on demand"), "{}", host.message());
        // Nothing is to be seen now, and that is told and no more.
        assert_eq!(host.observation(0), Seen::Doubles(vec![0], vec![]));
        assert_eq!(host.events(), []);
        assert_eq!(host.advance(1).0, status::ERROR);
    }
    let host = Host::connected();
    host.setting("env_id", "testing/Faulty-v0");
    host.setting("fault", "error_in_build");
    assert_ne!(call!(host, init), 0);
    assert!(host.message().contains("a fault on demand"), "{}", host.message());
}

#[test]
fn settings_are_checked_by_init_and_the_last_of_a_key_counts() {
    let wrong: [(&[(&str, &str)], &str); 8] = [
        (&[], "option 'env_id' is missing"),
        (&[("env_id", "CartPole")], "unknown env 'CartPole'"),
        (&[("env_id", "CartPole-v1"), ("speed", "1")], "and those of every env in EnvCApi: env_id"),
        (&[("env_id", "CartPole-v1"), ("seed", "-1")], "setting 'seed' is a number from 0"),
        (&[("env_id", "CartPole-v1"), ("indices", "[1]")], "episode_id_is_index"),
        (&[("env_id", "CartPole-v1"), ("episode_id_is_index", "maybe")], "true or false"),
        (
            &[("env_id", "testing/Faulty-v0"), ("at_step", "soon")],
            "testing/Faulty-v0: at_step is an int from 0 to 4294967295, not 'soon'",
        ),
        (&[("env_id", "CartPole-v1"), ("max_episode_steps", "many")], "setting 'max_episode_steps'"),
    ];
    for (settings, why) in wrong {
        let host = Host::connected();
        for (key, value) in settings {
            assert_eq!(host.setting(key, value), 0);
        }
        assert_ne!(call!(host, init), 0);
        assert!(host.message().contains(why), "{}", host.message());
        // What was wrong can be set right.
        host.setting("env_id", "CartPole-v1");
    }
    let host = Host::new(&[
        ("env_id", "nothing"),
        ("max_episode_steps", "9"),
        ("env_id", "CartPole-v1"),
        ("max_episode_steps", "-1"),
        ("num_threads", "0"),
        ("seed", "5"),
    ]);
    assert_ne!(host.setting("seed", "6"), 0);
    assert!(host.message().contains("after init"), "{}", host.message());
    assert_ne!(call!(host, init), 0, "once is enough");
    for (episode, seed, what) in [(-1, 0, "the episode's number is -1"), (0, -7, "the seed is -7")] {
        let refused = call!(host, start, episode, seed);
        assert!(refused != 0 && refused != libc_eagain(), "EAGAIN asks to try again");
        assert!(host.message().contains(what), "{}", host.message());
    }
    host.start(c_int::MAX, c_int::MAX);
}

/// `EAGAIN` of Linux.
fn libc_eagain() -> c_int {
    11
}

#[test]
fn whatever_the_order_nothing_aborts_and_no_text_is_null() {
    for stage in 0..4 {
        let host = Host::connected();
        if stage > 0 {
            host.setting("env_id", "testing/Faulty-v0");
            assert_eq!(call!(host, init), 0);
        }
        if stage > 1 {
            host.start(0, 0);
        }
        if stage > 2 {
            while host.advance(1).0 == status::RUNNING {}
        }
        for index in [c_int::MIN, -1, 0, 1, 99, c_int::MAX] {
            for name in [
                call!(host, action_discrete_name, index),
                call!(host, action_continuous_name, index),
                call!(host, action_text_name, index),
                call!(host, observation_name, index),
                call!(host, event_type_name, index),
                call!(host, environment_name),
                call!(host, error_message),
            ] {
                text(name);
            }
            call!(host, action_discrete_bounds, index, null_mut(), null_mut());
            call!(host, action_continuous_bounds, index, null_mut(), null_mut());
            call!(host, observation_spec, index, null_mut());
            call!(host, observation, index, null_mut());
            call!(host, event, index, null_mut());
            host.observation(index);
            if call!(host, start, index, index) == 0 {
                call!(host, advance, index, null_mut());
            }
        }
        for key in [null(), c"".as_ptr(), c"\xff".as_ptr(), c"config".as_ptr()] {
            assert_ne!(call!(host, read_property, key, null_mut()), property::SUCCESS);
            assert_ne!(call!(host, write_property, key, key), property::SUCCESS);
            call!(host, list_property, null_mut(), key, None);
            call!(host, setting, key, null());
        }
        call!(host, act, null(), null());
        call!(host, act_text, null());
        if call!(host, start, 0, 0) == 0 {
            assert_eq!(host.advance(1).0, status::ERROR, "the actions are at NULL");
            assert!(host.message().contains("at NULL"), "{}", host.message());
        }
        call!(host, fps);
        call!(host, event_count);
    }
}

#[test]
fn a_host_without_a_context_is_told_so() {
    let host = Host::connected();
    let (api, mut junk) = (&host.api, [7u64; 16]);
    for context in [null_mut(), junk.as_mut_ptr().cast::<c_void>()] {
        // SAFETY: what is no context is looked at, and no more.
        unsafe {
            assert_ne!(api.init.unwrap()(context), 0);
            assert_eq!(api.advance.unwrap()(context, 1, null_mut()), status::ERROR);
            let mut raw = nothing();
            api.observation.unwrap()(context, 0, &raw mut raw);
            assert_eq!((raw.spec.dims, *raw.spec.shape), (1, 0));
            assert!(text(api.error_message.unwrap()(context)).contains("context"));
            api.release_context.unwrap()(context);
        }
    }
    let (mut other, mut context) = (EnvCApi::default(), null_mut());
    // SAFETY: NULL, or room.
    unsafe {
        assert_ne!(tests_connect(null_mut(), &raw mut context), 0);
        assert_ne!(tests_connect(&raw mut other, null_mut()), 0);
        assert_ne!(tests_connect_v(1, 3, &raw mut other, &raw mut context), 0);
        assert!(other.init.is_none());
        assert_eq!(tests_connect_v(1, 4, &raw mut other, &raw mut context), 0);
        other.release_context.unwrap()(context);
    }
}

#[test]
fn a_host_may_call_from_within_a_callback_and_from_two_threads() {
    unsafe extern "C" fn read(host: *mut c_void, key: *const c_char, _: c_int) {
        // SAFETY: the test gives its host.
        let host = unsafe { &*host.cast::<Host>() };
        let mut value = null();
        if call!(host, read_property, key, &raw mut value) == property::SUCCESS {
            text(value);
        }
    }
    let host = Host::new(&[("env_id", "testing/Caller-v0")]);
    let at = (&raw const host).cast_mut().cast();
    assert_eq!(call!(host, list_property, at, c"".as_ptr(), Some(read)), property::SUCCESS);

    let host = Host::new(&[
        ("env_id", "testing/Faulty-v0"),
        ("fault", "sleep_in_step"),
        ("at_step", "0"),
        ("sleep", "0.5"),
    ]);
    host.start(0, 0);
    struct Shared<'a>(&'a Host);
    // SAFETY: that a host does so is what is tried.
    unsafe impl Sync for Shared<'_> {}
    let shared = Shared(&host);
    std::thread::scope(|scope| {
        let shared = &shared;
        // The other thread's calls refuse this one's, too.
        let stepping = scope.spawn(move || {
            loop {
                let now = shared.0.advance(1).0;
                if now != status::ERROR {
                    return now;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !shared.0.message().contains("another thread") {
            assert!(std::time::Instant::now() < until);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(stepping.join().unwrap(), status::RUNNING);
    });
}
