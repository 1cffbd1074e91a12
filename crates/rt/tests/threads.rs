//! The lock-free parts with real threads and plain memory between them, for ThreadSanitizer:
//! `cargo xtask sanitize`.
//!
//! Loom explores every order of small models; this runs the code itself, compiled as it is shipped.
//! A weakened ordering is a data race on the memory that it should have published, which
//! ThreadSanitizer reports even if this processor never reorders the two. It does not use libtest,
//! whose threads use a standard library that is not instrumented, and would be reported.

#![allow(
    unsafe_code,
    reason = "plain memory that only the order under test protects is what is tested"
)]

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::thread;

use consort_rt::shm::{
    Edges, Handover, RingHeader, SignalPage, Snapshot, StreamPage, WrittenFrames,
};

/// Cycles of each run; every buffer holds the number of the current one.
const CYCLES: u32 = 20_000;

fn main() {
    samples_are_published_by_signals();
    plans_are_published_by_their_handover();
    snapshots_are_never_torn();
    frames_are_published_by_their_count();
    println!("signals, plans, snapshots and frames: {CYCLES} cycles each");
}

/// One client's output, written by its thread, and read by its followers' once they are ready; or a
/// frame of a ring.
#[derive(Default)]
struct Buffer(UnsafeCell<u32>);

// SAFETY: the order under test keeps writer and readers apart.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn write(&self, value: u32) {
        // SAFETY: only this client's thread runs between its becoming ready and its signal; a frame
        // was given back.
        unsafe { *self.0.get() = value }
    }

    fn read(&self) -> u32 {
        // SAFETY: the writer has signaled this cycle, and waits for the end of it; a frame was
        // published, and is not given back yet.
        unsafe { *self.0.get() }
    }
}

#[derive(Default)]
struct Client {
    page: SignalPage,
    output: Buffer,
}

/// A diamond: client 0 feeds 1 and 2, both feed 3, and 3 ends the cycle.
fn samples_are_published_by_signals() {
    let edges = [1, 1, 1, 2].map(|count| Edges::new(count).expect("few"));
    let followers: [&[(usize, u32)]; 4] = [&[(1, 0), (2, 0)], &[(3, 0)], &[(3, 1)], &[]];
    let sources: [&[usize]; 4] = [&[], &[0], &[0], &[1, 2]];
    let clients: [Client; 4] = std::array::from_fn(|_| Client::default());
    let end = SignalPage::default();
    let one = Edges::new(1).expect("one");
    let (clients, end) = (&clients, &end);
    thread::scope(|scope| {
        for index in 0..clients.len() {
            scope.spawn(move || {
                for cycle in 1..=CYCLES {
                    await_signals(&clients[index].page, edges[index], cycle);
                    for source in sources[index] {
                        assert_eq!(clients[*source].output.read(), cycle, "of client {source}");
                    }
                    clients[index].output.write(cycle);
                    for &(follower, edge) in followers[index] {
                        clients[follower].page.signal(cycle, edges[follower], edge);
                    }
                    if followers[index].is_empty() {
                        end.signal(cycle, one, 0);
                    }
                }
            });
        }
        for cycle in 1..=CYCLES {
            for (client, edges) in clients.iter().zip(edges) {
                client.page.arm(cycle, edges);
            }
            end.arm(cycle, one);
            // The driver is the first client's predecessor here, and so publishes the armed pages.
            clients[0].page.signal(cycle, one, 0);
            await_signals(end, one, cycle);
        }
    });
}

fn await_signals(page: &SignalPage, edges: Edges, cycle: u32) {
    while !page.ready(cycle, edges) {
        thread::yield_now();
    }
}

/// Two plans pass back and forth; each is written by one thread at a time.
fn plans_are_published_by_their_handover() {
    let (there, back) = (Handover::<[u32; 64]>::default(), Handover::default());
    let (there, back) = (&there, &back);
    thread::scope(|scope| {
        scope.spawn(move || {
            for cycle in 1..=CYCLES {
                let plan = await_plan(there);
                assert!(plan.iter().all(|word| *word == cycle), "cycle {cycle}: {plan:?}");
                plan.fill(0);
                assert!(back.publish(plan).is_none(), "the last one was taken");
            }
        });
        let mut plan: &'static mut [u32; 64] = Box::leak(Box::new([0; 64]));
        for cycle in 1..=CYCLES {
            plan.fill(cycle);
            assert!(there.publish(plan).is_none(), "the last one was taken");
            plan = await_plan(back);
            assert!(plan.iter().all(|word| *word == 0));
        }
    });
}

fn await_plan(cell: &Handover<[u32; 64]>) -> &'static mut [u32; 64] {
    loop {
        match cell.take() {
            Some(plan) => return plan,
            None => thread::yield_now(),
        }
    }
}

/// A reader sees the words of one write, however often the writer writes.
fn snapshots_are_never_torn() {
    let snapshot = Snapshot::<4>::default();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut newest = 0;
            while newest < u64::from(CYCLES) {
                let Some(words) = snapshot.read() else { continue };
                assert!(words.iter().all(|word| *word == words[0]), "{words:?}");
                assert!(words[0] >= newest, "snapshots never go back");
                newest = black_box(words[0]);
            }
        });
        for cycle in 1..=u64::from(CYCLES) {
            snapshot.write(&[cycle; 4]);
        }
        reader.join().expect("the reader");
    });
}

/// The samples of a playback ring: written by the program, and read by the device's thread until it
/// gives them back.
fn frames_are_published_by_their_count() {
    const CAPACITY: u32 = 8;
    let (ring, page) = (RingHeader::default(), StreamPage::default());
    let frames: [Buffer; CAPACITY as usize] = std::array::from_fn(|_| Buffer::default());
    let frame = |position: u32| &frames[(position % CAPACITY) as usize];
    thread::scope(|scope| {
        scope.spawn(|| {
            for position in 0..CYCLES {
                while u64::from(position) >= page.lowest() + u64::from(CAPACITY) {
                    thread::yield_now();
                }
                frame(position).write(position);
                ring.publish(u64::from(position) + 1);
            }
        });
        let mut written = WrittenFrames::default();
        for position in 0..CYCLES {
            while written.read(&ring, position.into(), CAPACITY) <= u64::from(position) {
                thread::yield_now();
            }
            assert_eq!(frame(position).read(), position);
            page.set_lowest(u64::from(position) + 1);
        }
    });
}
