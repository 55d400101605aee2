//! Properties of a context: texts by name.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::context::{LoadedContext, call};
use super::observation::text;
use crate::abi::env_c_api::sys::property;
use crate::error::{Error, Phase, Result};
use crate::guard::guard;
use crate::space::{Options, Value};

impl LoadedContext {
    /// The value of property `key`.
    pub(super) fn read_property(&mut self, key: &str) -> Result<Value> {
        let mut value = ptr::null();
        let name = property_name(key)?;
        let code = call!(&*self, read_property, name.as_ptr(), &raw mut value)?;
        self.answer(key, "read", code)?;
        if value.is_null() {
            return Err(self.fault(format_args!("property '{key}' was read and is NULL")));
        }
        // SAFETY: a text ends with a NUL, and holds until the next call.
        Ok(text(unsafe { CStr::from_ptr(value) }.to_bytes()))
    }

    /// Sets property `key`.
    pub(super) fn write_property(&mut self, key: &str, value: &str) -> Result<()> {
        let text = CString::new(value).map_err(|_| {
            Error::Argument(format!("property '{key}' cannot hold a NUL: C's texts end at one"))
        })?;
        let name = property_name(key)?;
        let code = call!(&*self, write_property, name.as_ptr(), text.as_ptr())?;
        match code {
            property::INVALID_ARGUMENT => Err(Error::Argument(format!(
                "{}: property '{key}' does not take '{value}'",
                self.library.path().display()
            ))),
            code => self.answer(key, "written", code),
        }
    }

    /// The properties directly below `key`, each with its attributes; "" is the root.
    pub(super) fn list_property(&mut self, key: &str) -> Result<Options> {
        unsafe extern "C" fn note(listed: *mut c_void, key: *const c_char, attributes: c_int) {
            let work = || {
                if !key.is_null() {
                    // SAFETY: `listed` is the list below; the key is the library's, here and
                    // now.
                    let (listed, key) = unsafe { (&mut *listed.cast::<Options>(), CStr::from_ptr(key)) };
                    listed.set(key.to_string_lossy(), i64::from(attributes));
                }
            };
            let _ = guard(Phase::Step, work);
        }
        let mut listed = Options::new();
        let name = property_name(key)?;
        let code = call!(&*self, list_property, (&raw mut listed).cast(), name.as_ptr(), Some(note))?;
        self.answer(key, "listed", code)?;
        Ok(listed)
    }

    /// What the code of a call about property `key` says.
    fn answer(&self, key: &str, what: &str, code: c_int) -> Result<()> {
        let path = self.library.path().display();
        match code {
            property::SUCCESS => Ok(()),
            property::NOT_FOUND => Err(Error::UnknownName(format!("{path}: there is no property '{key}'"))),
            property::PERMISSION_DENIED => {
                Err(Error::Unsupported(format!("{path}: property '{key}' cannot be {what}")))
            }
            other => Err(self.fault(format_args!("property '{key}': {other} is no result of that call"))),
        }
    }
}

fn property_name(key: &str) -> Result<CString> {
    CString::new(key)
        .map_err(|_| Error::UnknownName(format!("there is no property {key:?}: names hold no NUL")))
}
