//! A host of libenv as gym3 is one: a zeroed block per leaf, pointers to its
//! rows, options with their data kept alive.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use envcore::abi::libenv::sys;

unsafe extern "C" {
    pub fn libenv_version() -> c_int;
    pub fn libenv_make(num: c_int, options: sys::Options) -> *mut c_void;
    pub fn libenv_get_tensortypes(handle: *mut c_void, space: c_int, types: *mut sys::TensorType) -> c_int;
    pub fn libenv_set_buffers(handle: *mut c_void, buffers: *mut sys::Buffers);
    pub fn libenv_observe(handle: *mut c_void);
    pub fn libenv_act(handle: *mut c_void);
    pub fn libenv_close(handle: *mut c_void);
    pub fn get_state(handle: *mut c_void, env: c_int, data: *mut c_char, length: c_int) -> c_int;
    pub fn set_state(handle: *mut c_void, env: c_int, data: *mut c_char, length: c_int);
    pub fn corral_libenv_options() -> *const c_char;
    pub fn libenv_last_error(handle: *mut c_void) -> *const c_char;
    pub fn corral_libenv_reset(handle: *mut c_void, env: c_int, how: c_int, value: i64) -> c_int;
}

/// The data of an option.
#[derive(Clone)]
pub enum Data {
    Bytes(Vec<u8>),
    Ints(Vec<i32>),
    Floats(Vec<f32>),
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Data::Bytes(text.into())
    }
}

impl From<bool> for Data {
    fn from(flag: bool) -> Self {
        Data::Bytes(vec![flag.into()])
    }
}

impl From<i32> for Data {
    fn from(n: i32) -> Self {
        Data::Ints(vec![n])
    }
}

impl From<f32> for Data {
    fn from(n: f32) -> Self {
        Data::Floats(vec![n])
    }
}

impl<const N: usize> From<[i32; N]> for Data {
    fn from(all: [i32; N]) -> Self {
        Data::Ints(all.into())
    }
}

pub fn name(text: &str) -> [c_char; sys::MAX_NAME_LEN] {
    let mut name = [0; sys::MAX_NAME_LEN];
    name.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
    name
}

/// An option that points to `data`.
pub fn option(of: &str, data: &Data) -> sys::Option {
    let (dtype, count, data) = match data {
        Data::Bytes(all) => (sys::dtype::UINT8, all.len(), all.as_ptr().cast()),
        Data::Ints(all) => (sys::dtype::INT32, all.len(), all.as_ptr().cast::<c_void>()),
        Data::Floats(all) => (sys::dtype::FLOAT32, all.len(), all.as_ptr().cast()),
    };
    sys::Option { name: name(of), dtype, count: count as c_int, data: data.cast_mut() }
}

/// The handle of a `libenv_make`, or what the library says.
pub fn make(num: c_int, options: &mut [sys::Option]) -> Result<*mut c_void, String> {
    let options = sys::Options { items: options.as_mut_ptr(), count: options.len() as c_int };
    // SAFETY: the options are there.
    let handle = unsafe { libenv_make(num, options) };
    if handle.is_null() { Err(last_error(handle).expect("it says why")) } else { Ok(handle) }
}

pub fn last_error(handle: *mut c_void) -> Option<String> {
    // SAFETY: the handle is NULL or open; the text holds until the next call.
    unsafe {
        let text = libenv_last_error(handle);
        (!text.is_null()).then(|| CStr::from_ptr(text).to_str().unwrap().to_string())
    }
}

/// A leaf and its memory.
pub struct Block {
    pub kind: sys::TensorType,
    /// In u64s: aligned for anything.
    memory: Vec<u64>,
    pub row_bytes: usize,
    num: usize,
    /// Bytes from row to row.
    stride: usize,
}

impl Block {
    fn new(kind: sys::TensorType, num: usize, gap: usize) -> Self {
        let shape = &kind.shape[..kind.ndim as usize];
        let size = if kind.dtype == sys::dtype::UINT8 { 1 } else { 4 };
        let row_bytes = size * shape.iter().map(|n| *n as usize).product::<usize>();
        let stride = row_bytes + gap;
        // What a host of C has in fresh memory.
        let memory = vec![0xabab_abab_abab_abab; (num * stride).div_ceil(8) + 1];
        Block { kind, memory, row_bytes, num, stride }
    }

    pub fn name(&self) -> String {
        // SAFETY: the library writes names with a NUL.
        unsafe { CStr::from_ptr(self.kind.name.as_ptr()) }.to_str().unwrap().to_string()
    }

    fn pointers(&mut self) -> Vec<*mut c_void> {
        let first = self.memory.as_mut_ptr().cast::<u8>();
        (0..self.num).map(|row| first.wrapping_add(row * self.stride).cast()).collect()
    }

    pub fn row(&self, row: usize) -> &[u8] {
        let bytes: &[u8] = bytemuck::cast_slice(&self.memory);
        &bytes[row * self.stride..][..self.row_bytes]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [u8] {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut self.memory);
        &mut bytes[row * self.stride..][..self.row_bytes]
    }

