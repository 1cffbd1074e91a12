//! A client copies its assignment while the control thread writes another one.

use std::sync::Arc;

use consort_rt::shm::{ASSIGNMENT_WORDS, AssignmentCopy, Assignments};
use loom::thread;

use crate::explore;

/// Words of the set for `plan`; no other plan's has the same length or words.
fn words(plan: u64) -> Vec<u32> {
    vec![u32::try_from(plan).expect("small"); usize::try_from(plan).expect("small")]
}

/// Copies the set for each plan, and asserts that each copy is the set of one plan.
fn read_whole_sets(assignments: &Assignments, plans: &[u64]) {
    let (mut valid_from, mut used, mut copied) = (0, 0, [0; ASSIGNMENT_WORDS]);
    for plan in plans {
        let mut copy =
            AssignmentCopy { valid_from: &mut valid_from, used: &mut used, words: &mut copied };
        if assignments.copy_for(*plan, &mut copy) {
            assert!(
                valid_from <= *plan && valid_from > 0,
                "assignments for {plan} of {valid_from}"
            );
            assert_eq!(&copied[..used], words(valid_from), "one set");
        }
    }
}

#[test]
fn a_client_that_copies_its_assignment_never_gets_a_mixture_of_two_sets() {
    explore(3, || {
        let assignments = Arc::new(Assignments::default());
        assert!(assignments.publish(1, &words(1)) && assignments.publish(2, &words(2)));
        let control = {
            let assignments = assignments.clone();
            thread::spawn(move || assert!(assignments.publish(3, &words(3))))
        };
        read_whole_sets(&assignments, &[1, 3]);
        control.join().expect("control thread");
    });
}

#[test]
fn a_withdrawn_plans_assignment_leaves_the_one_in_force_alone() {
    explore(3, || {
        let assignments = Arc::new(Assignments::default());
        assert!(assignments.publish(2, &words(2)) && assignments.publish(3, &words(3)));
        let control = {
            let assignments = assignments.clone();
            thread::spawn(move || assert!(assignments.replace_newest(4, &words(4))))
        };
        let (mut valid_from, mut used, mut copied) = (0, 0, [0; ASSIGNMENT_WORDS]);
        let mut copy =
            AssignmentCopy { valid_from: &mut valid_from, used: &mut used, words: &mut copied };
        assert!(assignments.copy_for(2, &mut copy), "never in the way of the plan that runs");
        assert_eq!(&copied[..used], words(2));
        control.join().expect("control thread");
        read_whole_sets(&assignments, &[4]);
    });
}
