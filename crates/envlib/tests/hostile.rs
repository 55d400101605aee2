//! Hosts that do it wrong: each gets an error that says so, and nothing aborts,
//! exits or is corrupted.

#![allow(unsafe_code)]

mod host;

use std::ffi::c_void;
use std::ptr::null_mut;

use envcore::abi::libenv::sys;
use envcore::{Entry, Env, Leaf, Record, Result, Space, Step, wants_reset};
use host::{Data, Host, last_error, make, name, option};

/// Shows and takes what `Leaves` says, and nothing happens.
struct Shapes;

#[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
struct Leaves {
    kind: String,
    lengths: Vec<i32>,
    weight: f64,
    maybe: Option<bool>,
}

impl Env for Shapes {
    type Config = Leaves;
    type Obs = Shown;
    type Act = envcore::Discrete<2>;
    type Info = ();

    fn build(config: &Leaves, _: i64) -> Result<Self> {
        // What was asked for comes back as the env's own error.
        match config.kind.as_str() {
            "echo" => {
                Err(envcore::Error::env(format!("{:?} {} {:?}", config.lengths, config.weight, config.maybe)))
            }
            _ => Ok(Shapes),
        }
    }

    fn observation_space(config: &Leaves) -> Result<Space> {
        Ok(match config.kind.as_str() {
            "f64" => Leaf::real::<f64>(&[2]).into(),
            "i64" => Leaf::real::<i64>(&[]).into(),
            "text" => Leaf::text(5).into(),
            "axes" => Leaf::real::<f32>(&[1; 17]).into(),
            "name" => Space::of([Leaf::real::<f32>(&[]).named("x".repeat(128))]),
            _ => Leaf::labels::<i16>(&[2], -3, 7).into(),
        })
    }

