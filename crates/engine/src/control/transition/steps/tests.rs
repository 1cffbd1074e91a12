//! Timelines: a change from its request to the answer.

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

/// A change, and a server that carries its effects out.
struct Timeline {
    transition: Transition,
    facts: Facts,
    /// What was done since the last call of `done`.
    effects: Vec<Effect>,
    answer: Option<Result<(), RequestError>>,
}

fn timer(capture: u32) -> DriverChoice {
    DriverChoice::Timer {
        capture,
        playback: 2,
        sample_rate_hz: Some(48_000),
        looped: false,
        monitors: false,
    }
}

fn refused(reason: &str) -> RequestError {
    RequestError::Driver(reason.into())
}

impl Timeline {
    fn begin(change: Change, must_close_first: bool) -> Self {
        let facts = Facts {
            now_ns: SECOND_NS,
            quantum: 256,
            period_ns: 5_333_333,
            running: 7,
            next_generation: 8,
            callbacks_run: false,
        };
        let ticket = Ticket { peer: 3, number: 11 };
        let (transition, effects) = Transition::begin(change, ticket, must_close_first, &facts);
        let mut timeline = Self { transition, facts, effects: Vec::new(), answer: None };
        timeline.carry_out(effects);
        timeline
    }

    fn driver(quantum: u32, must_close_first: bool) -> Self {
        Self::begin(Change::Driver { choice: timer(4), quantum }, must_close_first)
    }

    fn on(&mut self, event: Event) {
        let effects = self.transition.on(event, &self.facts);
        self.carry_out(effects);
    }

    /// Records the effects, and applies those that change the facts.
    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match &effect {
                Effect::SetQuantum(frames) => self.facts.quantum = *frames,
                Effect::Finish(answer) => self.answer = Some(answer.clone()),
                _ => {}
            }
            self.effects.push(effect);
        }
    }

    /// The plan that was asked for is published, and the driver thread takes it.
    fn plan_runs(&mut self) {
        self.facts.running = self.facts.next_generation;
        self.facts.next_generation += 1;
        self.on(Event::Polled);
    }

    fn callbacks_return(&mut self) {
        self.facts.callbacks_run = false;
        self.on(Event::Polled);
    }

    fn wait(&mut self, wait_ns: u64) {
        self.facts.now_ns += wait_ns;
        self.on(Event::Polled);
    }

    fn done(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}

/// Effects of the last step but the answer's.
fn resumed(quantum: u32) -> [Effect; 5] {
    [
        Effect::SetQuantum(quantum),
        Effect::NotifyQuantum(quantum),
        Effect::HandOverDriver,
        Effect::Publish,
        Effect::RestartLatencies { order_changes: true },
    ]
}

#[test]
fn another_quantum_pauses_the_clients_until_their_callbacks_have_returned() {
    let mut quantum = Timeline::begin(Change::Quantum(512), false);
    assert_eq!(quantum.done(), [Effect::Publish]);
    quantum.wait(0);
    assert!(quantum.transition.pauses() && quantum.done().is_empty());
    quantum.plan_runs();
    assert_eq!(quantum.done(), [Effect::NotifyQuantum(512)]);
    quantum.facts.callbacks_run = true;
    quantum.wait(STALL_NS - 1);
    assert!(quantum.transition.pauses() && quantum.done().is_empty());
    quantum.callbacks_return();
    assert_eq!(
        quantum.done(),
        [
            Effect::SetQuantum(512),
            Effect::NotifyQuantum(512),
            Effect::Publish,
            Effect::RestartLatencies { order_changes: false }
        ]
    );
    assert!(!quantum.transition.pauses());
    assert_eq!(quantum.answer, None, "the plan does not run yet");
    quantum.plan_runs();
    assert_eq!(quantum.done(), [Effect::Finish(Ok(()))]);
}

