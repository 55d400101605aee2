//! Batch memory: the one place in the core that touches raw memory.
//!
//! `lease` is aligned memory that goes back to its pool; `column` a leaf's rows
//! in it; `rows` the windows through which envs write; `actions` the checked
//! actions that they read; `batch` all of it together. `room` tells whether there is memory for what is asked for.

#![allow(unsafe_code)]

mod actions;
mod batch;
mod bytes;
mod column;
mod foreign;
mod lease;
mod pick;
mod room;
mod rows;

pub(crate) use actions::ActReader;
pub use actions::{ActRow, Actions, ColumnIn};
pub(crate) use batch::Either;
pub use batch::{Batch, BatchPool, Draft, Extra, FINAL_OBSERVATION, Finals, Infos, Layout, RowKind, Slots};
pub use bytes::Bytes;
pub use column::{Column, Fixed};
#[cfg(any(feature = "export", feature = "load"))]
pub(crate) use foreign::Addresses;
#[cfg(feature = "load")]
pub(crate) use foreign::LeafLayout;
#[cfg(feature = "export")]
pub(crate) use foreign::{HostActions, HostRows};
pub use lease::{Buffers, Lease, Part, Pool};
pub(crate) use lease::{Keeper, check_machine_has};
pub(crate) use pick::{with_private, with_rows};
pub use room::check_room;
pub(crate) use rows::{InfosMut, Window};
pub use rows::{Observations, Row, RowsMut, StepColumns};
