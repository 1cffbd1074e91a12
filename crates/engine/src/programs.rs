//! Which program a peer belongs to, for everything that one program may have a part of.
//!
//! A program is a process of the server's user; or all processes of another user; or all processes
//! of a user that cannot be told apart, because they are in a pid namespace that is not visible
//! here or had ended when their connection was accepted. What a program has forked is another one.

use std::collections::BTreeMap;

use sys::process::PidFd;

/// What tells programs apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A process, by its id.
    Process(u32),
    /// The processes of a user.
    User(u32),
}

/// The number of a program, which no other gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProgramId(u64);

/// A program with peers.
#[derive(Debug)]
struct Program<P> {
    identity: Identity,
    /// Keeps a new process with the same id from being taken for this one.
    process: Option<P>,
    /// Its connections to the server.
    peers: u64,
}

/// A handle to a process.
pub trait Process {
    /// Returns whether the process has ended, so that another one may have its id.
    fn has_ended(&self) -> bool;
}

impl Process for PidFd {
    fn has_ended(&self) -> bool {
        // Fails only without memory: then it still counts as one program.
        self.has_ended().unwrap_or(false)
    }
}

/// The programs that are connected.
#[derive(Debug)]
pub struct Programs<P> {
    own_user: u32,
    programs: BTreeMap<ProgramId, Program<P>>,
    next: u64,
}

impl<P: Process> Programs<P> {
    /// Starts without programs, in a server of this user.
    pub fn new(own_user: u32) -> Self {
        Self { own_user, programs: BTreeMap::new(), next: 0 }
    }

    /// Notes a connection of a process of `user`: its id and a handle to it, as far as it can be
    /// seen. Returns its program.
    pub fn came(&mut self, user: u32, process: Option<(u32, P)>) -> ProgramId {
        let (identity, process) = match process {
            Some((id, process)) if user == self.own_user && !process.has_ended() => {
                (Identity::Process(id), Some(process))
            }
            _ => (Identity::User(user), None),
        };
        let is_it = |known: &Program<P>| {
            known.identity == identity && !known.process.as_ref().is_some_and(Process::has_ended)
        };
        if let Some((id, known)) = self.programs.iter_mut().find(|(_, known)| is_it(known)) {
            known.peers += 1;
            return *id;
        }
        let id = ProgramId(self.next);
        self.next += 1;
        self.programs.insert(id, Program { identity, process, peers: 1 });
        id
    }

    /// Notes that a connection of a program has been closed.
    pub fn went(&mut self, id: ProgramId) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.peers -= 1;
            if program.peers == 0 {
                self.programs.remove(&id);
            }
        }
    }

    /// Returns the user of a program's processes.
    pub fn user(&self, id: ProgramId) -> Option<u32> {
        self.programs.get(&id).map(|program| match program.identity {
            Identity::Process(_) => self.own_user,
            Identity::User(user) => user,
        })
    }

    /// Returns how many connections a program has.
    pub fn peers(&self, id: ProgramId) -> u64 {
        self.programs.get(&id).map_or(0, |program| program.peers)
    }

    /// Returns how many connections there are.
    pub fn peers_in_all(&self) -> u64 {
        self.programs.values().map(|program| program.peers).sum()
    }

    /// Returns how many programs there are.
    pub fn count(&self) -> u64 {
        self.programs.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    const OWN: u32 = 1000;
    const OTHER: u32 = 1001;

    #[derive(Debug, Clone, Default)]
    struct Simulated(Rc<Cell<bool>>);

    impl Process for Simulated {
        fn has_ended(&self) -> bool {
            self.0.get()
        }
    }

    fn process(id: u32) -> Option<(u32, Simulated)> {
        Some((id, Simulated::default()))
    }

    #[test]
    fn all_connections_of_a_process_are_one_program() {
        let mut programs = Programs::new(OWN);
        let first = programs.came(OWN, process(7));
        assert_eq!(programs.came(OWN, process(7)), first);
        assert_ne!(programs.came(OWN, process(8)), first);
        assert_eq!((programs.peers(first), programs.count()), (2, 2));
        programs.went(first);
        programs.went(first);
        assert_eq!((programs.peers(first), programs.count()), (0, 1));
    }

    #[test]
    fn another_user_is_one_program() {
        let mut programs = Programs::new(OWN);
        let other = programs.came(OTHER, process(7));
        assert_eq!(programs.came(OTHER, process(8)), other);
        assert_eq!(programs.came(OTHER, None), other);
        let own = programs.came(OWN, process(7));
        assert_ne!(own, other);
        assert_eq!((programs.user(own), programs.user(other)), (Some(OWN), Some(OTHER)));
    }

    #[test]
    fn processes_that_cannot_be_seen_are_one_program() {
        let mut programs = Programs::new(OWN);
        let unseen = programs.came(OWN, None);
        assert_eq!(programs.came(OWN, None), unseen);
        let ended = Simulated(Rc::new(Cell::new(true)));
        assert_eq!(programs.came(OWN, Some((7, ended))), unseen, "a fork may hold its socket");
        assert_ne!(programs.came(OWN, process(7)), unseen);
    }

    #[test]
    fn a_process_does_not_inherit_what_an_earlier_one_with_its_id_has() {
        let mut programs = Programs::new(OWN);
        let earlier = Simulated::default();
        let first = programs.came(OWN, Some((7, earlier.clone())));
        earlier.0.set(true);
        let second = programs.came(OWN, process(7));
        assert_ne!(second, first);
        assert_eq!(programs.came(OWN, process(7)), second);
        assert_eq!((programs.peers(first), programs.peers(second)), (1, 2));
    }

    proptest! {
        #[test]
        fn every_connection_counts_once_until_it_goes(
            steps in prop::collection::vec((0..4_u32, any::<bool>(), 0..8_usize), 1..100),
        ) {
            let mut programs = Programs::new(OWN);
            let mut connections = Vec::new();
            for (id, is_own, going) in steps {
                if going < connections.len() {
                    programs.went(connections.swap_remove(going));
                } else {
                    let user = if is_own { OWN } else { OTHER };
                    connections.push(programs.came(user, process(id).filter(|(id, _)| *id > 0)));
                }
                for id in &connections {
                    let of_it = connections.iter().filter(|other| *other == id).count();
                    prop_assert_eq!(programs.peers(*id), of_it as u64);
                }
                let distinct: std::collections::BTreeSet<_> = connections.iter().collect();
                prop_assert_eq!(programs.count(), distinct.len() as u64);
                // Four processes of the own user at most, and one program of each user.
                prop_assert!(programs.count() <= 3 + 2);
            }
        }
    }
}
