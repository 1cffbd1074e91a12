//! Programs of other projects, unmodified, against the server: each test checks sound or
//! state.
#![forbid(unsafe_code)]

mod doctor;
mod examples;
mod exports;
mod generators;
mod listing;
mod metadata;
mod metering;
mod midi;
mod narrow;
mod network;
mod notifications;
mod numbers;
mod qjackctl;
mod recorders;
mod roundtrip;
mod sessions;
mod setup;
mod snapshots;
mod through;
mod transport;
