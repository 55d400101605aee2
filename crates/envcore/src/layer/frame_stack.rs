//! The last k observations of a slot as one observation.
//!
//! Each leaf `[…shape]` becomes `[k, …shape]`, with the oldest frame first. At the
//! beginning of an episode all k frames are its first observation, as in Gymnasium's
//! `FrameStackObservation` with `padding_type="reset"`.
//!
//! Each of a slot's last k frames is stored once, in a ring. A step copies one frame
//! into the ring over the oldest, and k frames from the ring into the batch, in at
//! most two pieces per leaf and row. The first frame of an episode is copied into the
//! ring k times. The rings hold `num_slots · k` frames beside the batches. A batch has
//! k frames a row, because an array `[rows, k, …]` cannot show a ring without a copy.
//! Python's `lazy_frames` is for those who keep whole rollouts and want each frame
//! once.

use serde::{Deserialize, Serialize};

use crate::buffer::{Batch, Column, Fixed, check_room};
use crate::error::{Error, Result};
use crate::layer::{Layer, Shows, Transform, rows_of};
use crate::space::{Bounds, DType, Leaf, LeafKind, Tensor};
use crate::vec_config::{AutoresetMode, MAX_FRAMES};
use crate::vec_env::{Spec, VecEnv};

/// One leaf's frames: `[slots, k, frame]`.
struct FrameRing {
    dtype: DType,
    frame_bytes: usize,
    bytes: Vec<u8>,
}

/// Stacks each slot's last k observations; see the module.
pub struct FrameStack {
    k: usize,
    mode: AutoresetMode,
    rings: Vec<FrameRing>,
    /// By slot: the ring's place of the oldest frame, which the next frame overwrites.
    heads: Vec<usize>,
    /// By slot: whether the ring holds an episode's frames.
    begun: Vec<bool>,
}

/// A slot's frames.
#[derive(Serialize, Deserialize)]
pub struct SavedFrames {
    /// The frames of each leaf, oldest first; none where no episode has begun.
    leaves: Option<Vec<Vec<u8>>>,
}

impl FrameStack {
    /// Stacks the last `k` observations of `envs`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a `k` of zero or more frames than memory could hold;
    /// [`Error::Unsupported`] for leaves that are not of fixed shape.
    pub fn over(envs: Box<dyn VecEnv>, k: usize) -> Result<Layer<Self>> {
        if !(1..=MAX_FRAMES).contains(&k) {
            return Err(Error::Argument(format!(
                "frame_stack is {k}: it must be at least 1 and at most {MAX_FRAMES}"
            )));
        }
        let spec = envs.spec();
        let mut rings = Vec::new();
        let mut total = 0usize;
        for leaf in spec.observation.leaves() {
            let Some(tensor) = leaf.as_fixed() else {
                return Err(Error::Unsupported(format!(
                    "{}: leaf '{}' of the observation is not of fixed shape: its frames cannot be stacked",
                    spec.id, leaf.name
                )));
            };
            let frame_bytes = tensor.row_bytes();
            let size = spec.num_slots.checked_mul(k).and_then(|frames| frames.checked_mul(frame_bytes));
            let too_large = || Error::Argument(format!("frame_stack is {k}: so many frames fit no memory"));
            let size = size.filter(|&size| size <= isize::MAX as usize / 2).ok_or_else(too_large)?;
            total = total.saturating_add(size);
            // A batch has as many bytes as the ring, and the bounds of its space have twice as many.
            check_room(total.saturating_mul(4)).map_err(|_| too_large())?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(size).map_err(|_| Error::Memory(size))?;
            bytes.resize(size, 0);
            rings.push(FrameRing { dtype: tensor.dtype, frame_bytes, bytes });
        }
        let n = spec.num_slots;
        let mode = spec.autoreset;
        Layer::new(envs, FrameStack { k, mode, rings, heads: vec![0; n], begun: vec![false; n] })
    }

    fn range(&self, leaf: usize, slot: usize) -> std::ops::Range<usize> {
        let block = self.k * self.rings[leaf].frame_bytes;
        slot * block..(slot + 1) * block
    }

    /// Adds row `row` of `columns` as the next of `slot`'s frames.
    fn push(&mut self, slot: usize, columns: &[Column], row: usize, first: bool) {
        let head = self.heads[slot];
        let first = first || !self.begun[slot];
        for (k, column) in columns.iter().enumerate() {
            let n = self.rings[k].frame_bytes;
            let frame = &fixed(column).bytes()[row * n..(row + 1) * n];
            let range = self.range(k, slot);
            let ring = &mut self.rings[k].bytes[range];
            if first {
                (0..self.k).for_each(|place| ring[place * n..(place + 1) * n].copy_from_slice(frame));
            } else {
                ring[head * n..(head + 1) * n].copy_from_slice(frame);
            }
        }
        self.begun[slot] = true;
        self.heads[slot] = if first { 0 } else { (head + 1) % self.k };
    }

