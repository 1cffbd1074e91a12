//! Plans pass from the control thread to the driver and back.

use std::sync::Arc;

use consort_rt::shm::Handover;
use consort_rt::sync::{AtomicU32, Ordering};
use loom::thread;

use crate::explore;

/// A plan whose content only its owner may access.
#[derive(Debug)]
struct Plan {
    number: u32,
    content: AtomicU32,
}

/// Builds a plan, as the control thread does.
fn build(number: u32) -> &'static mut Plan {
    let plan = Box::leak(Box::new(Plan { number, content: AtomicU32::new(0) }));
    plan.content.store(number, Ordering::Relaxed);
    plan
}

#[test]
fn no_plan_is_both_run_and_returned() {
    explore(3, || {
        let next = Arc::new(Handover::<Plan>::default());
        let driver = {
            let next = next.clone();
            thread::spawn(move || {
                let mut run = Vec::new();
                for _ in 0..2 {
                    if let Some(plan) = next.take() {
                        assert_eq!(plan.content.load(Ordering::Relaxed), plan.number, "whole");
                        run.push(plan.number);
                    }
                }
                run
            })
        };
        let mut back = Vec::new();
        back.extend(next.publish(build(1)).map(|plan| plan.number));
        back.extend(next.publish(build(2)).map(|plan| plan.number));
        back.extend(next.withdraw().map(|plan| plan.number));
        let run = driver.join().expect("driver");
        assert!(run.is_sorted(), "the driver never goes back to an older plan");
        let mut all = [run, back].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2], "each has one owner");
    });
}

#[test]
fn a_retired_plan_comes_back_as_the_driver_left_it() {
    explore(3, || {
        let pair = Arc::new((Handover::<Plan>::default(), Handover::<Plan>::default()));
        let driver = {
            let pair = pair.clone();
            thread::spawn(move || {
                let (next, retired) = &*pair;
                if let Some(plan) = next.take() {
                    plan.content.store(100, Ordering::Relaxed);
                    assert!(retired.publish(plan).is_none());
                }
            })
        };
        let (next, retired) = &*pair;
        assert!(next.publish(build(1)).is_none());
        if let Some(plan) = retired.take() {
            assert_eq!(plan.content.load(Ordering::Relaxed), 100);
        }
        driver.join().expect("driver");
    });
}
