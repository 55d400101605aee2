//! An env that is told words, answers calls by name and tells of events.
//!
//! A ball is at a height. Each letter of a word lifts it by 1, and gravity lowers
//! it once a step; on the ground the episode ends.

use envcore::{
    Call, Caps, Config, Env, Error, Event, Leaf, Property, Record, Result, Space, Step, Value, state,
    wants_reset,
};
use serde::{Deserialize, Serialize};

/// Its options.
#[derive(Clone, Config)]
pub struct CallerConfig {
    /// How far the ball falls in a step.
    pub gravity: f64,
}

impl Default for CallerConfig {
    fn default() -> Self {
        CallerConfig { gravity: 1.0 }
    }
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct Caller {
    gravity: f64,
    height: f64,
    motto: String,
    began: i64,
    /// What happened in this call.
    said: Option<String>,
    is_begun: bool,
}

impl Env for Caller {
    type Config = CallerConfig;
    /// The height.
    type Obs = f64;
    /// A word of up to eight letters.
    type Act = String;
    type Info = ();

    const CAPS: Caps = Caps::SAVE.union(Caps::CALL).union(Caps::EVENTS);

    fn build(config: &CallerConfig, _: i64) -> Result<Self> {
        let motto = "up".to_string();
        let gravity = config.gravity;
        Ok(Caller { gravity, height: 3.0, motto, began: 0, said: None, is_begun: false })
    }

    fn step(&mut self, a: &String) -> Result<(Step<Self>, Record)> {
        self.height += a.chars().count() as f64 - self.gravity;
        self.said = (!a.is_empty()).then(|| a.clone());
        self.is_begun = false;
        let step = Step::new(a.clone(), self.height, 1.0, ()).terminated_if(self.height <= 0.0);
        Ok((step, Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<f64> {
        if wants_reset(is_done)? {
            (self.height, self.said, self.is_begun) = (3.0, None, true);
            self.began += 1;
        }
        Ok(self.height)
    }

    fn reset_with_index(&mut self, ix: usize) -> Result<f64> {
        self.reset(None)?;
        self.height += ix as f64;
        Ok(self.height)
    }

    fn action_space(_: &CallerConfig) -> Result<Space> {
        Ok(Leaf::text(8).into())
    }

    fn events(&mut self) -> Vec<Event> {
        let began = self.is_begun.then(|| Event::new("began").with(self.began));
        let said = self.said.take().map(|word| Event::new("said").with(word.as_str()).with(self.height));
        let landed = (self.height <= 0.0).then(|| Event::new("landed"));
        began.into_iter().chain(said).chain(landed).collect()
    }

    fn properties(_: &CallerConfig) -> Vec<Property> {
        vec![Property::writable("gravity"), Property::writable("motto"), Property::read_only("height")]
    }

    fn call(&mut self, call: &Call) -> Result<Value> {
        match call.name.as_str() {
            "gravity" => call.property(&mut self.gravity),
            "motto" => call.property(&mut self.motto),
            "height" => call.property(&mut self.height),
            "kick" => {
                self.height += call.arg::<f64>(0)?;
                Ok(Value::from(self.height))
            }
            "repeat" => {
                Ok(Value::List(vec![Value::List(call.args.clone()), Value::Map(call.kwargs.clone())]))
            }
            "fail" => Err(Error::env("a call that fails")),
            "panic" => panic!("a call that panics"),
            _ => Err(call.unknown()),
        }
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::to_bytes(self)
    }

    fn load(&mut self, bytes: &[u8]) -> Result<()> {
        *self = state::from_bytes(bytes)?;
        Ok(())
    }
}
