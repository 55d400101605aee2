//! JSON as netenv has it: Python's, with bare `Infinity`, `-Infinity` and `NaN`, and with
//! arrays as `{"__kind__": "numpy", "dtype", "shape", "data"}`, whose data is base64.
//!
//! `serde_json` refuses the bare words, so the reader is this crate's own. The text comes from
//! a peer, so the depth, the keys and the number of values are limited.
//!
//! Above 400 lines because the reader, the writer and their cases are side by side.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::space::{Array, DType, Options, Value};

/// How deep lists and objects may be nested.
const MAX_DEPTH: usize = 64;
/// How many keys an object may have. Keys are compared with each other.
const MAX_KEYS: usize = 1024;
/// The most axes of an array.
const MAX_AXES: usize = 32;
/// How many values a text may have, for each takes far more memory than its two letters. Many
/// numbers travel as one array.
const MAX_VALUES: usize = 100_000;

/// The name of the key that says that an object stands for something else.
const KIND: &str = "__kind__";

/// What `text` says.
///
/// # Errors
/// What is wrong with the text, and at which byte.
pub(super) fn read(text: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(text).map_err(|e| format!("byte {}: no UTF-8", e.valid_up_to()))?;
    let mut reader = Reader { text, at: 0, values: 0 };
    let value = reader.value(0).and_then(|value| {
        reader.space();
        if reader.at < text.len() { Err("more text after the value".into()) } else { Ok(value) }
    });
    value.map_err(|why| format!("byte {}: {why}", reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How many values were read.
    values: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `word` if it comes next.
    fn take(&mut self, word: &str) -> bool {
        let comes = self.text[self.at..].starts_with(word);
        if comes {
            self.at += word.len();
        }
        comes
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.take(word) { Ok(()) } else { Err(format!("'{word}' is missing")) }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("nested more than {MAX_DEPTH} deep"));
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(format!("more than {MAX_VALUES} values"));
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Value::from),
            Some(b'0'..=b'9' | b'-') if !self.text[self.at..].starts_with("-I") => self.number(),
            _ => {
                let words = [
                    ("null", Value::None),
                    ("true", Value::Bool(true)),
                    ("false", Value::Bool(false)),
                    ("NaN", Value::Float(f64::NAN)),
                    ("Infinity", Value::Float(f64::INFINITY)),
                    ("-Infinity", Value::Float(f64::NEG_INFINITY)),
                ];
                let word = words.into_iter().find(|(word, _)| self.take(word));
                word.map(|(_, value)| value).ok_or_else(|| "no value".into())
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.expect("[")?;
        let mut items = Vec::new();
        self.space();
        if self.take("]") {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take("]") {
                items.shrink_to_fit();
                return Ok(Value::List(items));
            }
            self.expect(",")?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.expect("{")?;
        let (mut entries, mut count) = (Options::new(), 0);
        self.space();
        if self.take("}") {
            return Ok(Value::Map(entries));
        }
        loop {
            count += 1;
            if count > MAX_KEYS {
                return Err(format!("an object of more than {MAX_KEYS} keys"));
            }
            self.space();
            let key = self.string()?;
            self.space();
            self.expect(":")?;
            entries.set(key, self.value(depth + 1)?);
            self.space();
            if self.take("}") {
                return array_of(&entries).map(|array| array.map_or(Value::Map(entries), Value::Array));
            }
            self.expect(",")?;
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let digits = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        // `serde_json` knows what a number of JSON is, and rounds it rightly.
        let shown = || digits.chars().take(40).collect::<String>();
        let number: serde_json::Number =
            serde_json::from_str(digits).map_err(|_| format!("'{}' is no number", shown()))?;
        let is_whole = !digits.contains(['.', 'e', 'E']);
        let value = match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) if is_whole => Value::Int(whole),
            (_, Some(real)) if !is_whole => Value::Float(real),
            _ => return Err(format!("the number {} has more than 64 bits", shown())),
        };
        self.at += digits.len();
        Ok(value)
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect("\"")?;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain =
                rest.find(|c: char| c == '"' || c == '\\' || c < ' ').ok_or("a string without an end")?;
            text.push_str(&rest[..plain]);
            self.at += plain;
            if self.take("\"") {
                return Ok(text);
            }
            self.expect("\\").map_err(|_| "a control character in a string")?;
            text.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Result<char, String> {
        let simple = [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ];
        if let Some((_, letter)) = simple.into_iter().find(|(mark, _)| self.take(mark)) {
            return Ok(letter);
        }
        self.expect("u").map_err(|_| "an unknown escape in a string")?;
        let first = self.hex()?;
        let code = match first {
            0xD800..=0xDBFF if self.take("\\u") => match self.hex()? {
                second @ 0xDC00..=0xDFFF => 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                _ => first,
            },
            code => code,
        };
        char::from_u32(code).ok_or_else(|| "one half of a character in a string".into())
    }

    fn hex(&mut self) -> Result<u32, String> {
        let four =
            self.text.get(self.at..self.at + 4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = four.and_then(|four| u32::from_str_radix(four, 16).ok());
        self.at += 4 * usize::from(code.is_some());
        code.ok_or_else(|| "no four hexadecimal digits after \\u".into())
    }
}

/// The array that an object stands for, if it stands for one.
fn array_of(entries: &Options) -> Result<Option<Array>, String> {
    if entries.get(KIND) != Some(&Value::Text("numpy".into())) {
        return Ok(None);
    }
    let (dtype, shape, data) = (entries.get("dtype"), entries.get("shape"), entries.get("data"));
    let (Some(Value::Text(dtype)), Some(Value::List(shape)), Some(Value::Text(data))) = (dtype, shape, data)
    else {
        return Err("an array without dtype, shape or data".into());
    };
    let dtype =
        DType::from_name(dtype).ok_or_else(|| format!("an array of the unknown dtype '{}'", cut(dtype)))?;
    let extent = |value: &Value| match value {
        Value::Int(extent) => usize::try_from(*extent).ok(),
        _ => None,
    };
    let shape: Option<Vec<usize>> = shape.iter().map(extent).collect();
    let shape = shape.filter(|shape| shape.len() <= MAX_AXES).ok_or("an array whose shape makes no sense")?;
    let bytes =
        BASE64.decode(data.as_str()).map_err(|error| format!("an array whose data is no base64: {error}"))?;
    Array::from_bytes(dtype, &shape, bytes).map(Some).map_err(|error| error.to_string())
}

/// The beginning of a text of a peer, for a message.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}

/// `value` as JSON, as Python's `json.dumps` writes it.
///
/// # Errors
/// Which kind of value has no form in JSON.
pub(super) fn write(value: &Value) -> Result<String, String> {
    let mut text = String::new();
    put(value, &mut text, 0)?;
    Ok(text)
}

fn put(value: &Value, text: &mut String, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("a value nested more than {MAX_DEPTH} deep"));
    }
    match value {
        Value::None => text.push_str("null"),
        Value::Bool(v) => text.push_str(if *v { "true" } else { "false" }),
        Value::Int(v) => text.push_str(&v.to_string()),
        Value::Float(v) if v.is_nan() => text.push_str("NaN"),
        Value::Float(v) if v.is_infinite() => text.push_str(if *v > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Float(v) => text.push_str(&format!("{v:?}")),
        Value::Text(v) => put_string(v, text),
        Value::Array(array) => put(&Value::Map(as_object(array)), text, depth)?,
        Value::List(items) => {
            text.push('[');
            for (k, item) in items.iter().enumerate() {
                text.push_str(if k == 0 { "" } else { ", " });
                put(item, text, depth + 1)?;
            }
            text.push(']');
        }
        Value::Map(entries) => {
            text.push('{');
            for (k, (key, item)) in entries.iter().enumerate() {
                text.push_str(if k == 0 { "" } else { ", " });
                put_string(key, text);
                text.push_str(": ");
                put(item, text, depth + 1)?;
            }
            text.push('}');
        }
        Value::Object(_) => {
            return Err("an object that is neither a number, text, array, list nor dict".into());
        }
    }
    Ok(())
}

fn as_object(array: &Array) -> Options {
    let shape: Vec<Value> = array.shape().iter().map(|extent| Value::Int(*extent as i64)).collect();
    Options::new()
        .with(KIND, "numpy")
        .with("dtype", array.dtype().name())
        .with("shape", shape)
        .with("data", BASE64.encode(array.bytes()))
}

fn put_string(string: &str, text: &mut String) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            ' '..='~' => text.push(letter),
            other => {
                let mut units = [0; 2];
                other
                    .encode_utf16(&mut units)
                    .iter()
                    .for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let array = proptest::collection::vec(any::<i16>(), 0..5).prop_map(|v| Array::from_slice(&v).into());
        let leaf = prop_oneof![
            Just(Value::None),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("NaN is not equal to itself", |v| !v.is_nan()).prop_map(Value::Float),
            ".*".prop_map(Value::from),
            array,
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let map = proptest::collection::vec((".*", inner.clone()), 0..5).prop_map(|entries| {
                let mut map = Options::new();
                entries.into_iter().for_each(|(key, value): (String, Value)| map.set(key, value));
                Value::Map(map)
            });
            prop_oneof![proptest::collection::vec(inner, 0..5).prop_map(Value::List), map]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in values()) {
            prop_assert_eq!(read(write(&value).unwrap().as_bytes()).unwrap(), value);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn no_text_of_jsons_own_letters_makes_the_reader_panic(text in r#"[\[\]{}",:\\u0-9a-fInN.eE+ -]{0,80}"#) {
            let _ = read(text.as_bytes());
        }
    }

    #[test]
    fn text_is_what_pythons_json_makes_of_it() {
        // The expected texts were printed by CPython's json.dumps.
        let real = |v: f64| Value::Float(v);
        for (value, text) in [
            (real(f64::INFINITY), "Infinity"),
            (real(f64::NEG_INFINITY), "-Infinity"),
            (real(f64::NAN), "NaN"),
            (real(10.0), "10.0"),
            (Value::from("caf\u{e9} \u{1f600} \u{7f}\n\"\\"), r#""caf\u00e9 \ud83d\ude00 \u007f\n\"\\""#),
            (Value::List(vec![Value::None, true.into(), 1i64.into()]), "[null, true, 1]"),
            (Options::new().with("a", 1i64).with("b", Options::new()).into(), r#"{"a": 1, "b": {}}"#),
        ] {
            assert_eq!(write(&value).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_json_is_refused_and_told() {
        let deep = "[".repeat(100_000);
        let keys = format!("{{{}\"\":0}}", "\"a\":0,".repeat(2000));
        let many = format!("[{}0]", "0,".repeat(100_000));
        for (text, why) in [
            ("", "no value"),
            ("[1", "',' is missing"),
            ("1 2", "more text"),
            ("{\"a\" 1}", "':' is missing"),
            ("01", "no number"),
            ("123456789012345678901", "more than 64 bits"),
            ("\"\\ud800\"", "half of a character"),
            ("\"\\ud800\\u0041\"", "half of a character"),
            ("\"a\nb\"", "control character"),
            ("\"ab", "without an end"),
            ("\"\\x\"", "unknown escape"),
            ("\"\\u12\u{e9}", "hexadecimal"),
            (&deep, "nested more than"),
            (&keys, "keys"),
            (&many, "more than 100000 values"),
            (r#"{"__kind__": "numpy"}"#, "without dtype"),
            (r#"{"__kind__": "numpy", "dtype": "object", "shape": [1], "data": ""}"#, "unknown dtype"),
            (r#"{"__kind__": "numpy", "dtype": "int8", "shape": [-1], "data": ""}"#, "shape makes no sense"),
            (
                r#"{"__kind__": "numpy", "dtype": "int8", "shape": [9], "data": "AA=="}"#,
                "1 bytes do not make",
            ),
            (
                r#"{"__kind__": "numpy", "dtype": "int8", "shape": [4611686018427387904, 8], "data": ""}"#,
                "0 bytes do not make",
            ),
            (r#"{"__kind__": "numpy", "dtype": "int8", "shape": [1], "data": "?"}"#, "no base64"),
        ] {
            let told = read(text.as_bytes()).unwrap_err();
            assert!(told.contains(why), "{}: {told}", cut(text));
        }
        assert!(read(b"\"\xff\"").unwrap_err().contains("no UTF-8"));
    }
}
