//! What each row of a batch is, for code that remembers episodes.

use crate::buffer::{Batch, RowKind};
use crate::error::Phase;
use crate::vec_config::AutoresetMode;

/// What a row's observation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The first observation of an episode.
    First,
    /// The next observation of the slot's current episode.
    Next,
    /// The slot's last observation again.
    Again,
    /// No observation: the slot failed, and the row is zeros.
    Nothing,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOf {
    /// The slot.
    pub slot: usize,
    /// What the row's observation is.
    pub shows: Shows,
    /// Whether the batch's finals hold the last observation of the episode that
    /// the slot was in, and somebody saw that episode. The final observation comes
    /// before the one that the row shows.
    pub has_last: bool,
    /// Whether the row's reward and flags are those of a step.
    pub stepped: bool,
    /// Whether the row's step ended in a terminal state.
    pub terminated: bool,
    /// Whether the row's step ended the episode.
    pub over: bool,
}

/// Tells of each row of `batch`, which comes from a vec env of `mode`.
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
        // In SAME_STEP a row is still a step's where only the autoreset failed.
        let stepped = kind == RowKind::Step || has_last;
        RowOf { slot, shows, has_last, stepped, terminated: terminated[row], over }
    })
}
