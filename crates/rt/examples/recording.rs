//! Prints what the recording costs the driver thread, per client and cycle.
//!
//! `cargo run --release -p consort-rt --example recording`. Another thread plays the clients: it
//! writes their pages in every cycle, so that the driver finds them in another CPU's cache, as in a
//! server. Every other cycle is recorded; the others do only what they would do without a
//! recording. The difference between the two is the cost.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use consort_rt::record::{ClientCycle, ClientRecord, CycleRecord, Record};
use consort_rt::shm::{CycleInfo, Edges, OwnPage, Recording, SignalPage};
use consort_rt::sync::{AtomicU32, Ordering};

const CYCLES: u32 = 40_000;

#[derive(Default)]
struct Client {
    own: OwnPage,
    signals: SignalPage,
}

fn main() {
    // On a thread whose stack has room for a ring, before it is moved to the heap.
    let body = || {
        let ring: Box<Recording> = Box::default();
        println!("the ring: {} bytes", size_of::<Recording>());
        println!("clients   without, ns   recorded, ns   per client and cycle, ns (medians)");
        [1, 5, 20, 100].into_iter().for_each(|clients| measure(clients, &ring));
    };
    let thread = thread::Builder::new().stack_size(64 << 20).spawn(body);
    thread.expect("a thread").join().expect("it ends");
}

fn measure(count: u32, ring: &Recording) {
    let clients: Arc<Vec<Client>> = Arc::new((0..count).map(|_| Client::default()).collect());
    let turn = Arc::new(AtomicU32::new(0));
    let playing = {
        let (clients, turn) = (Arc::clone(&clients), Arc::clone(&turn));
        thread::spawn(move || play(&clients, &turn))
    };
    let mut times_ns = [Vec::new(), Vec::new()];
    for cycle in 1..=CYCLES {
        // An odd number starts the clients' part; the driver's starts when they have made it even.
        turn.store(cycle * 2 - 1, Ordering::Release);
        while turn.load(Ordering::Acquire) != cycle * 2 {
            thread::yield_now();
        }
        let info = CycleInfo { cycle, woken_ns: u64::from(cycle), ..CycleInfo::default() };
        let recorded = cycle % 2 == 0;
        let start = Instant::now();
        poll(&clients, info);
        if recorded {
            record(&clients, info, ring);
        }
        times_ns[usize::from(recorded)].push(start.elapsed().as_nanos() as f64);
    }
    turn.store(0, Ordering::Release);
    playing.join().expect("the clients end");
    let [without, recorded] = times_ns.map(median);
    println!(
        "{count:>7} {without:>13.0} {recorded:>14.0} {:>12.1}",
        (recorded - without) / f64::from(count)
    );
}

/// Does what the driver does in any case: it checks which clients have finished.
fn poll(clients: &[Client], info: CycleInfo) {
    let finished = clients.iter().filter(|client| client.own.finished() == info.cycle).count();
    assert_eq!(black_box(finished), clients.len());
}

fn record(clients: &[Client], info: CycleInfo, ring: &Recording) {
    for (id, client) in (2..).zip(clients) {
        let (own, signals) = (&client.own, &client.signals);
        let client_cycle =
            ClientCycle { client: id, own, signals, edges: Edges::new(1).unwrap_or(Edges::NONE) };
        let record = ClientRecord::of(client_cycle, info, info.woken_ns, info.cycle + 1);
        ring.push(&Record::Client(record).to_words());
    }
    ring.push(
        &Record::Cycle(CycleRecord { cycle: info.cycle, ..CycleRecord::default() }).to_words(),
    );
}

fn play(clients: &[Client], turn: &AtomicU32) {
    let mut last = 0;
    loop {
        match turn.load(Ordering::Acquire) {
            0 if last != 0 => return,
            now if now % 2 == 1 && now != last => {
                let cycle = now.div_ceil(2);
                for client in clients {
                    client.signals.note_signaled(cycle, u64::from(cycle) + 1);
                    client.own.begin(cycle, u64::from(cycle) + 2);
                    client.own.finish(cycle, u64::from(cycle) + 3, 1);
                }
                last = now;
                turn.store(cycle * 2, Ordering::Release);
            }
            _ => thread::yield_now(),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
