//! Envs through the plugin's table of functions: what the identity matrix does
//! not see of it.

#![allow(unsafe_code)]

use std::ffi::c_void;

use crate::common::plugin::{Echo, plugin, raw, through_plugin};
use crate::common::{MODES, config, refusal, saved, some_actions, source_of, view};
use envcore::abi::plugin::load::Plugin;
use envcore::abi::plugin::sys;
use envcore::{
    BatchPool, Begin, Cause, Error, Layout, Leaf, Options, Phase, ResetArgs, Serial, Side, Slots, Space,
    VecEnv, Want,
};

const SLOTS: usize = 4;

#[test]
fn texts_ragged_arrays_and_undeclared_infos_cross_both_ways() {
    for mode in MODES {
        let here = Serial::new(&source_of::<Echo>(), config(SLOTS, mode)).unwrap();
        let there = Serial::new(&*through_plugin("Echo-v0", &Options::new()), config(SLOTS, mode)).unwrap();
        let (mut here, mut there) = (here, there);
        assert_eq!(here.spec().observation, there.spec().observation);
        assert_eq!(here.spec().action, there.spec().action);
        assert_eq!(here.spec().info, there.spec().info);
        let mut failures = 0;
        let mut extras = 0;
        let mut play = |begin: &[Begin], t: Option<usize>| {
            let mut rows = Vec::new();
            for envs in [&mut here as &mut dyn VecEnv, &mut there] {
                match t {
                    None => envs.send_reset(&Slots::All, begin, None).unwrap(),
                    Some(t) => {
                        let actions = some_actions(&envs.spec().action, t, SLOTS);
                        envs.send(&Slots::All, &view(&actions)).unwrap();
                    }
                }
                let batch = envs.recv(Want::all()).unwrap().unwrap();
                let told = batch.failures.iter().map(|failure| {
                    assert_eq!(failure.failure.message, "too sweet");
                    assert_eq!(failure.failure.phase, Phase::Step);
                    (failure.slot, failure.step, failure.action.clone())
                });
                rows.push((crate::common::rows_of(envs.spec(), &batch), told.collect::<Vec<_>>()));
                extras += batch.infos.extras.len();
            }
            assert_eq!(rows[0], rows[1]);
            failures += rows[0].1.len();
            rows.remove(0).0.into_iter().map(|(_, seen)| (seen.kind, seen.done())).collect::<Vec<_>>()
        };
        play(&[Begin::Own; SLOTS], None);
        for t in 0..120 {
            let rows = play(&[], Some(t));
            let begin = rows.iter().map(|(kind, done)| match (kind, done) {
                (envcore::RowKind::Failed, _) => Begin::Own,
                (_, true) if mode == envcore::AutoresetMode::Disabled => Begin::Index(3),
                _ => Begin::Keep,
            });
            let begin: Vec<Begin> = begin.collect();
            if begin.iter().any(|begin| *begin != Begin::Keep) {
                play(&begin, None);
            }
        }
        assert!(failures > 3, "{failures}");
        assert!(extras > 3 || mode == envcore::AutoresetMode::SameStep, "{extras}");
    }
}

#[test]
fn states_and_options_are_those_of_the_envs_built_in() {
    let options = Options::new().with("at_step", 5i64);
    let mode = MODES[0];
    let built_in = crate::common::source("testing/Faulty-v0", &options);
    let mut here = Serial::new(&*built_in, config(SLOTS, mode)).unwrap();
    let mut there =
        Serial::new(&*through_plugin("testing/Faulty-v0", &options), config(SLOTS, mode)).unwrap();
    let bias = Options::new().with("bias", 0.25);
    for envs in [&mut here as &mut dyn VecEnv, &mut there] {
        envs.reset(&Slots::All, &[Begin::Index(2); SLOTS], Some(&bias), Want::all()).unwrap();
        crate::common::step(envs, 0);
        assert_eq!(envs.render(&Slots::List(vec![1])).unwrap()[0].pixels(), [1; 72]);
    }
    // They differ in the env's id alone.
    let tail = |states: Vec<Vec<u8>>| {
        states.into_iter().map(|state| state[state.len() - 90..].to_vec()).collect::<Vec<_>>()
    };
    let state = there.save(2).unwrap();
    assert_eq!(tail(saved(&mut here)).len(), tail(saved(&mut there)).len());
    let rows = crate::common::step(&mut there, 1);
    there.load(2, &state).unwrap();
    assert_eq!(crate::common::step(&mut there, 1)[2], rows[2]);
    assert!(refusal(there.load(2, b"no state")).contains("state"));
    let wrong = Options::new().with("bias", "large");
    let refused = there.send_reset(&Slots::All, &[Begin::Own; SLOTS], Some(&wrong)).unwrap_err();
    assert!(matches!(refused, Error::OptionValue(_)), "{refused}");
}

