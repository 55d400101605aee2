//! Sockets of either kind. No call of a socket blocks: every wait is a `poll` with an end.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with, sockopt};
use rustix::time::Timespec;

use super::address::ServerAddress;
use super::patience::{MessagePace, PeerPatience};
use super::tls::{ClientTls, ServerTls, TlsStream};
use crate::error::{Error, Result};
use crate::runner::available_cores;

/// How many parts are written by one call of the system.
pub(super) const MAX_PARTS: usize = 64;

/// From how many bytes on the copy of a message costs more than several calls of the system.
pub(super) const LARGE: usize = 1 << 16;

/// How long a thread polls for what the other side sends next before it sleeps, where `others`
/// threads may poll too. A thread does not poll where the others are as many as the cores, for
/// they would poll in each other's time.
pub(super) fn spin_time(others: usize) -> Duration {
    // The system reads files to count the cores.
    static CORES: OnceLock<usize> = OnceLock::new();
    let is_alone = others < *CORES.get_or_init(available_cores);
    if is_alone { Duration::from_micros(50) } else { Duration::ZERO }
}

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub(super) enum BrokenConnection {
    #[error("the other side closed the connection")]
    Closed,
    #[error("the other side was silent for {0:?}")]
    Silent(Duration),
    #[error("{0}")]
    Io(std::io::Error),
    /// What the other side sent is no netenv, or asks for what may not be.
    #[error("{0}")]
    Garbage(String),
    /// The envs failed.
    #[error("{0}")]
    Envs(Error),
    #[error("the server is ending")]
    Ending,
}

impl From<std::io::Error> for BrokenConnection {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => {
                BrokenConnection::Closed
            }
            _ => BrokenConnection::Io(error),
        }
    }
}

/// A connected socket.
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
    Unix(UnixStream),
}

impl Stream {
    /// A connection to `address`.
    pub(super) fn connect(
        address: &ServerAddress,
        patience: PeerPatience<'_>,
    ) -> Result<Self, BrokenConnection> {
        let stream = match address {
            ServerAddress::Unix(path) => {
                let at = SocketAddrUnix::new(path).map_err(std::io::Error::from)?;
                Stream::Unix(connected(AddressFamily::UNIX, &at, patience)?.into())
            }
            ServerAddress::Tcp(host, port) => {
                let mut last = std::io::Error::new(ErrorKind::NotFound, "the host has no address").into();
                let mut made = None;
                for at in (host.as_str(), *port).to_socket_addrs()? {
                    let family = match at {
                        SocketAddr::V4(_) => AddressFamily::INET,
                        SocketAddr::V6(_) => AddressFamily::INET6,
                    };
                    match connected(family, &at, patience) {
                        Ok(socket) => {
                            made = Some(socket);
                            break;
                        }
                        Err(interrupt @ BrokenConnection::Envs(_)) => return Err(interrupt),
                        Err(error) => last = error,
                    }
                }
                Stream::Tcp(made.ok_or(last)?.into())
            }
        };
        Ok(stream.prepared()?)
    }

