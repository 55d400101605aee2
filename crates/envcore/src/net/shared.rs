//! Memory that both sides of a Unix socket share.
//!
//! The memory is a memfd, which is read by `pread` and written by `pwrite` and never mapped. A
//! peer may cut the file short at any time. A read of a file that is too short is an error,
//! where a look at a map would end this process. It also costs one copy, as a map would.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::patience::PeerPatience;
use super::stream::{BrokenConnection, MAX_PARTS, wait_for};
use super::wire::SEND_FD;

/// The memory of one connection.
pub(super) struct SharedPayloads {
    file: File,
    /// Where step data begins; actions begin at 0.
    steps_at: u64,
}

impl SharedPayloads {
    /// New memory of `size` bytes, all zeros. Pages that nobody writes take no memory.
    pub(super) fn new(steps_at: usize, size: usize) -> std::io::Result<Self> {
        let fd = rustix::fs::memfd_create("netenv", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let file = File::from(fd);
        file.set_len(size as u64)?;
        // The peer can make the memory neither larger nor shorter.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok(SharedPayloads { file, steps_at: steps_at as u64 })
    }

    /// Sends the memory to the other side.
    pub(super) fn send(&self, socket: &UnixStream) -> Result<(), BrokenConnection> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [self.file.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let sent = sendmsg(socket, &[IoSlice::new(&SEND_FD)], &mut control, SendFlags::NOSIGNAL);
        let sent = sent.map_err(std::io::Error::from)?;
        // A socket that has just been read empty takes seven bytes at once.
        let mut rest = socket;
        rest.write_all(&SEND_FD[sent..]).map_err(BrokenConnection::from)
    }

    /// The memory that the other side sends, of `size` bytes.
    pub(super) fn receive(
        socket: &UnixStream,
        (steps_at, size): (usize, usize),
        patience: PeerPatience<'_>,
    ) -> Result<Self, BrokenConnection> {
        let until = Instant::now() + patience.idle();
        let (mut word, mut at, mut received) = ([0; SEND_FD.len()], 0, None);
        while at < word.len() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC;
            match recvmsg(socket, &mut [IoSliceMut::new(&mut word[at..])], &mut control, flags) {
                Ok(message) if message.bytes == 0 => return Err(BrokenConnection::Closed),
                Ok(message) => {
                    at += message.bytes;
                    let fds = control.drain().filter_map(|message| match message {
                        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                        _ => None,
                    });
                    received = received.or(fds.flatten().next());
                }
                Err(rustix::io::Errno::AGAIN) => {
                    let came = |until| wait_for(&mut [PollFd::new(socket, PollFlags::IN)], until);
                    if !patience.wait(until, came)? {
                        return Err(BrokenConnection::Garbage("it sent no shared memory in time".into()));
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        let fd: OwnedFd = match received {
            Some(fd) if word == SEND_FD => fd,
            _ => {
                return Err(BrokenConnection::Garbage(
                    "it sent no shared memory where that was asked for".into(),
                ));
            }
        };
        // Only a memfd has seals. A read of any other file, a pipe for instance, might wait for ever.
        if rustix::fs::fcntl_get_seals(&fd).is_err() {
            return Err(BrokenConnection::Garbage("the shared memory that it sent is no memfd".into()));
        }
        let file = File::from(fd);
        let len = file.metadata()?.len();
        if len < size as u64 {
            return Err(BrokenConnection::Garbage(format!(
                "its shared memory has {len} bytes, and {size} are needed"
            )));
        }
        Ok(SharedPayloads { file, steps_at: steps_at as u64 })
    }

    pub(super) fn read_actions(&self, bytes: &mut [u8]) -> Result<(), BrokenConnection> {
        self.file.read_exact_at(bytes, 0).map_err(cut_short)
    }

    /// Writes actions from byte `at` of them on.
    pub(super) fn write_actions(&self, at: usize, bytes: &[u8]) -> Result<(), BrokenConnection> {
        self.file.write_all_at(bytes, at as u64).map_err(cut_short)
    }

    /// Reads step data from byte `at` of it on.
    pub(super) fn read_steps(&self, at: usize, bytes: &mut [u8]) -> Result<(), BrokenConnection> {
        self.file.read_exact_at(bytes, self.steps_at + at as u64).map_err(cut_short)
    }

    /// Writes `parts`, one after the other, as step data. They need not be copied together.
    pub(super) fn write_steps(&self, parts: &[&[u8]]) -> Result<(), BrokenConnection> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let (mut rest, mut at) = (&mut slices[..], self.steps_at);
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let some = &rest[..rest.len().min(MAX_PARTS)];
            match rustix::io::pwritev(&self.file, some, at) {
                Ok(0) => return Err(cut_short(ErrorKind::UnexpectedEof.into())),
                Ok(written) => {
                    at += written as u64;
                    IoSlice::advance_slices(&mut rest, written);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(cut_short(error.into())),
            }
        }
        Ok(())
    }
}

fn cut_short(error: std::io::Error) -> BrokenConnection {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::PermissionDenied => {
            BrokenConnection::Garbage("it cut its shared memory short".into())
        }
        _ => BrokenConnection::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn soon() -> PeerPatience<'static> {
        PeerPatience::new(Duration::from_secs(5))
    }

    #[test]
    fn what_one_side_writes_the_other_reads() {
        let (a, b) = UnixStream::pair().unwrap();
        let ours = SharedPayloads::new(192, 702).unwrap();
        ours.send(&a).unwrap();
        let theirs = SharedPayloads::receive(&b, (192, 702), soon()).unwrap();
        theirs.write_actions(0, &[1, 2, 3]).unwrap();
        ours.write_steps(&[&[4], &[], &[5, 6]]).unwrap();
        let mut three = [0; 3];
        ours.read_actions(&mut three).unwrap();
        assert_eq!(three, [1, 2, 3]);
        theirs.read_steps(0, &mut three).unwrap();
        assert_eq!(three, [4, 5, 6]);
        // Nobody can cut off or lengthen what this server made.
        assert!(theirs.file.set_len(0).is_err() && theirs.file.set_len(1 << 20).is_err());
    }

    #[test]
    fn memory_that_a_peer_cuts_short_is_an_error_and_no_signal() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = File::from(rustix::fs::memfd_create("netenv", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(702).unwrap();
        let theirs = SharedPayloads { file, steps_at: 192 };
        theirs.send(&a).unwrap();
        let ours = SharedPayloads::receive(&b, (192, 702), soon()).unwrap();
        theirs.file.set_len(200).unwrap();
        let told = ours.read_steps(0, &mut [0; 64]).unwrap_err().to_string();
        assert!(told.contains("cut its shared memory short"), "{told}");
    }

    #[test]
    fn what_is_no_memory_is_refused() {
        let refused = |send: &dyn Fn(&UnixStream)| {
            let (a, b) = UnixStream::pair().unwrap();
            send(&a);
            drop(a);
            SharedPayloads::receive(&b, (192, 702), soon()).map(drop).unwrap_err().to_string()
        };
        let file = |file: File| {
            refused(&|socket| {
                SharedPayloads { file: file.try_clone().unwrap(), steps_at: 0 }.send(socket).unwrap()
            })
        };
        assert!(file(File::open("/dev/zero").unwrap()).contains("no memfd"));
        let short = File::from(rustix::fs::memfd_create("netenv", MemfdFlags::CLOEXEC).unwrap());
        assert!(file(short).contains("has 0 bytes"));
        assert!(refused(&|mut socket| socket.write_all(&SEND_FD).unwrap()).contains("no shared memory"));
        assert!(refused(&|mut socket| socket.write_all(b"send_").unwrap()).contains("closed"));
    }
}
