//! What a server sends to a client that it admits.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proto::hello::Welcome;
use sys::socket::Connection;

use super::attachment::Sockets;
use super::server_memory::ServerMemory;
use crate::Error;
use crate::requests::Introduction;

/// An admitted client's name, number, memory and sockets.
pub(super) struct Admission {
    pub(super) client: u32,
    pub(super) name: String,
    pub(super) server_name: String,
    pub(super) memory: ServerMemory,
    pub(super) sockets: Sockets,
}

/// Maps the memory that the server sent.
pub(super) fn receive_welcome(introduction: Introduction) -> Result<Admission, Error> {
    let Introduction { requests, welcome, descriptors } = introduction;
    let Welcome::Client { client, name, server_name } = welcome else {
        return Err(Error::Protocol("it did not welcome a client"));
    };
    let descriptors: [OwnedFd; 6] = descriptors
        .try_into()
        .map_err(|_| Error::Protocol("it did not send the client's memory"))?;
    let [engine, registry, assignments, own, signals, events] = descriptors;
    let memory = ServerMemory::map(&server_name, [engine, registry, assignments, own, signals])?;
    let sockets =
        Sockets { requests: Arc::new(requests), events: Arc::new(Connection::from(events)) };
    Ok(Admission { client, name, server_name, memory, sockets })
}
