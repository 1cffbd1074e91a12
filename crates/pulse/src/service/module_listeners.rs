//! Where modules let programs in over TCP.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Bound::{Excluded, Included, Unbounded};
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
    /// The module where a program came in last: the next one comes in where the next module
    /// listens.
    last: u32,
}

/// A program that has come in where a module listens.
#[derive(Debug)]
pub(super) enum Came {
    /// It may be let in.
    Accepted(Accepted),
    /// It can never be let in, and was disconnected.
    Refused,
}

impl ModuleListeners {
    /// Begins without any.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { poller: Poller::new()?, all: BTreeMap::new(), last: 0 })
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

    /// Accepts the next program that waits anywhere, if one does, from each module in turn.
    pub fn accept(&mut self) -> Option<Came> {
        let [later, earlier] = [(Excluded(self.last), Unbounded), (Unbounded, Included(self.last))];
        let in_turn = self.all.range(later).chain(self.all.range(earlier));
        let came = in_turn.map(|(module, (listener, new))| {
            let (accepted, address) = listener.accept_from()?;
            let is_open = new.is_open || new.open_to.iter().any(|network| network.has(address));
            let way = Way::Module { module: *module, is_open };
            let may_come = is_open || new.takes_cookie;
            let came =
                if may_come { Came::Accepted(Accepted { way, ..accepted }) } else { Came::Refused };
            Some((*module, came))
        });
        let (module, came) = came.flatten().next()?;
        self.last = module;
        Some(came)
    }
}

impl AsFd for ModuleListeners {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    /// Sockets of modules that let in this machine, or nobody, and where they listen.
    fn listening(modules: [bool; 2]) -> (ModuleListeners, Vec<SocketAddr>) {
        let mut listeners = ModuleListeners::new().expect("a poller");
        let listen = |(module, is_open)| {
            let address = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
            let (open_to, takes_cookie) = (Vec::new(), false);
            let new = NewListening { address, port: 0, is_open, open_to, takes_cookie };
            listeners.listen(module, new).expect("a free port");
            listeners.all[&module].0.address().expect("an address")
        };
        let addresses = (0..).zip(modules).map(listen).collect();
        (listeners, addresses)
    }

    fn next(listeners: &mut ModuleListeners) -> Option<Way> {
        match listeners.accept()? {
            Came::Accepted(accepted) => Some(accepted.way),
            Came::Refused => None,
        }
    }

    #[test]
    fn programs_come_in_from_each_module_in_turn() {
        let (mut listeners, at) = listening([true, true]);
        let connect = |at| TcpStream::connect(at).expect("connected");
        let _programs = [at[0], at[0], at[0], at[1], at[1]].map(connect);
        let modules = std::iter::from_fn(|| match next(&mut listeners)? {
            Way::Module { module, .. } => Some(module),
            _ => None,
        });
        assert_eq!(modules.collect::<Vec<_>>(), [1, 0, 1, 0, 0]);
    }

    #[test]
    fn programs_that_can_never_be_let_in_are_disconnected_one_by_one() {
        let (mut listeners, at) = listening([false, true]);
        let programs = [at[0], at[0], at[1]].map(|at| TcpStream::connect(at).expect("connected"));
        let came: Vec<_> = std::iter::from_fn(|| listeners.accept())
            .map(|came| matches!(came, Came::Accepted(_)))
            .collect();
        assert_eq!(came, [true, false, false]);
        drop(programs);
    }
}
