//! Closing of a vec env while a call is using it.
//!
//! Only one call at a time uses the vec env's state. A close may find the state in use, by
//! another thread or by a call that this thread's own signal handler interrupted. The close
//! is then noted in a [`Closing`]: the call's waits notice the note and end, further calls
//! are refused, and whoever releases the state last closes the vec env.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

const OPEN: u8 = 0;
/// Somebody wants the vec env closed, so waits end.
const ASKED: u8 = 1;
/// The vec env is being closed. Waits of the close itself go on.
const UNDER_WAY: u8 = 2;
const CLOSED: u8 = 3;

/// How long a close waits for envs in worker processes that are in a step.
const GRACE: Duration = Duration::from_secs(2);

/// How long a hasty close waits for these envs.
const MOMENT: Duration = Duration::from_millis(100);

/// How far a vec env is closed. The host of its workers reads this too.
#[derive(Default)]
pub(crate) struct Closing {
    stage: AtomicU8,
    is_hasty: AtomicBool,
}

impl Closing {
    /// Asks the current call to end.
    pub(crate) fn ask(&self) {
        let _ = self.stage.compare_exchange(OPEN, ASKED, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Notes that the close is not to wait for work in worker processes.
    pub(crate) fn hurry(&self) {
        self.is_hasty.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == OPEN
    }

    /// Whether somebody wants the vec env closed and nobody has begun to close it.
    pub(crate) fn is_asked(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == ASKED
    }

    /// Notes that the close begins, which happens once.
    pub(crate) fn begin(&self) {
        self.stage.store(UNDER_WAY, Ordering::SeqCst);
    }

    pub(crate) fn finish(&self) {
        self.stage.store(CLOSED, Ordering::SeqCst);
    }

    /// How long the close waits for workers that are in a step.
    pub(crate) fn patience(&self) -> Duration {
        if self.is_hasty.load(Ordering::SeqCst) { MOMENT } else { GRACE }
    }
}
