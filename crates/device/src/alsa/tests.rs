//! A driver whose card other programs ask for.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::claims::tests::{Bus, claims_of};
use super::*;
use crate::reservation::ClaimNews;

const LONG_NS: u64 = 60_000_000_000;

struct NoReservation;

impl CardReservation for NoReservation {
    fn reserve(&self, _: u32, _: i32) -> Option<crate::Reservation> {
        None
    }
}

/// A driver on the library's device without a card, which other programs may ask for.
fn driver_and_bus() -> (AlsaDriver, Bus) {
    let playback = AlsaSide { device: Some("null".into()), ..AlsaSide::default() };
    let options = AlsaOptions { capture: None, playback: Some(playback), ..AlsaOptions::default() };
    let driver = AlsaDriver::open(options, 64, &NoReservation).unwrap().unwrap();
    let (claims, bus) = claims_of(5);
    let mut driver = AlsaDriver { claims, ..driver };
    driver.start(64).unwrap();
    (driver, bus)
}

/// Runs cycles until `is_so`.
fn cycles_until(driver: &mut AlsaDriver, is_so: impl Fn(&AlsaDriver) -> bool) {
    let until_ns = sys::clock::now_ns() + LONG_NS;
    while !is_so(driver) {
        assert!(sys::clock::now_ns() < until_ns, "it does not come to that");
        assert!(matches!(driver.wait(), Wake::Cycle { .. }));
    }
}

#[test]
fn cycles_continue_while_another_program_has_the_card() {
    let (mut driver, mut bus) = driver_and_bus();
    cycles_until(&mut driver, |driver| driver.device.is_some());
    bus.ask(1);
    cycles_until(&mut driver, Driver::is_away);
    assert_eq!(bus.closed.recv_timeout(Duration::from_nanos(LONG_NS)), Ok(1));
    let why_away = driver.why_away();
    cycles_until(&mut driver, |_| why_away.now().is_some());
    assert!(why_away.now().unwrap().contains("'jackd'"));
    // Longer than the interval in which a missing card is searched for.
    let until_ns = sys::clock::now_ns() + 600_000_000;
    while sys::clock::now_ns() < until_ns {
        driver.wait();
        assert!(driver.is_away(), "it is not ours");
    }
    bus.tell(ClaimNews::Ours);
    cycles_until(&mut driver, |driver| !driver.is_away());
    assert_eq!(why_away.now(), None);
}

#[test]
fn a_card_that_is_asked_for_as_it_comes_back_stays_closed() {
    let (mut driver, mut bus) = driver_and_bus();
    bus.ask(1);
    cycles_until(&mut driver, Driver::is_away);
    assert_eq!(bus.closed.recv_timeout(Duration::from_nanos(LONG_NS)), Ok(1));
    bus.tell(ClaimNews::Ours);
    // It is open again and waits for the next cycle, or will not be opened.
    bus.ask(2);
    cycles_until(&mut driver, |_| bus.closed.try_recv() == Ok(2));
    assert!(driver.is_away());
}

#[test]
fn a_driver_that_rests_gives_its_card_up_when_it_is_called() {
    let (mut driver, mut bus) = driver_and_bus();
    cycles_until(&mut driver, |driver| driver.device.is_some());
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    driver.rest_call().set(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    driver.pause();
    driver.rest();
    assert!(!driver.is_away(), "no program has asked");
    bus.ask(1);
    while calls.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    driver.rest();
    assert_eq!(bus.closed.recv_timeout(Duration::from_nanos(LONG_NS)), Ok(1));
    bus.tell(ClaimNews::Ours);
    driver.resume();
    cycles_until(&mut driver, |driver| !driver.is_away());
}

#[test]
fn a_driver_that_rests_has_its_card_when_it_is_back() {
    let (mut driver, mut bus) = driver_and_bus();
    bus.ask(1);
    cycles_until(&mut driver, Driver::is_away);
    assert_eq!(bus.closed.recv_timeout(Duration::from_nanos(LONG_NS)), Ok(1));
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    driver.rest_call().set(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    driver.pause();
    bus.tell(ClaimNews::Ours);
    while calls.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    driver.rest();
    assert!(!driver.is_away());
    assert!(driver.can_close(), "so that it is closed when nothing plays");
}