    fn step(&mut self, a: &envcore::Discrete<2>) -> Result<(Step<Self>, Record)> {
        Ok((Step::new(*a, Shown, 0.0, ()), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<Shown> {
        wants_reset(is_done).map(|_| Shown)
    }

    fn reset_with_index(&mut self, _: usize) -> Result<Shown> {
        Ok(Shown)
    }
}

struct Shown;

impl envcore::ToRow for Shown {
    fn space() -> Result<Space> {
        Ok(Space::empty())
    }

    fn write(&self, row: &mut envcore::Row<'_>) {
        match row.fixed::<i16>() {
            [a, b] => (*a, *b) = (-3, 3),
            other => panic!("{other:?}"),
        }
    }
}

static TABLE: [Entry; 4] = [
    envs::classic::TABLE[0],
    envs::testing::TABLE[0],
    envs::testing::TABLE[2],
    Entry::new::<Shapes>("Shapes-v0", "Leaves of all kinds."),
];

envcore::export_libenv!(&TABLE);

/// What `libenv_make` says to these options.
fn refusal(options: &[(&str, Data)]) -> String {
    let mut all: Vec<sys::Option> = options.iter().map(|(of, data)| option(of, data)).collect();
    make(2, &mut all).expect_err("it is wrong")
}

fn cart_pole(more: (&'static str, Data)) -> String {
    refusal(&[("env_id", "CartPole-v1".into()), more])
}

fn shapes(more: &[(&'static str, Data)]) -> String {
    refusal(&[&[("env_id", "Shapes-v0".into())], more].concat())
}

fn holds(error: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn a_wrong_option_is_named_with_the_valid_ones() {
    holds(&refusal(&[]), &["env_id", "CartPole-v1, Shapes-v0"]);
    let unknown = refusal(&[("env_id", "CartPole-v2".into())]);
    holds(&unknown, &["unknown env 'CartPole-v2'", "Did you mean 'CartPole-v1'?"]);
    assert!(!unknown.contains("Faulty"), "hidden envs are listed nowhere: {unknown}");
    holds(&refusal(&[("env_id", 3.into())]), &["'env_id' is a text (uint8), not 1 of int32"]);
    holds(&refusal(&[("env_id", Data::Bytes(vec![0xc3]))]), &["no UTF-8 text"]);
    holds(&cart_pole(("fas", true.into())), &["unknown option 'fas'", "'fast'", "max_episode_steps"]);
    holds(&cart_pole(("fast", 1.5.into())), &["CartPole-v1: fast is a bool, not 1.5"]);
    holds(&cart_pole(("fast", "yes".into())), &["CartPole-v1: fast is a bool, not 'yes'"]);
    holds(&cart_pole(("seed", (-1).into())), &["'seed' is -1: it must be 0 or more"]);
    holds(&cart_pole(("seed", 1.0.into())), &["'seed' is one int32, not 1 of float32"]);
    holds(&cart_pole(("seed", [1, 2].into())), &["'seed' is one int32, not 2 of int32"]);
    holds(&cart_pole(("indices", [1, -2].into())), &["'indices' is -2"]);
    holds(&cart_pole(("max_episode_steps", 0.into())), &["max_episode_steps must be at least 1"]);
    holds(&cart_pole(("max_episode_steps", (-2).into())), &["'max_episode_steps' is -2"]);
    holds(&cart_pole(("num_threads", 99_999.into())), &["num_threads is 99999"]);
    holds(&cart_pole(("cast", 2.into())), &["'cast' is 0 or 1"]);
    let both = [("index", 1.into()), ("indices", [1, 2].into()), ("env_id", "CartPole-v1".into())];
    holds(&refusal(&both), &["give one"]);
    let odd = |more| refusal(&[("env_id", "testing/Odd-v0".into()), more]);
    holds(&odd(("cast", true.into())), &["testing/Odd-v0: libenv cannot carry observation 'items'"]);
}

#[test]
fn an_envs_own_options_are_typed_as_its_defaults_are() {
    let echo = |more: (&'static str, Data)| shapes(&[("kind", "echo".into()), more]);
    holds(&echo(("lengths", [4, -5].into())), &["[4, -5] 0 None"]);
    holds(&echo(("lengths", 4.into())), &["[4] 0 None"]);
    holds(&echo(("lengths", Data::Bytes(vec![4, 5]))), &["[4, 5] 0 None"]);
    holds(&echo(("weight", 0.1.into())), &["[] 0.1 None"]);
    holds(&echo(("weight", 3.into())), &["[] 3 None"]);
    holds(&echo(("maybe", true.into())), &["[] 0 Some(true)"]);
    holds(&echo(("weight", "heavy".into())), &["Shapes-v0: weight is a finite number, not 'heavy'"]);
    holds(&echo(("lengths", 1.5.into())), &["Shapes-v0: lengths[0] is an int"]);
}

#[test]
fn a_host_reads_what_the_options_are() {
    // SAFETY: the function takes nothing, and its text stays.
    let text = unsafe { std::ffi::CStr::from_ptr(host::corral_libenv_options()) };
    let text = text.to_str().unwrap();
    holds(
        text,
        &["{\"CartPole-v1\":{", "\"Shapes-v0\":{", "\"default\":[],\"high\":2147483647,\"low\":-2147483648,"],
    );
    holds(text, &["\"fast\":{\"default\":false,\"meaning\":\"Without effect since 0.2"]);
    assert!(!text.contains("Faulty"), "hidden envs are listed nowhere: {text}");
}

#[test]
fn what_libenv_has_no_dtype_for_is_refused_with_the_leaf_unless_a_cast_is_asked_for() {
    let kind = |kind: &'static str| shapes(&[("kind", kind.into())]);
    holds(&kind("f64"), &["Shapes-v0: libenv cannot carry observation 'obs'", "not float64", "cast=1"]);
    holds(&kind("i64"), &["observation 'obs'", "int64", "cast=1"]);
    holds(&kind("text"), &["observation 'obs'", "one shape"]);
    holds(&kind("axes"), &["at most 16 axes"]);
    holds(&kind("name"), &["at most 127 bytes"]);
    let cast = |kind: &'static str| {
        let options = [("env_id", "Shapes-v0".into()), ("kind", kind.into()), ("cast", true.into())];
        let host = Host::new(1, &options);
        (host.ob[0].kind.scalar_type, host.ob[0].kind.dtype)
    };
    assert_eq!(cast("f64"), (sys::scalar_type::REAL, sys::dtype::FLOAT32));
    assert_eq!(cast("i64"), (sys::scalar_type::REAL, sys::dtype::FLOAT32));
    // Labels from -3 to 3 are 0 to 6.
    let host = Host::new(1, &[("env_id", "Shapes-v0".into())]);
    let kind = &host.ob[0].kind;
    assert_eq!((kind.scalar_type, kind.dtype, host.ob[0].name()), (2, sys::dtype::INT32, "obs".into()));
    // SAFETY: of int32.
    assert_eq!(unsafe { (kind.low.int32, kind.high.int32) }, (0, 6));
    host.observe();
    assert_eq!(host.ob[0].numbers(0), [0.0, 6.0]);
}

#[test]
fn options_that_are_not_what_the_header_says_are_refused() {
    let id = Data::from("CartPole-v1");
    let good = || option("env_id", &id);
    let with = |change: &dyn Fn(&mut sys::Option)| {
        let seed = Data::Ints(vec![3; 8]);
        let mut all = [good(), option("seed", &seed)];
        change(&mut all[1]);
        make(1, &mut all).unwrap_err()
    };
    holds(&with(&|o| o.name = [b'a' as _; sys::MAX_NAME_LEN]), &["name of option 1", "NUL"]);
    holds(&with(&|o| o.name[0] = -1), &["name of option 1", "UTF-8"]);
    holds(&with(&|o| o.name = name("env_id")), &["'env_id' is given twice"]);
    holds(&with(&|o| o.count = -1), &["option 'seed' has count -1"]);
    holds(&with(&|o| o.data = null_mut()), &["option 'seed' has 8 elements at NULL"]);
    holds(&with(&|o| o.dtype = 4), &["option 'seed' has dtype 4"]);
    holds(&with(&|o| o.dtype = -1), &["option 'seed' has dtype -1"]);
    holds(&with(&|o| o.count = 0), &["'seed' is one int32, not 0 of int32"]);
    for (items, count, part) in [
        (null_mut(), 1, "1 options at NULL"),
        (null_mut(), -1, "-1 options"),
        ((&mut good()) as *mut _, i32::MAX, "2147483647 options"),
    ] {
        // SAFETY: this is what is tested; nothing is to be read.
        let handle = unsafe { host::libenv_make(1, sys::Options { items, count }) };
        assert!(handle.is_null());
        holds(&last_error(null_mut()).unwrap(), &[part]);
    }
    for num in [0, -1, i32::MIN, i32::MAX] {
        holds(&make(num, &mut [good()]).unwrap_err(), &["must be from 1 to 16777216"]);
    }
}

#[test]
fn null_handles_and_strange_ones_are_errors_of_their_thread() {
    let mut strange = [7u64; 64];
    for handle in
        [null_mut(), strange.as_mut_ptr().cast::<c_void>(), (strange.as_mut_ptr() as usize + 1) as _]
    {
        let says = |call: &str| {
            holds(&last_error(handle).unwrap(), &[call, if handle.is_null() { "NULL" } else { "no env" }])
        };
        let mut bytes = [0; 8];
        // SAFETY: this is what is tested.
        unsafe {
            // gym3 stops at a negative count, and takes 0 for an empty space.
            let count = if handle.is_null() { -1 } else { 0 };
            assert_eq!(host::libenv_get_tensortypes(handle, 1, null_mut()), count);
            says("libenv_get_tensortypes");
            host::libenv_set_buffers(handle, null_mut());
            says("libenv_set_buffers");
            host::libenv_observe(handle);
            says("libenv_observe");
            host::libenv_act(handle);
            says("libenv_act");
            assert_eq!(host::get_state(handle, 0, bytes.as_mut_ptr(), 8), -1);
            says("get_state");
            host::set_state(handle, 0, bytes.as_mut_ptr(), 8);
            says("set_state");
            assert_eq!(host::corral_libenv_reset(handle, 0, 0, 0), -1);
            says("corral_libenv_reset");
            host::libenv_close(handle);
            says("libenv_close");
        }
    }
    assert_eq!(strange, [7; 64]);
    // SAFETY: it takes nothing.
    assert_eq!(unsafe { host::libenv_version() }, 1);
}

fn open() -> *mut c_void {
    let id = Data::from("CartPole-v1");
    make(2, &mut [option("env_id", &id)]).unwrap()
}

#[test]
fn calls_in_a_wrong_order_and_null_buffers_are_errors_and_what_is_there_is_used() {
    let mut host = Host::over(open(), 2, 0);
    for call in [Host::observe, Host::act] {
        call(&host);
        holds(&host.error().unwrap(), &["libenv_set_buffers first"]);
    }
    // SAFETY: NULLs are what is tested; what is not NULL is there.
    unsafe {
        assert_eq!(host::libenv_get_tensortypes(host.handle, 7, null_mut()), 0);
        holds(&host.error().unwrap(), &["no space 7"]);
        host::libenv_set_buffers(host.handle, null_mut());
        holds(&host.error().unwrap(), &["the buffers are NULL"]);
        let none = null_mut::<*mut c_void>();
        let (rew, first) = (host.rew.as_mut_ptr(), null_mut());
        let mut buffers = sys::Buffers { ob: none, rew, first, info: none, ac: none };
        host::libenv_set_buffers(host.handle, &mut buffers);
        holds(&host.error().unwrap(), &["'ob' is NULL"]);
        host.observe();
        assert_eq!(host.rew, [0.0; 2]);
        host.act();
        holds(&host.error().unwrap(), &["actions 'action' are at NULL"]);
        host::libenv_set_buffers(host.handle, null_mut());
        let mut byte = [0];
        assert_eq!(host::get_state(host.handle, 0, byte.as_mut_ptr(), 1), -1);
        holds(&host.error().unwrap(), &["bytes, and there are 1"]);
        assert_eq!(host::get_state(host.handle, 2, null_mut(), 0), -1);
        holds(&host.error().unwrap(), &["env 2 does not exist"]);
        host::set_state(host.handle, 0, null_mut(), 4);
        holds(&host.error().unwrap(), &["no state at NULL"]);
        host::set_state(host.handle, 0, byte.as_mut_ptr(), -4);
        holds(&host.error().unwrap(), &["negative length"]);
    }
    // After all of that it works.
    host.set_buffers();
    assert_eq!(host.error(), None);
    host.observe();
    assert_eq!(host.first, [1; 2]);
    for _ in 0..5 {
        host.put_all(1.0);
        host.act();
        host.act();
        host.observe();
        assert_eq!((host.error(), &host.rew[..]), (None, &[1.0; 2][..]));
    }
}

#[test]
fn actions_that_no_env_takes_are_refused_whatever_their_bits() {
    let options = [("env_id", "testing/Faulty-v0".into()), ("cast", true.into()), ("seed", 7.into())];
    let mut host = Host::new(2, &options);
    host.observe();
    let before = host.seen();
    for (leaf, number) in [(0, f64::NAN), (0, f64::INFINITY), (1, 3.0), (1, -1.0), (1, f64::from(i32::MAX))] {
        host.put_all(0.0);
        let elements = host.ac[leaf].numbers(1).len();
        host.ac[leaf].put(1, &vec![number; elements]);
        host.act();
        holds(&host.error().unwrap(), &["bad action for env 1"]);
        host.observe();
        assert_eq!(host.seen(), before);
    }
}

#[test]
fn buffers_that_overlap_are_written_within_their_bounds() {
    let mut host = Host::over(open(), 2, 0);
    let mut memory = [0x5a5a_5a5au32; 64];
    let base = memory.as_mut_ptr();
    let at = |k: usize| base.wrapping_add(k);
    // Both slots' rows of all leaves, rewards and flags in the same 16 bytes.
    let mut rows = vec![at(8).cast::<c_void>(); 64];
    let rows = rows.as_mut_ptr();
    let mut buffers = sys::Buffers { ob: rows, rew: at(8).cast(), first: at(8).cast(), info: rows, ac: rows };
    // SAFETY: the memory is there.
    unsafe { host::libenv_set_buffers(host.handle, &mut buffers) };
    for _ in 0..50 {
        host.observe();
        host.act();
    }
    assert!(memory[..8].iter().chain(&memory[12..]).all(|word| *word == 0x5a5a_5a5a));
    host.set_buffers();
    memory.fill(0);
    host.observe();
    assert!(host.ob[0].numbers(0).iter().all(|v| v.abs() < 5.0));
}

#[test]
fn one_env_in_two_threads_is_an_error_and_not_a_race() {
    let options = [
        ("env_id", "testing/Faulty-v0".into()),
        ("cast", true.into()),
        ("fault", "sleep_in_every_step".into()),
        ("sleep", 0.3.into()),
    ];
    let mut host = Host::new(1, &options);
    host.observe();
    host.put_all(0.0);
    host.act();
    let handle = host.handle as usize;
    let observer = std::thread::spawn(move || {
        // SAFETY: the memory is there until the thread is joined.
        unsafe { host::libenv_observe(handle as *mut c_void) }
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    host.act();
    holds(&last_error(null_mut()).unwrap(), &["another thread"]);
    observer.join().unwrap();
    assert_eq!(host.error(), None);
}

#[test]
fn a_closed_env_leaves_no_thread() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let id = Data::from("testing/Faulty-v0");
    let (num_threads, cast) = (Data::from(3), Data::from(true));
    let (fault, sleep) = (Data::from("sleep_in_every_step"), Data::from(0.001));
    let mut most = 0;
    // Other tests' threads come and go meanwhile: ours would stay.
    for _ in 0..40 {
        let mut all = [
            option("env_id", &id),
            option("num_threads", &num_threads),
            option("cast", &cast),
            option("fault", &fault),
            option("sleep", &sleep),
        ];
        let mut host = Host::over(make(8, &mut all).unwrap(), 8, 0);
        host.set_buffers();
        host.observe();
        host.put_all(0.0);
        host.act();
        host.observe();
        most = most.max(threads());
    }
    assert!(most > 2 && threads() < 40, "{most}, {}", threads());
}
