//! The messages that parent and workers send each other over a socket, each preceded
//! by its length.

use serde::{Deserialize, Serialize};

use super::board::Plan;
use crate::runner::messages::{Answer, News, PackedError, PackedSpec, PackedValue, Question};
use crate::vec_config::VecConfig;

/// What a worker is to build.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// The worker's number.
    pub worker: usize,
    /// The bytes of [`Host::payload`](super::Host::payload), which say which envs to build.
    #[serde(with = "crate::bytes")]
    pub payload: Vec<u8>,
    /// The number of the worker's first slot in the whole vec env.
    pub first_slot: usize,
    /// The config of a vec env of the worker's slots alone.
    pub config: VecConfig,
}

#[derive(Serialize, Deserialize)]
pub(super) enum ToWorker {
    Build(Order),
    Plan(Plan),
    /// Columns of the next step's actions that are not of fixed shape.
    Actions(Vec<Vec<PackedValue>>),
    /// Options of the next reset.
    Options(PackedValue),
    Ask(u64, Question),
}

#[derive(Serialize, Deserialize)]
pub(super) enum FromWorker {
    Built { spec: PackedSpec, about: Vec<u8> },
    Refused(PackedError),
    Ready,
    News(News),
    Answer(u64, Result<Answer, PackedError>),
    Closed(Option<PackedError>),
}
