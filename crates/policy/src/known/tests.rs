use proptest::prelude::*;

use super::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn role(name: &str) -> Role {
    Role::named(name).expect("a role")
}

fn stream(role: Option<&str>) -> Identity {
    Identity { role: role.map(str::to_owned), ..Identity::unknown(Direction::Playback) }
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

fn there(names: impl IntoIterator<Item = String>) -> Vec<DeviceThere> {
    let sink = |name| DeviceThere {
        direction: Direction::Playback,
        name,
        description: "A device".to_owned(),
        icon: String::new(),
    };
    names.into_iter().map(sink).collect()
}

#[test]
fn of_too_many_devices_those_make_room_that_are_not_there_and_have_no_name_of_a_user() {
    let mut devices = KnownDevices::default();
    let card = || String::from("card");
    assert!(devices.see_all(&there([card(), "away".into(), "guest".into()])));
    assert!(devices.rename("sink:card", "Desk") && devices.rename("sink:away", "Kitchen"));
    for number in 0..2 * MAX_DEVICES {
        assert!(devices.see_all(&there([card(), number.to_string()])), "{number}");
    }
    assert_eq!(devices.iter().count(), 256);
    let is_known = |devices: &KnownDevices, name| devices.get(name).is_some();
    let known = ["sink:card", "sink:away", "sink:guest", "sink:511"];
    assert_eq!(known.map(|name| is_known(&devices, name)), [true, true, false, true]);
    assert_eq!(order(&devices, role("none"))[..2], ["card", "away"], "as they were");
    let all: Vec<String> = (1000..1300).map(|number| number.to_string()).collect();
    assert!(devices.see_all(&there(all.clone())));
    assert!(!devices.see_all(&there(all)), "those that have no room are not known");
    assert_eq!(devices.iter().count(), 256);
}

#[test]
fn only_the_order_for_one_role_changes() {
    let mut devices = seen(&["a", "b"]);
    assert_eq!(devices.reorder(role("music"), &sinks(&["b"])), Ok(true));
    assert_eq!(devices.reorder(role("music"), &sinks(&["b", "a", "b"])), Ok(false));
    assert_eq!(order(&devices, role("music")), ["b", "a"]);
    assert_eq!(order(&devices, role("none")), ["a", "b"]);
    let routes = devices.routes(Direction::Playback, ["unknown", "a"]);
    let first = routes.of(&stream(Some("music"))).map(|(name, _)| name);
    assert_eq!(first, Some("a"), "the other one is not there");
}

#[test]
fn a_stream_of_a_role_without_an_order_is_not_routed() {
    let devices = seen(&["a", "b"]);
    let routes = devices.routes(Direction::Playback, ["b", "a"]);
    let routed = |role| routes.of(&stream(role));
    assert_eq!(routed(None), Some(("a", role("none"))));
    assert_eq!(routed(Some("a11y")), Some(("a", role("a11y"))));
    assert_eq!(routed(Some("filter")), None);
    let sources = devices.routes(Direction::Recording, ["a"]);
    assert_eq!(sources, Routes::default(), "no source is known");
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
        let routes = devices.routes(Direction::Playback, there.iter().copied());
        let stream = stream(Some(role.name()));
        let routed = routes.of(&stream);
        let expected = ranked.iter().find(|name| there.contains(name));
        prop_assert_eq!(routed, expected.map(|name| (*name, role)));
    }
}
