//! The defences that are taken away, by what they defend, and the test that notices.
//! `docs/threat-model.md` says what they are there for.

use super::Defence;

mod limits;
mod memory;
mod network;
mod permissions;
mod rights;
mod waits;
mod web;

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Defence> {
    let parts = [
        memory::MEMORY,
        rights::RIGHTS,
        permissions::PERMISSIONS,
        limits::LIMITS,
        waits::WAITS,
        web::PAGE,
        network::NETWORK,
    ];
    parts.into_iter().flatten()
}