#[test]
fn a_callback_that_does_not_return_lengthens_a_pause_by_a_stall_at_most() {
    for change in [Change::Quantum(512), Change::Freewheel(true)] {
        let mut hanging = Timeline::begin(change, false);
        hanging.plan_runs();
        hanging.facts.callbacks_run = true;
        let pause_until_ns = hanging.transition.pause_until_ns();
        assert_eq!(pause_until_ns, Some(hanging.facts.now_ns + STALL_NS));
        hanging.wait(STALL_NS - 1);
        assert!(hanging.transition.pauses());
        hanging.wait(1);
        assert!(!hanging.transition.pauses());
        assert_eq!(hanging.transition.pause_until_ns(), None);
    }
}

#[test]
fn a_pause_in_long_cycles_lasts_a_period() {
    assert_eq!(pause_ns(5_000_000), STALL_NS);
    assert_eq!(pause_ns(85_333_333), 85_333_333);
    assert_eq!(pause_ns(1_024_000_000), CALLBACKS_NS);
}

#[test]
fn the_answer_waits_for_a_callback_for_half_a_second() {
    for returns in [true, false] {
        let mut hanging = Timeline::begin(Change::Quantum(512), false);
        hanging.plan_runs();
        hanging.facts.callbacks_run = true;
        hanging.wait(STALL_NS);
        hanging.plan_runs();
        hanging.wait(CALLBACKS_NS - STALL_NS - 1);
        assert_eq!(hanging.answer, None);
        if returns {
            hanging.callbacks_return()
        } else {
            hanging.wait(1)
        }
        assert_eq!(hanging.answer, Some(Ok(())));
    }
}

#[test]
fn freewheel_begins_and_ends_with_a_pause() {
    for on in [true, false] {
        let mut freewheel = Timeline::begin(Change::Freewheel(on), false);
        freewheel.plan_runs();
        assert_eq!(freewheel.done(), [Effect::Publish, Effect::NotifyFreewheel(on)]);
        freewheel.callbacks_return();
        assert_eq!(
            freewheel.done(),
            [
                Effect::SetFreewheel(on),
                Effect::Publish,
                Effect::RestartLatencies { order_changes: true }
            ]
        );
        freewheel.plan_runs();
        assert_eq!(freewheel.answer, Some(Ok(())));
        assert_eq!(freewheel.facts.quantum, 256);
    }
}

#[test]
fn a_driver_of_the_same_quantum_comes_without_a_pause() {
    let mut driver = Timeline::driver(256, false);
    assert_eq!(driver.done(), [Effect::OpenDriver { or_previous: false }]);
    driver.wait(10 * SECOND_NS);
    assert!(driver.done().is_empty() && !driver.transition.pauses(), "it is being opened");
    driver.on(Event::DriverOpened { refusal: None });
    assert_eq!(driver.done(), resumed(256));
    assert!(!driver.transition.pauses());
    driver.plan_runs();
    assert_eq!(driver.answer, Some(Ok(())));
}

#[test]
fn a_driver_of_another_quantum_comes_when_every_client_knows_of_it() {
    let mut driver = Timeline::driver(1024, false);
    driver.on(Event::DriverOpened { refusal: None });
    assert_eq!(driver.done(), [Effect::OpenDriver { or_previous: false }, Effect::Publish]);
    driver.plan_runs();
    assert_eq!(driver.done(), [Effect::NotifyQuantum(1024)]);
    driver.callbacks_return();
    assert_eq!(driver.done(), resumed(1024));
    driver.on(Event::DriverRetired);
    assert!(driver.done().is_empty(), "nothing waits for the driver before");
    driver.plan_runs();
    assert_eq!(driver.answer, Some(Ok(())));
}

#[test]
fn a_driver_that_cannot_be_opened_changes_nothing() {
    let mut driver = Timeline::driver(1024, false);
    driver.on(Event::DriverFailed(refused("no such device")));
    assert!(!driver.transition.pauses());
    let refusal = Effect::Finish(Err(refused("no such device")));
    assert_eq!(driver.done(), [Effect::OpenDriver { or_previous: false }, refusal]);
}

