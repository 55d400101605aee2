//! Steps of many envs at a time, in vector registers, with the bits of the envs' own.
//!
//! An env's kernel steps a block of neighbours by loops over arrays. The sines, cosines and squares
//! in it are those of [`envcore::sines`], which have the bits of this machine's C library. Where
//! they have not, and for a few envs, the envs step themselves.

use std::ops::Range;

use envcore::simd::{self, Kernel};
use envcore::sines::{FAR, SinesForm};
use envcore::{Element, RowsMut, StepArgs, StepColumns};

/// Envs of one block: enough to fill registers, and so few that what one loop leaves for the next
/// is still at hand.
pub const BLOCK: usize = 64;
/// Fewer envs than these are stepped one by one, which is quicker than a block.
pub const FEW: usize = 16;

/// Envs that can be stepped by blocks: `N` numbers each, and observations of `O` numbers.
pub trait Lanes<const N: usize, const O: usize>: Copy {
    /// The type of the action, which is one number.
    type Action: Element + Default;

    /// Numbers that one loop of a step leaves for the next. They are made once for all blocks, and
    /// hold what the last block left there.
    type Between: Default;

    /// Steps a block. Gives false where the envs must step themselves; then no field has changed.
    fn step<const FUSED: bool>(
        &self,
        block: EnvBlock<'_, Self::Action, N, O>,
        between: &mut Self::Between,
    ) -> bool;
}

/// `K` numbers for each env of a block.
#[repr(align(64))]
pub struct Numbers<const K: usize, T = f64>(pub [[T; BLOCK]; K]);

impl<const K: usize, T: Copy + Default> Default for Numbers<K, T> {
    fn default() -> Self {
        Numbers([[T::default(); BLOCK]; K])
    }
}

/// What a step of one block reads and writes.
pub struct EnvBlock<'a, A, const N: usize, const O: usize> {
    /// The envs' numbers.
    pub fields: [&'a mut [f64; BLOCK]; N],
    /// The actions.
    pub actions: &'a [A; BLOCK],
    /// The observations.
    pub observation: &'a mut [[f32; O]; BLOCK],
    /// The rewards.
    pub reward: &'a mut [f64; BLOCK],
    /// Whose episodes ended.
    pub terminated: &'a mut [bool; BLOCK],
    /// What the next block and the next step write.
    pub ahead: Ahead<O>,
}

/// Memory that blocks write to soon and that no near cache has.
#[derive(Clone, Copy)]
pub struct Ahead<const O: usize>(Option<AheadPlaces>);

#[derive(Clone, Copy)]
struct AheadPlaces {
    /// The observations and rewards of the next block.
    observation: *const u8,
    reward: *const u8,
    /// The block's flags and kinds in the next step.
    flags: [*const u8; 3],
}

impl<const O: usize> Ahead<O> {
    /// How many parts there are.
    pub const PARTS: usize = 4;

    /// Asks for part `PART` of this memory, from 0 on. An env's kernel asks between its loops: a CPU that
    /// is asked for more lines than it can have under way waits for them (24 on a Zen 4).
    #[inline(always)]
    pub fn fetch<const PART: usize>(self) {
        let Some(places) = self.0 else { return };
        fetch_part::<PART>(places.observation, BLOCK * O * size_of::<f32>());
        fetch_part::<PART>(places.reward, BLOCK * size_of::<f64>());
        if let Some(flags) = places.flags.get(PART) {
            simd::prefetch_line(*flags);
        }
    }
}

/// Asks for a part of `bytes` bytes.
#[inline(always)]
fn fetch_part<const PART: usize>(first: *const u8, bytes: usize) {
    for line in lines_of::<PART>(bytes) {
        simd::prefetch_line(first.wrapping_add(line * simd::LINE));
    }
}

/// The lines of a part of `bytes` bytes.
#[inline(always)]
fn lines_of<const PART: usize>(bytes: usize) -> Range<usize> {
    let lines = bytes / simd::LINE / Ahead::<0>::PARTS;
    PART * lines..(PART + 1) * lines
}

/// Any number of envs, an element each of every slice, and what a step of them writes.
pub struct Columns<'a, L: Lanes<N, O>, const N: usize, const O: usize, const FUSED: bool> {
    /// What all envs have in common.
    pub lanes: L,
    /// The envs' numbers.
    pub fields: [&'a mut [f64]; N],
    /// The actions.
    pub actions: &'a [L::Action],
    /// The observations, `O` elements an env.
    pub observation: &'a mut [f32],
    /// The rewards.
    pub reward: &'a mut [f64],
    /// Whose episodes ended.
    pub terminated: &'a mut [bool],
    /// Made false.
    pub truncated: &'a mut [bool],
    /// Gets those that must step themselves.
    pub left: &'a mut Vec<Range<usize>>,
    /// The rows' [`RowsMut::next_flags`].
    pub next_flags: Option<[*const u8; 3]>,
}

