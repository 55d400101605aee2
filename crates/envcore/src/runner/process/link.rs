//! The socket between parent and worker.
//!
//! Whoever writes reads meanwhile, so that two long messages that cross do not
//! wait for each other. An end that is closed is noticed by either.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::time::Timespec;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Between two looks at whether to go on waiting.
const SLICE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

const HEAD: usize = 8;

/// Why no message came or went.
#[derive(Debug)]
pub(super) enum Cut<E> {
    /// The other end is gone.
    Gone,
    /// Whoever was asked whether to go on said no.
    Stopped(E),
    /// Bytes that are no message.
    Garbage(String),
}

pub(super) struct Link {
    stream: UnixStream,
    /// What has arrived and was not taken.
    inbox: Vec<u8>,
    gone: bool,
}

impl Link {
    pub(super) fn new(socket: OwnedFd) -> std::io::Result<Self> {
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(true)?;
        Ok(Link { stream, inbox: Vec::new(), gone: false })
    }

    /// Whether the other end is closed.
    pub(super) fn is_gone(&mut self) -> bool {
        self.fill();
        self.gone
    }

    /// Sends `message`; `go_on` is asked every now and then while that takes
    /// time.
    pub(super) fn send<T: Serialize, E>(
        &mut self,
        message: &T,
        mut go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<(), Cut<E>> {
        let body = postcard::to_allocvec(message).map_err(|e| Cut::Garbage(e.to_string()))?;
        let mut bytes = (body.len() as u64).to_ne_bytes().to_vec();
        bytes.extend(body);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN | PollFlags::OUT);
                    self.fill();
                    if self.gone {
                        return Err(Cut::Gone);
                    }
                    // Half a message is none: only the end of the other side
                    // ends this, or of this one.
                    if rest.len() == bytes.len() {
                        go_on().map_err(Cut::Stopped)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.gone = true;
                    return Err(Cut::Gone);
                }
            }
        }
        Ok(())
    }

    /// The next message; `go_on` is asked every now and then until it is there.
    pub(super) fn receive<T: DeserializeOwned, E>(
        &mut self,
        mut go_on: impl FnMut() -> Result<(), E>,
    ) -> Result<T, Cut<E>> {
        loop {
            if let Some(body) = self.take() {
                return postcard::from_bytes(&body).map_err(|e| Cut::Garbage(e.to_string()));
            }
            if self.gone {
                return Err(Cut::Gone);
            }
            self.fill();
            if !self.is_complete() && !self.gone {
                self.wait(PollFlags::IN);
                self.fill();
                if !self.is_complete() && !self.gone {
                    go_on().map_err(Cut::Stopped)?;
                }
            }
        }
    }

    fn length(&self) -> Option<usize> {
        let head = self.inbox.get(..HEAD)?;
        Some(u64::from_ne_bytes(head.try_into().expect("so many bytes")) as usize)
    }

    fn is_complete(&self) -> bool {
        self.length().is_some_and(|length| self.inbox.len() - HEAD >= length)
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        if !self.is_complete() {
            return None;
        }
        let end = HEAD + self.length()?;
        let body = self.inbox[HEAD..end].to_vec();
        self.inbox.drain(..end);
        Some(body)
    }

    /// Takes in what is there.
    fn fill(&mut self) {
        let mut piece = [0; 1 << 16];
        while !self.gone {
            match self.stream.read(&mut piece) {
                Ok(0) => self.gone = true,
                Ok(n) => self.inbox.extend_from_slice(&piece[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
        }
    }

    fn wait(&self, flags: PollFlags) {
        let _ = poll(&mut [PollFd::new(&self.stream, flags)], Some(&SLICE));
    }

    /// Sends a file descriptor, before any message.
    pub(super) fn send_fd(&self, fd: BorrowedFd<'_>) -> std::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [fd];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        sendmsg(&self.stream, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
        Ok(())
    }

    /// Receives a file descriptor, before any message.
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
                Err(rustix::io::Errno::AGAIN) => self.wait(PollFlags::IN),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits up to `time` for the other end of `socket` to be closed; whether it is.
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

    fn on() -> Result<(), ()> {
        Ok(())
    }

    #[test]
    fn long_messages_that_cross_do_not_wait_for_each_other() {
        let (mut a, mut b) = pair();
        let long = vec![7u8; 10 << 20];
        std::thread::scope(|scope| {
            scope.spawn(|| {
                b.send(&long, on).unwrap();
                assert_eq!(b.receive::<Vec<u8>, ()>(on).unwrap(), long);
            });
            a.send(&long, on).unwrap();
            assert_eq!(a.receive::<Vec<u8>, ()>(on).unwrap(), long);
        });
    }

    #[test]
    fn an_end_that_is_gone_is_noticed_and_what_it_said_before_is_not_lost() {
        let (mut a, mut b) = pair();
        b.send(&"last words", on).unwrap();
        assert!(!hangs_up(a.stream.as_fd(), Duration::ZERO));
        drop(b);
        assert!(hangs_up(a.stream.as_fd(), Duration::ZERO) && a.is_gone());
        assert_eq!(a.receive::<String, ()>(on).unwrap(), "last words");
        assert!(matches!(a.receive::<String, ()>(on), Err(Cut::Gone)));
        assert!(matches!(a.send(&"anybody?", on), Err(Cut::Gone)));
    }

    #[test]
    fn a_wait_can_be_stopped_and_taken_up_again() {
        let (mut a, mut b) = pair();
        assert!(matches!(a.receive::<u8, &str>(|| Err("enough")), Err(Cut::Stopped("enough"))));
        b.send(&5u8, on).unwrap();
        assert_eq!(a.receive::<u8, ()>(on).unwrap(), 5);
    }

    #[test]
    fn a_file_descriptor_arrives_before_the_first_message() {
        let (a, mut b) = pair();
        let file = std::fs::File::open("/dev/null").unwrap();
        a.send_fd(file.as_fd()).unwrap();
        let mut a = a;
        a.send(&1u8, on).unwrap();
        assert!(b.receive_fd().unwrap().as_raw_fd() > 2);
        assert_eq!(b.receive::<u8, ()>(on).unwrap(), 1);
    }
}
