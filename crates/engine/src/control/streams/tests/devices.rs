//! Devices beside the one that drives.

use proto::limits::STREAM_DEVICES;
use proto::stream::{ChannelGains, NewDevice, NewHardware};

use super::*;
use crate::control::streams::beginning::{check_room, kept_bytes};
use crate::control::streams::device_end::DeviceFacts;
use crate::stream_part::StreamReturn;

/// The thread's side of a further device.
pub(super) struct Thread {
    pub(super) shared: Arc<DeviceShared>,
    pub(super) orders: Consumer<StreamOrder>,
    pub(super) returns: Producer<StreamReturn>,
}

/// Adds a device whose thread the test plays.
pub(super) fn add(scenario: &mut Scenario, name: &str) -> Thread {
    add_of(scenario, name, None)
}

/// The same, of a connection with which it ends.
fn add_of(scenario: &mut Scenario, name: &str, owner: Option<u64>) -> Thread {
    let (own, (orders, returns)) = stream_rings();
    let shared = Arc::new(DeviceShared::new(DeviceState::Parked));
    let end = DeviceEnd::new(own, Arc::clone(&shared));
    let facts = facts_of(48_000, 2, 0);
    scenario.streams.devices.insert(name.into(), facts, end, owner, None);
    Thread { shared, orders, returns }
}

pub(super) fn facts_of(sample_rate_hz: u32, playback: u32, capture: u32) -> DeviceFacts {
    DeviceFacts::of_further(sample_rate_hz, &Channels { capture, playback, monitors: 0 }, 256)
}

fn on(device: &str) -> NewStream {
    NewStream { device: Some(device.into()), ..stereo() }
}

#[test]
fn a_stream_goes_to_the_device_that_it_names_and_calls_no_other() {
    let mut scenario = Scenario::new();
    let mut other = add(&mut scenario, "other");
    let (number, shape) = scenario.open(1, on("other")).unwrap();
    assert_eq!(scenario.begin(1, number, shape), Ok(false), "no plan brings it");
    scenario.streams.call_if_due(now_ns() + 1_000_000_000);
    assert_eq!((scenario.calls(), other.shared.call.count()), (0, 1));
    assert_eq!(scenario.ordered(), [""; 0]);
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::Begin(_))));
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::Add(_))));
    assert_eq!(scenario.streams.statuses_after(0, 0)[0].device.as_deref(), Some("other"));
    let (_, shape) = scenario.open(1, on("system")).unwrap();
    assert_eq!(scenario.begin(1, number + 1, shape), Ok(true), "the one that drives");
    let unknown = refusal(scenario.open(1, on("none")));
    assert!(unknown.contains("there are 'system', 'other'"), "{unknown}");
}

#[test]
fn a_device_that_has_left_ends_its_streams_and_no_others() {
    let mut scenario = Scenario::new();
    let mut other = add(&mut scenario, "other");
    let stays = scenario.begun(1);
    let (begun, shape) = scenario.open(2, on("other")).unwrap();
    scenario.begin(2, begun, shape).unwrap();
    let (granted, _) = scenario.open(3, on("other")).unwrap();
    let page = |scenario: &Scenario, number: u32| match &scenario.streams.streams[&number].state {
        State::Begun(page) => Arc::clone(page),
        other => panic!("begun, and not {other:?}"),
    };
    let (stayed, ended) = (page(&scenario, stays), page(&scenario, begun));
    assert_eq!(scenario.streams.devices.remove("other"), Ok(()));
    assert!(other.shared.is_to_leave());
    assert!(refusal(scenario.open(2, on("other"))).contains("no device"), "it is not there");
    assert!(!ended.has_ended(), "its thread has the stream");
    other.returns.push(StreamReturn::Left).unwrap();
    scenario.streams.take_returns();
    assert!(ended.has_ended() && !stayed.has_ended());
    let left: Vec<u32> = scenario.streams.streams.keys().copied().collect();
    assert_eq!(left, [stays], "also one whose memory had not come");
    assert!(refusal(scenario.streams.awaited_shape(3, granted)).contains("has ended"));
    assert!(refusal(scenario.streams.devices.remove("system")).contains("drives the graph"));
}