#[test]
fn a_timer_stands_in_for_a_device_that_is_being_reopened() {
    let mut driver = Timeline::driver(256, true);
    assert_eq!(driver.done(), [Effect::StandIn]);
    driver.wait(SECOND_NS);
    assert!(driver.done().is_empty(), "the timer does not drive yet");
    driver.on(Event::DriverRetired);
    assert_eq!(driver.done(), [Effect::OpenDriver { or_previous: true }]);
    driver.on(Event::DriverOpened { refusal: None });
    assert_eq!(driver.done(), resumed(256));
    driver.on(Event::DriverRetired);
    driver.plan_runs();
    assert_eq!(driver.answer, Some(Ok(())), "the timer that is back is not opened again");
}

#[test]
fn a_device_that_refuses_a_change_is_reopened_without_a_pause() {
    let mut driver = Timeline::driver(1024, true);
    driver.on(Event::DriverRetired);
    driver.done();
    driver.on(Event::DriverOpened { refusal: Some("no such rate".into()) });
    assert_eq!(driver.done(), resumed(256));
    assert!(!driver.transition.pauses());
    driver.plan_runs();
    assert_eq!(driver.answer, Some(Err(refused("no such rate"))));
}

#[test]
fn a_device_that_can_no_longer_be_opened_at_all_leaves_the_timer() {
    let mut driver = Timeline::driver(1024, true);
    driver.on(Event::DriverRetired);
    driver.on(Event::DriverFailed(refused("unplugged")));
    assert_eq!(driver.answer, Some(Err(refused("unplugged"))));
}

#[test]
fn a_timer_that_cannot_stand_in_ends_the_change() {
    let mut driver = Timeline::driver(256, true);
    driver.on(Event::DriverFailed(refused("no timer")));
    assert_eq!(driver.answer, Some(Err(refused("no timer"))));
}

#[test]
fn a_graph_that_does_not_end_is_not_waited_for_when_a_pause_is_overdue() {
    let mut quantum = Timeline::begin(Change::Quantum(512), false);
    quantum.wait(PLAN_NS);
    assert_eq!(quantum.done(), [Effect::Publish]);
    quantum.wait(1);
    assert_eq!(quantum.done(), [Effect::Hurry(true), Effect::NotifyQuantum(512)]);
    quantum.callbacks_return();
    quantum.done();
    quantum.plan_runs();
    assert_eq!(quantum.done(), [Effect::Hurry(false), Effect::Finish(Ok(()))]);
}

#[test]
fn a_quantum_change_is_answered_even_if_the_driver_has_no_cycles() {
    let mut quantum = Timeline::begin(Change::Quantum(512), false);
    quantum.plan_runs();
    quantum.callbacks_return();
    quantum.wait(PLAN_NS + 1);
    assert_eq!(quantum.answer, Some(Ok(())));
}

#[test]
fn a_driver_that_was_handed_over_is_waited_for_until_it_drives() {
    let mut driver = Timeline::driver(256, false);
    driver.on(Event::DriverOpened { refusal: None });
    driver.done();
    driver.wait(PLAN_NS + 1);
    assert_eq!(driver.done(), [Effect::Hurry(true)]);
    driver.wait(3600 * SECOND_NS);
    assert!(driver.done().is_empty() && driver.answer.is_none());
    driver.plan_runs();
    assert_eq!(driver.done(), [Effect::Hurry(false), Effect::Finish(Ok(()))]);
}

#[test]
fn events_of_a_driver_are_none_of_a_change_of_the_quantum() {
    let mut quantum = Timeline::begin(Change::Quantum(512), false);
    quantum.done();
    for event in [
        Event::DriverRetired,
        Event::DriverOpened { refusal: None },
        Event::DriverFailed(refused("late")),
    ] {
        quantum.on(event);
    }
    assert!(quantum.done().is_empty() && quantum.transition.pauses());
}

#[test]
fn the_ticket_of_a_change_is_the_one_of_its_request() {
    let mut quantum = Timeline::begin(Change::Quantum(512), false);
    quantum.plan_runs();
    assert_eq!(quantum.transition.into_ticket(), Ticket { peer: 3, number: 11 });
}
