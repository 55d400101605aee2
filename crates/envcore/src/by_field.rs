//! Envs whose state is stored by field, so that one loop steps many of them in vector
//! registers: [`ByField`], and the chunk of such envs.
//!
//! All but the step is done by the envs themselves, one slot at a time. A slot's numbers
//! are put back into its env before the env is observed, saved or drawn, and taken from
//! it after a reset or a load. So seeds, indices, options and states are those of the
//! env, and the kernel is one function over columns.
//!
//! Above 400 lines because an env with a kernel, whole, is the example in the docs.

use std::ops::Range;

use crate::begin::Begin;
use crate::buffer::RowsMut;
use crate::call::Call;
use crate::caps::Caps;
use crate::env::Env;
use crate::env_list::EnvList;
use crate::env_source::EnvSource;
use crate::error::{Error, Failure, Phase, Result};
use crate::frame::Frame;
use crate::guard::guard;
use crate::source::{Chunk, ResetArgs, Side, StepArgs};
use crate::space::{Options, Value};

/// An env whose state, apart from its random streams and options, is `N` numbers. Every
/// reset sets all of them, whatever they were before.
///
/// [`EnvSource::by_field`] steps such envs by columns.
///
/// ```
/// use std::ops::Range;
///
/// use envcore::simd::{Kernel, dispatch};
/// use envcore::{
///     ByField, Discrete, Env, EnvSource, Record, Result, RowsMut, Step, StepColumns, StepArgs, wants_reset,
/// };
///
/// /// Walks left or right until it is 5 away from where it began.
/// struct Walk {
///     x: f64,
/// }
///
/// /// What a step reads and writes, with an element per walker.
/// struct Steps<'a> {
///     x: &'a mut [f64],
///     actions: &'a [i64],
///     seen: &'a mut [f64],
///     out: &'a mut [bool],
/// }
///
/// impl Kernel for Steps<'_> {
///     type Output = ();
///     #[inline(always)]
///     fn run(self) {
///         let walkers = self.x.iter_mut().zip(self.actions).zip(self.seen.iter_mut().zip(self.out));
///         for ((x, action), (seen, out)) in walkers {
///             *x += 2.0 * *action as f64 - 1.0;
///             (*seen, *out) = (*x, x.abs() >= 5.0);
///         }
///     }
/// }
///
/// impl ByField<1> for Walk {
///     fn is_wanted(_config: &()) -> bool {
///         true
///     }
///     fn fields(&self) -> [f64; 1] {
///         [self.x]
///     }
///     fn set_fields(&mut self, [x]: [f64; 1]) {
///         self.x = x;
///     }
///     fn step_fields(
///         _config: &(),
///         [x]: [&mut [f64]; 1],
///         slots: Range<usize>,
///         actions: StepArgs<'_>,
///         rows: &mut RowsMut<'_>,
///         _left: &mut Vec<Range<usize>>,
///     ) {
///         let StepColumns { reward, terminated, truncated, mut observation } = rows.columns();
///         (reward.fill(-1.0), truncated.fill(false));
///         let actions = actions.leaf(0, slots);
///         dispatch(Steps { x, actions, seen: observation.leaf(0), out: terminated });
///     }
/// }
///
/// impl Env for Walk {
///     type Config = ();
///     type Obs = f64;
///     type Act = Discrete<2>;
///     type Info = ();
///     fn build(_config: &(), _seed: i64) -> Result<Self> {
///         Ok(Walk { x: 0.0 })
///     }
///     fn step(&mut self, a: &Discrete<2>) -> Result<(Step<Self>, Record)> {
///         self.x += 2.0 * a.0 as f64 - 1.0;
///         let step = Step::new(*a, self.x, -1.0, ()).terminated_if(self.x.abs() >= 5.0);
///         Ok((step, Record::empty()))
///     }
///     fn reset(&mut self, is_done: Option<&Vec<i8>>) -> Result<f64> {
///         if wants_reset(is_done)? {
///             self.x = 0.0;
///         }
///         Ok(self.x)
///     }
///     fn reset_with_index(&mut self, _ix: usize) -> Result<f64> {
///         self.reset(None)
///     }
/// }
///
/// let source = EnvSource::<Walk>::new("Walk-v0", ())?.by_field();
/// # let _ = source;
/// # Ok::<(), envcore::Error>(())
/// ```
pub trait ByField<const N: usize>: Env {
    /// Chunks of fewer envs are stepped one by one, because a kernel is slower there.
    const FEWEST: usize = 1;

    /// The field that gets a random number before each step, from [`draw`](Self::draw) of each env that
    /// plays an action; `None` for a kernel without chance. A kernel with draws leaves no rows to
    /// [`Env::step`], which would draw again.
    const DRAWS: Option<usize> = None;

    /// Whether the kernel writes the action masks of envs that have some
    /// ([`Caps::ACTION_MASK`](crate::Caps::ACTION_MASK)): the leaf of [`i8`] after the env's
    /// other infos.
    const WRITES_MASKS: bool = false;

