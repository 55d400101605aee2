//! Batch memory of a host's, as a sink whose protocol fixes addresses has it.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ptr::NonNull;

use envcore::{Batch, Buffers, Column, Lease, Part};

/// One block per part, full of ones before every use: what is not written shows.
#[derive(Default)]
pub struct Host(HashMap<String, Vec<u64>>);

impl Buffers for Host {
    /// All but the kinds, so that both origins meet in one batch.
    fn lease(&mut self, part: Part, bytes: usize) -> Option<Lease> {
        if part == Part::Kind {
            return None;
        }
        let block = self.0.entry(format!("{part:?}")).or_default();
        block.clear();
        block.resize(bytes / 8 + 1, u64::from_ne_bytes([1; 8]));
        let start = NonNull::from(block.as_mut_slice()).cast();
        // SAFETY: the block has that many bytes, all initialised with 1s (which
        // make `true`), and is not used again before `recv` asks for the part
        // anew; the tests drop a batch before that.
        Some(unsafe { Lease::from_host(start, bytes) })
    }
}

impl Host {
    /// Whether `column` of `part` lies here.
    pub fn holds(&self, part: Part, column: &Column) -> bool {
        let block = &self.0[&format!("{part:?}")];
        column.as_fixed().is_none_or(|fixed| fixed.bytes().as_ptr() == block.as_ptr().cast())
    }

    /// Whether the batch's columns lie here.
    pub fn holds_all(&self, batch: &Batch) -> bool {
        let mut columns = batch.observation.iter().enumerate();
        columns.all(|(k, column)| column.as_fixed().is_none() || self.holds(Part::Observation(k), column))
    }
}