#[test]
fn options_and_ids_that_do_not_exist_are_the_same_errors_as_of_envs_built_in() {
    let plugin = plugin();
    assert_eq!((plugin.name(), plugin.version()), ("the_tests", "1.2.3"));
    let asked = |id: &str, options: Options| plugin.source("the_tests", id, &options).map(drop).unwrap_err();
    let error = asked("Maze-v0", Options::new().with("sizes", 3i64));
    assert!(matches!(error, Error::UnknownOption(_)), "{error}");
    assert!(error.to_string().contains("did you mean 'size'?"), "{error}");
    assert!(matches!(asked("Maze-v0", Options::new().with("size", "x")), Error::OptionValue(_)));
    let error = asked("Mase-v0", Options::new());
    assert!(matches!(error, Error::UnknownEnv(_)), "{error}");
    assert!(error.to_string().contains("Did you mean 'Maze-v0'?"), "{error}");
    let error = asked("testing/Odd-v0", Options::new());
    assert!(error.to_string().contains("resets itself"), "{error}");
}

#[test]
fn an_env_that_cannot_be_built_is_named_with_its_slot() {
    let options = Options::new().with("fault", "panic_in_build").with("of_seed", 102i64);
    let source = through_plugin("testing/Faulty-v0", &options);
    let Err(Error::Slots(failures)) = Serial::new(&*source, config(SLOTS, MODES[0])) else {
        panic!("it was built")
    };
    let text = failures[0].to_string();
    assert!(text.starts_with("the_tests/testing/Faulty-v0: env 2 panicked in build: a fault on demand (at"));
    assert_eq!(failures.len(), 1);
}

#[test]
fn a_panic_of_the_plugins_own_ends_its_handle_and_nothing_else() {
    let source = through_plugin("Rude-v0", &Options::new());
    let mut envs = Serial::new(&*source, config(2, MODES[0])).unwrap();
    crate::common::reset(&mut envs, &[Begin::Own; 2]);
    let actions = some_actions(&envs.spec().action, 0, 2);
    let batch = envs.step(&Slots::All, &view(&actions), Want::all()).unwrap().unwrap();
    for failure in &batch.failures {
        assert!(failure.failure.message.starts_with("a bug in a step (at "), "{failure}");
        assert_eq!((failure.failure.phase, failure.failure.cause), (Phase::Step, Cause::Panic));
    }
    assert_eq!(batch.failures.len(), 2);
    let batch = envs.reset(&Slots::All, &[Begin::Own; 2], None, Want::all()).unwrap().unwrap();
    assert!(batch.failures[0].to_string().contains("this chunk is not used again: a bug in a step"));
    assert!(refusal(envs.close()).contains("not used again"));
    // Another chunk knows nothing of it.
    let mut envs = Serial::new(&*source, config(2, MODES[0])).unwrap();
    crate::common::reset(&mut envs, &[Begin::Own; 2]);
    assert!(refusal(envs.close()).contains("a bug in a close"));
}

/// A plugin whose table differs from ours as `change` says.
fn changed(change: impl FnOnce(&mut sys::Plugin)) -> envcore::Result<Plugin> {
    // SAFETY: the table is this binary's own.
    let mut table = unsafe { *raw() };
    change(&mut table);
    let table = Box::leak(Box::new(table));
    // SAFETY: it is one, but for what was changed.
    unsafe { Plugin::over(table, "there".into()) }
}

/// The error of such a table.
fn refused(change: impl FnOnce(&mut sys::Plugin)) -> String {
    changed(change).map(drop).unwrap_err().to_string()
}

#[test]
fn a_table_of_another_version_or_layout_is_refused_and_the_old_side_named() {
    let newer = refused(|table| table.abi_version += 1);
    assert!(newer.contains("this Corral is old, install a newer one"), "{newer}");
    let older = refused(|table| table.abi_version -= 1);
    assert!(older.contains("the plugin is old: run `corral vendor`"), "{older}");
    let short = refused(|table| table.size -= 8);
    assert!(short.contains("the plugin is old"), "{short}");
    let narrow = refused(|table| table.entry_size += 8);
    assert!(narrow.contains("bytes where this Corral"), "{narrow}");
    let lame = refused(|table| table.step = None);
    assert!(lame.contains("no function 'step'"), "{lame}");
    // SAFETY: null is allowed.
    let none = unsafe { Plugin::over(std::ptr::null(), "there".into()) };
    assert!(none.is_err());
}