#[test]
fn there_are_as_many_devices_as_have_threads() {
    let mut scenario = Scenario::new();
    let new = |name: &str| NewDevice {
        name: name.into(),
        hardware: NewHardware::Nothing { channels: 2 },
        sample_rate_hz: None,
        ends_with_connection: false,
    };
    let threads: Vec<Thread> =
        (0..STREAM_DEVICES).map(|number| add(&mut scenario, &number.to_string())).collect();
    let full = scenario.streams.devices.check_new(&new("more"), 48_000);
    assert!(matches!(full, Err(RequestError::Full { .. })), "{full:?}");
    scenario.streams.devices.remove("0").unwrap();
    assert!(scenario.streams.devices.check_new(&new("more"), 48_000).is_err(), "its thread runs");
    let [mut first, ..] = <[Thread; STREAM_DEVICES]>::try_from(threads).ok().unwrap();
    first.returns.push(StreamReturn::Left).unwrap();
    scenario.streams.take_returns();
    assert_eq!(scenario.streams.devices.check_new(&new("0"), 48_000), Ok(()));
    for (new, hz, words) in [
        (new(""), 48_000, "1 to 64 bytes"),
        (new("1"), 48_000, "already"),
        (new("system"), 48_000, "already"),
        (
            NewDevice { hardware: NewHardware::Nothing { channels: 0 }, ..new("x") },
            48_000,
            "use 1 to 32",
        ),
        (new("x"), 999, "use 1000 to"),
    ] {
        let text = refusal(scenario.streams.devices.check_new(&new, hz));
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_volume_is_that_of_the_channels_of_one_device() {
    let mut scenario = Scenario::new();
    let other = add(&mut scenario, "other");
    let gains = [0.25, 0.5].map(|factor| Gain::new(factor).unwrap());
    let gains = (ChannelGains::of(&gains), Some(false));
    scenario.streams.set_device_volume(Permissions::ALL, Some("other"), gains).unwrap();
    assert_eq!([0, 1, 2].map(|channel| other.shared.gains.of(channel)), [0.25, 0.5, 0.5]);
    assert_eq!(scenario.streams.devices.driver.shared.gains.of(0), 1.0);
    let muted = (None, Some(true));
    let set = scenario.streams.set_device_volume(Permissions::ALL, Some("other"), muted);
    assert!(set.unwrap().muted && !scenario.streams.devices.driver.volume.muted);
    assert_eq!([0, 1, 2].map(|channel| other.shared.gains.of(channel)), [0.0; 3]);
    scenario.streams.call_if_due(now_ns());
    assert_eq!((scenario.calls(), other.shared.call.count()), (0, 1));
}

#[test]
fn a_device_ends_with_the_connection_that_added_it_and_one_of_nobody_stays() {
    let mut scenario = Scenario::new();
    let [first, second] = [1, 2].map(|peer| add_of(&mut scenario, &peer.to_string(), Some(peer)));
    let stays = add(&mut scenario, "stays");
    scenario.streams.peer_gone(1);
    let leaving = [&first, &second, &stays].map(|thread| thread.shared.is_to_leave());
    assert_eq!(leaving, [true, false, false]);
    let left: Vec<String> =
        scenario.streams.devices.statuses().into_iter().map(|device| device.name).collect();
    assert_eq!(left, ["2", "stays"]);
}

#[test]
fn a_card_that_is_pulled_out_is_no_device_and_another_one_when_it_is_back() {
    let mut scenario = Scenario::new();
    let mut other = add(&mut scenario, "other");
    let set = (None, Some(true));
    scenario.streams.set_device_volume(Permissions::ALL, Some("other"), set).unwrap();
    let (begun, shape) = scenario.open(1, on("other")).unwrap();
    scenario.begin(1, begun, shape).unwrap();
    let (granted, shape) = scenario.open(1, on("other")).unwrap();
    let numbers = |scenario: &Scenario| -> Vec<(u32, bool)> {
        let all = scenario.streams.devices.statuses();
        all.into_iter().map(|device| (device.number, device.volume.muted)).collect()
    };
    assert_eq!(numbers(&scenario), [(1, true)]);
    // Its thread gives everything back.
    let mut given_back = 0;
    while let Ok(order) = other.orders.pop() {
        if let StreamOrder::Add(stream) = order {
            other.returns.push(StreamReturn::Stream(stream)).unwrap();
            given_back += 1;
        }
    }
    assert!(other.shared.note_unplugged(true) && !other.shared.note_unplugged(true));
    scenario.streams.devices_called();
    scenario.streams.take_returns();
    assert_eq!((numbers(&scenario), given_back), (vec![], 1));
    assert!(refusal(scenario.open(2, on("other"))).contains("no device"));
    let again = NewDevice {
        name: "other".into(),
        hardware: NewHardware::Nothing { channels: 2 },
        sample_rate_hz: None,
        ends_with_connection: false,
    };
    let refused = refusal(scenario.streams.devices.check_new(&again, 48_000));
    assert!(refused.contains("already"), "{refused}");
    assert!(!scenario.streams.streams.contains_key(&begun), "it has ended");
    assert!(other.shared.note_unplugged(false));
    scenario.streams.devices_called();
    assert_eq!(numbers(&scenario), [(2, true)], "with its volume");
    assert!(refusal(scenario.begin(1, granted, shape)).contains("has ended"), "of the one before");
    let (number, shape) = scenario.open(1, on("other")).unwrap();
    assert_eq!(scenario.begin(1, number, shape), Ok(false));
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::End)), "of the loop before");
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::Begin(_))));
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::Add(_))));
}