    /// Writes `slot`'s frames to row `row`, oldest first.
    fn show(&self, slot: usize, fresh: &mut [Option<Fixed>], row: usize) {
        for (k, to) in fresh.iter_mut().enumerate() {
            let Some(to) = to else { continue };
            let ring = &self.rings[k].bytes[self.range(k, slot)];
            let (newer, older) = ring.split_at(self.heads[slot] * self.rings[k].frame_bytes);
            to.put_bytes(row, 0, older);
            to.put_bytes(row, older.len(), newer);
        }
    }
}

fn fixed(column: &Column) -> &Fixed {
    column.as_fixed().expect("`over` refused leaves that are not of fixed shape")
}

fn clear(fresh: &mut [Option<Fixed>], row: usize) {
    fresh.iter_mut().flatten().for_each(|column| column.clear_row(row));
}

/// `tensor` with `k` frames along a new first axis.
fn stacked(tensor: &Tensor, k: usize) -> Tensor {
    let shape = [&[k], tensor.shape.as_slice()].concat();
    let bounds = match tensor.bounds.is_uniform() {
        true => tensor.bounds.clone(),
        false => {
            let all = (0..tensor.elements()).map(|element| tensor.bounds.at(element));
            let (low, high): (Vec<_>, Vec<_>) = all.unzip();
            Bounds { low: low.repeat(k), high: high.repeat(k) }
        }
    };
    Tensor { shape, bounds, ..tensor.clone() }
}

impl Transform for FrameStack {
    type Slot = SavedFrames;
    type Shared = ();

    fn describe(&self) -> String {
        format!("frame_stack={}", self.k)
    }

    fn spec(&self, spec: &Spec) -> Spec {
        let stack = |leaf: &Leaf| Leaf {
            kind: match &leaf.kind {
                LeafKind::Fixed(tensor) => LeafKind::Fixed(stacked(tensor, self.k)),
                other => other.clone(),
            },
            ..leaf.clone()
        };
        Spec { observation: spec.observation.map(stack), ..spec.clone() }
    }

    fn apply(&mut self, batch: &mut Batch, fresh: &mut [Option<Fixed>], fresh_finals: &mut [Option<Fixed>]) {
        // A stack of one frame is the batch's own row.
        if self.k == 1 {
            return;
        }
        let batch = &*batch;
        for (row, of) in rows_of(batch, self.mode).enumerate() {
            if let Some(finals) = &batch.finals
                && finals.ended.as_slice::<bool>()[row]
            {
                if of.has_last {
                    self.push(of.slot, &finals.observation, row, false);
                    self.show(of.slot, fresh_finals, row);
                } else {
                    clear(fresh_finals, row);
                }
            }
            match of.shows {
                Shows::First => self.push(of.slot, &batch.observation, row, true),
                Shows::Next => self.push(of.slot, &batch.observation, row, false),
                Shows::Again if !self.begun[of.slot] => self.push(of.slot, &batch.observation, row, true),
                Shows::Again => {}
                Shows::Nothing => {
                    self.begun[of.slot] = false;
                    clear(fresh, row);
                    continue;
                }
            }
            self.show(of.slot, fresh, row);
        }
    }

    fn slot(&self, slot: usize) -> SavedFrames {
        let frames = |(k, ring): (usize, &FrameRing)| {
            let (newer, older) =
                ring.bytes[self.range(k, slot)].split_at(self.heads[slot] * ring.frame_bytes);
            [older, newer].concat()
        };
        let begun = self.begun[slot];
        SavedFrames { leaves: begun.then(|| self.rings.iter().enumerate().map(frames).collect()) }
    }

    fn check_slot(&self, saved: &SavedFrames) -> Result<()> {
        let Some(leaves) = &saved.leaves else { return Ok(()) };
        let fits = |(ring, bytes): (&FrameRing, &Vec<u8>)| {
            let is_bool = ring.dtype == DType::Bool;
            bytes.len() == self.k * ring.frame_bytes && !(is_bool && bytes.iter().any(|byte| *byte > 1))
        };
        if leaves.len() != self.rings.len() || !self.rings.iter().zip(leaves).all(fits) {
            return Err(Error::State("the frames in this state are of other leaves".into()));
        }
        Ok(())
    }

    fn set_slot(&mut self, slot: usize, saved: SavedFrames) {
        self.heads[slot] = 0;
        self.begun[slot] = saved.leaves.is_some();
        for (k, frames) in saved.leaves.into_iter().flatten().enumerate() {
            let range = self.range(k, slot);
            self.rings[k].bytes[range].copy_from_slice(&frames);
        }
    }

    fn shared(&self) {}

    fn check_shared(&self, (): &()) -> Result<()> {
        Ok(())
    }

    fn set_shared(&mut self, (): ()) {}
}
