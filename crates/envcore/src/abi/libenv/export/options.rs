//! Options in the form in which a host gives them.
//!
//! A host has three element types and no text, so the option's default says what an
//! env's own option means. A `uint8` is a bool, a number or a letter; several are a text
//! or an array. A `float32` means the number that it prints as: 0.1 stays 0.1 for an env
//! that computes in float64, and does not become 0.10000000149.

use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;
use std::{ptr, slice};

use serde_json::Value as Json;

use super::super::sys;
use crate::abi::options::{self, Chosen, HostOption, take};
use crate::config::OptionDoc;
use crate::entry::Entry;
use crate::error::{Error, Phase, Result};
use crate::guard::guard;
use crate::space::Value;
use crate::vec_config::MAX_SLOTS;

/// The most options of a host. A larger count can only be garbage.
const MOST: usize = 1 << 12;

/// The data of one option.
#[derive(Clone, Debug, PartialEq)]
enum Data {
    U8(Vec<u8>),
    I32(Vec<i32>),
    F32(Vec<f32>),
}

/// One option.
struct Item {
    name: String,
    data: Data,
}

/// What the options of a `libenv_make` ask for, for `num` slots of an env of `table`,
/// and whether values may lose precision or range (the option `cast`).
///
/// # Safety
/// `options` must be as `libenv.h` requires.
pub(super) unsafe fn asked(
    table: &'static [Entry],
    num: usize,
    options: sys::Options,
) -> Result<(Chosen, bool)> {
    // SAFETY: the caller guarantees what this function requires.
    let mut given = unsafe { read(options) }?;
    let cast = match take(&mut given, "cast").map(|given| given.natural().map_err(|_| given)).transpose() {
        Ok(None | Some(0)) => Ok(false),
        Ok(Some(1)) => Ok(true),
        _ => Err(Error::OptionValue("option 'cast' is 0 or 1 (uint8 or int32)".into())),
    };
    Ok((Chosen::read(table, num, given)?, cast?))
}

/// Reads a host's options, and errors where they make no sense.
///
/// # Safety
/// As [`asked`].
unsafe fn read(options: sys::Options) -> Result<Vec<Item>> {
    let count = usize::try_from(options.count).ok().filter(|count| *count <= MOST).ok_or_else(|| {
        Error::Argument(format!("{} options: the count must be from 0 to {MOST}", options.count))
    })?;
    if count > 0 && options.items.is_null() {
        return Err(Error::Argument(format!("{count} options at NULL")));
    }
    let mut all: Vec<Item> = Vec::with_capacity(count);
    for k in 0..count {
        // SAFETY: the host's array has that many items.
        let item = unsafe { options.items.add(k).read_unaligned() };
        let Some(name) = text_until_nul(&item.name) else {
            let why = "is no UTF-8 text that a NUL ends within its 128 bytes";
            return Err(Error::Argument(format!("the name of option {k} {why}")));
        };
        if all.iter().any(|earlier| earlier.name == name) {
            return Err(Error::Argument(format!("option '{name}' is given twice")));
        }
        let bad = |why: String| Error::Argument(format!("option '{name}' {why}"));
        let count = usize::try_from(item.count).map_err(|_| bad(format!("has count {}", item.count)))?;
        if count > 0 && item.data.is_null() {
            return Err(bad(format!("has {count} elements at NULL")));
        }
        // SAFETY: the host's data has that many elements.
        let data = unsafe {
            match item.dtype {
                sys::dtype::UINT8 => Data::U8(elements(item.data.cast(), count)),
                sys::dtype::INT32 => Data::I32(elements(item.data.cast(), count)),
                sys::dtype::FLOAT32 => Data::F32(elements(item.data.cast(), count)),
                other => return Err(bad(format!("has dtype {other}: it must be 1 (uint8), 2 or 3"))),
            }
        };
        all.push(Item { name, data });
    }
    Ok(all)
}

/// # Safety
/// Where `count` is not 0, `from` must have that many elements.
unsafe fn elements<T: Copy>(from: *const T, count: usize) -> Vec<T> {
    // SAFETY: the caller guarantees the elements, which need not be aligned.
    (0..count).map(|k| unsafe { from.add(k).read_unaligned() }).collect()
}

fn text_until_nul(chars: &[c_char]) -> Option<String> {
    // SAFETY: a `c_char` has the size and alignment of a byte.
    let bytes = unsafe { slice::from_raw_parts(chars.as_ptr().cast::<u8>(), chars.len()) };
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(std::str::from_utf8(&bytes[..end]).ok()?.to_string())
}

impl Item {
    fn wrong(&self, wanted: &str) -> Error {
        let (kind, count) = match &self.data {
            Data::U8(all) => ("uint8", all.len()),
            Data::I32(all) => ("int32", all.len()),
            Data::F32(all) => ("float32", all.len()),
        };
        Error::OptionValue(format!("option '{}' is {wanted}, not {count} of {kind}", self.name))
    }

    fn at_least_zero(&self, n: i32) -> Result<u64> {
        let negative = |_| Error::OptionValue(format!("option '{}' is {n}: it must be 0 or more", self.name));
        u64::try_from(n).map_err(negative)
    }
}

impl HostOption for Item {
    fn name(&self) -> &str {
        &self.name
    }

    /// The text of bytes in UTF-8; a C host may count the final NUL too.
    fn text(&self) -> Result<String> {
        let Data::U8(bytes) = &self.data else { return Err(self.wrong("a text (uint8)")) };
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        String::from_utf8(bytes[..end].to_vec()).map_err(|_| {
            let hint = "gym3 counts letters and so cuts texts that are not ASCII: give it bytes";
            Error::OptionValue(format!("option '{}' is no UTF-8 text ({hint})", self.name))
        })
    }

