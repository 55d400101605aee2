//! Batch memory, the one place in the core that touches raw memory.
//!
//! `lease` is aligned memory that goes back to its pool. `column` has a leaf's rows in that
//! memory, and `place` their addresses. `batch` has all columns, and `batch_pool` drafts
//! batches. Envs write through `rows` and `row`, and threads share a `window`. `actions`
//! has the checked actions, which envs read through `act_row`. `step_memory` has the batches of
//! several steps. `room` tells whether there
//! is enough memory.

#![allow(unsafe_code)]

mod act_row;
mod actions;
mod batch;
mod batch_pool;
mod bytes;
mod column;
mod foreign;
mod lease;
mod pick;
mod place;
mod room;
mod row;
mod rows;
mod slots;
mod step_memory;
mod window;

pub(crate) use act_row::ActReader;
pub use act_row::ActRow;
pub use actions::{Actions, ColumnIn};
pub(crate) use batch::Either;
pub use batch::{Batch, Extra, FINAL_FRAME, FINAL_OBSERVATION, Finals, Infos, RowKind};
pub use batch_pool::{BatchPool, Draft, Layout};
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
pub use row::Row;
pub(crate) use rows::InfosMut;
pub use rows::{InfoColumns, Observations, RowsMut, StepColumns};
pub use slots::Slots;
pub use step_memory::{StepLeaf, StepMemory, StepPools};
pub(crate) use window::Window;
