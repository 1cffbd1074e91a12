//! The registry of a server's ports and connections, mapped once per process for all its clients.
//!
//! C programs get addresses in it through one client (`jack_port_name`) and read them after that
//! client is closed. Therefore the newest mapping of each server stays until the process ends or
//! opens a client of a newer server with the same name; a name read too late is then an old name.
//! For clients that outlive a server, one mapping per such server stays as well
//! (`ServerMemories::add`).

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use sys::memory::{SegmentIdentity, SharedRegistry};

use crate::Error;
use crate::locked::locked;

#[derive(Debug)]
struct CachedRegistry {
    server_name: String,
    /// Unique as long as the segment is mapped here.
    identity: SegmentIdentity,
    /// Fork generation of the process that mapped it.
    generation: u32,
    registry: Arc<SharedRegistry>,
}

static CACHE: Mutex<Vec<CachedRegistry>> = Mutex::new(Vec::new());

/// Returns this process's mapping of the received registry, mapping it if needed.
pub(super) fn of_server(
    server_name: &str,
    received: OwnedFd,
) -> Result<Arc<SharedRegistry>, Error> {
    let identity = SegmentIdentity::of(&received)?;
    let generation = sys::fork::generation();
    let mut cached = locked(&CACHE);
    let known = cached.iter().position(|cached| cached.server_name == server_name);
    if let Some(same) = known.and_then(|index| cached.get(index))
        && (same.identity, same.generation) == (identity, generation)
    {
        return Ok(Arc::clone(&same.registry));
    }
    let registry = Arc::new(SharedRegistry::receive(received)?);
    if let Some(outdated) = known.map(|index| cached.swap_remove(index))
        && outdated.generation != generation
    {
        // The mapping belongs to the parent and does not exist in this child, so nothing must be
        // unmapped.
        std::mem::forget(outdated);
    }
    let server_name = server_name.to_owned();
    cached.push(CachedRegistry {
        server_name,
        identity,
        generation,
        registry: Arc::clone(&registry),
    });
    Ok(registry)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use rt::shm::RegistryShape;
    use sys::memory::Segment;

    use super::*;

    /// The server's side: the memory, and the descriptor that a client receives.
    struct Server {
        registry: SharedRegistry,
        segment: Segment,
    }

    impl Server {
        fn new() -> Self {
            let shape = RegistryShape { ports: 4, clients: 2, connections: 4 };
            let (registry, segment) = SharedRegistry::create(shape).unwrap();
            Self { registry, segment }
        }

        fn is_opened_as(&self, name: &str) -> Arc<SharedRegistry> {
            of_server(name, self.segment.fd().try_clone_to_owned().unwrap()).unwrap()
        }
    }

    #[test]
    fn all_clients_of_a_server_share_one_registry_mapping() {
        let (old, new) = (Server::new(), Server::new());
        let first = old.is_opened_as("restarted");
        assert!(Arc::ptr_eq(&first, &old.is_opened_as("restarted")));
        let second = new.is_opened_as("restarted");
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &new.is_opened_as("restarted")));
        assert_eq!(Arc::strong_count(&first), 1, "only its readers keep the old one");
        assert!(!Arc::ptr_eq(&second, &Server::new().is_opened_as("another")));
    }

    #[test]
    fn a_name_stays_readable_after_the_last_client_is_closed() {
        let server = Server::new();
        let registry = server.is_opened_as("closed");
        server.registry.port(1).unwrap().write(|entry| entry.set_name("synth:left"));
        let cached = Arc::downgrade(&registry);
        drop(registry);
        let cached = cached.upgrade().expect("mapped without any client");
        let mut name = [0; 16];
        assert_eq!(cached.port(1).unwrap().name().copy_to(&mut name), 10);
        assert_eq!(&name[..10], b"synth:left");
        assert_eq!(cached.port(1).unwrap().connections.load(Relaxed), 0);
    }
}
