//! The way in for programs over TCP.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context;
use sys::socket::prepare_accepted;

use super::accounts::Peer;
use super::listener::Accepted;
use super::socket::Socket;
use crate::front_end::Way;

/// PulseAudio's port.
const PORT: u16 = 4713;

/// Reads ADDRESS or ADDRESS:PORT, an IPv6 address in brackets or without a port.
///
/// # Errors
/// What to write instead.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let alone = bare
        .map_or_else(|| text.parse().ok(), |bare| bare.parse::<Ipv6Addr>().ok().map(IpAddr::V6));
    let address = alone.map(|address| SocketAddr::new(address, PORT)).or_else(|| text.parse().ok());
    address.ok_or_else(|| {
        "write an address or ADDRESS:PORT, such as 127.0.0.1, 0.0.0.0:4713 or [::1]:4713".into()
    })
}

/// A socket that listens for programs over TCP.
#[derive(Debug)]
pub(crate) struct NetworkListener {
    socket: TcpListener,
}

impl NetworkListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// The kernel's, such as that another program listens there.
    pub fn bind(address: SocketAddr) -> anyhow::Result<Self> {
        let socket =
            TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Returns where it listens.
    ///
    /// # Errors
    /// The kernel's.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// Accepts the next program that waits, if one does.
    pub(super) fn accept(&self) -> Option<Accepted> {
        self.accept_from().map(|(accepted, _)| accepted)
    }

    /// Likewise, with the address that it comes from.
    pub(super) fn accept_from(&self) -> Option<(Accepted, IpAddr)> {
        loop {
            match self.socket.accept() {
                // One that has ended meanwhile is left alone.
                Ok((socket, _)) if prepare_accepted(&socket).is_err() => {}
                Ok((socket, from)) => {
                    let peer = Peer::Host(host(from.ip()));
                    let socket = Socket::Tcp(socket);
                    return Some((Accepted { socket, way: Way::Network, peer }, from.ip()));
                }
                Err(error) if is_passing(error.kind()) => {}
                Err(_) => return None,
            }
        }
    }
}

impl AsFd for NetworkListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Interrupted | ErrorKind::ConnectionAborted)
}

/// Returns the address that stands for the host: one with IPv6 may take any address in its network,
/// whose number has 64 bits.
fn host(address: IpAddr) -> IpAddr {
    const NETWORK: u128 = !(u64::MAX as u128);
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_pulseaudios_port_unless_it_names_another() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:4713"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("::1", "[::1]:4713"),
            ("[::1]", "[::1]:4713"),
            ("[::1]:80", "[::1]:80"),
            ("0.0.0.0", "0.0.0.0:4713"),
        ] {
            assert_eq!(address(text).map(|address| address.to_string()), Ok(expected.into()));
        }
        for text in ["", "localhost", "127.0.0.1:", "[127.0.0.1]", "1.2.3.4:65536", "[::1"] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_host_has_one_account_whichever_of_its_addresses_it_takes() {
        for (one, other, are_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("2001:db8::1", "2001:db8::ffff:2", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ] {
            let [one, other]: [IpAddr; 2] = [one, other].map(|text| text.parse().unwrap());
            assert_eq!(host(one) == host(other), are_same, "{one}, {other}");
        }
    }
}
