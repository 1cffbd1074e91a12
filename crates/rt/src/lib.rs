//! Everything that runs inside a cycle, in the server's driver thread and in every client's process
//! thread.
//!
//! The crate is `no_std` without `alloc`, so the compiler refuses heap, locks and logging. It holds
//! the layouts of the shared memory ([`shm`]), the signalling between clients
//! ([`shm::SignalPage`]), the driver's side of a cycle ([`cycle`]), a client's side ([`turn`]),
//! MIDI buffers ([`midi`]), the clock ([`clock`]), calls to a thread that sleeps ([`call`]), the
//! transport ([`transport`]), and what is recorded of each cycle ([`record`]). The caller provides
//! the way to sleep: a [`park::Park`] is a futex in production and a model under loom.
#![cfg_attr(not(any(test, loom)), no_std)]
#![deny(unsafe_code)]

pub mod call;
pub mod clock;
pub mod cycle;
pub mod cycle_number;
pub mod midi;
pub mod park;
pub mod rate;
pub mod record;
pub mod stream;
pub mod transport;
pub mod turn;

pub mod sync;

#[expect(
    unsafe_code,
    reason = "describes memory that other processes map; every block states its invariant"
)]
pub mod shm;
