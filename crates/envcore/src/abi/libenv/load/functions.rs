//! Functions that a library has beyond libenv's, which users call by name.
//!
//! Only the user knows what such a function takes, so the user declares it, for example
//! `int (idx, int)`, `void ()`, `bytes (idx)`, `void (idx, bytes)`. The handle is the
//! first parameter and is left out; `idx` is the env's number. The result `bytes` stands
//! for a `char *` and an `int` at the end of the parameters, as in procgen's `get_state`.
//! The argument `bytes` stands for the same two parameters.

use std::ffi::{c_char, c_int, c_void};

use super::library::LibenvHandle;
use crate::error::{Error, Result};
use crate::space::{Array, Value};

/// A function of a library: its name and its declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub(super) name: String,
    result: ParameterKind,
    arguments: Vec<ParameterKind>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ParameterKind {
    Void,
    Idx,
    Int,
    Bytes,
}

/// How many numbers a function takes at most, the env's number included.
const MOST: usize = 4;

impl Function {
    /// The function `name`, declared as `declaration` says.
    ///
    /// # Errors
    /// [`Error::Argument`] where `declaration` is not valid.
    pub fn new(name: &str, declaration: &str) -> Result<Self> {
        let fault = |why: &str| {
            Error::Argument(format!(
                "function '{name}': '{declaration}' {why}: declare it as 'int (idx, int)', 'void ()', \
                 'bytes (idx)' or 'void (idx, bytes)', without the handle"
            ))
        };
        let kind = |word: &str| match word.trim() {
            "void" => Ok(ParameterKind::Void),
            "idx" => Ok(ParameterKind::Idx),
            "int" => Ok(ParameterKind::Int),
            "bytes" => Ok(ParameterKind::Bytes),
            other => Err(fault(&format!("has '{other}', which is none of void, int, idx and bytes"))),
        };
        let (result, arguments) = declaration
            .trim()
            .strip_suffix(')')
            .and_then(|text| text.split_once('('))
            .ok_or_else(|| fault("has no result and arguments in parentheses"))?;
        let result = kind(result)?;
        let arguments = match arguments.trim() {
            "" => Vec::new(),
            some => some.split(',').map(kind).collect::<Result<_>>()?,
        };
        let (last, others) = arguments.split_last().unwrap_or((&ParameterKind::Void, &[]));
        let numbers =
            arguments.iter().filter(|kind| matches!(kind, ParameterKind::Idx | ParameterKind::Int)).count();
        if result == ParameterKind::Idx || (arguments.contains(&ParameterKind::Void) && !arguments.is_empty())
        {
            return Err(fault("has a word where it makes no sense"));
        }
        if others.contains(&ParameterKind::Bytes)
            || (result == ParameterKind::Bytes && *last == ParameterKind::Bytes)
        {
            return Err(fault("has bytes that are neither the only result nor the last argument"));
        }
        if numbers > MOST || name.contains('\0') {
            return Err(fault("has more than four numbers"));
        }
        Ok(Function { name: name.into(), result, arguments })
    }

    /// The function `get_state` of procgen and of Corral's libraries.
    pub(super) fn get_state() -> Self {
        Function {
            name: "get_state".into(),
            result: ParameterKind::Bytes,
            arguments: vec![ParameterKind::Idx],
        }
    }

    /// The function `set_state` of procgen and of Corral's libraries.
    pub(super) fn set_state() -> Self {
        Function {
            name: "set_state".into(),
            result: ParameterKind::Void,
            arguments: vec![ParameterKind::Idx, ParameterKind::Bytes],
        }
    }

    /// Calls this function, which is at the address `function`, for env `idx` of `handle`.
    ///
    /// # Errors
    /// [`Error::Argument`] where `given` does not fit the declaration; [`Error::Env`] where
    /// the function returns more bytes than are allowed.
    ///
    /// # Safety
    /// `function` must have this declaration, and it must be allowed to call it now.
    pub(super) unsafe fn call(
        &self,
        function: *const c_void,
        handle: LibenvHandle,
        idx: usize,
        given: &[Value],
    ) -> Result<Value> {
        let (numbers, mut bytes) = self.read(idx, given)?;
        if self.result != ParameterKind::Bytes {
            let memory = bytes.as_mut().map(|bytes| (bytes.as_mut_ptr().cast(), bytes.len() as c_int));
            // SAFETY: the caller guarantees the declaration; the bytes are valid during the call.
            return Ok(unsafe {
                match self.result {
                    ParameterKind::Int => {
                        Value::Int(call::<c_int>(function, handle, &numbers, memory).into())
                    }
                    _ => {
                        call::<()>(function, handle, &numbers, memory);
                        Value::None
                    }
                }
            });
        }
        let mut room = vec![0u8; super::instance::STATE_BYTES];
        loop {
            let memory = Some((room.as_mut_ptr().cast(), room.len() as c_int));
            // SAFETY: the caller guarantees the declaration; there is as much room as the call says.
            let n = unsafe { call::<c_int>(function, handle, &numbers, memory) };
            match usize::try_from(n) {
                Ok(n) if n <= room.len() => return Ok(Value::Array(Array::from_slice(&room[..n]))),
                Ok(n) if n <= super::instance::MAX_STATE_BYTES => room = vec![0; n],
                _ => return Err(Error::env(format!("function '{}' gave {n} bytes", self.name))),
            }
        }
    }

