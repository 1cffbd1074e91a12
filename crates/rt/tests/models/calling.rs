//! A thread that sleeps is called by others.

use std::sync::Arc;

use consort_rt::call::Call;
use consort_rt::sync::{AtomicU32, Ordering};
use loom::thread;

use crate::explore;
use crate::futex::Futex;

#[test]
fn what_was_left_before_a_call_is_found() {
    explore(3, || {
        let shared = Arc::new((Call::default(), AtomicU32::new(0), Futex::new()));
        let sleeper = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (call, left, futex) = &*shared;
                loop {
                    let counted = call.count();
                    // Relaxed: the call orders it. A load: an exchange would see the newest value.
                    if left.load(Ordering::Relaxed) == 2 {
                        break;
                    }
                    call.sleep(counted, None, futex);
                }
            })
        };
        let (call, left, futex) = &*shared;
        for number in 1..=2 {
            left.store(number, Ordering::Relaxed);
            call.call(futex);
        }
        sleeper.join().expect("sleeper");
    });
}
