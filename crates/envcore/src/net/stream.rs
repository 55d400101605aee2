//! Sockets of either kind. No call of a socket blocks: every wait is a `poll` with an end.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::tls::{ClientTls, ServerTls, TlsStream};
use crate::error::{Error, Result};
use crate::runner::available_cores;

/// How long a thread polls before it sleeps, where `others` threads may poll too: not at all
/// where they are as many as the cores, for they would poll in each other's time.
pub(super) fn spin_time(others: usize) -> Duration {
    // The system reads files to count the cores.
    static CORES: OnceLock<usize> = OnceLock::new();
    if others < *CORES.get_or_init(available_cores) { Duration::from_micros(50) } else { Duration::ZERO }
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// A host's name or number, and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for ServerAddress {
    type Err = Error;

    /// The address that `host:port` or `unix:path` names.
    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            |why: &str| Error::Argument(format!("addr is '{text}', {why}: give 'host:port' or 'unix:path'"));
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(wrong("without a path"))
            } else {
                Ok(ServerAddress::Unix(path.into()))
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("without a port"))?;
        let port = port.parse().map_err(|_| wrong("whose port is no number from 0 to 65535"))?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() { Err(wrong("without a host")) } else { Ok(ServerAddress::Tcp(host.into(), port)) }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerAddress::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            ServerAddress::Tcp(host, port) => write!(f, "{host}:{port}"),
            ServerAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
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