#[test]
fn what_a_further_device_captures_is_recorded_there_and_no_part_of_the_graph() {
    let mut scenario = Scenario::new();
    let (own, (mut orders, _returns)) = stream_rings();
    let end = DeviceEnd::new(own, Arc::new(DeviceShared::new(DeviceState::Parked)));
    // It plays nothing itself.
    scenario.streams.devices.insert("mic".into(), facts_of(48_000, 0, 1), end, None, None);
    let records =
        |channels: Vec<u32>| NewStream { direction: Direction::Record, channels, ..on("mic") };
    assert!(refusal(scenario.open(1, records(vec![1]))).contains("captures 1 channels"));
    let (number, _) = scenario.open(1, records(vec![0, 0])).unwrap();
    let (_, wishes) = Shared::<WishPage>::for_readers("wishes").unwrap();
    let (driver, locking) = (&scenario.device, Locking::Nothing);
    let begun = scenario.streams.begin_recording(1, (number, 0), wishes, driver, locking).unwrap();
    let Beginning::Begun { stream, .. } = begun else { panic!("nothing is locked") };
    scenario.streams.start(stream, driver);
    assert!(matches!(orders.pop(), Ok(StreamOrder::Begin(_))));
    let Ok(StreamOrder::Record(recorder)) = orders.pop() else { panic!("it is recorded there") };
    assert_eq!(recorder.memory().captured, [0, 0]);
    assert_eq!(scenario.streams.recorders(), [], "its device brings its frames");
    let moved = scenario.streams.begin_move(
        (1, process(1)),
        Permissions::ALL,
        number,
        None,
        &scenario.device,
    );
    assert!(refusal(moved).contains("records what its device captures"));
}

#[test]
fn what_all_devices_keep_is_limited() {
    let device = facts_of(192_000, 20, 0);
    let of_one = kept_bytes(device);
    assert_eq!(check_room(device, 7 * of_one), Ok(()));
    assert!(refusal(check_room(device, 8 * of_one)).contains("other devices"));
    assert!(refusal(check_room(facts_of(192_000, 22, 0), 0)).contains("too much memory"));
}

