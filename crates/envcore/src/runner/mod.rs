//! Runners: who steps the slots, and when.

mod serial;

pub use serial::Serial;
