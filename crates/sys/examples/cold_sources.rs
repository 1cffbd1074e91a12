//! Prints what one source of a playback port costs the driver on this machine.
//!
//! `cargo run --release -p consort-sys --example cold_sources`. A thread on another CPU writes the
//! slots of many slabs and marks them, as clients do, and then evicts them from all caches, which a
//! client can do on purpose. The driver's side checks each header and adds the samples to a mix, as
//! `engine/src/cycle_thread/buffers.rs` does. The figures are ns per source. The costs in
//! `engine/src/driver_budget.rs` come from here.

use std::time::Instant;

use consort_sys::memory::{OwnSlab, PeerSlab};
use consort_sys::thread::{CpuSet, affinity, set_affinity};
use rt::shm::SLOTS_PER_SLAB;

/// Each header and each slot lies on a page of its own, which no TLB has all of.
const SLABS: usize = 2048;
/// More than the caches of most processors hold.
const EVICTING_BYTES: usize = 256 << 20;
const RUNS: u32 = 31;

fn main() {
    dsp::detect_processor();
    let cpus: Vec<usize> = affinity().expect("CPUs").iter().collect();
    pin(cpus[0]);
    let mut own: Vec<OwnSlab> =
        (0..SLABS).map(|_| OwnSlab::create().expect("memory for a slab")).collect();
    let peers: Vec<PeerSlab> =
        own.iter().map(|slab| PeerSlab::map(slab.segment()).expect("a mapping")).collect();
    let mut evicting = vec![0_u8; EVICTING_BYTES];
    for frames in [64, 256, 1024, 8192] {
        let mut mix = vec![0.0; frames];
        let mut per_source: Vec<u64> = (1..=RUNS)
            .map(|cycle| {
                write(&mut own, frames, cycle, cpus[cpus.len() - 1], &mut evicting);
                let begun = Instant::now();
                let sources = add(&peers, frames, cycle, &mut mix);
                u64::try_from(begun.elapsed().as_nanos()).expect("a short time") / sources
            })
            .collect();
        per_source.sort_unstable();
        let (median, worst) = (per_source[per_source.len() / 2], per_source[per_source.len() - 1]);
        println!("{frames:5} frames: median {median} ns, worst {worst} ns");
    }
}

fn pin(cpu: usize) {
    let mut only = CpuSet::new();
    only.insert(cpu);
    set_affinity(&only).expect("one of this process's CPUs");
}

/// The clients' part, on another CPU.
fn write(own: &mut [OwnSlab], frames: usize, cycle: u32, cpu: usize, evicting: &mut [u8]) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(cpu);
            for (slab, slot) in own.iter_mut().zip((0..SLOTS_PER_SLAB).cycle()) {
                slab.samples_mut(slot, frames).expect("a slot").fill(1.0);
                slab.header().finish(cycle);
            }
            evicting.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        });
    });
    std::hint::black_box(evicting);
}

/// The driver's part. Returns how many sources it has mixed.
fn add(peers: &[PeerSlab], frames: usize, cycle: u32, mix: &mut [f32]) -> u64 {
    let mut sources = 0;
    for (peer, slot) in peers.iter().zip((0..SLOTS_PER_SLAB).cycle()) {
        if peer.header().finished() == cycle {
            dsp::add(peer.samples(slot, frames).expect("a slot"), mix);
            sources += 1;
        }
    }
    std::hint::black_box(mix);
    sources
}
