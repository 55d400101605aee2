//! How a vec env comes to be closed while it is in a call.
//!
//! A call has the vec env's state to itself. A close that finds it taken, by
//! another thread or by a call that this thread's own signal handler interrupted,
//! asks for it here: the call's waits see that and end, further calls are refused,
//! and whoever gives up the state last closes it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

const OPEN: u8 = 0;
/// Somebody wants it closed; waits end.
const ASKED: u8 = 1;
/// It is being closed: what that waits for goes on.
const UNDER_WAY: u8 = 2;
const CLOSED: u8 = 3;

/// How long a close waits for envs in worker processes that are in a step.
const GRACE: Duration = Duration::from_secs(2);

/// The same, where somebody waits for the close.
const MOMENT: Duration = Duration::from_millis(100);

/// How far a vec env is on its way to being closed. Its workers' host sees it too.
#[derive(Default)]
pub(crate) struct Closing {
    stage: AtomicU8,
    is_hasty: AtomicBool,
}

impl Closing {
    /// Asks for the end of whatever call is under way.
    pub(crate) fn ask(&self) {
        let _ = self.stage.compare_exchange(OPEN, ASKED, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Says that work under way in workers is not to be waited for.
    pub(crate) fn hurry(&self) {
        self.is_hasty.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == OPEN
    }

    /// Whether somebody wants it closed, and nobody has begun to.
    pub(crate) fn is_asked(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == ASKED
    }

    /// Begins the close itself, which happens once.
    pub(crate) fn begin(&self) {
        self.stage.store(UNDER_WAY, Ordering::SeqCst);
    }

    pub(crate) fn finish(&self) {
        self.stage.store(CLOSED, Ordering::SeqCst);
    }

    /// How long workers that are in a step are waited for.
    pub(crate) fn patience(&self) -> Duration {
        if self.is_hasty.load(Ordering::SeqCst) { MOMENT } else { GRACE }
    }
}
