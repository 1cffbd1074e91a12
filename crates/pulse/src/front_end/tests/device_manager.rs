//! `module-device-manager`: names that users give devices, and which comes first for a role.

mod routing;

use policy::{Direction, KnownDevices, Rights, Role};
use pulseaudio::protocol::{
    SinkInfo, SinkState, SourceInfo, SubscriptionEvent, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, SubscriptionMask,
};

use super::*;

const MANAGER: &str = "module-device-manager";
const READ: &[u8] = b"L\0\0\0\x01";
const SUBSCRIBE: &[u8] = b"L\0\0\0\x061";

impl Scene {
    fn manage(&mut self, client: u32, values: &[u8]) -> Result<Vec<u8>, PulseError> {
        self.extension(client, MANAGER, values)
    }

    fn rename(&mut self, client: u32, device: &str, name: &str) -> Result<Vec<u8>, PulseError> {
        self.manage(client, format!("L\0\0\0\x02t{device}\0t{name}\0").as_bytes())
    }

    fn reorder(&mut self, client: u32, role: &str, all: &[&str]) -> Result<Vec<u8>, PulseError> {
        let mut values = format!("L\0\0\0\x05t{role}\0L\0\0\0").into_bytes();
        values.push(all.len() as u8);
        all.iter().for_each(|device| values.extend(format!("t{device}\0").as_bytes()));
        self.manage(client, &values)
    }

    /// Name, description and index of each device that is known, by name.
    fn known(&mut self, client: u32) -> Vec<(String, String, u32)> {
        let read = self.manage(client, READ).expect("read");
        let mut rest = &read[..];
        let mut all = Vec::new();
        while !rest.is_empty() {
            let [name, description] = [(); 2].map(|()| take_text(&mut rest).expect("a text"));
            let _icon = take_text(&mut rest);
            let [index, roles] = [(); 2].map(|()| take_word(&mut rest));
            for _ in 0..roles {
                take_text(&mut rest);
                take_word(&mut rest);
            }
            all.push((name, description, index));
        }
        all.sort();
        all
    }

    /// The place of a sink for streams without a role.
    fn rank(&self, name: &str) -> u32 {
        let known = self.front_end.memory().known_devices();
        let known = known.get(&KnownDevices::key(Direction::Playback, name)).expect("known");
        known.rank(Role::named("none").expect("a role"))
    }

    fn descriptions(&mut self, client: u32) -> Vec<String> {
        let sinks: Vec<SinkInfo> = self.ask(client, &Command::GetSinkInfoList).expect("sinks");
        let sources: Vec<SourceInfo> =
            self.ask(client, &Command::GetSourceInfoList).expect("sources");
        let sinks = sinks.into_iter().map(|sink| (sink.description, sink.props));
        let sources = sources.into_iter().map(|source| (source.description, source.props));
        let shown = sinks.chain(sources).map(|(description, props)| {
            let description = description.expect("one").into_string().expect("text");
            let of_props = props.get(Prop::DeviceDescription).expect("one");
            assert_eq!(of_props.strip_suffix(b"\0"), Some(description.as_bytes()));
            description
        });
        shown.collect()
    }
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    if rest[0] == b'N' {
        *rest = &rest[1..];
        return None;
    }
    assert_eq!(rest[0], b't');
    let end = rest.iter().position(|byte| *byte == 0).expect("an end");
    let text = String::from_utf8_lossy(&rest[1..end]).into_owned();
    *rest = &rest[end + 1..];
    Some(text)
}

fn take_word(rest: &mut &[u8]) -> u32 {
    let (word, after) = rest.split_at(5);
    *rest = after;
    u32::from_be_bytes(word[1..].try_into().expect("four bytes"))
}

fn known(name: &str, description: &str, index: u32) -> (String, String, u32) {
    (name.into(), description.into(), index)
}

const ABSENT: u32 = u32::MAX;

#[test]
fn the_extension_is_there_while_its_module_is_loaded() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let test = b"L\0\0\0\0";
    assert_eq!(scene.manage(client, test), Err(PulseError::NoExtension));
    let module = scene.load_named(client, MANAGER, "do_routing=1").expect("loaded");
    assert_eq!(scene.manage(client, test), Ok(b"L\0\0\0\x01".to_vec()));
    assert!(scene.load_named(client, MANAGER, "").is_err(), "it is loaded already");
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    assert_eq!(scene.manage(client, test), Err(PulseError::NoExtension));
    assert!(scene.load_named(client, MANAGER, "do_routing=perhaps").is_err());
}

#[test]
fn a_list_of_known_devices_has_their_place_for_each_role_in_libpulses_layout() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "").expect("loaded");
    let mut expected = b"tsink:consort\0tconsort\0taudio-card\0L\0\0\0\0L\0\0\0\x09".to_vec();
    for role in
        ["none", "video", "music", "game", "event", "phone", "animation", "production", "a11y"]
    {
        expected.extend(format!("t{role}\0L\0\0\0\x01").as_bytes());
    }
    assert_eq!(scene.manage(client, READ), Ok(expected), "no monitor is among them");
}