#[test]
fn a_list_of_envs_that_cannot_be_that_long_or_is_not_there_is_refused_unread() {
    let long = refused(|table| table.num_envs = 1 << 58);
    assert!(long.contains("288230376151711744 envs, where 65536 is the most"), "{long}");
    let missing = refused(|table| table.envs = std::ptr::null());
    assert!(missing.contains("envs at NULL"), "{missing}");
}

/// Steps as the plugin does, and then says an info for the row after the last.
unsafe extern "C" fn step_and_say_more(
    chunk: *mut c_void,
    first_slot: usize,
    num_slots: usize,
    skip: *const u8,
    actions: *const *const c_void,
    rows: *const sys::Rows,
    report: *const sys::Report,
) -> i32 {
    let data = sys::ValueData { integer: 3 };
    let (kind, shape) = (sys::CORRAL_VALUE_INT, std::ptr::null());
    let value = sys::Value { kind, dtype: 0, num_axes: 0, shape, length: 0, data };
    let field = sys::Field { key: c"late".as_ptr(), key_length: 4, value: &value };
    // SAFETY: all is the host's of this call; the info is there during its own.
    unsafe {
        let done = (*raw()).step.unwrap()(chunk, first_slot, num_slots, skip, actions, rows, report);
        (*report).info.unwrap()((*report).context, num_slots, &field);
        done
    }
}

