//! The server's page: what it shows and orders, who may ask, and what a browser cannot do to the
//! sound.
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
mod users;