#[test]
fn a_device_has_the_name_that_a_user_has_given_it_as_long_as_the_module_is_loaded() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let module = scene.load_named(client, MANAGER, "").expect("loaded");
    let null = "sink_name=other sink_properties=device.description=Other";
    scene.load_named(client, "module-null-sink", null).expect("loaded");
    scene.load_named(client, "module-null-source", "source_name=in").expect("loaded");
    let watcher = scene.admitted();
    let mask = SubscriptionMask::SINK | SubscriptionMask::SOURCE;
    scene.tell(watcher, &Command::Subscribe(mask)).expect("subscribed");
    assert_eq!(scene.rename(client, "sink:other", "Kitchen"), Ok(Vec::new()));
    let event = |event_facility, index| {
        let (event_type, index) = (EventType::Changed, Some(index));
        Command::SubscribeEvent(SubscriptionEvent { event_facility, event_type, index })
    };
    let expected = [event(Facility::Sink, 1), event(Facility::Source, 2)];
    assert_eq!(scene.events(watcher), expected, "the sink, and its monitor");
    assert_eq!(scene.rename(client, "source:in", "Nothing"), Ok(Vec::new()));
    assert_eq!(scene.events(watcher), [event(Facility::Source, 3)]);
    let renamed = ["consort", "Kitchen", "Monitor of consort", "Monitor of Kitchen", "Nothing"];
    assert_eq!(scene.descriptions(client), renamed);
    // A name that is no new one, and devices that are not known, are no changes.
    for (device, name) in [("sink:other", "Kitchen"), ("sink:gone", "x"), ("other", "x")] {
        assert_eq!(scene.rename(client, device, name), Ok(Vec::new()));
    }
    assert_eq!(scene.events(watcher), []);
    scene.tell(client, &Command::UnloadModule(module)).expect("unloaded");
    assert_eq!(scene.descriptions(client)[1], "Other");
    assert_eq!(scene.events(watcher).len(), 3);
    scene.load_named(client, MANAGER, "").expect("loaded");
    assert_eq!(scene.descriptions(client), renamed, "what was remembered");
}

#[test]
fn a_name_is_that_of_a_device_that_comes_back_also_with_the_next_front_end() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "").expect("loaded");
    scene.rename(client, "sink:other", "Kitchen").expect("renamed");
    scene.unplug("other");
    let list = [known("sink:consort", "consort", 0), known("sink:other", "Kitchen", ABSENT)];
    assert_eq!(scene.known(client), list);
    let mut scene = scene.again("");
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "").expect("loaded");
    assert_eq!(scene.known(client), list);
    scene.plug("other");
    assert_eq!(scene.known(client)[1], known("sink:other", "Kitchen", 1));
    assert_eq!(scene.descriptions(client)[1], "Kitchen");
}

#[test]
fn a_device_that_is_deleted_has_its_own_name_and_is_known_again_when_it_comes() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "").expect("loaded");
    scene.rename(client, "sink:other", "Kitchen").expect("renamed");
    let delete = b"L\0\0\0\x03tsink:other\0tnone\0";
    assert_eq!(scene.manage(client, delete), Ok(Vec::new()));
    assert_eq!(scene.known(client), [known("sink:consort", "consort", 0)]);
    assert_eq!(scene.descriptions(client)[1], "other");
    scene.unplug("other");
    assert_eq!(scene.known(client).len(), 1);
    scene.plug("other");
    assert_eq!(scene.known(client)[1], known("sink:other", "other", 2));
}

#[test]
fn a_program_that_has_subscribed_is_notified_of_known_devices_until_the_module_is_unloaded() {
    let mut scene = Scene::new();
    let [mixer, other] = [scene.admitted(), scene.admitted()];
    let module = scene.load_named(other, MANAGER, "").expect("loaded");
    assert_eq!(scene.manage(mixer, SUBSCRIBE), Ok(Vec::new()));
    let event =
        [b"L\0\0\0\x57L\xff\xff\xff\xffL\0\0\0\0tmodule-device-manager\0L\0\0\0\x07".to_vec()];
    let sent = |scene: &mut Scene| {
        let sent = scene.sent(mixer).into_iter();
        sent.map(|packet| packet[20..].to_vec()).collect::<Vec<_>>()
    };
    scene.rename(other, "sink:consort", "Card").expect("renamed");
    assert_eq!(sent(&mut scene), event);
    scene.plug("usb");
    assert_eq!(sent(&mut scene), event, "one has come");
    scene.unplug("usb");
    assert_eq!(sent(&mut scene), event, "one has gone");
    // As long as it does not take what is sent, it is owed one.
    scene.front_end.is_behind(mixer);
    scene.rename(other, "sink:consort", "One").expect("renamed");
    scene.rename(other, "sink:consort", "Two").expect("renamed");
    assert_eq!(sent(&mut scene), Vec::<Vec<u8>>::new());
    scene.front_end.sent_all(mixer);
    assert_eq!(sent(&mut scene), event);
    scene.tell(other, &Command::UnloadModule(module)).expect("unloaded");
    scene.load_named(other, MANAGER, "").expect("loaded");
    scene.rename(other, "sink:consort", "Three").expect("renamed");
    assert_eq!(sent(&mut scene), Vec::<Vec<u8>>::new(), "it has subscribed to another module");
}

