//! Timelines: what happens to a client that is late in certain cycles.

use super::affinity_mismatch::MISMATCH_CYCLES;
use super::*;

/// Cycles of 64 frames at 48 kHz.
const CYCLE_NS: u64 = 1_333_333;
const SECOND_NS: u64 = 1_000_000_000;
/// The default of `--client-timeout` in such cycles.
const TIMEOUT: u32 = 15;
/// A page that says that the client is idle, and polls.
const ALIVE: fn(u32) -> Poll = |polls| Poll { polls, is_idle: true };

/// A client, its clock, and what was done about it.
struct Timeline {
    client: ClientSupervision,
    now_ns: u64,
    overdue_cycles: u32,
    actions: Vec<Action>,
}

impl Timeline {
    fn new(is_confined: bool) -> Self {
        Self {
            client: ClientSupervision::new(is_confined),
            now_ns: 1_000 * SECOND_NS,
            overdue_cycles: 0,
            actions: Vec::new(),
        }
    }

    fn on(&mut self, event: Event) -> Option<Action> {
        let action = self.client.on(event, self.now_ns);
        self.actions.extend(action);
        action
    }

    fn late(&mut self, cycles: u32) -> &mut Self {
        let event =
            Event::Late { timeout_cycles: TIMEOUT, polls: 0, overdue_cycles: self.overdue_cycles };
        self.cycles(cycles, event)
    }

    /// The driver waits for it in vain.
    fn overdue(&mut self) -> &mut Self {
        self.overdue_cycles = self.overdue_cycles.wrapping_add(1);
        self.late(1)
    }

    fn in_time(&mut self, cycles: u32) -> &mut Self {
        self.cycles(cycles, Event::InTime)
    }

    fn cycles(&mut self, cycles: u32, event: Event) -> &mut Self {
        for _ in 0..cycles {
            self.now_ns += CYCLE_NS;
            self.on(event);
        }
        self
    }

    /// Waits until the suspension is due for a check; returns how long that was, ms.
    fn await_check(&mut self) -> u64 {
        let check_at_ns = self.client.check_at_ns().expect("it is suspended");
        let waited_ns = check_at_ns - self.now_ns;
        self.now_ns = check_at_ns;
        waited_ns / 1_000_000
    }

    fn is_pinned(&self) -> bool {
        self.client.may_be_pinned(self.now_ns)
    }