#[test]
fn a_device_that_only_captures_has_no_streams_that_play_and_no_volume() {
    let mut scenario = Scenario::new();
    let (own, _thread) = stream_rings();
    let end = DeviceEnd::new(own, Arc::new(DeviceShared::new(DeviceState::Parked)));
    scenario.streams.devices.insert("mic".into(), facts_of(48_000, 0, 2), end, None, None);
    let number = scenario.begun(1);
    let reopened = NewStream { reopens: true, ..stereo() };
    let (reopened, shape) = scenario.open(1, reopened).unwrap();
    scenario.begin(1, reopened, shape).unwrap();
    let monitors = NewStream { direction: Direction::Monitor, ..on("mic") };
    let moved = |scenario: &mut Scenario, number| {
        let (own, may) = ((1, process(1)), Permissions::ALL);
        scenario.streams.begin_move(own, may, number, Some("mic"), &scenario.device)
    };
    for refused in [
        refusal(scenario.open(1, on("mic"))),
        refusal(scenario.open(1, monitors)),
        refusal(moved(&mut scenario, number)),
        refusal(moved(&mut scenario, reopened)),
        refusal(scenario.streams.set_device_volume(
            Permissions::ALL,
            Some("mic"),
            (None, Some(true)),
        )),
    ] {
        assert!(refused.contains("'mic' plays nothing, it only captures"), "{refused}");
    }
}

/// Whether a program is answered that waits for another change than those so far.
pub(super) fn notices(
    scenario: &mut Scenario,
    of: Watched,
    change: impl FnOnce(&mut Scenario),
) -> bool {
    let ticket = |peer| Ticket { peer, number: 1 };
    // No change has this number.
    scenario.streams.watches.wait(ticket(77), u64::MAX, of).unwrap();
    let seen = scenario.streams.watches.take_due(0).remove(0).1;
    scenario.streams.watches.wait(ticket(77), seen, of).unwrap();
    change(scenario);
    let is_answered = !scenario.streams.watches.take_due(0).is_empty();
    scenario.streams.watches.forget(77);
    is_answered
}

#[test]
fn programs_are_notified_of_devices_that_go_and_of_other_volumes() {
    let mut scenario = Scenario::new();
    let _other = add_of(&mut scenario, "other", Some(1));
    assert!(notices(&mut scenario, Watched::Devices, |scenario| {
        let muted = (None, Some(true));
        scenario.streams.set_device_volume(Permissions::ALL, Some("other"), muted).unwrap();
    }));
    let gone = |peer| move |scenario: &mut Scenario| scenario.streams.peer_gone(peer);
    assert!(!notices(&mut scenario, Watched::Devices, gone(2)), "it had no device");
    assert!(notices(&mut scenario, Watched::Devices, gone(1)));
}

#[test]
fn each_change_of_a_stream_is_noticed_by_those_that_watch_streams() {
    type Change = fn(&mut Scenario);
    let changes: [(&str, Change); 5] = [
        ("a stream begins", |scenario| {
            scenario.begun(1);
        }),
        ("it has another volume", |scenario| {
            let half = (Some(Gain::new(0.5).unwrap()), None);
            scenario.streams.set_volume((1, 1), Permissions::ALL, 1, half).unwrap();
        }),
        ("its wishes are obeyed", |scenario| {
            scenario.streams.devices.driver.calls.add(1, 0);
            scenario.streams.call_if_due(now_ns());
            let shared = &scenario.streams.devices.driver.shared;
            shared.note_answered(shared.call.count());
            scenario.streams.devices_called();
        }),
        ("its device sleeps", |scenario| {
            scenario.streams.devices.driver.shared.note_state(DeviceState::Parked);
            scenario.streams.devices_called();
        }),
        ("it ends", |scenario| {
            scenario.streams.close(1, 1).unwrap();
            scenario.ordered();
            scenario.streams.take_returns();
        }),
    ];
    for (of, others) in [(Watched::Streams, false), (Watched::Devices, true)] {
        let mut scenario = Scenario::new();
        for (what, change) in changes {
            let is_noticed = notices(&mut scenario, of, change);
            assert_eq!(is_noticed, !others, "{what}");
        }
        let nothing = notices(&mut scenario, of, |scenario| {
            scenario.streams.devices_called();
        });
        assert!(!nothing, "nothing has changed");
    }
}