#[test]
fn a_request_that_makes_no_sense_is_refused_and_nobody_else_sees_anything() {
    let mut scene = Scene::new().with_sink("other");
    let [client, watcher] = [scene.admitted(), scene.admitted()];
    scene.load_named(client, MANAGER, "do_routing=1").expect("loaded");
    scene.tell(watcher, &Command::Subscribe(SubscriptionMask::ALL)).expect("subscribed");
    scene.manage(watcher, SUBSCRIBE).expect("subscribed");
    let before = scene.known(client);
    scene.front_end.take_memory_has_changed();
    for malformed in [&b""[..], b"L\0\0\0\x07", b"L\0\0\0\x02tsink:other\0t\0", b"L\0\0\0\x03N"] {
        assert_eq!(scene.manage(client, malformed), Err(PulseError::Protocol), "{malformed:?}");
    }
    assert_eq!(scene.manage(client, b"L\0\0\0\x02tsink:other\0t\xff\0"), Err(PulseError::Invalid));
    let long = "x".repeat(513);
    assert_eq!(scene.rename(client, "sink:other", &long), Err(PulseError::TooLarge));
    for (role, devices) in
        [("alarm", ["sink:other"]), ("music", ["sink:gone"]), ("music", ["other"])]
    {
        assert_eq!(scene.reorder(client, role, &devices), Err(PulseError::Invalid));
    }
    assert_eq!(scene.known(client), before);
    assert!(!scene.front_end.take_memory_has_changed());
    assert_eq!(scene.events(watcher), []);
}

#[test]
fn neither_what_is_done_nor_what_is_refused_wakes_a_device() {
    let mut scene = Scene::new().with_sink("other");
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "do_routing=1").expect("loaded");
    let corked = scene.stream(client).stream_index;
    scene.wait(10_000_000_000);
    scene.rename(client, "sink:other", "Kitchen").expect("renamed");
    scene.reorder(client, "none", &["sink:gone"]).expect_err("refused");
    scene.manage(client, b"L\0\0\0\x03N").expect_err("refused");
    scene.manage(client, READ).expect("read");
    assert_eq!(scene.front_end.devices_mut().opened.len(), 1, "the stream's");
    assert_eq!(scene.shown(client, corked).sink_index, 0);
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("sinks");
    let states: Vec<SinkState> = sinks.into_iter().map(|sink| sink.state).collect();
    assert_eq!(states, [SinkState::Suspended; 2]);
}

#[test]
fn a_confined_program_reads_what_is_known_of_devices_and_changes_nothing() {
    let mut scene = Scene::new().with_sink("other");
    let [free, boxed] = [scene.admitted(), scene.admitted_of(3)];
    scene.load_named(free, MANAGER, "do_routing=1").expect("loaded");
    let known = scene.front_end.clients.get_mut(&boxed).expect("a program");
    known.rights = Some(Rights { control: false, ..Rights::ALL });
    let before = scene.known(boxed);
    assert_eq!(before.len(), 2);
    assert_eq!(scene.manage(boxed, SUBSCRIBE), Ok(Vec::new()));
    let denied = Err(PulseError::AccessDenied);
    assert_eq!(scene.rename(boxed, "sink:other", "Kitchen"), denied);
    assert_eq!(scene.reorder(boxed, "none", &["sink:other"]), denied);
    assert_eq!(scene.manage(boxed, b"L\0\0\0\x03tsink:other\0"), denied);
    assert_eq!(scene.manage(boxed, b"L\0\0\0\x040"), denied);
    assert_eq!(scene.known(free), before);
    assert_eq!(["consort", "other"].map(|name| scene.rank(name)), [1, 2]);
}

#[test]
fn devices_with_hardware_come_first_where_nobody_has_ordered_them() {
    let mut scene = Scene::new().with_sink("other");
    scene.plug_in("usb", 2, 1);
    let client = scene.admitted();
    scene.load_named(client, MANAGER, "").expect("loaded");
    assert_eq!(["consort", "usb", "other"].map(|name| scene.rank(name)), [1, 2, 3]);
    let usb = known("source:usb.capture", "A Headset", 4);
    assert_eq!(scene.known(client)[3], usb, "what it captures is a device as well");
}
