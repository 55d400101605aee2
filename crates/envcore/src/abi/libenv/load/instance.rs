//! An instance: a handle that `libenv_make` returned, and the memory that it uses.
//!
//! The addresses given to `libenv_set_buffers` stay valid until the instance is closed,
//! so none of the memory moves. Each leaf has one zeroed block, `[num, …shape]`.
//!
//! Above 400 lines because an instance and the memory that its library writes to are one object.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::Arc;

use super::functions::Function;
use super::library::{LibenvHandle, LibenvLibrary, Make};
use super::option::{LibenvOption, LibraryOptions};
use super::tensors::{Spaces, tensor};
use crate::abi::libenv::sys;
use crate::abi::library::Address;
use crate::buffer::{Lease, Pool};
use crate::error::{Error, Result};
use crate::simd::{self, Kernel};
use crate::space::{DType, Element, Scalar, Space, Value};

/// The first size of a state's buffer, and the largest.
pub(super) const STATE_BYTES: usize = 1 << 20;
pub(super) const MAX_STATE_BYTES: usize = 1 << 30;

/// The memory of a leaf of all envs.
pub(super) struct LeafBlock {
    lease: Lease,
    pub(super) dtype: DType,
    row_bytes: usize,
    num: usize,
}

impl LeafBlock {
    fn new(dtype: DType, row_bytes: usize, num: usize) -> Result<Self> {
        Ok(LeafBlock { lease: Pool::new(num * row_bytes).take()?, dtype, row_bytes, num })
    }

    fn of(space: &Space, num: usize) -> Result<Vec<Self>> {
        let leaves = space.leaves().iter().map(tensor);
        leaves.map(|tensor| LeafBlock::new(tensor.dtype, tensor.row_bytes(), num)).collect()
    }

    /// The bytes of the envs `envs`, which stay valid until the library is called again.
    pub(super) fn bytes(&self, envs: Range<usize>) -> &[u8] {
        assert!(envs.start <= envs.end && envs.end <= self.num);
        let (start, len) = (envs.start * self.row_bytes, envs.len() * self.row_bytes);
        // SAFETY: the range is within the block (checked), which was zeroed at first. The
        // library writes to the block in its calls, and its threads do from `libenv_act` until
        // `libenv_observe` is over, as whoever loaded the library guarantees. None of this is
        // under way: calls take the instance mutably, and nobody reads an instance that acted
        // and was not observed (`LibenvChunk::play` gives it up).
        unsafe { std::slice::from_raw_parts(self.lease.as_ptr().add(start), len) }
    }

    /// The elements of all envs.
    ///
    /// # Panics
    /// Where `T` is not the dtype.
    pub(super) fn elements<T: Element>(&self) -> &[T] {
        assert!(self.dtype == T::DTYPE && T::DTYPE != DType::Bool);
        let count = self.num * self.row_bytes / size_of::<T>();
        // SAFETY: as in `bytes`; the block is aligned for any number, and any bits
        // are a valid number.
        unsafe { std::slice::from_raw_parts(self.lease.as_ptr().cast(), count) }
    }

    /// The elements of all envs, for writing.
    fn elements_mut<T: Element>(&mut self) -> &mut [T] {
        assert!(self.dtype == T::DTYPE && T::DTYPE != DType::Bool);
        let count = self.num * self.row_bytes / size_of::<T>();
        // SAFETY: as in `elements`; the library reads what is written through this
        // reference only from `libenv_act` on until it is observed.
        unsafe { std::slice::from_raw_parts_mut(self.lease.as_ptr().cast(), count) }
    }
}

/// Calls `make`.
///
/// A C++ exception that leaves the library cannot be caught here. The unwinder looks for a handler
/// and stops at this call, which is known not to unwind. So the C++ runtime ends the process, and
/// says which exception it was and what the library said with it. Were the call inlined, it
/// would be one through an address, and the unwinder would go on to a handler of Rust's, which
/// ends the process without these words.
///
/// # Safety
/// As libenv's `libenv_make` requires; `options` must live as long as the instance.
#[inline(never)]
unsafe extern "C" fn call_make(make: Make, num: c_int, options: sys::Options) -> LibenvHandle {
    // SAFETY: the caller guarantees what this function requires.
    unsafe { make(num, options) }
}

