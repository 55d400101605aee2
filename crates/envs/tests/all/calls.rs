//! Calls by name and events: the same in every runner, and through a plugin.

use std::sync::Arc;

use crate::common::plugin::through_plugin;
use crate::common::{config, refusal, source};
use envcore::{
    ANSI, AutoresetMode, Begin, Call, CallKind, Caps, ColumnIn, EVENTS, EnvSource, Error, Leaf, Options,
    Phase, Serial, Slots, Source, Space, Value, VecConfig, VecEnv, Want, start,
};

const SLOTS: usize = 3;

fn everywhere(mode: AutoresetMode) -> Vec<(&'static str, Box<dyn VecEnv>)> {
    everywhere_of("testing/Caller-v0", mode)
}

/// A vec env of every runner on this machine, and one of a plugin's envs.
fn everywhere_of(id: &str, mode: AutoresetMode) -> Vec<(&'static str, Box<dyn VecEnv>)> {
    let of = |source: Arc<dyn Source>, change: fn(&mut VecConfig)| {
        let mut config = config(SLOTS, mode);
        change(&mut config);
        start(source, config).unwrap()
    };
    let built_in = || Arc::from(source(id, &Options::new()));
    vec![
        ("serial", of(built_in(), |config| config.num_threads = Some(1))),
        ("threads", of(built_in(), |config| config.num_threads = Some(2))),
        ("batches", of(built_in(), |config| config.batch_size = Some(1))),
        ("plugin", of(through_plugin(id, &Options::new()).into(), |_| {})),
    ]
}

fn ask(envs: &mut dyn VecEnv, slot: usize, call: &Call) -> Result<Value, Error> {
    envs.call(&Slots::List(vec![slot]), call).map(|mut values| values.remove(0))
}

fn begin(envs: &mut dyn VecEnv, begin: &[Begin]) -> Vec<(usize, Value)> {
    envs.send_reset(&Slots::All, begin, None).unwrap();
    events(envs)
}

fn say(envs: &mut dyn VecEnv, words: [&str; SLOTS]) -> Vec<(usize, Value)> {
    let words = words.map(Value::from);
    envs.send(&Slots::All, &[ColumnIn::Values(&words)]).unwrap();
    events(envs)
}

/// The events of all that is in flight, by slot.
fn events(envs: &mut dyn VecEnv) -> Vec<(usize, Value)> {
    let batch = envs.recv(Want::all()).unwrap().unwrap();
    assert!(batch.failures.is_empty());
    let extras = batch.infos.extras.iter();
    extras.filter(|e| e.key == EVENTS).map(|e| (batch.slots.at(e.row), e.value.clone())).collect()
}

fn event(name: &str, values: Vec<Value>) -> Value {
    Value::List(vec![Value::from(name), Value::List(values)])
}

fn list(events: Vec<Value>) -> Value {
    Value::List(events)
}

#[test]
fn properties_are_got_and_set_by_name_in_every_runner() {
    for (name, mut envs) in everywhere(AutoresetMode::NextStep) {
        let envs = &mut *envs;
        assert!(envs.spec().caps.contains(Caps::CALL | Caps::EVENTS), "{name}");
        begin(envs, &[Begin::Own; SLOTS]);
        assert_eq!(ask(envs, 1, &Call::set("gravity", 0.25)).unwrap(), Value::None, "{name}");
        let all = envs.call(&Slots::All, &Call::get("gravity")).unwrap();
        assert_eq!(all, [1.0, 0.25, 1.0].map(Value::from), "{name}");
        // A call of a property gives its value, an int is a float.
        ask(envs, 2, &Call::set("gravity", 2i64)).unwrap();
        assert_eq!(ask(envs, 2, &Call::new("gravity")).unwrap(), Value::from(2.0), "{name}");
        ask(envs, 0, &Call::set("motto", "über alle")).unwrap();
        assert_eq!(ask(envs, 0, &Call::get("motto")).unwrap(), Value::from("über alle"), "{name}");
        for odd in [f64::NAN, f64::INFINITY, -0.0, f64::MIN_POSITIVE] {
            ask(envs, 0, &Call::set("gravity", odd)).unwrap();
            let Value::Float(back) = ask(envs, 0, &Call::get("gravity")).unwrap() else { panic!("{name}") };
            assert_eq!(back.to_bits(), odd.to_bits(), "{name}");
        }
        let list = Call { kind: CallKind::List, ..Call::default() };
        let names = Options::new().with("gravity", true).with("motto", true).with("height", false);
        assert_eq!(ask(envs, 0, &list).unwrap(), Value::Map(names), "{name}");
        // What was set is what is played.
        say(envs, ["aa", "aa", "aa"]);
        let heights = envs.call(&Slots::List(vec![1, 2]), &Call::get("height")).unwrap();
        assert_eq!(heights, [4.75, 3.0].map(Value::from), "{name}");
    }
}

