//! Where a server is, and the sockets at which it listens.

use std::fmt;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;

use super::stream::Stream;
use crate::error::{Error, Result};

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

    /// Refuses connections from here on, whoever else has the socket: the child of a fork, for
    /// instance.
    pub(super) fn shut(&self) {
        let _ = rustix::net::shutdown(self, rustix::net::Shutdown::Both);
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