/// A handle that a library returned, closed when dropped.
struct MadeInstance {
    library: Arc<LibenvLibrary>,
    handle: LibenvHandle,
}

impl Drop for MadeInstance {
    fn drop(&mut self) {
        // SAFETY: the handle came from this library and is closed once; the memory that
        // the library uses is dropped later.
        unsafe { (self.library.close)(self.handle) }
    }
}

/// A discrete leaf whose dtype has values that are no labels.
struct Checked {
    leaf: usize,
    low: i32,
    high: i32,
}

/// Why an instance cannot be used any more.
pub(super) struct InstanceFault {
    /// The env that caused the fault, where that is known.
    pub(super) env: Option<usize>,
    pub(super) error: Error,
}

impl From<Error> for InstanceFault {
    fn from(error: Error) -> Self {
        InstanceFault { env: None, error }
    }
}

/// An instance that is ready to be observed.
pub(super) struct LoadedInstance {
    made: MadeInstance,
    pub(super) num: usize,
    pub(super) observation: Vec<LeafBlock>,
    pub(super) info: Vec<LeafBlock>,
    action: Vec<LeafBlock>,
    reward: LeafBlock,
    first: LeafBlock,
    checked: Vec<Checked>,
    names: Vec<String>,
    _pointers: [Box<[*mut c_void]>; 3],
    _buffers: Box<sys::Buffers>,
    _given: LibraryOptions,
}

// SAFETY: whoever has the instance is the only one to use its pointers and the library's
// handle; libenv allows any thread to use an env, one thread at a time.
unsafe impl Send for LoadedInstance {}

impl LoadedInstance {
    /// Makes `num` envs and lays out their memory.
    ///
    /// # Errors
    /// Where the library refuses, or declares something that makes no sense.
    pub(super) fn make(
        library: &Arc<LibenvLibrary>,
        num: usize,
        options: &[LibenvOption],
    ) -> Result<(Self, Spaces)> {
        let mut given = LibraryOptions::new(options)?;
        let count = |n: usize| c_int::try_from(n).map_err(|_| library.misfit(format!("{n} are too many")));
        let passed = sys::Options { items: given.items.as_mut_ptr(), count: count(given.items.len())? };
        // SAFETY: the options live as long as the instance.
        let handle = unsafe { call_make(library.make, count(num)?, passed) };
        if handle.is_null() {
            let why = library.last_error(handle);
            let why = why.map_or("it says why on stderr, if at all".into(), |why| format!("it says: {why}"));
            return Err(library.fault(format!("libenv_make gave no instance (NULL): {why}")));
        }
        let made = MadeInstance { library: library.clone(), handle };
        library.check(handle, "libenv_make")?;
        let spaces = Spaces::of(library, handle, num)?;
        let observation = LeafBlock::of(&spaces.observation, num)?;
        let info = LeafBlock::of(&spaces.info, num)?;
        let action = LeafBlock::of(&spaces.action, num)?;
        let reward = LeafBlock::new(DType::F32, DType::F32.size(), num)?;
        let first = LeafBlock::new(DType::U8, DType::U8.size(), num)?;
        let mut pointers = [&observation, &info, &action].map(|blocks| pointers(blocks));
        let [ob, infos, ac] = pointers.each_mut().map(|pointers| pointers.as_mut_ptr());
        let mut buffers = Box::new(sys::Buffers {
            ob,
            rew: reward.lease.as_ptr().cast(),
            first: first.lease.as_ptr(),
            info: infos,
            ac,
        });
        // SAFETY: the buffers, their pointers and the blocks live unmoved until the
        // instance is closed, because `made` is dropped before them.
        unsafe { (library.set_buffers)(handle, &raw mut *buffers) };
        library.check(handle, "libenv_set_buffers")?;
        let instance = LoadedInstance {
            made,
            num,
            observation,
            info,
            action,
            reward,
            first,
            checked: checked(&spaces.observation),
            names: spaces.observation.leaves().iter().map(|leaf| leaf.name.clone()).collect(),
            _pointers: pointers,
            _buffers: buffers,
            _given: given,
        };
        Ok((instance, spaces))
    }