impl<L: Lanes<N, O>, const N: usize, const O: usize, const FUSED: bool> Kernel
    for Columns<'_, L, N, O, FUSED>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.actions.len();
        if n < FEW {
            return self.left.push(0..n);
        }
        let mut fields = self.fields.map(|field| field[..n].as_chunks_mut::<BLOCK>());
        let actions = self.actions.as_chunks::<BLOCK>();
        let observation = self.observation.as_chunks_mut::<O>().0[..n].as_chunks_mut::<BLOCK>();
        let reward = self.reward[..n].as_chunks_mut::<BLOCK>();
        let terminated = self.terminated[..n].as_chunks_mut::<BLOCK>();
        let truncated = self.truncated[..n].as_chunks_mut::<BLOCK>();
        truncated.1.fill(false);
        let mut between = L::Between::default();
        for i in 0..n / BLOCK {
            truncated.0[i].fill(false);
            let ahead = Ahead(self.next_flags.map(|flags| AheadPlaces {
                // Behind the last block there may be nothing, which does no harm.
                observation: observation.0.as_ptr().wrapping_add(i + 1).cast(),
                reward: reward.0.as_ptr().wrapping_add(i + 1).cast(),
                flags: flags.map(|flags| flags.wrapping_add(i * BLOCK)),
            }));
            let block = EnvBlock {
                fields: fields.each_mut().map(|field| &mut field.0[i]),
                actions: &actions.0[i],
                observation: &mut observation.0[i],
                reward: &mut reward.0[i],
                terminated: &mut terminated.0[i],
                ahead,
            };
            if !self.lanes.step::<FUSED>(block, &mut between) {
                self.left.push(i * BLOCK..(i + 1) * BLOCK);
            }
        }
        let rest = n % BLOCK;
        if rest == 0 {
            return;
        }
        if rest < FEW {
            return self.left.push(n - rest..n);
        }
        // What is left is made a whole block: its loops are of a known length.
        let mut padded = [[0.0; BLOCK]; N];
        padded.iter_mut().zip(&fields).for_each(|(to, from)| to[..rest].copy_from_slice(from.1));
        let mut played = [L::Action::default(); BLOCK];
        played[..rest].copy_from_slice(actions.1);
        let (mut seen, mut gained, mut ended) = ([[0.0; O]; BLOCK], [0.0; BLOCK], [false; BLOCK]);
        let block = EnvBlock {
            fields: padded.each_mut(),
            actions: &played,
            observation: &mut seen,
            reward: &mut gained,
            terminated: &mut ended,
            ahead: Ahead(None),
        };
        if !self.lanes.step::<FUSED>(block, &mut between) {
            return self.left.push(n - rest..n);
        }
        fields.into_iter().zip(&padded).for_each(|(to, from)| to.1.copy_from_slice(&from[..rest]));
        observation.1.copy_from_slice(&seen[..rest]);
        reward.1.copy_from_slice(&gained[..rest]);
        terminated.1.copy_from_slice(&ended[..rest]);
    }
}

/// The functions of a C library.
#[derive(Clone, Copy)]
pub(super) struct MathLibrary {
    pub(super) sin: fn(f64) -> f64,
    pub(super) cos: fn(f64) -> f64,
}

impl MathLibrary {
    /// This machine's.
    pub(super) const HERE: Self = MathLibrary { sin: f64::sin, cos: f64::cos };
}

/// Whether blocks have the bits of the envs' own steps in this process.
pub(super) fn are_exact() -> bool {
    SinesForm::in_use() != SinesForm::Other
}

/// Whether the formulas hold for all of these angles.
#[inline(always)]
pub(super) fn are_near(angles: &[f64; BLOCK], limit: f64) -> bool {
    debug_assert!(limit <= FAR);
    // Written so that a NaN is far.
    angles.iter().fold(true, |near, angle| near & (angle.abs() < limit))
}

/// Shows two state variables, and as ended where `ended` is not 0. Loops of their own: what narrow elements
/// need would slow down a loop of wide ones.
#[inline(always)]
pub(super) fn show_two(
    [first, second]: [&[f64; BLOCK]; 2],
    ended: &[f64; BLOCK],
    observation: &mut [[f32; 2]; BLOCK],
    terminated: &mut [bool; BLOCK],
) {
    for i in 0..BLOCK {
        observation[i] = [first[i] as f32, second[i] as f32];
    }
    for i in 0..BLOCK {
        terminated[i] = ended[i] != 0.0;
    }
}

/// Plays the actions of `slots`, as [`envcore::ByField::step_fields`] says.
pub(super) fn step<L: Lanes<N, O>, const N: usize, const O: usize>(
    lanes: L,
    fields: [&mut [f64]; N],
    slots: Range<usize>,
    actions: StepArgs<'_>,
    rows: &mut RowsMut<'_>,
    left: &mut Vec<Range<usize>>,
) {
    match SinesForm::in_use() {
        SinesForm::Plain => step_by::<L, N, O, false>(lanes, fields, slots, actions, rows, left),
        _ => step_by::<L, N, O, true>(lanes, fields, slots, actions, rows, left),
    }
}