#[test]
fn methods_take_values_of_every_kind_and_give_them_back() {
    for (name, mut envs) in everywhere(AutoresetMode::NextStep) {
        begin(&mut *envs, &[Begin::Own; SLOTS]);
        let kick = Call { args: vec![Value::from(1.5)], ..Call::new("kick") };
        assert_eq!(ask(&mut *envs, 2, &kick).unwrap(), Value::from(4.5), "{name}");
        let array = envcore::Array::new(&[2, 1], &[1u16, 2]).unwrap();
        let inner = Options::new().with("deep", vec![Value::None, Value::Bool(true)]);
        let args = vec![Value::from("é"), Value::from(array), Value::Map(inner.clone()), Value::None];
        let call = Call { args: args.clone(), kwargs: inner.clone(), ..Call::new("repeat") };
        let expected = Value::List(vec![Value::List(args), Value::Map(inner)]);
        assert_eq!(ask(&mut *envs, 0, &call).unwrap(), expected, "{name}");
    }
}

#[test]
fn what_an_env_does_not_know_is_an_error_and_the_env_goes_on() {
    for (name, mut envs) in everywhere(AutoresetMode::NextStep) {
        let envs = &mut *envs;
        begin(envs, &[Begin::Own; SLOTS]);
        let unknown = |error: Result<Value, Error>, text: &str| {
            let error = error.unwrap_err();
            assert!(matches!(error, Error::UnknownName(_)), "{name}: {error}");
            assert!(error.to_string().contains(text), "{name}: {error}");
        };
        unknown(ask(envs, 0, &Call::new("fly")), "there is nothing called 'fly'");
        unknown(ask(envs, 0, &Call::get("fly")), "no property 'fly' (it has gravity, motto, height)");
        unknown(ask(envs, 0, &Call::set("kick", 1.0)), "no property 'kick'");
        let read_only = ask(envs, 0, &Call::set("height", 1.0)).unwrap_err();
        assert!(matches!(read_only, Error::Unsupported(_)), "{name}: {read_only}");
        for (wrong, text) in [
            (Call::set("gravity", "low"), "'gravity': argument 0: \"low\" is no float"),
            (Call::set("motto", 3i64), "'motto': argument 0: 3 is no str"),
            (Call::new("kick"), "'kick' has no argument 0"),
        ] {
            let error = ask(envs, 0, &wrong).unwrap_err();
            assert!(matches!(&error, Error::ArgumentType(_) | Error::Argument(_)), "{name}: {error}");
            assert!(error.to_string().contains(text), "{name}: {error}");
        }
        let many = Call { args: vec![Value::None], ..Call::get("gravity") };
        assert!(refusal(ask(envs, 0, &many)).contains("was given 1 arguments"), "{name}");
        for (fault, text) in [("fail", "a call that fails"), ("panic", "a call that panics")] {
            let Err(Error::Slots(failures)) = ask(envs, 1, &Call::new(fault)) else { panic!("{name}") };
            let failure = &failures[0].failure;
            assert!(failure.message.contains(text), "{name}: {failure}");
            assert_eq!((failures[0].slot, failure.phase), (1, Phase::Call), "{name}");
        }
        assert_eq!(say(envs, ["a", "b", "c"]).len(), SLOTS, "{name}");
    }
}

#[test]
fn an_env_is_drawn_as_text_by_a_call_in_every_runner_once_its_episode_has_begun() {
    for (name, mut envs) in everywhere_of("CliffWalking-v1", AutoresetMode::NextStep) {
        let envs = &mut *envs;
        assert!(envs.spec().caps.contains(Caps::CALL | Caps::ANSI), "{name}");
        let text = refusal(ask(envs, 1, &Call::new(ANSI)));
        assert!(text.contains("env 1 shows nothing"), "{name}: {text}");
        begin(envs, &[Begin::Own; SLOTS]);
        // The second walks up, the others stay at the edge.
        envs.send(&Slots::All, &[ColumnIn::scalars(&[3i64, 0, 3], &[SLOTS])]).unwrap();
        events(envs);
        let texts = envs.call(&Slots::All, &Call::new(ANSI)).unwrap();
        let last_row = |text: &Value| match text {
            Value::Text(text) => text.lines().nth(3).unwrap_or_default().to_string(),
            other => panic!("{name}: {other:?}"),
        };
        let rows: Vec<String> = texts.iter().map(last_row).collect();
        let cliff = "  C".repeat(10);
        assert_eq!(rows, ["x", "o", "x"].map(|start| format!("{start}{cliff}  T")), "{name}");
        let unknown = ask(envs, 0, &Call::new("paint")).unwrap_err();
        assert!(matches!(unknown, Error::UnknownName(_)), "{name}: {unknown}");
    }
}

