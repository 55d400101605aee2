//! The socket between the parent and a worker.
//!
//! A message that is to be sent waits in an outbox. Every wait sends what the socket
//! takes. So nobody waits in order to send, and two long messages that cross do not
//! wait for each other. Each end notices when the other is closed.
//!
//! Above 400 lines because its tests are beside it.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use postcard::ser_flavors::Flavor;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::time::Timespec;
use serde::Serialize;
use serde::de::DeserializeOwned;

const HEAD: usize = 8;

/// How many bytes one call reads at most, so that an endless sender stops nobody.
const READ_LIMIT: usize = 4 << 20;

/// How much capacity of an empty outbox is kept for later messages.
const KEPT: usize = 1 << 20;

/// Why no message could be sent or received.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the other end is gone")]
    Gone,
    /// The bytes are no message, or the message cannot be encoded.
    #[error("{0}")]
    Garbage(String),
    #[error("there is no memory for the message")]
    Memory,
}

/// Encodes to the end of an outbox. A message that memory has no place for is an error.
struct Appending<'a>(&'a mut Vec<u8>);

impl Flavor for Appending<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.try_reserve(bytes.len()).map_err(|_| postcard::Error::SerializeBufferFull)?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

pub(super) struct Link {
    stream: UnixStream,
    /// Bytes that have arrived and were not taken.
    inbox: Vec<u8>,
    /// Bytes that are to be sent, the first `sent` of which are sent.
    outbox: Vec<u8>,
    sent: usize,
    /// How many bytes were sent or received so far.
    moved: u64,
    /// Whether the socket was ever full.
    was_full: bool,
    is_read: bool,
    /// Whether the other end takes nothing any more.
    write_closed: bool,
    /// Whether nothing more will come from the other end.
    closed: bool,
}

impl Link {
    pub(super) fn new(socket: OwnedFd) -> std::io::Result<Self> {
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(true)?;
        Ok(Link {
            stream,
            inbox: Vec::new(),
            outbox: Vec::new(),
            sent: 0,
            moved: 0,
            was_full: false,
            is_read: false,
            write_closed: false,
            closed: false,
        })
    }

    /// Whether the other end is closed.
    pub(super) fn is_closed(&mut self) -> bool {
        self.fill();
        self.closed
    }

