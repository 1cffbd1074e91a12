//! Where modules let programs in over TCP.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use sys::poll::{Interest, Poller};

use super::listener::Accepted;
use super::network::NetworkListener;
use crate::front_end::Way;
use crate::output::NewListening;

/// Sockets, by the numbers of the modules that they are for.
#[derive(Debug)]
pub(super) struct ModuleListeners {
    /// Readable once a program waits.
    poller: Poller,
    all: BTreeMap<u32, (NetworkListener, NewListening)>,
}

impl ModuleListeners {
    /// Begins without any.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { poller: Poller::new()?, all: BTreeMap::new() })
    }

    /// Listens for a module.
    ///
    /// # Errors
    /// The kernel's, such as that another program listens there.
    pub fn listen(&mut self, module: u32, new: NewListening) -> anyhow::Result<()> {
        let at = |address| NetworkListener::bind(SocketAddr::new(address, new.port));
        let listener = match new.address {
            Some(address) => at(address)?,
            // That is all of IPv4 as well, unless the machine has no IPv6.
            None => at(IpAddr::V6(Ipv6Addr::UNSPECIFIED))
                .or_else(|_| at(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))?,
        };
        self.poller.add(&listener, module.into(), Interest::Readable)?;
        self.all.insert(module, (listener, new));
        Ok(())
    }

    /// Listens for it no longer.
    pub fn end(&mut self, module: u32) {
        if let Some((listener, _)) = self.all.remove(&module) {
            let _ = self.poller.remove(&listener);
        }
    }

    /// Accepts the next program that waits anywhere, if one does. One that can never be let in is
    /// disconnected.
    pub fn accept(&self) -> Option<Accepted> {
        self.all.iter().find_map(|(module, (listener, new))| {
            loop {
                let (accepted, address) = listener.accept_from()?;
                let is_open = new.is_open || new.open_to.iter().any(|network| network.has(address));
                if is_open || new.takes_cookie {
                    let way = Way::Module { module: *module, is_open };
                    return Some(Accepted { way, ..accepted });
                }
            }
        })
    }
}

impl AsFd for ModuleListeners {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}
