//! The packages on Ubuntu's libraries, and beside its PipeWire.

use super::debian::Debian;
use super::desktop;
use super::later_debian::{expect_session_manager_without_cards, expect_use};

#[test]
#[ignore = "minutes: an Ubuntu; cargo test --test packages -- --ignored"]
fn thoroughly_on_ubuntu_24_04() {
    let Some(ubuntu) = Debian::make_of_ubuntu("noble") else { return };
    let Some(booted) = expect_use(&ubuntu, "jackd2") else { return };
    // Its WirePlumber is 0.4, as Debian 12's is.
    desktop::expect_session_manager_without_cards(&booted);
    booted.power_off();
}

#[test]
#[ignore = "minutes: an Ubuntu; cargo test --test packages -- --ignored"]
fn thoroughly_on_ubuntu_26_04() {
    let Some(ubuntu) = Debian::make_of_ubuntu("resolute") else { return };
    let Some(booted) = expect_use(&ubuntu, "jack-example-tools") else { return };
    expect_session_manager_without_cards(&ubuntu, &booted);
    booted.power_off();
}
