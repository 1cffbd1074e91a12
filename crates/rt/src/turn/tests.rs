//! What a process thread does between two cycles, on a clock that a test sets.

use core::cell::{Cell, RefCell};
use std::vec::Vec;

use super::early::{EARLY_NS, SPIN_NS};
use super::*;
use crate::shm::{ASSIGNMENT_WORDS, AssignmentWriter};

#[test]
fn an_assignment_is_looked_up_once_per_plan() {
    let assignments = Assignments::default();
    let mut state = TurnState::new(std::vec![0; ASSIGNMENT_WORDS]);
    assert!(!state.refresh(&assignments, 0) && !state.refresh(&assignments, 4), "none yet");
    assert!(assignments.publish(3, &[30]));
    assert!(state.refresh(&assignments, 4) && state.valid_from == 3);
    assert!(assignments.publish(5, &[50]));
    assert!(state.refresh(&assignments, 6) && state.valid_from == 5);
    assert!(assignments.publish(8, &[80]));
    assert!(
        !state.refresh(&assignments, 4) && !state.refresh(&assignments, 4),
        "its assignments are gone"
    );
    assert!(state.refresh(&assignments, 8) && state.valid_from == 8);
    state.reset();
    assert!(state.refresh(&assignments, 6) && state.valid_from == 5, "another server's");
}

/// Sleeps end at their deadlines. Reading the clock takes a microsecond.
#[derive(Debug, Default)]
struct Clock {
    now_ns: Cell<u64>,
    deadlines_ns: RefCell<Vec<Option<u64>>>,
}

impl Park for Clock {
    fn wait(&self, _: &crate::sync::AtomicU32, _: u32, deadline_ns: Option<u64>) {
        self.deadlines_ns.borrow_mut().push(deadline_ns);
        self.now_ns.set(deadline_ns.unwrap_or(0).max(self.now_ns.get()));
    }

    fn wake(&self, _: &crate::sync::AtomicU32, _: u32) {}

    fn now_ns(&self) -> u64 {
        self.now_ns.set(self.now_ns.get() + 1_000);
        self.now_ns.get()
    }
}

struct OnePage(SignalPage);

impl SignalPages for OnePage {
    fn page(&self, _: u32) -> Option<&SignalPage> {
        Some(&self.0)
    }

    fn refresh(&mut self) {}
}

/// When the next cycle is due, ns.
const DUE_NS: u64 = 1_000_000;
const PATIENCE_NS: u64 = 1_000_000_000;

/// The deadlines of the first two sleeps of a client that has run a cycle, where none follows, and
/// the time after them, ns.
fn sleeps_after_a_cycle(
    edges: Edges,
    wakes_early: bool,
    patience_ns: Option<u64>,
) -> (Vec<Option<u64>>, u64) {
    let (engine, own, clock) = (EngineSegment::default(), OwnPage::default(), Clock::default());
    let (assignments, mut words) = (Assignments::boxed(), [0; 16]);
    let mut writer = AssignmentWriter::new(&mut words, None, edges, false);
    if wakes_early {
        writer.wake_early();
    }
    assert!(assignments.publish(1, writer.finish().expect("fits")));
    let info = CycleInfo { cycle: 1, plan: 1, next_wakeup_ns: DUE_NS, ..CycleInfo::default() };
    engine.publish(info);
    let mut signals = OnePage(SignalPage::default());
    signals.0.arm(1, edges);
    engine.release(1);
    for edge in 0..edges.count() {
        signals.0.signal(1, edges, edge);
    }
    let pages = Pages { engine: &engine, assignments: &assignments, own: &own };
    let mut state = TurnState::new(std::vec![0; ASSIGNMENT_WORDS]);
    let mut spurious = 0;
    let mut poll = || state.next(pages, &mut signals, patience_ns, &mut spurious, &clock);
    assert!(matches!(poll(), Turn::Run(_)));
    assert_eq!([poll(), poll()], [Turn::Wait; 2]);
    (clock.deadlines_ns.take(), clock.now_ns.get())
}

#[test]
fn a_client_that_wakes_early_waits_for_its_turn_in_bounded_time() {
    let early_ns = DUE_NS - EARLY_NS;
    for edges in [Edges::NONE, Edges::new(1).expect("one")] {
        let (deadlines_ns, now_ns) = sleeps_after_a_cycle(edges, true, Some(PATIENCE_NS));
        assert_eq!(deadlines_ns[0], Some(early_ns), "{edges:?}");
        match deadlines_ns[1] {
            None => assert!(now_ns.abs_diff(early_ns + SPIN_NS) < 5_000, "{now_ns}"),
            Some(next_ns) => {
                let waited_until_ns = next_ns - PATIENCE_NS;
                assert!(waited_until_ns.abs_diff(early_ns + SPIN_NS) < 5_000, "{waited_until_ns}");
            }
        }
        assert_eq!(deadlines_ns[1].is_none(), edges == Edges::NONE);
    }
}

#[test]
fn other_clients_sleep_until_their_turn() {
    let patience_ns = Some(PATIENCE_NS);
    assert_eq!(sleeps_after_a_cycle(Edges::NONE, false, patience_ns).0, [None, None]);
    let (deadlines_ns, _) = sleeps_after_a_cycle(Edges::new(1).expect("one"), false, patience_ns);
    assert_eq!(deadlines_ns[0], Some(PATIENCE_NS), "from the cycle on");
}

#[test]
fn a_client_among_trusted_programs_sleeps_without_a_deadline() {
    let one = Edges::new(1).expect("one");
    assert_eq!(sleeps_after_a_cycle(one, false, None).0, [None, None]);
    let (deadlines_ns, _) = sleeps_after_a_cycle(one, true, None);
    assert_eq!(deadlines_ns, [Some(DUE_NS - EARLY_NS), None], "its early wake-up needs a timer");
}

#[test]
fn a_client_that_waits_in_vain_sleeps_through_more_and_more_cycles() {
    let (mut early, clock) = (EarlyWake::default(), Clock::default());
    let mut cycle = |comes: bool| {
        early.plan(true, clock.now_ns.get() + 1_000_000);
        let at_ns = early.take();
        if let Some(at_ns) = at_ns {
            clock.now_ns.set(at_ns);
            early.wait(at_ns, &clock, || comes);
        }
        at_ns.is_some()
    };
    let in_vain: Vec<u32> = (0..16).filter(|_| cycle(false)).collect();
    assert_eq!(in_vain, [0, 2, 6, 14]);
    let pause = (0..100_000).filter(|_| !cycle(false)).count();
    assert!((99_800..99_950).contains(&pause), "{pause}");
    let next = (0..2_000).find(|_| cycle(true));
    assert!(next.is_some_and(|cycles| cycles <= 1023), "{next:?}");
    assert!((0..10).all(|_| cycle(true)), "a wait that was not in vain ends the pauses");
}
