//! Which program a connection belongs to, by what the kernel says.

use std::collections::BTreeMap;
use std::net::IpAddr;

use sys::process::PidFd;

/// The account of all programs that the kernel does not tell apart.
const UNSEEN: u32 = 1;

/// What the kernel says about the other end of a connection.
#[derive(Debug)]
pub(super) enum Peer {
    /// A process on this machine: its id, and a handle to it.
    Process(u32, PidFd),
    /// A process that cannot be seen from here.
    Unseen,
    /// Any process of a host in the network.
    Host(IpAddr),
}

/// What tells programs apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Process(u32),
    Host(IpAddr),
}

/// A program with connections.
#[derive(Debug)]
struct Program {
    /// Keeps a later process with the same id from being taken for this one.
    process: Option<PidFd>,
    account: u32,
    connections: u32,
}

impl Program {
    fn has_ended(&self) -> bool {
        self.process.as_ref().is_some_and(has_ended)
    }
}

/// The programs that are connected. An account is one process, or one host, and has a number that
/// no other gets.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    programs: BTreeMap<Key, Program>,
    last: u32,
}

impl Accounts {
    /// Notes a connection. Returns the account of its program.
    pub fn came(&mut self, peer: Peer) -> u32 {
        let (key, process) = match peer {
            // Another process may have its socket, and its id may be another one's.
            Peer::Process(_, process) if has_ended(&process) => return UNSEEN,
            Peer::Unseen => return UNSEEN,
            Peer::Process(id, process) => (Key::Process(id), Some(process)),
            Peer::Host(address) => (Key::Host(address), None),
        };
        if let Some(known) = self.programs.get_mut(&key)
            && !known.has_ended()
        {
            known.connections += 1;
            return known.account;
        }
        self.last = self.last.wrapping_add(1).max(UNSEEN + 1);
        let account = self.last;
        self.programs.insert(key, Program { process, account, connections: 1 });
        account
    }

    /// Notes that a connection has ended.
    pub fn went(&mut self, account: u32) {
        self.programs.retain(|_, program| {
            program.connections -= u32::from(program.account == account);
            program.connections > 0
        });
    }
}

fn has_ended(process: &PidFd) -> bool {
    process.has_ended().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn process() -> Child {
        Command::new("sleep").arg("1000").spawn().expect("a process")
    }

    fn seen(process: &Child) -> Peer {
        Peer::Process(process.id(), PidFd::open(process.id()).expect("a handle"))
    }

    fn end(mut process: Child) {
        process.kill().expect("it runs");
        process.wait().expect("a child");
    }

    #[test]
    fn all_connections_of_a_process_are_one_account() {
        let [one, other] = [process(), process()];
        let mut accounts = Accounts::default();
        let first = accounts.came(seen(&one));
        assert_eq!(accounts.came(seen(&one)), first);
        assert_ne!(accounts.came(seen(&other)), first);
        accounts.went(first);
        assert_eq!(accounts.came(seen(&one)), first, "one connection was left");
        accounts.went(first);
        accounts.went(first);
        assert_ne!(accounts.came(seen(&one)), first);
        [one, other].into_iter().for_each(end);
    }

    #[test]
    fn processes_that_are_not_seen_are_one_account() {
        let ended = process();
        let handle = seen(&ended);
        end(ended);
        let mut accounts = Accounts::default();
        assert_eq!((accounts.came(handle), accounts.came(Peer::Unseen)), (UNSEEN, UNSEEN));
        accounts.went(UNSEEN);
        let other = process();
        assert_ne!(accounts.came(seen(&other)), UNSEEN);
        end(other);
    }

    #[test]
    fn all_connections_of_a_host_are_one_account() {
        let [one, other] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let mut accounts = Accounts::default();
        let first = accounts.came(Peer::Host(one));
        assert_eq!(accounts.came(Peer::Host(one)), first);
        assert_ne!(accounts.came(Peer::Host(other)), first);
        accounts.went(first);
        assert_eq!(accounts.came(Peer::Host(one)), first, "one connection was left");
        accounts.went(first);
        accounts.went(first);
        assert_ne!(accounts.came(Peer::Host(one)), first);
    }

    #[test]
    fn a_process_does_not_inherit_the_account_of_one_with_its_id() {
        let [earlier, later] = [process(), process()];
        let id = earlier.id();
        let mut accounts = Accounts::default();
        let first = accounts.came(seen(&earlier));
        end(earlier);
        let handle = PidFd::open(later.id()).expect("a handle");
        assert_ne!(accounts.came(Peer::Process(id, handle)), first);
        end(later);
    }
}