    /// Whether envs of `config` are stepped by columns; others are stepped one by one. A kernel
    /// whose bytes are those of [`Env::step`] may say yes wherever it can run.
    fn is_wanted(config: &Self::Config) -> bool;

    /// The env's numbers.
    fn fields(&self) -> [f64; N];

    /// Sets the env's numbers.
    fn set_fields(&mut self, fields: [f64; N]);

    /// What one step takes from the env's random stream. Envs whose kernel has
    /// [`DRAWS`](Self::DRAWS) define this function.
    fn draw(&mut self) -> f64 {
        panic!("ByField::DRAWS is set for {}, which defines no `draw`", std::any::type_name::<Self>())
    }

    /// Plays the actions of `slots`, whose numbers are `fields`: one slice per field, with
    /// an element per slot. Row i of `rows` belongs to the i-th slot and gets observation,
    /// reward, both flags, and all infos of envs that have some. Slots that await a reset are
    /// stepped like all others, with an action that may be any bytes; the result is replaced.
    /// After a panic all of `slots` are lost.
    ///
    /// A kernel may leave rows to [`Env::step`]: it adds them to `left`, in ascending order, and
    /// does not change their numbers. A kernel does so where its formulas do not hold, where a step
    /// is an error, or where the rows are too few to be worth a loop.
    fn step_fields(
        config: &Self::Config,
        fields: [&mut [f64]; N],
        slots: Range<usize>,
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        left: &mut Vec<Range<usize>>,
    );
}

/// The state of many envs, field by field.
///
/// The distance between two fields is no multiple of 4 KiB. A CPU that compares
/// addresses by their last 12 bits would else take the load of one field for the store
/// of another. Measured: a step of 4,096 CartPoles takes 13.5 µs, and 20.1 µs where each
/// field is a `Vec`. The first number of each field begins a cache line, so that no wide load
/// or store touches two lines.
pub struct Fields<const N: usize> {
    /// Never grows, so that the numbers stay where they are.
    numbers: Vec<f64>,
    /// The place of the first number of the first field.
    start: usize,
    /// The distance from the first number of a field to that of the next.
    stride: usize,
}

impl<const N: usize> Fields<N> {
    /// Zeros for `len` envs.
    #[must_use]
    pub fn new(len: usize) -> Self {
        const PAGE: usize = 4096 / size_of::<f64>();
        const LINE: usize = 64 / size_of::<f64>();
        let stride = len.next_multiple_of(PAGE) + (PAGE / N.max(1)).next_multiple_of(LINE);
        let numbers = vec![0.0; LINE + stride * N];
        let start = numbers.as_ptr().align_offset(64).min(LINE);
        Fields { numbers, start, stride }
    }

    /// The numbers of one env.
    #[inline]
    pub fn get(&self, env: usize) -> [f64; N] {
        std::array::from_fn(|field| self.numbers[self.start + field * self.stride + env])
    }

    /// Sets the numbers of one env.
    #[inline]
    pub fn set(&mut self, env: usize, numbers: [f64; N]) {
        for (field, number) in numbers.into_iter().enumerate() {
            self.numbers[self.start + field * self.stride + env] = number;
        }
    }

    /// The numbers of `envs`, field by field.
    pub fn columns(&mut self, envs: Range<usize>) -> [&mut [f64]; N] {
        let mut fields = self.numbers[self.start..].chunks_exact_mut(self.stride);
        std::array::from_fn(|_| &mut fields.next().expect("N fields")[envs.clone()])
    }
}

impl<E: Env> EnvSource<E> {
    /// The same envs, stepped by columns. Envs that tell of events ([`Caps::EVENTS`](crate::Caps::EVENTS)),
    /// which a kernel cannot, are stepped one by one; so are those with action masks that the kernel does
    /// not write.
    pub fn by_field<const N: usize>(mut self) -> Self
    where
        E: ByField<N>,
    {
        let lacks_masks = E::CAPS.contains(Caps::ACTION_MASK) && !E::WRITES_MASKS;
        if !lacks_masks && !E::CAPS.contains(Caps::EVENTS) {
            self.chunk_of = |list| match list.envs.len() < E::FEWEST {
                true => Box::new(list),
                false => Box::new(FieldChunk::<E, N>::new(list)),
            };
        }
        self
    }
}

struct FieldChunk<E: Env, const N: usize> {
    list: EnvList<E>,
    fields: Fields<N>,
    /// The rows that the kernel left to the envs; empty between two steps.
    left: Vec<Range<usize>>,
}

impl<E: ByField<N>, const N: usize> FieldChunk<E, N> {
    fn new(list: EnvList<E>) -> Self {
        let fields = Fields::new(list.envs.len());
        // The fields are set when a slot begins.
        FieldChunk { list, fields, left: Vec::new() }
    }

    /// Takes the numbers of `slots` from their envs. `failed` gets the slots where that fails.
    fn pull(
        &mut self,
        mut slots: impl Iterator<Item = usize>,
        phase: Phase,
        mut failed: impl FnMut(usize, Failure),
    ) {
        let mut at = 0;
        loop {
            let pulled = guard(phase, || {
                for slot in &mut slots {
                    at = slot;
                    if let Some(env) = &self.list.envs[slot] {
                        self.fields.set(slot, env.fields());
                    }
                }
            });
            let Err(failure) = pulled else { return };
            self.list.lose(at);
            failed(at, failure);
        }
    }

