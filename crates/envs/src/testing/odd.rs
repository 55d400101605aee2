//! An odd source, so that the waist does not fit tidy envs alone: ragged and
//! text leaves both ways, opaque infos, one autoreset mode of its own, no reset
//! after the first, no seed, no index, no saving.
//!
//! Each slot counts up by its `move` and the length of its `word`; at 10 it
//! starts over by itself.

use std::ops::Range;
use std::sync::Arc;

use envcore::{
    Array, AutoresetMode, Begin, Caps, Cause, Chunk, Extra, Failure, Leaf, Options, Phase, ResetArgs, Result,
    RowsMut, Side, Source, SourceSpec, Space, StepArgs, Value,
};

/// Makes odd chunks.
pub struct OddSource {
    spec: SourceSpec,
}

impl OddSource {
    /// The source, called `id`.
    pub fn new(id: &str) -> Self {
        let spec = SourceSpec {
            id: id.into(),
            observation: Space::of([
                Leaf::ragged::<i32>(&[5]).named("items"),
                Leaf::text(64).named("says"),
                Leaf::real::<u8>(&[]).named("count"),
            ]),
            action: Space::of([Leaf::discrete(3).named("move"), Leaf::text(8).named("word")]),
            info: Space::of([Leaf::object().named("thing"), Leaf::text(64).named("last_word")]),
            caps: Caps::SUBSET,
            autoreset: Some(AutoresetMode::SameStep),
            max_episode_steps: None,
            metadata: Options::new(),
            num_agents: 1,
            config: "null".into(),
        };
        OddSource { spec }
    }
}

impl Source for OddSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn chunk(&self, first_slot: usize, seeds: &[i64]) -> Result<Box<dyn Chunk>> {
        Ok(Box::new(OddChunk { first_slot, counts: vec![0; seeds.len()] }))
    }
}

struct OddChunk {
    first_slot: usize,
    counts: Vec<u8>,
}

impl OddChunk {
    fn show(&self, slot: usize, rows: &mut RowsMut<'_>, row: usize) {
        let count = self.counts[slot];
        let mut observation = rows.observation(row);
        observation.ragged(Array::from_slice(&vec![i32::from(count); usize::from(count % 5)]));
        observation.text(format!("slot {} at {count}", self.first_slot + slot));
        observation.scalar(count);
    }
}

impl Chunk for OddChunk {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        for (row, slot) in slots.enumerate().filter(|(_, slot)| !skip[*slot]) {
            let mut action = actions.row(slot);
            let step = action.scalar::<i64>() as u8;
            let Value::Text(word) = action.value() else {
                unreachable!("the waist holds actions to their leaves")
            };
            if word == "fail" {
                side.failures.push((slot, Failure::new(Phase::Step, Cause::Error, "told to fail")));
                continue;
            }
            self.counts[slot] += step + word.len() as u8;
            let over = self.counts[slot] >= 10;
            let reached = self.counts[slot];
            if over {
                self.counts[slot] = 0;
            }
            self.show(slot, rows, row);
            rows.set(row, f64::from(reached), over, false);
            let mut info = rows.info(row);
            info.object(Arc::new(reached));
            if word.is_empty() {
                info.skip()
            } else {
                info.text(word.clone())
            }
            if over {
                let key = "reached".to_string();
                side.extras.push(Extra { row: rows.start() + row, key, value: Value::Int(reached.into()) });
            }
        }
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, _side: &mut Side) {
        for &ResetArgs { slot, row, begin, .. } in resets {
            debug_assert!(matches!(begin, Begin::Own | Begin::Keep));
            self.show(slot, rows, row);
        }
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        Vec::new()
    }
}