    /// Whether some of what was posted is still to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.outbox.len()
    }

    /// Whether the other end certainly reads, because the socket was full and took more.
    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    /// How many bytes were sent or received so far; grows while the other end reads or
    /// writes.
    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    /// Puts `message` into the outbox and sends what can be sent at once.
    ///
    /// # Errors
    /// [`LinkError::Garbage`] where `message` cannot be encoded, [`LinkError::Memory`] where there
    /// is no memory for it; nothing of it is sent.
    pub(super) fn post<T: Serialize>(&mut self, message: &T) -> Result<(), LinkError> {
        if self.write_closed {
            return Ok(());
        }
        let from = self.outbox.len();
        let mut encoded = Appending(&mut self.outbox).try_extend(&[0; HEAD]);
        if encoded.is_ok() {
            encoded = postcard::serialize_with_flavor(message, Appending(&mut self.outbox));
        }
        if let Err(error) = encoded {
            self.outbox.truncate(from);
            self.outbox.shrink_to(KEPT);
            return Err(match error {
                postcard::Error::SerializeBufferFull => LinkError::Memory,
                other => LinkError::Garbage(other.to_string()),
            });
        }
        let length = (self.outbox.len() - from - HEAD) as u64;
        self.outbox[from..from + HEAD].copy_from_slice(&length.to_ne_bytes());
        self.flush();
        Ok(())
    }

    /// The next message, if all of it has arrived.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Option<Result<T, LinkError>> {
        let head = self.inbox.get(..HEAD)?;
        let length = u64::from_ne_bytes(head.try_into().expect("so many bytes")) as usize;
        let body = self.inbox[HEAD..].get(..length)?;
        let message = postcard::from_bytes(body).map_err(|error| LinkError::Garbage(error.to_string()));
        self.inbox.drain(..HEAD + length);
        if self.inbox.is_empty() && self.inbox.capacity() > KEPT {
            self.inbox = Vec::new();
        }
        Some(message)
    }

    /// Sends and receives what is possible without waiting.
    pub(super) fn pump(&mut self) {
        self.flush();
        self.fill();
    }

    /// What to poll for: bytes to receive, or room for what is to be sent. `None` where
    /// neither can come any more.
    pub(super) fn poll(&self) -> Option<PollFd<'_>> {
        let flags = if self.has_unsent() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        (!self.closed).then(|| PollFd::new(&self.stream, flags))
    }

    /// Sends `message` and waits until all of it is sent.
    pub(super) fn send<T: Serialize>(&mut self, message: &T) -> Result<(), LinkError> {
        self.post(message)?;
        self.finish()
    }

    /// Waits until all that was posted is sent.
    pub(super) fn finish(&mut self) -> Result<(), LinkError> {
        while self.has_unsent() {
            self.wait();
        }
        if self.write_closed { Err(LinkError::Gone) } else { Ok(()) }
    }

    /// Waits for the next message.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<T, LinkError> {
        loop {
            if let Some(message) = self.next() {
                return message;
            }
            if self.closed {
                return Err(LinkError::Gone);
            }
            self.wait();
        }
    }

    fn wait(&mut self) {
        if let Some(fd) = self.poll() {
            let _ = poll(&mut [fd], None);
        }
        self.pump();
    }

    fn flush(&mut self) {
        while self.has_unsent() {
            match self.stream.write(&self.outbox[self.sent..]) {
                Ok(n) => {
                    self.sent += n;
                    self.moved += n as u64;
                    self.is_read |= self.was_full;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.was_full = true;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What the other end sent before can still be read.
                Err(_) => {
                    self.write_closed = true;
                    self.outbox.clear();
                    self.sent = 0;
                }
            }
        }
        if !self.has_unsent() {
            self.sent = 0;
            self.outbox.clear();
            self.outbox.shrink_to(KEPT);
        } else if self.sent > self.outbox.len() / 2 {
            self.outbox.drain(..self.sent);
            self.sent = 0;
        }
    }

    fn fill(&mut self) {
        let mut piece = [0; 1 << 16];
        let enough = self.inbox.len().saturating_add(READ_LIMIT);
        while !self.closed && self.inbox.len() < enough {
            match self.stream.read(&mut piece) {
                Ok(0) => self.closed = true,
                // What this end has no memory for ends the talk.
                Ok(n) if self.inbox.try_reserve(n).is_err() => {
                    self.closed = true;
                    self.inbox = Vec::new();
                }
                Ok(n) => {
                    self.inbox.extend_from_slice(&piece[..n]);
                    self.moved += n as u64;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.closed = true,
            }
        }
    }

    /// Sends a file descriptor; must come before any message.
    pub(super) fn send_fd(&self, fd: BorrowedFd<'_>) -> std::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [fd];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&self.stream, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
        Ok(())
    }

    /// Receives a file descriptor; must come before any message.
    pub(super) fn receive_fd(&self) -> std::io::Result<OwnedFd> {
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut byte = [0];
            let flags = RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.stream, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
                Ok(message) if message.bytes == 0 => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {
                    let mut fds = control.drain().filter_map(|message| match message {
                        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                        _ => None,
                    });
                    let fd = fds.next().and_then(|mut fds| fds.next());
                    return fd.ok_or_else(|| ErrorKind::InvalidData.into());
                }
                Err(rustix::io::Errno::AGAIN) => {
                    let _ = poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], None);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits up to `time` for the other end of `socket` to close. Returns whether it is closed.
pub(super) fn hangs_up(socket: BorrowedFd<'_>, time: Duration) -> bool {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let mut fds = [PollFd::new(&socket, PollFlags::RDHUP)];
    let ready = poll(&mut fds, Some(&time)).is_ok_and(|n| n > 0);
    ready && fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, AsRawFd};

    fn pair() -> (Link, Link) {
        let (a, b) = UnixStream::pair().unwrap();
        (Link::new(a.into()).unwrap(), Link::new(b.into()).unwrap())
    }

    #[test]
    fn long_messages_that_cross_do_not_wait_for_each_other() {
        let (mut a, mut b) = pair();
        let long = vec![7u8; 10 << 20];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                b.send(&long).unwrap();
                assert_eq!(b.receive::<Vec<u8>>().unwrap(), long);
            });
            a.send(&long).unwrap();
            assert_eq!(a.receive::<Vec<u8>>().unwrap(), long);
        });
    }

    #[test]
    fn what_nobody_reads_waits_in_the_outbox_and_goes_when_it_is_read() {
        let (mut a, mut b) = pair();
        let long: Vec<u32> = (0..1 << 20).collect();
        a.post(&long).unwrap();
        a.post(&"behind it").unwrap();
        a.pump();
        assert!(a.has_unsent() && !a.is_read());
        let before = a.moved();
        a.pump();
        assert_eq!(a.moved(), before);
        loop {
            b.pump();
            if let Some(got) = b.next::<Vec<u32>>() {
                assert_eq!(got.unwrap(), long);
                break;
            }
            a.pump();
        }
        a.pump();
        b.pump();
        assert_eq!(b.next::<String>().unwrap().unwrap(), "behind it");
        assert!(!a.has_unsent() && a.is_read() && a.moved() > before);
        assert!(a.outbox.capacity() <= KEPT && b.inbox.capacity() <= KEPT);
    }

    #[test]
    fn an_end_that_is_gone_is_noticed_and_what_it_said_before_is_not_lost() {
        let (mut a, mut b) = pair();
        b.send(&"last words").unwrap();
        assert!(!hangs_up(a.stream.as_fd(), Duration::ZERO));
        drop(b);
        assert!(hangs_up(a.stream.as_fd(), Duration::ZERO));
        assert!(matches!(a.send(&vec![0u8; 1 << 20]), Err(LinkError::Gone)));
        assert!(a.is_closed());
        assert_eq!(a.receive::<String>().unwrap(), "last words");
        assert!(matches!(a.receive::<String>(), Err(LinkError::Gone)));
        assert!(matches!(a.send(&"anybody?"), Err(LinkError::Gone)));
    }

    #[test]
    fn half_a_message_is_none_and_its_rest_completes_it() {
        let (mut a, b) = pair();
        let mut whole = 1u64.to_ne_bytes().to_vec();
        whole.push(5);
        let mut raw = b.stream;
        for (k, byte) in whole.iter().enumerate() {
            assert!(a.next::<u8>().is_none(), "after {k} bytes");
            raw.write_all(&[*byte]).unwrap();
            a.pump();
        }
        assert_eq!(a.next::<u8>().unwrap().unwrap(), 5);
    }

    #[test]
    fn a_length_that_no_message_has_is_waited_for_without_harm() {
        let (mut a, b) = pair();
        let mut raw = b.stream;
        raw.write_all(&[255; 100]).unwrap();
        a.pump();
        assert!(a.next::<u8>().is_none());
    }

    #[test]
    fn a_file_descriptor_arrives_before_the_first_message() {
        let (mut a, mut b) = pair();
        let file = std::fs::File::open("/dev/null").unwrap();
        a.send_fd(file.as_fd()).unwrap();
        a.send(&1u8).unwrap();
        assert!(b.receive_fd().unwrap().as_raw_fd() > 2);
        assert_eq!(b.receive::<u8>().unwrap(), 1);
    }
}