    fn natural(&self) -> Result<u64> {
        match &self.data {
            Data::U8(all) if all.len() == 1 => Ok(all[0].into()),
            Data::I32(all) if all.len() == 1 => self.at_least_zero(all[0]),
            _ => Err(self.wrong("one int32")),
        }
    }

    fn naturals(&self) -> Result<Vec<u64>> {
        match &self.data {
            Data::I32(all) => all.iter().map(|&n| self.at_least_zero(n)).collect(),
            _ => Err(self.wrong("an array of int32")),
        }
    }

    fn is_minus_one(&self) -> bool {
        self.data == Data::I32(vec![-1])
    }

    fn values(&self, default: Option<&Json>) -> Result<Vec<Value>> {
        let list = |all: Vec<Value>| Value::List(all);
        let scalars: Vec<Value> = match &self.data {
            Data::U8(all) => all.iter().map(|&v| v.into()).collect(),
            Data::I32(all) => all.iter().map(|&v| v.into()).collect(),
            Data::F32(all) => all.iter().map(|&v| meant(v).into()).collect(),
        };
        let flag = match self.data {
            Data::U8(ref all) if *all == [0] || *all == [1] => Some(Value::Bool(all[0] == 1)),
            _ => None,
        };
        Ok(match default {
            Some(Json::Bool(_)) if flag.is_some() => vec![flag.unwrap_or_default()],
            Some(Json::String(_)) if matches!(self.data, Data::U8(_)) => vec![self.text()?.into()],
            Some(Json::Array(_)) => vec![list(scalars)],
            Some(Json::Bool(_) | Json::Number(_) | Json::String(_)) if scalars.len() == 1 => scalars,
            _ => {
                let text = matches!(self.data, Data::U8(_)).then(|| self.text().ok()).flatten();
                let one = (scalars.len() == 1).then(|| scalars[0].clone());
                let all = [flag, one, text.map(Value::from), Some(list(scalars))];
                all.into_iter().flatten().collect()
            }
        })
    }
}

/// The number that `v` prints as.
fn meant(v: f32) -> f64 {
    match v.to_string().parse::<f64>() {
        Ok(meant) if meant as f32 == v => meant,
        _ => v.into(),
    }
}

/// The options of the listed envs of `table`, as JSON; NULL where a config panics.
pub fn options_of(table: &'static [Entry]) -> *const c_char {
    static TEXT: OnceLock<CString> = OnceLock::new();
    let text = guard(Phase::Build, || TEXT.get_or_init(|| described(table)).as_ptr());
    text.unwrap_or(ptr::null())
}

fn described(table: &[Entry]) -> CString {
    let of_env = |entry: &Entry| {
        let defaults: Json = serde_json::from_str(&entry.defaults()).unwrap_or_default();
        let of_option = |doc: &OptionDoc| {
            let mut told = doc.to_json();
            told["default"] = defaults[&doc.name].clone();
            (doc.name.clone(), told)
        };
        (entry.id.to_string(), Json::Object(entry.docs().iter().map(of_option).collect()))
    };
    let all = Json::Object(table.iter().filter(|entry| !entry.hidden).map(of_env).collect());
    // JSON has no NUL.
    CString::new(all.to_string()).unwrap_or_default()
}

/// `error` with the options that every env takes among the valid ones.
pub(super) fn explain(error: Error) -> Error {
    options::explain(error, "libenv", ", cast")
}

/// How many slots a host asks for.
pub(super) fn count(num: c_int) -> Result<usize> {
    let within = usize::try_from(num).ok().filter(|num| (1..=MAX_SLOTS).contains(num));
    within.ok_or_else(|| Error::Argument(format!("num is {num}: it must be from 1 to {MAX_SLOTS}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float32_means_the_number_that_it_prints_as() {
        for (given, wanted) in [(0.1f32, 0.1f64), (1e-7, 1e-7), (0.25, 0.25), (3.4e38, 3.4e38), (-2.7, -2.7)]
        {
            assert_eq!(meant(given), wanted);
        }
        assert!(meant(f32::NAN).is_nan() && meant(f32::INFINITY).is_infinite());
    }

    #[test]
    fn bytes_are_what_the_default_is() {
        let given = |data| Item { name: "x".into(), data };
        let of = |data, default: &str| {
            let default = serde_json::from_str::<Json>(default).unwrap();
            given(data).values(Some(&default)).unwrap().remove(0)
        };
        assert_eq!(of(Data::U8(vec![1]), "false"), Value::Bool(true));
        assert_eq!(of(Data::U8(vec![1]), "7"), Value::Int(1));
        assert_eq!(of(Data::U8(vec![65]), "\"\""), Value::from("A"));
        assert_eq!(of(Data::U8(b"ab\0".to_vec()), "\"\""), Value::from("ab"));
        assert_eq!(of(Data::U8(vec![65]), "[]"), Value::List(vec![Value::Int(65)]));
        assert_eq!(of(Data::I32(vec![3]), "7"), Value::Int(3));
        assert_eq!(of(Data::F32(vec![0.1]), "7.5"), Value::Float(0.1));
        assert_eq!(of(Data::F32(vec![0.1]), "[]"), Value::List(vec![Value::Float(0.1)]));
        assert!(given(Data::U8(vec![0xc3])).values(Some(&"".into())).is_err());
    }
}
