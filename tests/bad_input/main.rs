//! Bytes, memory, names and behaviour that no correct program has: the sender is refused with the
//! reason, and no other program notices.
#![forbid(unsafe_code)]

mod announcements;
mod confined;
mod crowds;
mod decoys;
mod directories;
mod first_packets;
mod foreign_descriptors;
mod groups;
mod handles;
mod in_flight;
mod limits;
mod many_streams;
mod memory;
mod other_users;
mod packets;
mod policies;
mod programs;
mod requests;
mod returning;
mod servers;
mod streams;
mod wire;
