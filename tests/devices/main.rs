//! Sound cards: the server on real kernel drivers, in a virtual machine.
//!
//! `machine` runs here: it starts a virtual machine (`vm-run`), which sees this root file system,
//! and in it this same program with the tests of `guest`. These are ignored here, where no such
//! cards are.
#![forbid(unsafe_code)]

mod guest;
mod machine;
