//! The D-Bus service `org.jackaudio.service`, on a bus of the test's own, with the tools of Debian
//! that speak to it.
#![forbid(unsafe_code)]

mod bus;
mod control;
mod nonsense;
mod patchbay;
mod qjackctl;
mod realtime_kit;
mod reservation;
mod sessions;
mod signatures;
mod streams;
mod waiting;