    /// The socket, which does not block from here on.
    pub(super) fn prepared(self) -> std::io::Result<Self> {
        match &self {
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
            }
            Stream::Unix(stream) => stream.set_nonblocking(true)?,
            Stream::Tls(_) => {}
        }
        Ok(self)
    }

    /// The server's side of TLS over this socket, if it is of TCP.
    pub(super) fn secured(
        self,
        tls: &ServerTls,
        patience: PeerPatience<'_>,
    ) -> Result<Self, BrokenConnection> {
        match self {
            Stream::Tcp(socket) => Stream::Tls(Box::new(tls.accept(socket)?)).shaken(patience),
            stream => Ok(stream),
        }
    }

    /// The client's side of TLS over this socket, if it is of TCP.
    pub(super) fn secured_to(
        self,
        tls: &ClientTls,
        host: &str,
        patience: PeerPatience<'_>,
    ) -> Result<Self, BrokenConnection> {
        match self {
            Stream::Tcp(socket) => Stream::Tls(Box::new(tls.connect(socket, host)?)).shaken(patience),
            stream => Ok(stream),
        }
    }

    /// The socket once both sides have shaken hands.
    fn shaken(mut self, patience: PeerPatience<'_>) -> Result<Self, BrokenConnection> {
        let pace = MessagePace::new(0, patience.idle());
        loop {
            let Stream::Tls(stream) = &mut self else { return Ok(self) };
            let flags = if !stream.flush()? {
                PollFlags::OUT
            } else if !stream.is_handshaking() {
                return Ok(self);
            } else if stream.fill()? {
                continue;
            } else {
                PollFlags::IN
            };
            if !patience.wait(pace.until(), |until| self.wait(flags, until))? {
                return Err(BrokenConnection::Silent(patience.idle()));
            }
        }
    }

    /// Sends what the socket has not taken yet of what was written. Returns whether all is sent.
    pub(super) fn flush_some(&mut self) -> Result<bool, BrokenConnection> {
        match self {
            Stream::Tls(stream) => stream.flush(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(true),
        }
    }

    /// Whether what is written becomes records of TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, Stream::Tls(_))
    }

    /// The Unix socket, through which descriptors can be sent.
    pub(super) fn as_unix(&self) -> Option<&UnixStream> {
        match self {
            Stream::Unix(stream) => Some(stream),
            Stream::Tcp(_) | Stream::Tls(_) => None,
        }
    }

    /// Waits until `until` for what `flags` say. Returns whether it came.
    pub(super) fn wait(&self, flags: PollFlags, until: Instant) -> std::io::Result<bool> {
        if flags.contains(PollFlags::IN)
            && let Stream::Tls(stream) = self
            && stream.has_ready()
        {
            return Ok(true);
        }
        wait_for(&mut [PollFd::new(self, flags)], until)
    }

    /// Polls for bytes for a moment, which takes less time than to be put to sleep and woken. A
    /// peer that answers within microseconds is then heard at once.
    pub(super) fn spin(&self, time: Duration) -> std::io::Result<()> {
        let began = Instant::now();
        while began.elapsed() < time && !self.wait(PollFlags::IN, began)? {
            // Whoever is to answer may need this core.
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Reads what is there, without waiting; `None` where nothing is there.
    pub(super) fn read_some(&mut self, bytes: &mut [u8]) -> Result<Option<usize>, BrokenConnection> {
        let read = match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Tls(stream) => return stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        };
        match moved(read)? {
            Some(0) if !bytes.is_empty() => Err(BrokenConnection::Closed),
            moved => Ok(moved),
        }
    }

    /// Writes what the socket takes, without waiting; `None` where the socket is full.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> Result<Option<usize>, BrokenConnection> {
        let written = match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Tls(stream) => return stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        };
        moved(written)
    }

    /// Fills `bytes`. The other side may be slow; see [`MessagePace`].
    pub(super) fn read_full(
        &mut self,
        bytes: &mut [u8],
        patience: PeerPatience<'_>,
    ) -> Result<(), BrokenConnection> {
        let (mut pace, mut at) = (MessagePace::new(bytes.len(), patience.idle()), 0);
        while at < bytes.len() {
            match self.read_some(&mut bytes[at..])? {
                Some(n) => {
                    at += n;
                    pace.advance();
                }
                None if patience.wait(pace.until(), |until| self.wait(PollFlags::IN, until))? => {}
                None => return Err(BrokenConnection::Silent(patience.idle())),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`. The other side may be slow; see [`MessagePace`].
    pub(super) fn write_full(
        &mut self,
        bytes: &[u8],
        patience: PeerPatience<'_>,
    ) -> Result<(), BrokenConnection> {
        self.write_parts(&[bytes], patience)
    }

    /// Writes all of `parts`, one after the other, as [`write_full`](Self::write_full) does. They
    /// need not be copied together.
    pub(super) fn write_parts(
        &mut self,
        parts: &[&[u8]],
        patience: PeerPatience<'_>,
    ) -> Result<(), BrokenConnection> {
        let joined;
        // A record of TLS is made of each part.
        let parts = match self {
            Stream::Tls(_) if parts.len() > 1 => {
                joined = parts.concat();
                &[&joined[..]]
            }
            _ => parts,
        };
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        let mut pace = MessagePace::new(parts.iter().map(|part| part.len()).sum(), patience.idle());
        loop {
            let is_taken = if !rest.is_empty() {
                let taken = self.write_some_of(rest)?;
                IoSlice::advance_slices(&mut rest, taken.unwrap_or(0));
                taken.is_some()
            } else if self.flush_some()? {
                return Ok(());
            } else {
                false
            };
            if is_taken {
                pace.advance();
            } else if !patience.wait(pace.until(), |until| self.wait(PollFlags::OUT, until))? {
                return Err(BrokenConnection::Silent(patience.idle()));
            }
        }
    }

    /// Writes what the socket takes of `parts`, without waiting; `None` where the socket is full.
    fn write_some_of(&mut self, parts: &[IoSlice<'_>]) -> Result<Option<usize>, BrokenConnection> {
        // The system takes so many parts by one call.
        let parts = &parts[..parts.len().min(MAX_PARTS)];
        moved(match self {
            Stream::Tcp(stream) => stream.write_vectored(parts),
            Stream::Tls(stream) => return stream.write(&parts[0]),
            Stream::Unix(stream) => stream.write_vectored(parts),
        })
    }

    /// Ends the connection for both sides, whoever else has the socket: the child of a fork, for
    /// instance.
    pub(super) fn shut(&self) {
        let _ = rustix::net::shutdown(self, rustix::net::Shutdown::Both);
    }

    /// Lets the system ask the other side now and then whether it is still there, where it is
    /// silent for longer than `idle`.
    pub(super) fn keep_alive(&self, idle: Duration) -> std::io::Result<()> {
        use rustix::net::sockopt;
        if matches!(self, Stream::Tcp(_) | Stream::Tls(_)) {
            let idle = Duration::from_secs(idle.as_secs().clamp(1, 32767));
            sockopt::set_socket_keepalive(self, true)?;
            sockopt::set_tcp_keepidle(self, idle)?;
            sockopt::set_tcp_keepintvl(self, idle)?;
            sockopt::set_tcp_keepcnt(self, 3)?;
        }
        Ok(())
    }
}

/// What moved by a call that does not wait; `None` where nothing could.
fn moved(moved: std::io::Result<usize>) -> Result<Option<usize>, BrokenConnection> {
    match moved {
        Ok(n) => Ok(Some(n)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A socket that is connected to `address`.
fn connected(
    family: AddressFamily,
    address: &impl SocketAddrArg,
    patience: PeerPatience<'_>,
) -> Result<OwnedFd, BrokenConnection> {
    let until = Instant::now() + patience.idle();
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None).map_err(std::io::Error::from)?;
    loop {
        match rustix::net::connect(&socket, address) {
            Ok(()) => return Ok(socket),
            Err(Errno::INPROGRESS) => break,
            // So many others wait for the owner of a Unix socket to accept them that there is no
            // more room. Nothing tells when there is.
            Err(Errno::AGAIN) if Instant::now() < until => {
                patience.wait(Instant::now() + Duration::from_millis(10), |until| {
                    std::thread::sleep(until.saturating_duration_since(Instant::now()));
                    Ok(false)
                })?;
            }
            Err(Errno::AGAIN) => return Err(BrokenConnection::Silent(patience.idle())),
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    }
    if !patience.wait(until, |until| wait_for(&mut [PollFd::new(&socket, PollFlags::OUT)], until))? {
        return Err(BrokenConnection::Silent(patience.idle()));
    }
    sockopt::socket_error(&socket).and_then(|result| result).map_err(std::io::Error::from)?;
    Ok(socket)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.socket.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Waits until `until` for any of `fds`. Returns whether one is ready.
pub(super) fn wait_for(fds: &mut [PollFd<'_>], until: Instant) -> std::io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(fds, Some(&time)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
