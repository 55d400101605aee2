//! Bytes in messages and states, written and read as a block by
//! `#[serde(with = "crate::bytes")]`.
//!
//! Without this attribute serde takes a `Vec<u8>` for a list of numbers, and converts
//! them one by one. The written bytes are the same in both ways.

use std::fmt;

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::Serializer;

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    deserializer.deserialize_byte_buf(BytesVisitor)
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct AsList(u8, Vec<u8>, u8);

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Blocked(u8, #[serde(with = "crate::bytes")] Vec<u8>, u8);

    #[test]
    fn a_block_is_written_as_a_list_of_numbers_is_and_read_back() {
        for n in [0, 1, 127, 128, 300, 70_000] {
            let bytes: Vec<u8> = (0..n).map(|k| (k % 251) as u8).collect();
            let listed = postcard::to_allocvec(&AsList(1, bytes.clone(), 2)).unwrap();
            let block = Blocked(1, bytes, 2);
            assert_eq!(postcard::to_allocvec(&block).unwrap(), listed);
            assert_eq!(postcard::from_bytes::<Blocked>(&listed).unwrap(), block);
            let json = serde_json::to_string(&block).unwrap();
            assert_eq!(serde_json::from_str::<Blocked>(&json).unwrap(), block);
        }
    }

    #[test]
    fn a_block_that_is_cut_short_is_an_error() {
        let whole = postcard::to_allocvec(&Blocked(1, vec![7; 100], 2)).unwrap();
        assert!((0..whole.len()).all(|n| postcard::from_bytes::<Blocked>(&whole[..n]).is_err()));
    }
}
