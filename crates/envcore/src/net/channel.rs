//! A socket with a buffer on either side.
//!
//! Several small messages are read by one call of the system. What is to be sent waits in an
//! outbox until the socket takes it, so that whoever sends need not wait.

use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::stream::{BrokenConnection, MessagePace, PeerPatience, Stream};

/// The size of the buffer. What is at least half as large is read past it.
const BUFFER: usize = 1 << 14;

pub(super) struct Channel {
    stream: Stream,
    buffer: Box<[u8]>,
    /// The bytes of the buffer that nobody has read yet.
    unread: std::ops::Range<usize>,
    /// What is to be sent, the first `gone` bytes of which are sent.
    outbox: Vec<u8>,
    gone: usize,
}

impl Channel {
    pub(super) fn new(stream: Stream) -> Self {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Channel { stream, buffer, unread: 0..0, outbox: Vec::new(), gone: 0 }
    }

    /// Reads what is there, without waiting; `None` where nothing is there.
    pub(super) fn read_some(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, BrokenConnection> {
        if self.unread.is_empty() {
            if bytes.len() >= BUFFER / 2 {
                return self.stream.read_some(bytes);
            }
            match self.stream.read_some(&mut self.buffer)? {
                Some(n) => self.unread = 0..n,
                None => return Ok(None),
            }
        }
        let n = bytes.len().min(self.unread.len());
        bytes[..n].copy_from_slice(&self.buffer[self.unread.start..self.unread.start + n]);
        self.unread.start += n;
        Ok(Some(n))
    }

    /// Fills `bytes`. The other side may be silent for `idle`, and slow; see [`MessagePace`].
    pub(super) fn read_full(&mut self, bytes: &mut [u8], idle: Duration) -> Result<(), BrokenConnection> {
        let (mut pace, mut at) = (MessagePace::new(bytes.len(), idle), 0);
        while at < bytes.len() {
            match self.read_some(&mut bytes[at..])? {
                Some(n) => {
                    at += n;
                    pace.advance();
                }
                None if self.wait(PollFlags::IN, pace.until())? => {}
                None => return Err(BrokenConnection::Silent(idle)),
            }
        }
        Ok(())
    }

    /// Writes all of `parts`, one after the other; see [`Stream::write_parts`].
    pub(super) fn write_parts(&mut self, parts: &[&[u8]], idle: Duration) -> Result<(), BrokenConnection> {
        self.stream.write_parts(parts, PeerPatience::new(idle))
    }

    /// The outbox, to which a message may be added.
    pub(super) fn outbox(&mut self) -> &mut Vec<u8> {
        &mut self.outbox
    }

    /// Whether something in the outbox is still to be sent.
    pub(super) fn is_sending(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Sends what the socket takes of the outbox, without waiting.
    pub(super) fn flush(&mut self) -> Result<(), BrokenConnection> {
        while self.gone < self.outbox.len() {
            match self.stream.write_some(&self.outbox[self.gone..])? {
                Some(n) => self.gone += n,
                None => return Ok(()),
            }
        }
        if self.stream.flush_some()? {
            self.outbox.clear();
            self.gone = 0;
        }
        Ok(())
    }

    /// Waits until `until` for what `flags` say. Returns whether it came.
    pub(super) fn wait(&self, flags: PollFlags, until: Instant) -> std::io::Result<bool> {
        if flags.contains(PollFlags::IN) && !self.unread.is_empty() {
            return Ok(true);
        }
        self.stream.wait(flags, until)
    }

    /// Waits until `until` for bytes, or for room for what is to be sent.
    pub(super) fn wait_to_move(&self, until: Instant) -> std::io::Result<bool> {
        let flags = if self.is_sending() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        self.wait(flags, until)
    }

    /// Polls for bytes for a moment; see [`Stream::spin`].
    pub(super) fn spin(&self, time: Duration) -> std::io::Result<()> {
        if self.unread.is_empty() { self.stream.spin(time) } else { Ok(()) }
    }

    /// Ends the connection for both sides, whoever else has the socket.
    pub(super) fn shut(&self) {
        self.stream.shut();
    }
}