    fn taken(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

#[test]
fn six_late_cycles_in_a_row_unpin_a_client() {
    let mut in_a_row = Timeline::new(false);
    in_a_row.late(6).in_time(14);
    assert_eq!(in_a_row.taken(), [Action::Unpin]);
    assert!(!in_a_row.is_pinned() && !in_a_row.client.is_suspended());
}

#[test]
fn six_late_cycles_spread_over_twenty_do_not_unpin_a_client() {
    let mut spread = Timeline::new(false);
    for _ in 0..1_000 {
        (0..6).for_each(|_| {
            spread.late(1).in_time(2);
        });
        spread.in_time(2);
    }
    assert_eq!(spread.taken(), []);
    assert_eq!(spread.client.late_cycles(), 6_000, "they are counted all the same");
}

#[test]
fn a_client_that_is_late_more_often_than_not_ends_up_suspended() {
    let mut slow = Timeline::new(false);
    (0..20).for_each(|_| {
        slow.late(2).in_time(1);
    });
    assert_eq!(slow.taken(), [Action::Unpin, Action::Suspend]);
}

#[test]
fn a_machine_that_stops_for_a_moment_has_no_client_unpinned() {
    for (case, late, in_time, times) in [
        ("once, for three cycles", 3, 0, 1),
        ("every second, for three cycles", 3, 750, 60),
        ("every other cycle", 1, 1, 1_000),
    ] {
        let mut stopped = Timeline::new(false);
        (0..times).for_each(|_| {
            stopped.late(late).in_time(in_time);
        });
        assert_eq!(stopped.taken(), [], "{case}");
    }
}

#[test]
fn a_client_that_delays_every_other_cycle_is_suspended() {
    let mut overdue = Timeline::new(false);
    (1..TIMEOUT).for_each(|_| {
        overdue.overdue().in_time(1);
    });
    assert_eq!(overdue.taken(), [Action::Unpin]);
    assert_eq!(overdue.overdue().taken(), [Action::Suspend]);
}

#[test]
fn a_client_that_makes_the_driver_wait_once_a_minute_is_not_suspended() {
    let mut overdue = Timeline::new(false);
    (0..1_000).for_each(|_| {
        overdue.overdue().now_ns += 60 * SECOND_NS;
        overdue.in_time(1);
    });
    assert_eq!(overdue.taken(), []);
}

#[test]
fn a_client_that_hangs_for_the_timeout_is_suspended_until_it_polls_again() {
    let mut hanging = Timeline::new(false);
    hanging.late(TIMEOUT - 1);
    assert!(!hanging.client.is_suspended());
    hanging.late(1);
    assert_eq!(hanging.taken(), [Action::Unpin, Action::Suspend]);
    assert_eq!(hanging.await_check(), 10);
    for (case, poll) in [
        ("it is still in its callback", Poll { polls: 1, is_idle: false }),
        ("it is stopped", Poll { polls: 1, is_idle: true }),
        ("it polled, and began a cycle", Poll { polls: 2, is_idle: false }),
    ] {
        assert_eq!(hanging.on(Event::Checked(poll)), Some(Action::Wake), "{case}");
        assert_eq!(hanging.await_check(), 10, "{case}");
    }
    assert_eq!(hanging.on(Event::Checked(ALIVE(3))), Some(Action::Reinstate));
    assert!(!hanging.client.is_suspended());
    assert_eq!((hanging.client.suspensions(), hanging.client.late_cycles()), (1, 15));
}

#[test]
fn a_client_that_is_suspended_again_soon_is_checked_later_each_time() {
    let mut hanging = Timeline::new(false);
    for (polls, wait_ms) in (1..).zip([10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_000, 5_000]) {
        hanging.late(TIMEOUT);
        assert_eq!(hanging.await_check(), wait_ms);
        assert_eq!(hanging.on(Event::Checked(ALIVE(polls))), Some(Action::Reinstate));
    }
    hanging.now_ns += 31 * SECOND_NS;
    hanging.late(TIMEOUT);
    assert_eq!(hanging.await_check(), 10, "forgotten");
}

#[test]
fn a_client_that_was_suspended_has_the_whole_timeout_again() {
    let mut hanging = Timeline::new(false);
    hanging.late(TIMEOUT);
    hanging.await_check();
    hanging.on(Event::Checked(ALIVE(1)));
    hanging.late(TIMEOUT - 1);
    assert!(!hanging.client.is_suspended());
}

#[test]
fn a_late_record_of_a_suspended_client_does_not_suspend_it_twice() {
    let mut hanging = Timeline::new(false);
    hanging.late(3 * TIMEOUT);
    assert_eq!((hanging.taken().len(), hanging.client.suspensions()), (2, 1));
}

#[test]
fn a_suspended_client_that_is_activated_again_runs_at_once() {
    let mut hanging = Timeline::new(false);
    assert_eq!(hanging.on(Event::Activated), None);
    hanging.late(TIMEOUT);
    assert_eq!(hanging.on(Event::Activated), Some(Action::Reinstate));
    assert_eq!(hanging.client.check_at_ns(), None);
    assert_eq!(hanging.on(Event::Checked(ALIVE(1))), None, "there is nothing to check");
}

#[test]
fn an_unpinned_client_is_pinned_again_five_seconds_after_it_was_late() {
    let mut late = Timeline::new(false);
    late.late(4);
    late.now_ns += 4 * SECOND_NS;
    late.late(4);
    assert_eq!(late.taken(), [Action::Unpin], "it was unpinned already");
    assert_eq!(late.client.unpinned(late.now_ns), Some((UnpinReason::Late, 5 * SECOND_NS)));
    late.now_ns += 5 * SECOND_NS - 1;
    assert!(!late.is_pinned());
    late.now_ns += 1;
    assert!(late.is_pinned());
    assert_eq!(late.client.unpinned(late.now_ns), None);
}

#[test]
fn a_client_that_is_unpinned_again_soon_stays_so_for_longer_each_time() {
    let mut late = Timeline::new(false);
    for seconds in [5, 10, 20, 40, 80, 160, 320, 320] {
        late.in_time(TIMEOUT).late(4);
        assert_eq!(late.taken(), [Action::Unpin]);
        late.now_ns += SECOND_NS * seconds - 1;
        assert!(!late.is_pinned(), "{seconds} s");
        late.now_ns += 1;
        assert!(late.is_pinned(), "{seconds} s");
    }
    late.now_ns += 30 * SECOND_NS;
    late.in_time(TIMEOUT).late(4);
    late.now_ns += 5 * SECOND_NS;
    assert!(late.is_pinned(), "forgotten");
}

#[test]
fn a_reinstated_client_is_unpinned() {
    let mut hanging = Timeline::new(false);
    hanging.late(TIMEOUT);
    hanging.now_ns += 60 * SECOND_NS;
    assert!(hanging.is_pinned());
    assert_eq!(hanging.on(Event::Checked(ALIVE(1))), Some(Action::Reinstate));
    assert!(!hanging.is_pinned());
}

#[test]
fn a_client_on_another_cpu_than_assigned_is_unpinned_for_a_while() {
    let mut elsewhere = Timeline::new(false);
    let strays = Event::RanOn { cpu: 1, assigned: 3 };
    elsewhere.cycles(MISMATCH_CYCLES - 1, strays);
    elsewhere.on(Event::RanOn { cpu: 3, assigned: 3 });
    assert_eq!(elsewhere.taken(), [], "it was on its way");
    elsewhere.cycles(MISMATCH_CYCLES, strays);
    assert_eq!(elsewhere.taken(), [Action::Unpin]);
    let reason = UnpinReason::Mismatch(3);
    assert_eq!(elsewhere.client.unpinned(elsewhere.now_ns), Some((reason, 5 * SECOND_NS)));
    elsewhere.now_ns += 5 * SECOND_NS;
    assert!(elsewhere.is_pinned());
}

#[test]
fn a_client_that_leaves_the_users_cpus_stays_pinned() {
    let mut elsewhere = Timeline::new(true);
    elsewhere.cycles(10 * MISMATCH_CYCLES, Event::RanOn { cpu: 1, assigned: 3 });
    assert_eq!(elsewhere.taken(), [Action::ReportMismatch { assigned: 3 }]);
    elsewhere.late(TIMEOUT);
    assert!(elsewhere.is_pinned());
}
