//! The user of the program at the other end of a local connection. The kernel lists every socket
//! with the user that created it, readable without privileges.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};

/// Tables of the IPv4 sockets, and of the IPv6 sockets, some of which carry IPv4.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// Number of reads: an existing socket can be missed while others come and go.
const READS: usize = 3;
const ROOT: u32 = 0;

/// Returns whether the other end belongs to a program of this process's user, or of root, which can
/// do all that the user can. `local` and `peer` are the addresses of this end and of the other;
/// both ends are on this machine.
///
/// The result holds for the connection that has these addresses at present: one that has ended may
/// have left them to another.
pub(crate) fn is_own(local: SocketAddr, peer: SocketAddr) -> bool {
    // A socket that is closed while the kernel lists it can look like root's. It is trusted if it
    // still exists.
    let user = (0..READS)
        .find_map(|_| owner(peer, local).filter(|user| owner(peer, local) == Some(*user)));
    // MUTATION: peer.any_user
    user.is_some_and(|user| user == ROOT || user == sys::process::real_user_id())
}

/// Returns the user that created the socket with the address `from` that is connected to `to`.
fn owner(from: SocketAddr, to: SocketAddr) -> Option<u32> {
    TABLES.iter().find_map(|table| owner_in(BufReader::new(File::open(table).ok()?), from, to))
}

fn owner_in(table: impl BufRead, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    let pairs = [[written(from), written(to)], [written(mapped(from)), written(mapped(to))]];
    table.lines().map_while(Result::ok).find_map(|line| owner_of(&line, &pairs))
}

/// Returns the owner of a line's socket if it connects one of the address pairs and belongs to a
/// process.
fn owner_of(line: &str, pairs: &[[String; 2]]) -> Option<u32> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, own, other, state, _, _, _, user, _, inode, ..] = words[..] else { return None };
    let is_wanted = pairs.iter().any(|[from, to]| from == own && to == other);
    // Established, FIN_WAIT1 or FIN_WAIT2. Before and after these states, no process could send a
    // request. Without an inode, the process has closed it; kernels show such a socket as root's.
    let is_held = matches!(state, "01" | "04" | "05") && inode != "0";
    (is_wanted && is_held).then(|| user.parse().ok())?
}

/// Returns an IPv4 address as IPv6 sockets have it.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => (ip.to_ipv6_mapped(), address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// Formats an address like the tables: 32-bit words in native byte order, and the port.
fn written(address: SocketAddr) -> String {
    let bytes = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let (words, _) = bytes.as_chunks::<4>();
    let words: String =
        words.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word))).collect();
    format!("{words}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream};

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    /// A header line from a little-endian machine.
    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
    const LISTENING: &str = "   0: 0100007F:1F70 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1527 1 000000005f38c560 100 0 0 10 0";
    const SERVER: &str = "   1: 0100007F:1F70 0100007F:B3A2 01 00000000:00000000 00:00000000 00000000     0        0 2222 1 0000000000000000 20 4 30 10 -1";
    const CLIENT: &str = "   2: 0100007F:B3A2 0100007F:1F70 01 00000000:00000000 00:00000000 00000000  1000        0 3333 1 0000000000000000 20 4 30 10 -1";

    #[cfg(target_endian = "little")]
    fn found(lines: &[&str]) -> Option<u32> {
        owner_in(
            [&[HEAD], lines].concat().join("\n").as_bytes(),
            at("127.0.0.1:45986"),
            at("127.0.0.1:8048"),
        )
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn the_owner_is_that_of_the_other_ends_socket() {
        assert_eq!(found(&[LISTENING, SERVER, CLIENT]), Some(1000));
        assert_eq!(found(&[LISTENING, SERVER]), None, "our own end is not the peer's");
        assert_eq!(found(&[]), None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn a_socket_without_a_process_has_no_owner() {
        for (was, becomes) in
            [(" 01 ", " 02 "), (" 01 ", " 06 "), (" 01 ", " 07 "), (" 3333 ", " 0 ")]
        {
            assert_eq!(found(&[&CLIENT.replace(was, becomes)]), None, "{becomes}");
        }
        let orphan =
            CLIENT.replace(" 01 ", " 05 ").replace("  1000 ", "     0 ").replace(" 3333 ", " 0 ");
        assert_eq!(found(&[&orphan]), None, "a socket without an inode is not root's");
        for state in [" 04 ", " 05 "] {
            assert_eq!(
                found(&[&CLIENT.replace(" 01 ", state)]),
                Some(1000),
                "its sending side is closed, and it waits for the answer"
            );
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn addresses_are_written_as_the_kernel_writes_them() {
        for (address, expected) in [
            ("127.0.0.1:8048", "0100007F:1F70"),
            ("192.168.1.2:1", "0201A8C0:0001"),
            ("[::1]:8048", "00000000000000000000000001000000:1F70"),
            ("[::ffff:127.0.0.1]:65535", "0000000000000000FFFF00000100007F:FFFF"),
        ] {
            assert_eq!(written(at(address)), expected);
        }
    }

    #[test]
    fn the_kernels_tables_are_understood_for_each_address_family() {
        for (listens, connects) in [
            (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv4Addr::LOCALHOST)),
            (Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()),
            (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()),
        ] {
            let listener = TcpListener::bind((listens, 0)).unwrap();
            let client =
                TcpStream::connect((connects, listener.local_addr().unwrap().port())).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            let local = stream.local_addr().unwrap();
            assert_eq!(
                owner(peer, local),
                Some(sys::process::real_user_id()),
                "{connects} to {listens}"
            );
            assert!(is_own(local, peer));
            client.shutdown(Shutdown::Write).unwrap();
            assert!(is_own(local, peer), "its sending side is closed, and it waits for the answer");
            drop(client);
            assert!(!is_own(local, peer), "closed");
        }
    }

    proptest! {
        #[test]
        fn garbage_does_not_hide_a_socket(
            before in "[ -~]{0,99}(\n[0-9A-F: ]{0,99}){0,9}",
            after in "(\n[0-9A-F]{1,3}: [0-9A-F:]{13} [0-9A-F:]{13} 0[1-9]( [0-9]{1,9}){0,9}){0,9}",
            user in any::<u32>(),
        ) {
            let [from, to] = [at("127.0.0.1:45986"), at("127.0.0.1:8048")];
            let line = format!("0: {} {} 01 0:0 0:0 0 {user} 0 1", written(from), written(to));
            let table = format!("{before}\n{line}{after}");
            prop_assert_eq!(owner_in(table.as_bytes(), from, to), Some(user));
            let alone = format!("{before}{after}");
            prop_assert_eq!(owner_in(alone.as_bytes(), from, to), None);
        }

        #[test]
        fn bytes_that_are_not_a_table_name_no_owner(table in vec(any::<u8>(), 0..999)) {
            prop_assert_eq!(owner_in(&table[..], at("[::1]:45986"), at("[::1]:8048")), None);
        }

        #[test]
        fn a_line_that_is_cut_off_names_no_other_user(length in 0..CLIENT.len()) {
            let cut = owner_in(&CLIENT.as_bytes()[..length], at("127.0.0.1:45986"), at("127.0.0.1:8048"));
            prop_assert!(matches!(cut, None | Some(1000)));
        }
    }
}