    /// The elements of a row, as numbers.
    pub fn numbers(&self, row: usize) -> Vec<f64> {
        let row = self.row(row);
        let four = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).unwrap();
        match self.kind.dtype {
            sys::dtype::UINT8 => row.iter().map(|v| f64::from(*v)).collect(),
            sys::dtype::INT32 => row.chunks(4).map(|v| f64::from(i32::from_ne_bytes(four(v)))).collect(),
            _ => row.chunks(4).map(|v| f64::from(f32::from_ne_bytes(four(v)))).collect(),
        }
    }

    /// Writes numbers to a row.
    pub fn put(&mut self, row: usize, numbers: &[f64]) {
        let kind = self.kind.dtype;
        let bytes: Vec<u8> = match kind {
            sys::dtype::UINT8 => numbers.iter().map(|v| *v as u8).collect(),
            sys::dtype::INT32 => numbers.iter().flat_map(|v| (*v as i32).to_ne_bytes()).collect(),
            _ => numbers.iter().flat_map(|v| (*v as f32).to_ne_bytes()).collect(),
        };
        self.row_mut(row).copy_from_slice(&bytes);
    }
}

/// An instance and its host's memory.
pub struct Host {
    pub handle: *mut c_void,
    pub num: usize,
    pub ob: Vec<Block>,
    pub ac: Vec<Block>,
    pub info: Vec<Block>,
    pub rew: Vec<f32>,
    pub first: Vec<u8>,
}

impl Host {
    pub fn new(num: usize, options: &[(&str, Data)]) -> Self {
        Host::spread(num, options, 0)
    }

    /// With `gap` bytes between rows.
    pub fn spread(num: usize, options: &[(&str, Data)], gap: usize) -> Self {
        let mut all: Vec<sys::Option> = options.iter().map(|(of, data)| option(of, data)).collect();
        let handle = make(num as c_int, &mut all).unwrap();
        let mut host = Host::over(handle, num, gap);
        host.set_buffers();
        host
    }

    /// Memory for `handle`, of which it does not know yet.
    pub fn over(handle: *mut c_void, num: usize, gap: usize) -> Self {
        let blocks = |space| -> Vec<Block> {
            // SAFETY: the handle is open, and there is room for all types.
            unsafe {
                let count = libenv_get_tensortypes(handle, space, ptr::null_mut());
                let mut types = vec![std::mem::zeroed::<sys::TensorType>(); count as usize];
                assert_eq!(libenv_get_tensortypes(handle, space, types.as_mut_ptr()), count);
                types.into_iter().map(|kind| Block::new(kind, num, gap)).collect()
            }
        };
        let (ob, ac, info) = (blocks(1), blocks(2), blocks(3));
        Host { handle, num, ob, ac, info, rew: vec![9.0; num], first: vec![9; num] }
    }

    /// Tells the library where memory is, by arrays that are gone thereafter.
    pub fn set_buffers(&mut self) {
        let pointers = |blocks: &mut [Block]| -> Vec<*mut c_void> {
            blocks.iter_mut().flat_map(Block::pointers).collect()
        };
        let (mut ob, mut ac, mut info) =
            (pointers(&mut self.ob), pointers(&mut self.ac), pointers(&mut self.info));
        let mut buffers = sys::Buffers {
            ob: ob.as_mut_ptr(),
            rew: self.rew.as_mut_ptr(),
            first: self.first.as_mut_ptr(),
            info: info.as_mut_ptr(),
            ac: ac.as_mut_ptr(),
        };
        // SAFETY: all of it is there while the host is.
        unsafe { libenv_set_buffers(self.handle, &mut buffers) }
    }

    pub fn observe(&self) {
        // SAFETY: the memory is there.
        unsafe { libenv_observe(self.handle) }
    }

    pub fn act(&self) {
        // SAFETY: the memory is there.
        unsafe { libenv_act(self.handle) }
    }

    /// The same action for every slot and element.
    pub fn put_all(&mut self, number: f64) {
        for block in &mut self.ac {
            let elements = block.numbers(0).len();
            (0..self.num).for_each(|row| block.put(row, &vec![number; elements]));
        }
    }

    pub fn error(&self) -> Option<String> {
        last_error(self.handle)
    }

    pub fn info(&self, name: &str) -> &Block {
        self.info.iter().find(|block| block.name() == name).unwrap_or_else(|| panic!("an info {name}"))
    }

    /// All that the library has written.
    pub fn seen(&self) -> Vec<Vec<u8>> {
        let rows = |block: &Block| (0..self.num).flat_map(|row| block.row(row).to_vec()).collect();
        let flat = [bytemuck::cast_slice(&self.rew).to_vec(), self.first.clone()];
        self.ob.iter().chain(&self.info).map(rows).chain(flat).collect()
    }

    pub fn state(&self, env: c_int) -> Vec<u8> {
        // SAFETY: NULL asks for the length, and then there is so much room.
        unsafe {
            let length = get_state(self.handle, env, ptr::null_mut(), 0);
            assert!(length > 0, "{:?}", self.error());
            let mut bytes = vec![0u8; length as usize];
            assert_eq!(get_state(self.handle, env, bytes.as_mut_ptr().cast(), length), length);
            bytes
        }
    }

    pub fn load(&self, env: c_int, state: &[u8]) {
        // SAFETY: the bytes are there.
        unsafe { set_state(self.handle, env, state.as_ptr().cast_mut().cast(), state.len() as c_int) }
    }

    pub fn reset(&self, env: c_int, how: c_int, value: i64) -> c_int {
        // SAFETY: the handle is open.
        unsafe { corral_libenv_reset(self.handle, env, how, value) }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: the handle is open, or NULL.
        unsafe { libenv_close(self.handle) }
    }
}
