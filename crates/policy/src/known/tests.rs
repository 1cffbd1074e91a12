use proptest::prelude::*;

use super::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn role(name: &str) -> Role {
    Role::named(name).expect("a role")
}

fn seen(names: &[&str]) -> KnownDevices {
    let mut devices = KnownDevices::default();
    for name in names {
        assert!(devices.see(Direction::Playback, name, "A device", "audio-card"));
    }
    devices
}

fn sinks(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| KnownDevices::key(Direction::Playback, name)).collect()
}

/// The order of the sinks for a role.
fn order(devices: &KnownDevices, role: Role) -> Vec<&str> {
    let mut all: Vec<_> = devices.of_kind(Direction::Playback).collect();
    all.sort_by_key(|(_, device)| device.rank(role));
    all.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_device_that_is_seen_for_the_first_time_comes_last_of_its_kind_for_each_role() {
    let mut devices = seen(&["a", "b"]);
    assert!(devices.see(Direction::Recording, "a", "A microphone", ""));
    assert!(!devices.see(Direction::Playback, "a", "A device", "audio-card"), "nothing new");
    assert!(devices.see(Direction::Playback, "a", "Another", "audio-card"));
    for role in Role::all() {
        assert_eq!(order(&devices, role), ["a", "b"]);
        assert_eq!(devices.get("source:a").map(|device| device.rank(role)), Some(1));
    }
}

#[test]
fn a_name_that_a_user_has_given_stays_when_the_device_is_seen_again() {
    let mut devices = seen(&["a"]);
    assert!(!devices.rename("sink:other", "x"), "it is not known");
    assert!(!devices.rename("sink:a", "") && !devices.rename("sink:a", &"x".repeat(513)));
    assert!(devices.rename("sink:a", "Kitchen") && !devices.rename("sink:a", "Kitchen"));
    assert!(devices.see(Direction::Playback, "a", "A device", "audio-headset"), "of its icon");
    let known = devices.get("sink:a").expect("known");
    assert_eq!(
        (&*known.description, known.is_renamed, &*known.icon),
        ("Kitchen", true, "audio-headset")
    );
    assert!(devices.forget("sink:a") && !devices.forget("sink:a"));
    assert!(devices.see(Direction::Playback, "a", "A device", ""));
    assert_eq!(devices.get("sink:a").map(|device| device.is_renamed), Some(false));
}

#[test]
fn an_order_of_devices_that_are_not_known_or_of_two_kinds_changes_nothing() {
    let mut devices = seen(&["a", "b"]);
    devices.see(Direction::Recording, "in", "A microphone", "");
    let before = devices.clone();
    for wrong in [&["sink:b", "sink:c"][..], &["sink:b", "source:in"], &["b"], &[]] {
        let wrong: Vec<String> = wrong.iter().map(|key| (*key).to_owned()).collect();
        assert_eq!(devices.reorder(role("music"), &wrong), Err(NotKnown), "{wrong:?}");
    }
    assert_eq!(devices, before);
}

#[test]
fn few_devices_are_remembered_of_any_number_that_come() {
    let mut devices = KnownDevices::default();
    for number in 0..=MAX_DEVICES {
        assert!(devices.see(Direction::Playback, &number.to_string(), "A device", ""));
    }
    assert_eq!(devices.iter().count(), 256);
    assert_eq!((devices.get("sink:0"), devices.get("sink:1").is_some()), (None, true));
}

#[test]
fn only_the_order_for_one_role_changes() {
    let mut devices = seen(&["a", "b"]);
    assert_eq!(devices.reorder(role("music"), &sinks(&["b"])), Ok(true));
    assert_eq!(devices.reorder(role("music"), &sinks(&["b", "a", "b"])), Ok(false));
    assert_eq!(order(&devices, role("music")), ["b", "a"]);
    assert_eq!(order(&devices, role("none")), ["a", "b"]);
    let first = |role| devices.first(Direction::Playback, role, ["unknown", "a"]);
    assert_eq!(first(role("music")), Some("a"), "the other one is not there");
}

#[test]
fn a_stream_of_a_role_without_an_order_is_not_routed() {
    let devices = seen(&["a", "b"]);
    let stream = |role: Option<&str>| Identity {
        role: role.map(str::to_owned),
        ..Identity::unknown(Direction::Playback)
    };
    let routed = |role| route(&stream(role), &devices, ["b", "a"]);
    assert_eq!(routed(None), Some(("a", role("none"))));
    assert_eq!(routed(Some("a11y")), Some(("a", role("a11y"))));
    assert_eq!(routed(Some("filter")), None);
    let recorder = Identity::unknown(Direction::Recording);
    assert_eq!(route(&recorder, &devices, ["a"]), None, "no source is known");
}

#[test]
fn devices_without_a_place_come_last_and_too_long_names_are_cut() {
    let mut devices = seen(&["a"]);
    let long = format!("{}ä", "x".repeat(MAX_DESCRIPTION_BYTES - 1));
    let device = KnownDevice { description: long, is_renamed: true, ..KnownDevice::default() };
    devices.insert("sink:b", device.clone());
    devices.insert("neither", device);
    let read = devices.get("sink:b").expect("read");
    assert_eq!((read.description.len(), read.rank(role("game"))), (511, 2));
    assert_eq!(devices.get("neither"), None);
}

proptest! {
    #[test]
    fn devices_that_are_put_first_are_so_in_this_order_and_the_others_keep_theirs(
        before in Just(NAMES.to_vec()).prop_shuffle(),
        first in prop::collection::vec(prop::sample::select(NAMES.to_vec()), 1..8),
        number in 0..ROLES.len(),
    ) {
        let (mut devices, role) = (seen(&NAMES), Role(number));
        prop_assert!(devices.reorder(role, &sinks(&before)).is_ok());
        prop_assert_eq!(order(&devices, role), before.clone());
        prop_assert!(devices.reorder(role, &sinks(&first)).is_ok());
        let mut expected: Vec<&str> = Vec::new();
        for name in first.iter().chain(&before) {
            if !expected.contains(name) {
                expected.push(*name);
            }
        }
        prop_assert_eq!(order(&devices, role), expected);
        let ranks = devices.iter().map(|(_, device)| device.rank(role));
        let mut ranks: Vec<u32> = ranks.collect();
        ranks.sort_unstable();
        prop_assert_eq!(ranks, [1, 2, 3, 4, 5]);
        for other in Role::all().filter(|other| *other != role) {
            prop_assert_eq!(order(&devices, other), NAMES);
        }
    }

    #[test]
    fn a_stream_gets_a_device_that_is_there_and_none_that_is_there_comes_before_it(
        ranked in Just(NAMES.to_vec()).prop_shuffle(),
        there in prop::sample::subsequence(NAMES.to_vec(), 0..=5),
        number in 0..ROLES.len(),
    ) {
        let (mut devices, role) = (seen(&NAMES), Role(number));
        prop_assert!(devices.reorder(role, &sinks(&ranked)).is_ok());
        let stream = Identity {
            role: Some(role.name().to_owned()),
            ..Identity::unknown(Direction::Playback)
        };
        let routed = route(&stream, &devices, there.iter().copied());
        let expected = ranked.iter().find(|name| there.contains(name));
        prop_assert_eq!(routed, expected.map(|name| (*name, role)));
    }
}