/// A socket that waits for connections.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Binds `address`. A socket file that no server listens at is replaced.
    pub(super) fn bind(address: &ServerAddress) -> std::io::Result<Self> {
        match address {
            ServerAddress::Tcp(host, port) => {
                let listener = TcpListener::bind((host.as_str(), *port))?;
                listener.set_nonblocking(true)?;
                Ok(Listener::Tcp(listener))
            }
            ServerAddress::Unix(path) => {
                let listener = match UnixListener::bind(path) {
                    Err(error)
                        if error.kind() == ErrorKind::AddrInUse && UnixStream::connect(path).is_err() =>
                    {
                        use std::os::unix::fs::FileTypeExt;
                        // Only a socket is removed, never a file with somebody's data.
                        if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
                            return Err(error);
                        }
                        std::fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    listener => listener?,
                };
                listener.set_nonblocking(true)?;
                Ok(Listener::Unix(listener, path.clone()))
            }
        }
    }

    /// Where the socket listens, with the port that the system chose.
    pub(super) fn address(&self) -> std::io::Result<ServerAddress> {
        match self {
            Listener::Tcp(listener) => {
                let at = listener.local_addr()?;
                Ok(ServerAddress::Tcp(at.ip().to_string(), at.port()))
            }
            Listener::Unix(_, path) => Ok(ServerAddress::Unix(path.clone())),
        }
    }

    /// A connection that waits, if there is one, and the name of its other side.
    pub(super) fn accept(&self) -> std::io::Result<Option<(Stream, String)>> {
        let accepted = match self {
            Listener::Tcp(listener) => {
                listener.accept().map(|(stream, peer)| (Stream::Tcp(stream), peer.to_string()))
            }
            Listener::Unix(listener, path) => listener
                .accept()
                .map(|(stream, _)| (Stream::Unix(stream), format!("unix:{}", path.display()))),
        };
        match accepted {
            Ok((stream, peer)) => Ok(Some((stream.prepared()?, peer))),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
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
    /// A connection to `address`, made within `time`.
    pub(super) fn connect(address: &ServerAddress, time: Duration) -> std::io::Result<Self> {
        let stream = match address {
            ServerAddress::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            ServerAddress::Tcp(host, port) => {
                let mut last = std::io::Error::new(ErrorKind::NotFound, "the host has no address");
                let mut connected = None;
                for at in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&at, time) {
                        Ok(stream) => {
                            connected = Some(stream);
                            break;
                        }
                        Err(error) => last = error,
                    }
                }
                Stream::Tcp(connected.ok_or(last)?)
            }
        };
        stream.prepared()
    }

    fn prepared(self) -> std::io::Result<Self> {
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

    /// The server's side of TLS over this socket, if it is of TCP. The other side may be silent
    /// for `idle`.
    pub(super) fn secured(self, tls: &ServerTls, idle: Duration) -> Result<Self, BrokenConnection> {
        match self {
            Stream::Tcp(socket) => Stream::Tls(Box::new(tls.accept(socket)?)).shaken(idle),
            stream => Ok(stream),
        }
    }

    /// The client's side of TLS over this socket, if it is of TCP.
    pub(super) fn secured_to(
        self,
        tls: &ClientTls,
        host: &str,
        idle: Duration,
    ) -> Result<Self, BrokenConnection> {
        match self {
            Stream::Tcp(socket) => Stream::Tls(Box::new(tls.connect(socket, host)?)).shaken(idle),
            stream => Ok(stream),
        }
    }

    /// The socket once both sides have shaken hands.
    fn shaken(mut self, idle: Duration) -> Result<Self, BrokenConnection> {
        let pace = Pace::new(0, idle);
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
            if !self.wait(flags, pace.until())? {
                return Err(BrokenConnection::Silent(idle));
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
        match read {
            Ok(0) if !bytes.is_empty() => Err(BrokenConnection::Closed),
            Ok(n) => Ok(Some(n)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes what the socket takes, without waiting; `None` where the socket is full.
    pub(super) fn write_some(&mut self, bytes: &[u8]) -> Result<Option<usize>, BrokenConnection> {
        let written = match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Tls(stream) => return stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        };
        match written {
            Ok(n) => Ok(Some(n)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Fills `bytes`. The other side may be silent for `idle`, and slow; see [`Pace`].
    pub(super) fn read_full(&mut self, bytes: &mut [u8], idle: Duration) -> Result<(), BrokenConnection> {
        let (mut pace, mut at) = (Pace::new(bytes.len(), idle), 0);
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

    /// Writes all of `bytes`. The other side may take nothing for `idle`, and be slow; see
    /// [`Pace`].
    pub(super) fn write_full(&mut self, bytes: &[u8], idle: Duration) -> Result<(), BrokenConnection> {
        let (mut pace, mut at) = (Pace::new(bytes.len(), idle), 0);
        loop {
            let is_taken = if at < bytes.len() {
                let taken = self.write_some(&bytes[at..])?;
                at += taken.unwrap_or(0);
                taken.is_some()
            } else if self.flush_some()? {
                return Ok(());
            } else {
                false
            };
            if is_taken {
                pace.advance();
            } else if !self.wait(PollFlags::OUT, pace.until())? {
                return Err(BrokenConnection::Silent(idle));
            }
        }
    }
}

/// The time that a message may take: at most `idle` without any byte, and in all as long as
/// 64 KiB a second take. So a peer that sends a byte now and then is not waited for, and one
/// with a slow line is.
struct Pace {
    idle: Duration,
    moved: Instant,
    end: Instant,
}

impl Pace {
    fn new(bytes: usize, idle: Duration) -> Self {
        let now = Instant::now();
        Pace { idle, moved: now, end: now + idle + Duration::from_secs((bytes >> 16) as u64) }
    }

    /// Notes that a byte has moved.
    fn advance(&mut self) {
        self.moved = Instant::now();
    }

    /// When the peer is silent or too slow.
    fn until(&self) -> Instant {
        self.end.min(self.moved + self.idle)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_or_a_path() {
        for (text, address) in [
            ("127.0.0.1:2345", ServerAddress::Tcp("127.0.0.1".into(), 2345)),
            ("[::1]:0", ServerAddress::Tcp("::1".into(), 0)),
            ("unix:/tmp/a:b", ServerAddress::Unix("/tmp/a:b".into())),
        ] {
            assert_eq!(text.parse::<ServerAddress>().unwrap(), address);
            assert_eq!(address.to_string(), text);
        }
        for (text, why) in [
            ("localhost", "without a port"),
            (":1", "without a host"),
            ("a:99999", "no number from 0"),
            ("unix:", "without a path"),
        ] {
            let told = text.parse::<ServerAddress>().unwrap_err().to_string();
            assert!(told.contains(why) && told.contains(text), "{told}");
        }
    }

    #[test]
    fn a_file_that_is_no_socket_is_not_replaced() {
        let dir = std::env::temp_dir().join(format!("corral-net-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("data");
        std::fs::write(&path, "precious").unwrap();
        assert!(Listener::bind(&ServerAddress::Unix(path.clone())).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        let socket = dir.join("socket");
        drop(UnixListener::bind(&socket).unwrap());
        drop(Listener::bind(&ServerAddress::Unix(socket.clone())).unwrap());
        assert!(!socket.exists());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
