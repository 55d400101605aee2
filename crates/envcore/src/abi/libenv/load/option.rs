//! Options of a library.

use std::ffi::{c_char, c_int};

use crate::abi::libenv::sys;
use crate::buffer::{Lease, Pool};
use crate::error::{Error, Result};
use crate::space::DType;

/// The longest name of an option in bytes; gym3 leaves room for two NULs.
const MAX_OPTION_NAME: usize = sys::MAX_NAME_LEN - 2;

/// An option in libenv's form: a name, and some numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LibenvOption {
    name: String,
    dtype: DType,
    bytes: Vec<u8>,
}

impl LibenvOption {
    /// The option's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The option `name` with the native-endian elements in `bytes`.
    ///
    /// # Errors
    /// [`Error::OptionValue`] for a dtype other than uint8, int32 and float32, for a part
    /// of an element, and for a name that is too long, empty or holds a NUL.
    pub fn new(name: &str, dtype: DType, bytes: Vec<u8>) -> Result<Self> {
        let wrong = |why: String| Err(Error::OptionValue(format!("option '{name}': {why}")));
        if name.is_empty() || name.len() > MAX_OPTION_NAME || name.contains('\0') {
            let bytes = name.len();
            return wrong(format!(
                "its name has {bytes} bytes: 1 to {MAX_OPTION_NAME} fit, none of them NUL"
            ));
        }
        if !matches!(dtype, DType::U8 | DType::I32 | DType::F32) {
            return wrong(format!("libenv has no {dtype}: give uint8, int32 or float32"));
        }
        let count = bytes.len() / dtype.size();
        if !bytes.len().is_multiple_of(dtype.size()) || c_int::try_from(count).is_err() {
            return wrong(format!("{} bytes are no elements of {dtype} that libenv counts", bytes.len()));
        }
        Ok(LibenvOption { name: name.into(), dtype, bytes })
    }
}

/// Options in the form in which a library gets them and may keep them.
pub(super) struct LibraryOptions {
    pub(super) items: Box<[sys::Option]>,
    /// What the items point to.
    _data: Vec<Lease>,
}

impl LibraryOptions {
    pub(super) fn new(options: &[LibenvOption]) -> Result<Self> {
        let mut data = Vec::with_capacity(options.len());
        let item = |option: &LibenvOption| {
            let lease = Pool::new(option.bytes.len()).take()?;
            // SAFETY: the lease is new and holds as many bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(option.bytes.as_ptr(), lease.as_ptr(), option.bytes.len());
            }
            let mut name = [0; sys::MAX_NAME_LEN];
            for (to, from) in name.iter_mut().zip(option.name.bytes()) {
                *to = from as c_char;
            }
            let dtype = match option.dtype {
                DType::U8 => sys::dtype::UINT8,
                DType::I32 => sys::dtype::INT32,
                _ => sys::dtype::FLOAT32,
            };
            let count = (option.bytes.len() / option.dtype.size()) as c_int;
            let pointer = lease.as_ptr().cast();
            data.push(lease);
            Ok(sys::Option { name, dtype, count, data: pointer })
        };
        let items = options.iter().map(item).collect::<Result<Box<[_]>>>()?;
        Ok(LibraryOptions { items, _data: data })
    }
}
