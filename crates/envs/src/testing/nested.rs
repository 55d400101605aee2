//! An env whose spaces are tuples within structs within tuples, and names that
//! hold any character. It counts its steps and shows what was last done.

use envcore::{Env, FromRow, Record, Result, Step, ToRow, wants_reset};
use serde::{Deserialize, Serialize};

/// The observation: the count as a fraction of 100, and what was last done.
#[derive(ToRow)]
pub struct NestedSeen(#[leaf(low = 0.0, high = 1.0)] f32, Last);

/// What was last done.
#[derive(ToRow)]
pub struct Last {
    #[leaf(name = "a.b")]
    choice: i64,
    both: (i16, [f32; 2]),
    nothing: (),
}

/// A push, bounded: a tuple struct of one field is that field.
#[derive(Clone, Copy, Debug, Default, FromRow, Serialize, Deserialize)]
pub struct NestedPush(#[leaf(low = -1.0, high = 1.0)] [f32; 2]);

/// The action: a choice and a push.
#[derive(Clone, Copy, Debug, Default, FromRow, Serialize, Deserialize)]
pub struct NestedAction(Choice, NestedPush);

/// A choice under a name that is no identifier.
#[derive(Clone, Copy, Debug, Default, FromRow, Serialize, Deserialize)]
pub struct Choice {
    #[leaf(name = "left, right? (né)")]
    way: SideWay,
}

/// One of three ways.
#[derive(Clone, Copy, Debug, Default, FromRow, Serialize, Deserialize)]
struct SideWay(#[leaf(low = -1, high = 1, discrete)] i64);

/// The infos: a pair, and a pair within a struct.
#[derive(ToRow)]
pub struct NestedInfo {
    pair: (i32, f64),
    #[leaf(name = "in")]
    inner: Inner,
}

/// A part of the infos.
#[derive(ToRow)]
pub struct Inner {
    one: (u8,),
}

/// The environment; see the module.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Nested {
    count: i16,
    last: NestedAction,
}

impl Nested {
    fn show(&self) -> NestedSeen {
        let NestedAction(choice, push) = self.last;
        let last = Last { choice: choice.way.0, both: (self.count, push.0), nothing: () };
        NestedSeen(f32::from(self.count) / 100.0, last)
    }

    fn tell(&self) -> NestedInfo {
        let count = self.count.into();
        NestedInfo { pair: (count, f64::from(count) / 2.0), inner: Inner { one: (self.count as u8,) } }
    }
}

impl Env for Nested {
    type Config = ();
    type Obs = NestedSeen;
    type Act = NestedAction;
    type Info = NestedInfo;

    fn build(_: &(), _: i64) -> Result<Self> {
        Ok(Nested::default())
    }

    fn step(&mut self, a: &NestedAction) -> Result<(Step<Self>, Record)> {
        self.count += 1;
        self.last = *a;
        let NestedAction(choice, NestedPush(push)) = a;
        let reward = choice.way.0 as f64 + f64::from(push[0]);
        let step = Step::new(*a, self.show(), reward, self.tell());
        Ok((step.terminated_if(self.count == 7), Record::empty()))
    }

    fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<NestedSeen> {
        if wants_reset(is_done)? {
            *self = Nested::default();
        }
        Ok(self.show())
    }

    fn reset_with_index(&mut self, index: usize) -> Result<NestedSeen> {
        *self = Nested { count: (index % 7) as i16, ..Nested::default() };
        Ok(self.show())
    }

    fn info(&self) -> Option<NestedInfo> {
        Some(self.tell())
    }
}