    fn library(&self) -> &LibenvLibrary {
        &self.made.library
    }

    /// `env` as the library's number.
    ///
    /// # Panics
    /// Where there is no such env, because the library would not check the number.
    fn number(&self, env: usize) -> c_int {
        assert!(env < self.num, "env {env} of an instance of {}", self.num);
        // `make` gave the library as many envs as fit a `c_int`.
        env as c_int
    }

    /// Lets the library write observations, rewards and infos, and checks that they make
    /// sense.
    pub(super) fn observe(&mut self) -> Result<(), InstanceFault> {
        // SAFETY: the handle is open, and its buffers are set.
        unsafe { (self.library().observe)(self.made.handle) };
        self.library().check(self.made.handle, "libenv_observe")?;
        self.check_seen()
    }

    fn check_seen(&self) -> Result<(), InstanceFault> {
        let fault = |env, why| Err(InstanceFault { env: Some(env), error: self.library().misfit(why) });
        if let Some((env, found)) = outside(self.first.elements::<u8>(), 0, 1) {
            return fault(env, format!("first is {found}: 0 or 1 make sense"));
        }
        for &Checked { leaf, low, high } in &self.checked {
            let block = &self.observation[leaf];
            let outside = match block.dtype {
                DType::U8 => outside(block.elements::<u8>(), low as u8, high as u8),
                _ => outside(block.elements::<i32>(), low, high),
            };
            if let Some((at, found)) = outside {
                let (env, name) = (at * block.num / block.elements_len(), &self.names[leaf]);
                let why = format!("observation '{name}' has {found}, and it is from {low} to {high}");
                return fault(env, why);
            }
        }
        Ok(())
    }

    /// The memory of the actions of leaf `leaf`.
    pub(super) fn actions<T: Element>(&mut self, leaf: usize) -> &mut [T] {
        self.action[leaf].elements_mut()
    }

    /// The dtypes of the action's leaves.
    pub(super) fn action_dtypes(&self) -> impl Iterator<Item = DType> + use<> {
        self.action.iter().map(|block| block.dtype).collect::<Vec<_>>().into_iter()
    }

    /// Lets the library play the actions.
    pub(super) fn act(&mut self) -> Result<()> {
        // SAFETY: the handle is open, and its buffers are set.
        unsafe { (self.library().act)(self.made.handle) };
        self.library().check(self.made.handle, "libenv_act")
    }

    pub(super) fn rewards(&self) -> &[f32] {
        self.reward.elements()
    }

    /// For each env, whether it shows an episode's first observation.
    pub(super) fn firsts(&self) -> &[u8] {
        self.first.elements()
    }

    /// Begins an episode of `env` in a library that Corral exported.
    pub(super) fn reset(&mut self, env: usize, how: c_int, value: i64) -> Result<()> {
        let Some(reset) = self.library().reset else {
            return Err(Error::Unsupported(format!(
                "{} cannot reset one env",
                self.library().path().display()
            )));
        };
        // SAFETY: the handle is open, and `number` checked that the env exists.
        if unsafe { reset(self.made.handle, self.number(env), how, value) } == 0 {
            return Ok(());
        }
        let why = self.library().last_error(self.made.handle);
        Err(self.library().fault(why.unwrap_or("its reset failed".into())))
    }

    /// Calls `function` of the library, which is at `address`, for `env`.
    pub(super) fn call(
        &mut self,
        (function, address): &(Function, Address),
        env: usize,
        given: &[Value],
    ) -> Result<Value> {
        let env = self.number(env) as usize;
        // SAFETY: the function has the declared type, as whoever loaded the library
        // guarantees; the handle is open, and `number` checked that the env exists.
        let called = unsafe { function.call(address.0, self.made.handle, env, given) };
        called.and_then(|value| self.library().check(self.made.handle, &function.name).map(|()| value))
    }

