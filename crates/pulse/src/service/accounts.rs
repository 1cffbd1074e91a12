//! Which program a connection belongs to, by what the kernel says.

use std::collections::BTreeMap;

use sys::process::PidFd;

/// The account of all programs that the kernel does not tell apart.
const UNSEEN: u32 = 1;

/// A process with connections.
#[derive(Debug)]
struct Process {
    /// Keeps a later process with the same id from being taken for this one.
    handle: PidFd,
    account: u32,
    connections: u32,
}

/// The programs that are connected. An account is one process, and has a number that no other gets.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// By process id.
    processes: BTreeMap<u32, Process>,
    last: u32,
}

impl Accounts {
    /// Notes a connection of a process: its id and a handle to it. Returns its account.
    pub fn came(&mut self, process: Option<(u32, PidFd)>) -> u32 {
        let Some((id, handle)) = process else { return UNSEEN };
        let has_ended = |process: &PidFd| process.has_ended().unwrap_or(false);
        if has_ended(&handle) {
            // Another process may have its socket, and its id may be another one's.
            return UNSEEN;
        }
        if let Some(known) = self.processes.get_mut(&id)
            && !has_ended(&known.handle)
        {
            known.connections += 1;
            return known.account;
        }
        self.last = self.last.wrapping_add(1).max(UNSEEN + 1);
        let account = self.last;
        self.processes.insert(id, Process { handle, account, connections: 1 });
        account
    }

    /// Notes that a connection has ended.
    pub fn went(&mut self, account: u32) {
        self.processes.retain(|_, process| {
            process.connections -= u32::from(process.account == account);
            process.connections > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn process() -> Child {
        Command::new("sleep").arg("1000").spawn().expect("a process")
    }

    fn seen(process: &Child) -> Option<(u32, PidFd)> {
        Some((process.id(), PidFd::open(process.id()).expect("a handle")))
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
        assert_eq!((accounts.came(handle), accounts.came(None)), (UNSEEN, UNSEEN));
        accounts.went(UNSEEN);
        let other = process();
        assert_ne!(accounts.came(seen(&other)), UNSEEN);
        end(other);
    }

    #[test]
    fn a_process_does_not_inherit_the_account_of_one_with_its_id() {
        let [earlier, later] = [process(), process()];
        let id = earlier.id();
        let mut accounts = Accounts::default();
        let first = accounts.came(seen(&earlier));
        end(earlier);
        let handle = PidFd::open(later.id()).expect("a handle");
        assert_ne!(accounts.came(Some((id, handle))), first);
        end(later);
    }
}
