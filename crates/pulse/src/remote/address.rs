//! Where another server listens, in PulseAudio's words: `unix:PATH` or `/PATH`, `tcp:HOST:PORT`,
//! `tcp4:`, `tcp6:`, or HOST and HOST:PORT alone.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use sys::socket::prepare_accepted;

/// PulseAudio's port.
const PORT: u16 = 4713;
/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Addresses of a host that are tried.
const MOST_ADDRESSES: usize = 4;
/// How long the other server may have no room for what is sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Unix(PathBuf),
    Tcp { host: String, port: u16, family: Family },
}

/// Which addresses of a host are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Any,
    V4,
    V6,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// What to write instead.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let path = text.strip_prefix("unix:").or_else(|| text.starts_with('/').then_some(text));
        if let Some(path) = path {
            return Ok(Self::Unix(path.into()));
        }
        let families = [("tcp4:", Family::V4), ("tcp6:", Family::V6), ("tcp:", Family::Any)];
        let named = families
            .iter()
            .find_map(|(prefix, family)| text.strip_prefix(prefix).map(|rest| (rest, *family)));
        let (rest, family) = named.unwrap_or((text, Family::Any));
        match host_and_port(rest) {
            Some((host, port)) => Ok(Self::Tcp { host: host.to_owned(), port, family }),
            None => bail!("'{text}' is not a server: write unix:PATH, tcp:HOST or tcp:HOST:PORT"),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// The kernel's; the host is not known.
    pub fn connect(&self) -> anyhow::Result<RemoteSocket> {
        match self {
            Self::Unix(path) => {
                let socket = UnixStream::connect(path)
                    .with_context(|| format!("cannot connect to {}", path.display()))?;
                socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
                sys::socket::state_writer(&socket)?;
                Ok(RemoteSocket::Unix(socket))
            }
            Self::Tcp { host, port, family } => {
                let socket = connect_tcp(host, *port, *family)
                    .with_context(|| format!("cannot connect to {host}, port {port}"))?;
                prepare_accepted(&socket)?;
                socket.set_nonblocking(false)?;
                socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
                Ok(RemoteSocket::Tcp(socket))
            }
        }
    }
}

/// Connects to the first of a host's addresses that answers.
fn connect_tcp(host: &str, port: u16, family: Family) -> io::Result<TcpStream> {
    let is_of_family = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()?.filter(is_of_family).take(MOST_ADDRESSES) {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Splits HOST, HOST:PORT, [ADDRESS] or [ADDRESS]:PORT; an IPv6 address may be without brackets if
/// it is without a port.
fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let is_host = |host: &str| {
        !host.is_empty() && !host.contains(|letter: char| "{}[]/".contains(letter) || letter == ' ')
    };
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
    } else {
        match text.split_once(':') {
            Some((_, rest)) if rest.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let port = port.map_or(Some(PORT), |port| port.parse().ok().filter(|port| *port > 0))?;
    is_host(host).then_some((host, port))
}

/// A connected socket. Reads wait without a bound, writes wait for some seconds.
#[derive(Debug)]
pub(super) enum RemoteSocket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl RemoteSocket {
    /// Returns the same socket again.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn again(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(socket) => Self::Unix(socket.try_clone()?),
            Self::Tcp(socket) => Self::Tcp(socket.try_clone()?),
        })
    }

    /// Bounds the waits of reads.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.set_read_timeout(timeout),
            Self::Tcp(socket) => socket.set_read_timeout(timeout),
        }
    }

    /// Ends the connection, and with it a read that waits in another thread.
    pub fn shut_down(&self) {
        // Fails only if the other end has gone.
        let _ = match self {
            Self::Unix(socket) => socket.shutdown(Shutdown::Both),
            Self::Tcp(socket) => socket.shutdown(Shutdown::Both),
        };
    }
}

impl Read for &RemoteSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            RemoteSocket::Unix(socket) => (&*socket).read(bytes),
            RemoteSocket::Tcp(socket) => (&*socket).read(bytes),
        }
    }
}

impl Write for &RemoteSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            RemoteSocket::Unix(socket) => (&*socket).write(bytes),
            RemoteSocket::Tcp(socket) => (&*socket).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_as_for_pulseaudio() {
        let tcp = |host: &str, port, family| Address::Tcp { host: host.into(), port, family };
        for (text, expected) in [
            ("unix:/run/native", Address::Unix("/run/native".into())),
            ("/run/native", Address::Unix("/run/native".into())),
            ("tcp:one", tcp("one", 4713, Family::Any)),
            ("tcp:192.0.2.1:99", tcp("192.0.2.1", 99, Family::Any)),
            ("tcp4:one:99", tcp("one", 99, Family::V4)),
            ("tcp6:[2001:db8::1]:99", tcp("2001:db8::1", 99, Family::V6)),
            ("tcp6:[::1]", tcp("::1", 4713, Family::V6)),
            ("2001:db8::1", tcp("2001:db8::1", 4713, Family::Any)),
            ("one:99", tcp("one", 99, Family::Any)),
            ("one", tcp("one", 4713, Family::Any)),
        ] {
            assert_eq!(Address::read(text).expect(text), expected);
        }
        for text in ["", "tcp:", "tcp:one:0", "tcp:one:x", "{id}unix:/a", "one two", "tcp:[::1"] {
            assert!(Address::read(text).is_err(), "{text}");
        }
    }
}
