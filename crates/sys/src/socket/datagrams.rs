//! Sockets of datagrams over IP, also to and from multicast groups.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// Opens a socket that receives what is sent to this address. If that is a group, it joins the
/// group on the interface to which the route leads, and other sockets may receive the same.
///
/// # Errors
/// Those of `bind`: the address is not one of this machine, or another socket has it; those of
/// joining: there is no route.
pub fn receive_datagrams(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    if at.ip().is_multicast() {
        sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    // To the group itself, so that nothing else that comes to the port is received.
    bind(&socket, &at)?;
    let socket = UdpSocket::from(socket);
    match at.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?;
        }
        IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
        _ => {}
    }
    Ok(socket)
}

/// Opens a socket that sends to `to`, from an address of this machine if one is given. A datagram
/// for which there is no room is dropped. To a group, datagrams go over at most `hops` routers less
/// one, and are received on this machine if `loops`.
///
/// # Errors
/// Those of `bind` and `connect`: `from` is not an address of this machine; there is no route.
pub fn send_datagrams(
    from: Option<IpAddr>,
    to: SocketAddr,
    hops: u8,
    loops: bool,
) -> io::Result<UdpSocket> {
    let any =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(from.unwrap_or(any), 0))?;
    match to.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            socket.set_multicast_ttl_v4(hops.into())?;
            socket.set_multicast_loop_v4(loops)?;
        }
        IpAddr::V6(group) if group.is_multicast() => {
            sockopt::set_ipv6_multicast_hops(&socket, hops.into())?;
            socket.set_multicast_loop_v6(loops)?;
        }
        _ => {}
    }
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn datagrams_arrive_whole_from_the_address_that_was_asked_for() {
        for home in ["127.0.0.1", "::1"] {
            let home: IpAddr = home.parse().expect("an address");
            let Ok(receiver) = receive_datagrams(SocketAddr::new(home, 0)) else {
                assert!(home.is_ipv6(), "only IPv6 may be missing");
                continue;
            };
            receiver.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
            let to = receiver.local_addr().expect("its address");
            let sender = send_datagrams(Some(home), to, 1, false).expect("a sender");
            for datagram in [&b"one"[..], b"", b"three"] {
                sender.send(datagram).expect("sent");
                let mut bytes = [0; 16];
                let (count, from) = receiver.recv_from(&mut bytes).expect("received");
                assert_eq!((&bytes[..count], from.ip()), (datagram, home));
            }
        }
    }

    #[test]
    fn an_address_that_a_socket_has_is_not_given_to_another() {
        let home = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let first = receive_datagrams(home).expect("a socket");
        let at = first.local_addr().expect("its address");
        let error = receive_datagrams(at).expect_err("taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
