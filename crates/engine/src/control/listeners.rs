//! The sockets on which programs connect, and who is admitted there.

use sys::socket::{Connection, Listener};

use super::{GROUP_LISTENER, LISTENER};

/// The listening sockets.
#[derive(Debug)]
pub struct Listeners {
    /// For the server's own user.
    pub own: Listener,
    /// For the members of a group.
    pub group: Option<GroupListener>,
}

/// A listening socket for the members of a group.
#[derive(Debug)]
pub struct GroupListener {
    /// The socket.
    pub listener: Listener,
    /// The group.
    pub group_id: u32,
}

impl Listeners {
    /// The listening sockets, by the poller's tokens.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Listener)> {
        let group = self.group.as_ref().map(|group| (GROUP_LISTENER, &group.listener));
        [(LISTENER, &self.own)].into_iter().chain(group)
    }

    /// Returns whether a program may be a client, by what the kernel recorded of it when it
    /// connected.
    pub(super) fn admit(&self, socket: &Connection) -> bool {
        let Ok(peer) = socket.peer() else { return false };
        let is_member = |group: &GroupListener| {
            peer.group_id == group.group_id
                || socket.peer_groups().is_ok_and(|groups| groups.contains(&group.group_id))
        };
        peer.user_id == sys::process::real_user_id() || self.group.as_ref().is_some_and(is_member)
    }
}
