//! What the rows of a batch are to whoever remembers episodes.

use crate::buffer::{Batch, RowKind};
use crate::error::Phase;
use crate::vec_config::AutoresetMode;

/// What a row's observation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The first of an episode.
    First,
    /// The next of the episode that the slot is in.
    Next,
    /// The slot's last one once more.
    Again,
    /// None: the slot failed, and the row is zeros.
    Nothing,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOf {
    /// The slot.
    pub slot: usize,
    /// What its observation is.
    pub shows: Shows,
    /// Whether the batch's finals hold the last observation of the episode that
    /// the slot was in, which somebody saw: it comes before what the row shows.
    pub has_last: bool,
    /// Whether its reward and flags are those of a step.
    pub stepped: bool,
    /// Whether that step ended in a terminal state.
    pub terminated: bool,
    /// Whether that step ended the episode.
    pub over: bool,
}

/// Each row of `batch`, of a vec env of this mode.
pub fn rows_of(batch: &Batch, mode: AutoresetMode) -> impl Iterator<Item = RowOf> + '_ {
    let (terminated, truncated) = (batch.terminated.as_slice::<bool>(), batch.truncated.as_slice::<bool>());
    let ended = batch.finals.as_ref().map(|finals| finals.ended.as_slice::<bool>());
    (0..batch.rows()).map(move |row| {
        let (slot, kind) = (batch.slots.at(row), batch.kind(row));
        let mut troubles = batch.failures.iter().chain(&batch.tolerated);
        // A step that failed has no final observation, whatever a policy reports.
        let failed_in_step =
            troubles.any(|trouble| trouble.slot == slot && trouble.failure.phase == Phase::Step);
        let over = terminated[row] || truncated[row];
        let has_last = ended.is_some_and(|ended| ended[row]) && !failed_in_step;
        let shows = match kind {
            RowKind::Step if over && mode == AutoresetMode::SameStep => Shows::First,
            RowKind::Step => Shows::Next,
            RowKind::Reset | RowKind::Restarted => Shows::First,
            RowKind::Kept => Shows::Again,
            RowKind::Failed => Shows::Nothing,
        };
        // In SAME_STEP a row whose autoreset failed is still its step's.
        let stepped = kind == RowKind::Step || has_last;
        RowOf { slot, shows, has_last, stepped, terminated: terminated[row], over }
    })
}