#[test]
fn events_are_told_of_each_step_and_reset_and_of_no_observation() {
    for (name, mut envs) in everywhere(AutoresetMode::NextStep) {
        let envs = &mut *envs;
        let began = |n: i64| list(vec![event("began", vec![Value::Int(n)])]);
        let all = |value: Value| (0..SLOTS).map(|slot| (slot, value.clone())).collect::<Vec<_>>();
        assert_eq!(begin(envs, &[Begin::Own; SLOTS]), all(began(1)), "{name}");
        assert_eq!(begin(envs, &[Begin::Keep; SLOTS]), [], "{name}");
        let told = say(envs, ["ab", "", "c"]);
        let said =
            |word: &str, height: f64| list(vec![event("said", vec![Value::from(word), Value::from(height)])]);
        assert_eq!(told, [(0, said("ab", 4.0)), (2, said("c", 3.0))], "{name}");
        assert_eq!(say(envs, ["", "", ""]), [], "{name}");
        let landed = list(vec![event("landed", vec![])]);
        assert_eq!(say(envs, ["", "", ""]), [(1, landed.clone())], "{name}");
        // The autoreset's row.
        assert_eq!(say(envs, ["", "", ""])[..], [(1, began(2)), (2, landed)], "{name}");
    }
}

#[test]
fn in_same_step_the_last_events_of_an_episode_are_in_its_final_info() {
    for (name, mut envs) in everywhere(AutoresetMode::SameStep) {
        let envs = &mut *envs;
        begin(envs, &[Begin::Own; SLOTS]);
        for _ in 0..2 {
            say(envs, ["", "", "a"]);
        }
        let words = ["", "", "a"].map(Value::from);
        envs.send(&Slots::All, &[ColumnIn::Values(&words)]).unwrap();
        let batch = envs.recv(Want::all()).unwrap().unwrap();
        let of = |extras: &[envcore::Extra]| {
            let events = extras.iter().filter(|extra| extra.key == EVENTS);
            events.map(|extra| (batch.slots.at(extra.row), extra.value.clone())).collect::<Vec<_>>()
        };
        let rows = of(&batch.infos.extras);
        let began = list(vec![event("began", vec![Value::Int(2)])]);
        assert!(rows.contains(&(0, began.clone())) && rows.contains(&(1, began)), "{name}: {rows:?}");
        let finals = of(&batch.finals.as_ref().unwrap().infos.extras);
        let landed = list(vec![event("landed", vec![])]);
        assert_eq!(finals, [(0, landed.clone()), (1, landed)], "{name}");
    }
}

#[test]
fn words_that_are_no_words_of_the_action_space_move_nothing() {
    for (name, mut envs) in everywhere(AutoresetMode::NextStep) {
        begin(&mut *envs, &[Begin::Own; SLOTS]);
        for wrong in [Value::from("far too long"), Value::from(3i64), Value::None] {
            let words = [Value::from("a"), wrong, Value::from("b")];
            let refused = envs.send(&Slots::All, &[ColumnIn::Values(&words)]);
            assert!(matches!(refused, Err(Error::Action(_))), "{name}: {refused:?}");
        }
        assert_eq!(envs.in_flight(), 0);
    }
}

/// A source of several agents.
struct Many(envcore::SourceSpec);

impl Source for Many {
    fn spec(&self) -> &envcore::SourceSpec {
        &self.0
    }

    fn chunk(&self, _: usize, _: &[i64]) -> envcore::Result<Box<dyn envcore::Chunk>> {
        unreachable!("it is refused before")
    }
}

#[test]
fn envs_of_several_agents_are_refused_by_this_version() {
    let spec = source("CartPole-v1", &Options::new()).spec().clone();
    let many = Many(envcore::SourceSpec { num_agents: 2, ..spec });
    let refused = refusal(Serial::new(&many, config(SLOTS, AutoresetMode::NextStep)));
    assert!(refused.contains("CartPole-v1: 2 agents act in one env"), "{refused}");
}

/// An env whose info is where its events would be.
struct Clash;

impl envcore::Env for Clash {
    type Config = ();
    type Obs = f64;
    type Act = i32;
    type Info = ();
    const CAPS: Caps = Caps::EVENTS;

    fn build(_: &(), _: i64) -> envcore::Result<Self> {
        Ok(Clash)
    }

    fn step(&mut self, a: &i32) -> envcore::Result<(envcore::Step<Self>, envcore::Record)> {
        Ok((envcore::Step::new(*a, 0.0, 0.0, ()), envcore::Record::empty()))
    }

    fn reset(&mut self, _: Option<&Vec<i8>>) -> envcore::Result<f64> {
        Ok(0.0)
    }

    fn reset_with_index(&mut self, _: usize) -> envcore::Result<f64> {
        Ok(0.0)
    }

    fn info_space(_: &()) -> envcore::Result<Space> {
        Ok(Space::of([Leaf::real::<f64>(&[]).named(EVENTS)]))
    }
}

#[test]
fn an_info_in_the_place_of_events_is_an_error_of_the_author() {
    let refused = refusal(EnvSource::<Clash>::new("Clash-v0", ()).map(drop));
    assert!(
        refused.contains("its info or record declares 'events', which Caps(EVENTS) in its CAPS adds"),
        "{refused}"
    );
}
