//! Programs that come in, and those that are not let in.

use std::os::unix::net::UnixStream;

use confinement::{Confinement, cgroup_of, confinement_of, while_it_lives};
use sys::clock::now_ns;
use sys::disposal::Foreign;
use sys::poll::Interest;

use super::link::Link;
use super::listener::Accepted;
use super::module_listeners::Came;
use super::socket::Socket;
use super::{MODULES, NETWORK, Service, token};
use crate::front_end::{Confined, Origin};

/// How long programs are accepted, ns, so that those that come do not keep the others waiting.
const ACCEPTING_NS: u64 = 2_000_000;

/// How long a program that was not let in may stay.
const ADMISSION_NS: u64 = 10_000_000_000;
/// How long after it has connected a program that was let in is examined, if it has only played:
/// it is heard before, and not later for that.
const EXAMINATION_NS: u64 = 100_000_000;
/// How long programs are examined at once, ns: as long as programs are accepted.
const EXAMINING_NS: u64 = ACCEPTING_NS;

impl Service {
    /// Accepts programs that wait; the poller reports those that are left.
    pub(super) fn accept(&mut self, listener: u64) {
        // A user who has changed them starts a program next.
        if let Some(rules) = self.keeper.changed_rules() {
            self.front_end.obey(rules);
            self.front_end.load_ruled_modules(now_ns());
        }
        let until_ns = now_ns() + ACCEPTING_NS;
        while now_ns() < until_ns {
            let accepted = match (&self.network, listener) {
                (Some(network), NETWORK) => network.accept().map(Came::Accepted),
                (_, MODULES) => self.front_end.devices_mut().listeners().accept(),
                _ => self.local.accept().map(Came::Accepted),
            };
            let Some(came) = accepted else { return };
            let Came::Accepted(Accepted { socket, way, peer }) = came else { continue };
            let socket = self.disposal.queue().foreign(socket);
            let account = self.accounts.came(peer);
            // One too many is disconnected at once.
            match self.front_end.connected(Origin { account, way }) {
                Some(number) => self.add_link(number, account, socket),
                None => self.accounts.went(account),
            }
        }
    }

    fn add_link(&mut self, number: u32, account: u32, socket: Foreign<Socket>) {
        let link = Link::new(socket, self.disposal.queue(), account, now_ns());
        let added =
            link.socket().map(|socket| self.poller.add(socket, token(number), Interest::Readable));
        if added.is_some_and(|added| added.is_ok()) {
            self.retry.program_came(link.connected_ns());
            self.spare_memory.taken(link.connected_ns());
            self.links.insert(number, link);
        } else {
            self.accounts.went(account);
            self.front_end.disconnected(number, now_ns());
        }
    }

    /// Gives a program its rights, by what the kernel says about it.
    pub(super) fn examine(&mut self, number: u32) {
        let Some(link) = self.links.get(&number) else { return };
        let confined = match link.socket() {
            Some(Socket::Unix(socket)) => confined(socket),
            // Of a process on another machine nothing is known: what let it in is trusted.
            Some(Socket::Tcp(_)) => None,
            None => Some(Confined { why: Confinement::Unknown, cgroup: None }),
        };
        self.front_end.examined(number, confined.as_ref(), now_ns());
    }

    /// Returns when the next program has had its time: to be let in, or before it is examined.
    pub(super) fn arrival_ns(&self) -> Option<u64> {
        self.arrivals().map(|(ns, _)| ns).min()
    }

    /// Programs without rights, and when each has had its time.
    fn arrivals(&self) -> impl Iterator<Item = (u64, u32)> {
        let arriving = self.links.iter().filter(|(number, _)| !self.front_end.has_rights(**number));
        arriving.map(|(number, link)| {
            let is_admitted = self.front_end.is_admitted(*number);
            let time_ns = if is_admitted { EXAMINATION_NS } else { ADMISSION_NS };
            (link.connected_ns() + time_ns, *number)
        })
    }

    /// Ends the connections of programs that were not let in in time, and examines those that were.
    /// Those that are left stay due.
    pub(super) fn end_arrivals(&mut self, due_ns: u64) {
        let due: Vec<u32> =
            self.arrivals().filter(|(ns, _)| *ns <= due_ns).map(|(_, number)| number).collect();
        let until_ns = due_ns + EXAMINING_NS;
        for number in due.into_iter().take_while(|_| now_ns() < until_ns) {
            if self.front_end.is_admitted(number) {
                self.examine(number);
            } else {
                self.end_link(number);
            }
        }
    }
}

/// Returns what the kernel says about a program that has connected, if it is confined.
fn confined(socket: &UnixStream) -> Option<Confined> {
    let why = confinement_of(socket)?;
    Some(Confined { why, cgroup: while_it_lives(socket, cgroup_of).flatten() })
}
