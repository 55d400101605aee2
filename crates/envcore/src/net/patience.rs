//! How long the other side of a connection is waited for.

use std::time::{Duration, Instant};

use super::stream::BrokenConnection;
use crate::error::Result;

/// Called now and then during a wait, which an error ends: Ctrl-C, for instance.
pub type WaitPause = dyn Fn() -> Result<()> + Send + Sync;

/// How long a wait that pauses goes on until it pauses.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// How long the other side may be silent, and what is looked at meanwhile.
#[derive(Clone, Copy)]
pub(super) struct PeerPatience<'a> {
    idle: Duration,
    pause: Option<&'a WaitPause>,
}

impl<'a> PeerPatience<'a> {
    pub(super) fn new(idle: Duration) -> Self {
        PeerPatience { idle, pause: None }
    }

    pub(super) fn pausing(idle: Duration, pause: &'a WaitPause) -> Self {
        PeerPatience { idle, pause: Some(pause) }
    }

    pub(super) fn idle(&self) -> Duration {
        self.idle
    }

    /// Waits until `until` for what `waits` waits for. Returns whether it came.
    pub(super) fn wait(
        &self,
        until: Instant,
        waits: impl Fn(Instant) -> std::io::Result<bool>,
    ) -> Result<bool, BrokenConnection> {
        let Some(pause) = self.pause else { return Ok(waits(until)?) };
        loop {
            let now = Instant::now();
            if waits(until.min(now + SLICE))? {
                return Ok(true);
            }
            if until <= now {
                return Ok(false);
            }
            pause().map_err(BrokenConnection::Envs)?;
        }
    }
}

/// The time that a message may take: at most `idle` without any byte, and in all as long as
/// 64 KiB a second take. So a peer that sends a byte now and then is not waited for, and one
/// with a slow line is.
pub(super) struct MessagePace {
    idle: Duration,
    moved: Instant,
    end: Instant,
}

impl MessagePace {
    pub(super) fn new(bytes: usize, idle: Duration) -> Self {
        let now = Instant::now();
        MessagePace { idle, moved: now, end: now + idle + Duration::from_secs((bytes >> 16) as u64) }
    }

    /// Notes that a byte has moved.
    pub(super) fn advance(&mut self) {
        self.moved = Instant::now();
    }

    /// When the peer is silent or too slow.
    pub(super) fn until(&self) -> Instant {
        self.end.min(self.moved + self.idle)
    }
}