/// Why two envs fail in a step by a table that differs from ours as `change` says.
fn failures(id: &str, change: impl FnOnce(&mut sys::Plugin)) -> [String; 2] {
    let source = changed(change).unwrap().source("the_tests", id, &Options::new()).unwrap();
    let mut envs = Serial::new(&source, config(2, MODES[0])).unwrap();
    crate::common::reset(&mut envs, &[Begin::Own; 2]);
    let actions = some_actions(&envs.spec().action, 0, 2);
    let batch = envs.step(&Slots::All, &view(&actions), Want::all()).unwrap().unwrap();
    let messages = batch.failures.iter().map(|failure| failure.failure.message.clone());
    messages.collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn an_info_for_a_row_that_the_call_is_not_about_fails_the_call() {
    for message in failures("CartPole-v1", |table| table.step = Some(step_and_say_more)) {
        assert!(message.contains("info 'late' for row 2, which is not of this call"), "{message}");
    }
}

/// Tells the first leaf of an observation twice, and no other.
unsafe extern "C" fn tell_the_first_twice(
    report: *mut c_void,
    part: u32,
    leaf: usize,
    row: usize,
    value: *const sys::Value,
) {
    if part == sys::CORRAL_PART_INFO || leaf > 0 {
        return;
    }
    // SAFETY: the context is the host's report, and the value is the plugin's for this call.
    unsafe {
        let host = &*report.cast::<sys::Report>();
        (0..2).for_each(|_| host.leaf.unwrap()(host.context, part, leaf, row, value));
    }
}

/// Steps as the plugin does, but tells the first leaf twice, and no other.
unsafe extern "C" fn step_and_say_the_first_twice(
    chunk: *mut c_void,
    first_slot: usize,
    num_slots: usize,
    skip: *const u8,
    actions: *const *const c_void,
    rows: *const sys::Rows,
    report: *const sys::Report,
) -> i32 {
    let own = sys::Report {
        context: report.cast_mut().cast(),
        leaf: Some(tell_the_first_twice),
        fail: None,
        info: None,
        state: None,
        frame: None,
        answer: None,
    };
    // SAFETY: all is the host's of this call.
    unsafe { (*raw()).step.unwrap()(chunk, first_slot, num_slots, skip, actions, rows, &own) }
}

#[test]
fn a_leaf_told_twice_does_not_stand_for_one_that_was_not_told() {
    for message in failures("Echo-v0", |table| table.step = Some(step_and_say_the_first_twice)) {
        assert!(message.contains("not every leaf of the observation was told"), "{message}");
    }
}

/// Keeps the messages of a call in a list.
unsafe extern "C" fn note(
    context: *mut c_void,
    _: usize,
    kind: u32,
    _: u32,
    message: *const std::ffi::c_char,
    length: usize,
) {
    // SAFETY: the context is the test's list, the message the call's.
    unsafe {
        let bytes = std::slice::from_raw_parts(message.cast::<u8>(), length);
        let text = String::from_utf8_lossy(bytes).into_owned();
        (*context.cast::<Vec<(u32, String)>>()).push((kind, text));
    }
}

#[test]
fn a_host_that_calls_with_nothing_gets_errors() {
    // SAFETY: the table is this binary's own.
    let table = unsafe { &*raw() };
    let mut said: Vec<(u32, String)> = Vec::new();
    let context = (&raw mut said).cast();
    let report = sys::Report {
        context,
        fail: Some(note),
        info: None,
        leaf: None,
        state: None,
        frame: None,
        answer: None,
    };
    let none = std::ptr::null_mut();
    // SAFETY: NULL handles are errors; all else is there during the calls.
    unsafe {
        assert!(table.make.unwrap()(999, std::ptr::null(), &report).is_null());
        assert!(table.spec.unwrap()(none).is_null());
        table.free_source.unwrap()(none);
        table.free_chunk.unwrap()(none);
        assert!(table.chunk.unwrap()(none, std::ptr::null(), 3, &report).is_null());
        assert_eq!(table.save.unwrap()(none, 0, &report), -1);
        assert_eq!(table.save.unwrap()(none, 0, std::ptr::null()), -1);
        let (no_name, no_value) = (std::ptr::null(), std::ptr::null());
        assert_eq!(table.call.unwrap()(none, 0, 0, no_name, 0, no_value, no_value, &report), -1);
        assert_eq!(table.close.unwrap()(none, &report), -1);
        let source = table.make.unwrap()(0, std::ptr::null(), &report);
        assert!(!source.is_null());
        let chunk = table.chunk.unwrap()(source, [1i64, 2].as_ptr(), 2, &report);
        table.free_source.unwrap()(source);
        let (resets, rows) = (std::ptr::null(), std::ptr::null());
        assert_eq!(table.reset.unwrap()(chunk, resets, 2, rows, &report), -1);
        let options = std::ptr::null();
        let of = |slot, row| sys::Reset { slot, row, how: 0, rebuild: 0, value: 0, rebuild_seed: 0, options };
        let some = sys::Rows { num_rows: 1, ..std::mem::zeroed() };
        for wrong in [of(2, 0), of(0, 1), sys::Reset { how: 4, ..of(0, 0) }] {
            assert_eq!(table.reset.unwrap()(chunk, &wrong, 1, &some, &report), -1);
        }
        let (skip, actions) = (std::ptr::null(), std::ptr::null());
        assert_eq!(table.step.unwrap()(chunk, 0, 2, skip, actions, rows, &report), -1);
        assert_eq!(table.step.unwrap()(chunk, usize::MAX, 2, skip, actions, rows, &report), -1);
        assert_eq!(table.close.unwrap()(chunk, &report), 0);
        table.free_chunk.unwrap()(chunk);
    }
    let text: Vec<&str> = said.iter().map(|(_, message)| message.as_str()).collect();
    assert!(text[0].contains("no env number 999"), "{text:?}");
    assert!(text.iter().any(|text| text.contains("a chunk that is NULL")), "{text:?}");
    assert!(text.iter().any(|text| text.contains("slots 2 to 3 of a chunk of 2")), "{text:?}");
    assert!(text.iter().any(|text| text.contains("resets that are NULL")), "{text:?}");
    assert!(text.iter().any(|text| text.contains("row 1 of 1")), "{text:?}");
    assert!(text.iter().any(|text| text.contains("4 is no way to begin")), "{text:?}");
    assert!(text.iter().any(|text| text.contains("rows that are NULL")), "{text:?}");
    assert!(said.iter().all(|(kind, _)| *kind == sys::CORRAL_ERROR_ARGUMENT), "{said:?}");
}

#[test]
fn a_chunk_writes_to_no_rows_and_asks_of_no_slots_that_are_not_its_own() {
    let source = through_plugin("CartPole-v1", &Options::new());
    let mut chunk = source.chunk(0, &[1, 2]).unwrap();
    let spec = source.spec().clone();
    let mut reset = |observation: &Space, slot: usize| {
        let layout =
            Layout { observation: observation.clone(), info: spec.info.clone(), finals: false, capacity: 1 };
        let mut draft = BatchPool::new(&layout).unwrap().draft(Slots::All, 1, None).unwrap();
        let mut side = Side::default();
        chunk.reset(&[ResetArgs::own(slot, 0)], &mut draft.rows_mut(), &mut side);
        side.failures
    };
    assert_eq!(reset(&spec.observation, 1), []);
    let narrow = Space::from(Leaf::real::<u8>(&[1]));
    let several = Space::of([Leaf::real::<f32>(&[4]).named("a"), Leaf::discrete(2).named("b")]);
    for (observation, slot) in [(&narrow, 1), (&several, 1), (&Space::empty(), 1), (&spec.observation, 2)] {
        let failures = reset(observation, slot);
        let [(failed, refused)] = &failures[..] else { panic!("{failures:?}") };
        assert_eq!(*failed, slot);
        assert!(refused.message.contains("not of its plugin's spaces"), "{}", refused.message);
    }
    for refused in [chunk.save(2).map(drop), chunk.load(usize::MAX, &[]), chunk.render(2).map(drop)] {
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
    assert!(matches!(source.chunk(0, &[]).map(drop), Err(Error::Argument(_))));
}
