//! `libjack.so.0`: the functions of the crate `jack` and nothing else.
//!
//! A separate crate, because cargo optimizes a shared object as a whole only if it is not a Rust
//! library as well, which `libjackserver.so.0` and `libjacknet.so.0` need.

extern crate jack as _;
