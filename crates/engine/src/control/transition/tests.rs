//! Which changes are refused before they begin.

use proto::driver::{DriverChoice, DriverSwitch};

use super::*;
use crate::config::Config;
use crate::opening;

/// A machine without a session bus.
struct NoReservation;

impl device::CardReservation for NoReservation {
    fn reserve(&self, _: u32, _: i32) -> Option<device::Reservation> {
        None
    }
}

fn timer() -> DriverChoice {
    DriverChoice::Timer {
        capture: 2,
        playback: 2,
        sample_rate_hz: None,
        looped: false,
        monitors: false,
    }
}

fn settings() -> CycleSettings {
    let opened = opening::open(&timer(), 256, &NoReservation).unwrap().unwrap();
    CycleSettings::new(256, opened.facts, None)
}

fn switch() -> DriverSwitch {
    DriverSwitch { driver: timer(), quantum: None }
}

fn is_refused<T>(answer: Result<T, RequestError>) -> bool {
    matches!(answer, Err(RequestError::Failed(reason)) if reason.contains("under way"))
}

#[test]
fn while_one_change_is_under_way_every_other_one_is_refused() {
    let facts = Facts {
        now_ns: 1,
        quantum: 256,
        period_ns: 5_333_333,
        running: 1,
        next_generation: 2,
        callbacks_run: false,
    };
    let driver = Change::Driver { choice: timer(), quantum: 256 };
    for change in [Change::Quantum(512), Change::Freewheel(true), driver] {
        let (mut settings, ticket) = (settings(), Ticket { peer: 1, number: 1 });
        settings.transition = Some(Transition::begin(change.clone(), ticket, false, &facts).0);
        assert!(is_refused(settings.check_quantum(512)), "a quantum during {change:?}");
        assert!(is_refused(settings.check_quantum(256)), "the same quantum during {change:?}");
        assert!(is_refused(settings.check_freewheel(true)), "freewheel during {change:?}");
        let driver = settings.check_driver(switch(), &Config::default());
        assert!(is_refused(driver), "a driver during {change:?}");
    }
}

#[test]
fn a_quantum_out_of_range_is_refused() {
    for frames in [0, u32::MAX] {
        assert_eq!(settings().check_quantum(frames), Err(RequestError::Quantum(frames)));
    }
}

#[test]
fn the_quantum_that_cycles_have_needs_no_change() {
    assert_eq!(settings().check_quantum(256), Ok(None));
    assert_eq!(settings().check_quantum(512), Ok(Some(Change::Quantum(512))));
}

#[test]
fn no_driver_is_opened_in_freewheel() {
    let mut settings = settings();
    settings.freewheels = true;
    let answer = settings.check_driver(switch(), &Config::default());
    assert!(matches!(answer, Err(RequestError::Driver(reason)) if reason.contains("freewheel")));
    assert_eq!(settings.check_freewheel(false), Ok(Change::Freewheel(false)));
    assert!(matches!(settings.check_freewheel(true), Err(RequestError::NotAllowed(_))));
}

#[test]
fn a_driver_without_a_quantum_of_its_own_keeps_the_servers() {
    let change = settings().check_driver(switch(), &Config::default());
    assert!(matches!(change, Ok(Change::Driver { quantum: 256, .. })), "{change:?}");
}

#[test]
fn a_client_whose_freewheel_callback_runs_is_in_no_plan() {
    let mut settings = settings();
    settings.callbacks.note(1, 7, Callback::Freewheel);
    settings.callbacks.note(2, 8, Callback::Quantum(512));
    assert!(settings.awaits_freewheel_callback(7));
    assert!(!settings.awaits_freewheel_callback(8), "its own callback is another one");
    settings.callbacks.answered(7, 1);
    assert!(!settings.awaits_freewheel_callback(7));
}
