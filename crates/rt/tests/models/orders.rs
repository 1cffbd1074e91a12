//! A client copies its orders while the control thread writes others.

use std::sync::Arc;

use consort_rt::shm::{ORDERS_WORDS, Orders, OrdersCopy};
use loom::thread;

use crate::explore;

/// Orders of `plan`, of a length and with words that no other plan has.
fn words(plan: u64) -> Vec<u32> {
    vec![u32::try_from(plan).expect("small"); usize::try_from(plan).expect("small")]
}

/// Copies the orders for `plan` again and again, and demands each time that they are one plan's.
fn read_whole_sets(orders: &Orders, plans: &[u64]) {
    let (mut valid_from, mut used, mut copied) = (0, 0, [0; ORDERS_WORDS]);
    for plan in plans {
        let mut copy = OrdersCopy { valid_from: &mut valid_from, used: &mut used, words: &mut copied };
        if orders.copy_for(*plan, &mut copy) {
            assert!(valid_from <= *plan && valid_from > 0, "orders for {plan} of {valid_from}");
            assert_eq!(&copied[..used], words(valid_from), "one set");
        }
    }
}

#[test]
fn a_client_that_copies_its_orders_never_gets_a_mixture_of_two_sets() {
    explore(3, || {
        let orders = Arc::new(Orders::default());
        assert!(orders.publish(1, &words(1)) && orders.publish(2, &words(2)));
        let control = {
            let orders = orders.clone();
            thread::spawn(move || assert!(orders.publish(3, &words(3))))
        };
        read_whole_sets(&orders, &[1, 3]);
        control.join().expect("control thread");
    });
}

#[test]
fn orders_of_a_plan_withdrawn_before_any_cycle_leave_those_in_force_alone() {
    explore(3, || {
        let orders = Arc::new(Orders::default());
        assert!(orders.publish(2, &words(2)) && orders.publish(3, &words(3)));
        let control = {
            let orders = orders.clone();
            thread::spawn(move || assert!(orders.replace_newest(4, &words(4))))
        };
        let (mut valid_from, mut used, mut copied) = (0, 0, [0; ORDERS_WORDS]);
        let mut copy = OrdersCopy { valid_from: &mut valid_from, used: &mut used, words: &mut copied };
        assert!(orders.copy_for(2, &mut copy), "never in the way of the plan that runs");
        assert_eq!(&copied[..used], words(2));
        control.join().expect("control thread");
        read_whole_sets(&orders, &[4]);
    });
}