    fn read(&self, idx: usize, given: &[Value]) -> Result<(Vec<c_int>, Option<Vec<u8>>)> {
        let wanted = self.arguments.iter().filter(|kind| **kind != ParameterKind::Idx).count();
        let fault = |why: String| Error::Argument(format!("function '{}' {why}", self.name));
        if given.len() != wanted {
            return Err(fault(format!("takes {wanted} arguments, not {}", given.len())));
        }
        let (mut numbers, mut bytes, mut given) = (Vec::new(), None, given.iter());
        for kind in &self.arguments {
            match kind {
                ParameterKind::Idx => numbers.push(idx as c_int),
                ParameterKind::Int => match given.next() {
                    Some(Value::Int(v)) if c_int::try_from(*v).is_ok() => numbers.push(*v as c_int),
                    other => return Err(fault(format!("takes an int of 32 bits, not {other:?}"))),
                },
                _ => match given.next() {
                    Some(Value::Array(array)) if array.to_vec::<u8>().is_some() => {
                        bytes = array.to_vec::<u8>();
                    }
                    other => return Err(fault(format!("takes bytes, not {other:?}"))),
                },
            }
        }
        Ok((numbers, bytes))
    }
}

/// # Safety
/// `function` must take a handle, as many ints and, with `memory`, a `char *` and an
/// int, and must return an `R`.
unsafe fn call<R>(
    function: *const c_void,
    handle: LibenvHandle,
    numbers: &[c_int],
    memory: Option<(*mut c_char, c_int)>,
) -> R {
    /// Casts the address to the type of a function.
    macro_rules! as_fn {
        ($($argument:ty),*) => {
            std::mem::transmute::<*const c_void, unsafe extern "C" fn(LibenvHandle, $($argument),*) -> R>(function)
        };
    }
    type Mem = *mut c_char;
    // SAFETY: the caller guarantees what this function requires.
    unsafe {
        match (numbers, memory) {
            ([], None) => as_fn!()(handle),
            (&[a], None) => as_fn!(c_int)(handle, a),
            (&[a, b], None) => as_fn!(c_int, c_int)(handle, a, b),
            (&[a, b, c], None) => as_fn!(c_int, c_int, c_int)(handle, a, b, c),
            (&[a, b, c, d, ..], None) => as_fn!(c_int, c_int, c_int, c_int)(handle, a, b, c, d),
            ([], Some((p, n))) => as_fn!(Mem, c_int)(handle, p, n),
            (&[a], Some((p, n))) => as_fn!(c_int, Mem, c_int)(handle, a, p, n),
            (&[a, b], Some((p, n))) => as_fn!(c_int, c_int, Mem, c_int)(handle, a, b, p, n),
            (&[a, b, c], Some((p, n))) => as_fn!(c_int, c_int, c_int, Mem, c_int)(handle, a, b, c, p, n),
            (&[a, b, c, d, ..], Some((p, n))) => {
                as_fn!(c_int, c_int, c_int, c_int, Mem, c_int)(handle, a, b, c, d, p, n)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_and_what_is_none_says_why() {
        assert_eq!(Function::new("get_state", "bytes(idx)").unwrap(), Function::get_state());
        assert_eq!(Function::new("set_state", " void ( idx , bytes ) ").unwrap(), Function::set_state());
        for (wrong, why) in [
            ("int", "no result and arguments"),
            ("float ()", "'float', which is none of"),
            ("int (idx, void)", "makes no sense"),
            ("idx ()", "makes no sense"),
            ("int (bytes, int)", "neither the only result"),
            ("bytes (bytes)", "neither the only result"),
            ("int (int, int, int, int, int)", "more than four"),
        ] {
            let error = Function::new("f", wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    unsafe extern "C" fn sum(_: LibenvHandle, a: c_int, b: c_int, p: *const u8, n: c_int) -> c_int {
        // SAFETY: the caller passes the length of the bytes.
        let bytes = unsafe { std::slice::from_raw_parts(p, n as usize) };
        a * 100 + b * 10 + bytes.iter().map(|byte| c_int::from(*byte)).sum::<c_int>()
    }

    #[test]
    fn arguments_arrive_in_their_places() {
        let function = Function::new("sum", "int (idx, int, bytes)").unwrap();
        let bytes = Value::Array(Array::from_slice(&[1u8, 2]));
        let at = sum as unsafe extern "C" fn(_, _, _, _, _) -> _ as *const c_void;
        let handle = std::ptr::null_mut();
        // SAFETY: `sum` has the declared type.
        let called = unsafe { function.call(at, handle, 7, &[Value::Int(4), bytes.clone()]) };
        assert_eq!(called.unwrap(), Value::Int(743));
        // SAFETY: `sum` has the declared type, and it is not called.
        let refused = unsafe { function.call(at, handle, 7, &[bytes, Value::Int(4)]) };
        assert!(refused.unwrap_err().to_string().contains("takes an int"));
    }
}