fn step_by<L: Lanes<N, O>, const N: usize, const O: usize, const FUSED: bool>(
    lanes: L,
    fields: [&mut [f64]; N],
    slots: Range<usize>,
    actions: StepArgs<'_>,
    rows: &mut RowsMut<'_>,
    left: &mut Vec<Range<usize>>,
) {
    let next_flags = rows.next_flags();
    let StepColumns { reward, terminated, truncated, mut observation } = rows.columns();
    simd::dispatch_wide(Columns::<L, N, O, FUSED> {
        lanes,
        fields,
        actions: actions.leaf(0, slots),
        observation: observation.leaf(0),
        reward,
        terminated,
        truncated,
        left,
        next_flags,
    });
}

/// A block stepped by the formulas with and without fused multiply-adds, beside envs that step
/// themselves with a C library's functions.
#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use envcore::sines::{cos, sin};

    #[test]
    fn the_parts_of_what_is_fetched_ahead_are_all_of_it() {
        // Rewards, and observations of one to six numbers.
        let sizes = (1..=6).map(|numbers| BLOCK * numbers * size_of::<f32>());
        for bytes in sizes.chain([BLOCK * size_of::<f64>()]) {
            let parts =
                [lines_of::<0>(bytes), lines_of::<1>(bytes), lines_of::<2>(bytes), lines_of::<3>(bytes)];
            assert_eq!(parts.len(), Ahead::<1>::PARTS);
            let lines: Vec<usize> = parts.into_iter().flatten().collect();
            assert_eq!(lines, (0..bytes / simd::LINE).collect::<Vec<_>>());
        }
    }

    /// Numbers, observation, reward and whether the episode ended.
    pub(in crate::classic) type Stepped<const N: usize, const O: usize> = ([f64; N], [f32; O], f64, bool);

    /// Compares a step of `states` under `actions`. `alone` steps one env with a library. Returns whether
    /// any were left to step themselves.
    pub(in crate::classic) fn compare<L: Lanes<N, O>, const N: usize, const O: usize>(
        lanes: L,
        states: &[[f64; N]],
        actions: &[L::Action],
        alone: impl Fn([f64; N], L::Action, MathLibrary) -> Stepped<N, O>,
    ) -> bool {
        let any = compare_form::<L, N, O, true>(lanes, states, actions, |state, action| {
            alone(state, action, MathLibrary { sin: sin::<true>, cos: cos::<true> })
        });
        any | compare_form::<L, N, O, false>(lanes, states, actions, |state, action| {
            alone(state, action, MathLibrary { sin: sin::<false>, cos: cos::<false> })
        })
    }

    fn compare_form<L: Lanes<N, O>, const N: usize, const O: usize, const FUSED: bool>(
        lanes: L,
        states: &[[f64; N]],
        actions: &[L::Action],
        alone: impl Fn([f64; N], L::Action) -> Stepped<N, O>,
    ) -> bool {
        let n = states.len();
        let mut fields: [Vec<f64>; N] =
            std::array::from_fn(|k| states.iter().map(|state| state[k]).collect());
        let (mut observation, mut reward) = (vec![[0.0; O]; n], vec![0.0; n]);
        let (mut terminated, mut truncated, mut left) = (vec![false; n], vec![true; n], Vec::new());
        simd::dispatch_wide(Columns::<L, N, O, FUSED> {
            lanes,
            fields: fields.each_mut().map(|field| &mut field[..]),
            actions,
            observation: observation.as_flattened_mut(),
            reward: &mut reward,
            terminated: &mut terminated,
            truncated: &mut truncated,
            left: &mut left,
            next_flags: n.is_multiple_of(2).then_some([std::ptr::null(); 3]),
        });
        assert_eq!(truncated, vec![false; n]);
        for i in 0..n {
            let after: [f64; N] = std::array::from_fn(|k| fields[k][i]);
            if left.iter().any(|range| range.contains(&i)) {
                assert_eq!(after, states[i], "what is left has not changed");
                continue;
            }
            let (state, seen, gained, ended) = alone(states[i], actions[i]);
            let about = format!("fused: {FUSED}, {:?} {}", states[i], i);
            assert_eq!(after.map(f64::to_bits), state.map(f64::to_bits), "{about}: {after:?} {state:?}");
            assert_eq!(observation[i].map(f32::to_bits), seen.map(f32::to_bits), "{about}: observation");
            assert_eq!(reward[i].to_bits(), gained.to_bits(), "{about}: reward");
            assert_eq!(terminated[i], ended, "{about}: terminated");
        }
        !left.is_empty()
    }
}