    /// Lets the envs from `first` to `slots.end` play their steps themselves. Row i of `rows`
    /// belongs to the slot `slots.start` + i.
    fn step_alone(
        &mut self,
        first: usize,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        for slot in (first..slots.end).filter(|slot| !skip[*slot]) {
            match self.push(slot, Phase::Step) {
                Ok(()) => self.list.step_slots(&[slot], slots.start, actions, rows, side),
                Err(failure) => {
                    side.failures.push((slot, failure));
                    self.list.lose(slot);
                }
            }
        }
        let played = (first..slots.end).filter(|slot| !skip[*slot]);
        self.pull(played, Phase::Step, |slot, failure| side.failures.push((slot, failure)));
    }

    /// Puts the numbers of `slot` into its env.
    fn push(&mut self, slot: usize, phase: Phase) -> Result<(), Failure> {
        let numbers = self.fields.get(slot);
        match &mut self.list.envs[slot] {
            Some(env) => guard(phase, || env.set_fields(numbers)),
            None => Ok(()),
        }
    }
}

impl<E: ByField<N>, const N: usize> Chunk for FieldChunk<E, N> {
    fn step(
        &mut self,
        slots: Range<usize>,
        skip: &[bool],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        let (fields, list, left) = (&mut self.fields, &mut self.list, &mut self.left);
        let stepped = guard(Phase::Step, || {
            let fields = fields.columns(slots.clone());
            if let Some(field) = E::DRAWS {
                let playing = list.envs[slots.clone()].iter_mut().zip(&skip[slots.clone()]);
                for ((env, skipped), drawn) in playing.zip(&mut *fields[field]) {
                    if !skipped && let Some(env) = env {
                        *drawn = env.draw();
                    }
                }
            }
            E::step_fields(&list.config, fields, slots.clone(), actions, rows, left);
            assert!(E::DRAWS.is_none() || left.is_empty(), "a kernel with draws left rows to their envs");
        });
        // After a panic in a kernel nobody knows which slot caused it.
        if let Err(failure) = stepped {
            for slot in slots.filter(|slot| !skip[*slot]) {
                side.failures.push((slot, failure.clone()));
                self.list.lose(slot);
            }
            self.left.clear();
            return;
        }
        for k in 0..self.left.len() {
            let Range { start, end } = self.left[k].clone();
            let (first, end) = (slots.start + start, slots.start + end);
            self.step_alone(first, slots.start..end, skip, actions, rows, side);
        }
        self.left.clear();
    }

    fn begins_in_step(&self) -> bool {
        true
    }

    fn step_and_begin(
        &mut self,
        slots: Range<usize>,
        over: &[bool],
        due: &[usize],
        actions: StepArgs<'_>,
        rows: &mut RowsMut<'_>,
        side: &mut Side,
    ) {
        self.step(slots.clone(), over, actions, rows, side);
        self.list.begin_all(due, slots.start, rows, side);
        let begun = due.iter().copied();
        self.pull(begun, Phase::Reset, |slot, failure| side.failures.push((slot, failure)));
    }

    fn reset(&mut self, resets: &[ResetArgs], rows: &mut RowsMut<'_>, side: &mut Side) {
        for ResetArgs { slot, .. } in resets.iter().filter(|reset| reset.begin == Begin::Keep) {
            if let Err(failure) = self.push(*slot, Phase::Reset) {
                side.failures.push((*slot, failure));
            }
        }
        self.list.reset(resets, rows, side);
        let slots = resets.iter().map(|reset| reset.slot);
        self.pull(slots, Phase::Reset, |slot, failure| side.failures.push((slot, failure)));
    }

    fn check_options(&mut self, options: &Options) -> Result<()> {
        self.list.check_options(options)
    }

    fn save(&mut self, slot: usize) -> Result<Vec<u8>> {
        self.push(slot, Phase::Save).map_err(Error::env)?;
        self.list.save(slot)
    }

    fn load(&mut self, slot: usize, state: &[u8]) -> Result<()> {
        self.list.load(slot, state)?;
        let mut pulled = Ok(());
        self.pull([slot].into_iter(), Phase::Load, |_, failure| pulled = Err(Error::env(failure)));
        pulled
    }

    fn render(&mut self, slot: usize) -> Result<Frame> {
        self.push(slot, Phase::Render).map_err(Error::env)?;
        self.list.render(slot)
    }

    /// A call may read the env's numbers and change them.
    fn call(&mut self, slot: usize, call: &Call) -> Result<Value> {
        self.push(slot, Phase::Call).map_err(Error::env)?;
        let answer = self.list.call(slot, call);
        let mut pulled = Ok(());
        self.pull([slot].into_iter(), Phase::Call, |_, failure| pulled = Err(Error::env(failure)));
        pulled.and(answer)
    }

    fn close(&mut self) -> Vec<(usize, Failure)> {
        self.list.close()
    }
}