    /// The state of `env`.
    pub(super) fn save(&mut self, env: usize) -> Result<Vec<u8>> {
        let library = self.library();
        let Some(state) = library.state else {
            return Err(Error::Unsupported(format!("{} saves no state", library.path().display())));
        };
        let mut room = STATE_BYTES;
        if library.reset.is_some() {
            // SAFETY: a library of Corral's that gets no memory returns how much it needs.
            let needed = unsafe { (state.get)(self.made.handle, self.number(env), std::ptr::null_mut(), 0) };
            library.check(self.made.handle, "get_state")?;
            room = usize::try_from(needed).unwrap_or_default().clamp(1, MAX_STATE_BYTES);
        }
        let mut bytes = vec![0; room];
        loop {
            // SAFETY: `number` checked that the env exists, and there is room for as many
            // bytes as the call says.
            let n = unsafe {
                (state.get)(
                    self.made.handle,
                    self.number(env),
                    bytes.as_mut_ptr().cast(),
                    bytes.len() as c_int,
                )
            };
            library.check(self.made.handle, "get_state")?;
            match usize::try_from(n) {
                Ok(n) if n <= bytes.len() => {
                    bytes.truncate(n);
                    return Ok(bytes);
                }
                Ok(n) if n <= MAX_STATE_BYTES => bytes = vec![0; n],
                _ => return Err(library.fault(format!("env {env}: get_state gave a state of {n} bytes"))),
            }
        }
    }

    /// Restores a state of `env`.
    pub(super) fn load(&mut self, env: usize, bytes: &[u8]) -> Result<()> {
        let library = self.library();
        let Some(state) = library.state else {
            return Err(Error::Unsupported(format!("{} loads no state", library.path().display())));
        };
        let len = c_int::try_from(bytes.len()).map_err(|_| Error::State("it is too long".into()))?;
        // SAFETY: `number` checked that the env exists, and `bytes` has `len` bytes.
        unsafe { (state.set)(self.made.handle, self.number(env), bytes.as_ptr().cast(), len) };
        library.check(self.made.handle, "set_state").map_err(|error| Error::State(error.to_string()))?;
        self.observe().map_err(|fault| fault.error)
    }
}

impl LeafBlock {
    fn elements_len(&self) -> usize {
        self.num * self.row_bytes / self.dtype.size()
    }
}

/// The address of each env's part of each leaf: that of leaf k, env e is at k num + e.
fn pointers(blocks: &[LeafBlock]) -> Box<[*mut c_void]> {
    let of = |block: &LeafBlock| {
        let (start, row_bytes) = (block.lease.as_ptr(), block.row_bytes);
        // SAFETY: the block has a row for each env.
        (0..block.num).map(move |env| unsafe { start.add(env * row_bytes) }.cast())
    };
    blocks.iter().flat_map(of).collect()
}

/// The discrete leaves whose dtype has values that are no labels.
fn checked(space: &Space) -> Vec<Checked> {
    let narrow = |(leaf, found): (usize, &crate::Leaf)| {
        let tensor = tensor(found);
        let (Scalar::Int(low), Scalar::Int(high)) = tensor.bounds.at(0) else { return None };
        let all = tensor.dtype.range() == (Scalar::Int(low), Scalar::Int(high));
        (!all).then_some(Checked { leaf, low: low as i32, high: high as i32 })
    };
    space.leaves().iter().enumerate().filter_map(narrow).collect()
}

/// Whether all elements are from `low` to `high`. The check is one pass without a
/// branch, because nearly always they are.
struct Within<'a, T> {
    elements: &'a [T],
    low: T,
    high: T,
}

impl<T: Element> Kernel for Within<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let mut inside = true;
        for &element in self.elements {
            inside &= (element >= self.low) & (element <= self.high);
        }
        inside
    }
}

fn outside<T: Element + Into<i64>>(elements: &[T], low: T, high: T) -> Option<(usize, i64)> {
    if simd::dispatch(Within { elements, low, high }) {
        return None;
    }
    let at = elements.iter().position(|&e| e < low || e > high)?;
    Some((at, elements[at].into()))
}
