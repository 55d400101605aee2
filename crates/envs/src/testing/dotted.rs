//! An env whose names have dots: letters in some, levels in others. It counts
//! its steps, and ends an episode after five.

use envcore::{Env, FromRow, Leaf, Record, Result, Space, Step, ToRow, wants_reset};
use serde::{Deserialize, Serialize};

/// The names of its observation, in order; only in the last the dot
/// separates two levels.
pub const SEEN: [&str; 4] = ["a", "a.b", "a.", "in.side"];

/// What it shows, each times ten to the power of its place.
#[derive(ToRow)]
pub struct DottedSeen {
    one: f32,
    ten: [f32; 2],
    hundred: i32,
    thousand: f32,
}

/// What it takes: `a.b` and `a`, of which the reward is 10 times the one and the
/// other.
#[derive(Clone, FromRow)]
pub struct DottedAction {
    tens: i32,
    ones: f32,
}

/// The environment; see the module.
#[derive(Clone, Serialize, Deserialize)]
pub struct Dotted {
    count: i32,
}

impl Dotted {
    fn show(&self) -> DottedSeen {
        let n = self.count as f32;
        DottedSeen { one: n, ten: [10.0 * n; 2], hundred: 100 * self.count, thousand: 1000.0 * n }
    }
}

impl Env for Dotted {
    type Config = ();
    type Obs = DottedSeen;
    type Act = DottedAction;
    /// The count, under `x.`.
    type Info = i32;

    fn build(_: &(), _: i64) -> Result<Self> {
        Ok(Dotted { count: 0 })
    }

    fn step(&mut self, a: &DottedAction) -> Result<(Step<Self>, Record)> {
        self.count += 1;
        let reward = f64::from(10 * a.tens) + f64::from(a.ones);
        let step = Step::new(a.clone(), self.show(), reward, self.count);
        Ok((step.terminated_if(self.count == 5), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<DottedSeen> {
        if wants_reset(is_done)? {
            self.count = 0;
        }
        Ok(self.show())
    }

    fn reset_with_index(&mut self, _: usize) -> Result<DottedSeen> {
        self.reset(None)
    }

    fn observation_space(_: &()) -> Result<Space> {
        let [one, ten, hundred, thousand] = SEEN;
        Space::dict([
            (one, Leaf::real::<f32>(&[]).into()),
            (ten, Leaf::real::<f32>(&[2]).into()),
            (hundred, Leaf::labels::<i32>(&[], 0, 1000).into()),
        ])
        .join(Leaf::real::<f32>(&[]).named(thousand).into())
    }

    fn action_space(_: &()) -> Result<Space> {
        Ok(Space::dict([
            ("a.b", Leaf::labels::<i32>(&[], 0, 3).into()),
            ("a", Leaf::real::<f32>(&[]).bounded(-1.0, 1.0).into()),
        ]))
    }

    fn info_space(_: &()) -> Result<Space> {
        Ok(Leaf::real::<i32>(&[]).named("x.").into())
    }

    fn info(&self) -> Option<i32> {
        Some(self.count)
    }
}
