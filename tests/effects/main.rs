//! What each function of JACK's interface does, seen from another process: by a second client, by
//! `jack_lsp`, or by `consort`.
#![forbid(unsafe_code)]

mod actors;
mod callbacks;
mod clients;
mod cycles;
mod forked;
mod functions;
mod midi;
mod names;
mod ports;
mod running;
mod sessions;
mod table;
mod threads;
mod tie;
mod transport;
