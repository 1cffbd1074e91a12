//! The server's page: what it shows and controls, who may use it, and that no browser can disturb
//! the sound.
#![forbid(unsafe_code)]

mod access;
mod browser;
mod crowds;
mod http;
mod orders;
mod page;
mod served;
mod servers;
mod states;
mod streams;
mod users;
