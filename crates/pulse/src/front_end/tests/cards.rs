//! Sound cards among the devices.

use client::stream::{ChannelGains, Gain};
use pulseaudio::protocol::{
    CardInfo, Command, GetCardInfo, Prop, PulseError, SetCardProfileParams, SetDeviceMuteParams,
    SinkFlags, SinkInfo, SourceInfo, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, SubscriptionMask,
};

use super::super::properties;
use super::super::silence::Silence;
use super::{Scene, text};
use crate::output::{Card, HeardVolume, NewNullDevice};

impl Scene {
    /// Makes a device one of a card.
    fn make_card(&mut self, device: usize, name: &str, properties: &[(&'static str, &str)]) {
        let properties = properties.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let card = Card { name: name.into(), properties: properties.collect() };
        self.front_end.devices_mut().devices[device].card = Some(card);
        self.front_end.devices_changed(0);
    }

    /// Adds a card as a further device, which plays and captures this many channels.
    pub(super) fn plug_in(&mut self, name: &str, channels: u32, captured: u32) {
        let new = NewNullDevice { name: name.into(), channels, rate_hz: None };
        let devices = self.front_end.devices_mut();
        crate::output::Devices::add(devices, new).expect("added");
        let last = devices.devices.len() - 1;
        devices.devices[last].format.captured = captured;
        let bus = [("alsa.card_name", "A Headset"), ("device.bus", "usb")];
        self.make_card(last, &format!("hw:CARD={name},DEV=0"), &bus);
    }

    fn cards(&mut self, client: u32) -> Vec<CardInfo> {
        self.ask(client, &Command::GetCardInfoList).expect("a list")
    }

    fn sinks_of(&mut self, client: u32) -> Vec<SinkInfo> {
        self.ask(client, &Command::GetSinkInfoList).expect("a list")
    }

    /// The events that a program gets, in order.
    fn changes_of(&mut self, client: u32) -> Vec<(EventType, Facility, Option<u32>)> {
        let event = |command| match command {
            Command::SubscribeEvent(event) => {
                Some((event.event_type, event.event_facility, event.index))
            }
            _ => None,
        };
        self.events(client).into_iter().filter_map(event).collect()
    }
}

fn profile(card: &str, profile: &str) -> Command {
    Command::SetCardProfile(SetCardProfileParams {
        card_index: None,
        card_name: Some(text(card)),
        profile_name: text(profile),
    })
}

#[test]
fn the_card_that_drives_is_a_card_with_the_profile_that_it_has() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.tell(client, &Command::Subscribe(SubscriptionMask::CARD)).expect("subscribed");
    assert!(scene.cards(client).is_empty(), "a timer is no card");
    assert_eq!(scene.sinks_of(client)[0].card_index, None);
    scene.front_end.devices_mut().devices[0].format.captured = 1;
    scene.make_card(0, "hw:CARD=PCH,DEV=0", &[]);
    assert_eq!(scene.changes_of(client), [(EventType::New, Facility::Card, Some(0))]);
    let cards = scene.cards(client);
    assert_eq!((cards.len(), &*cards[0].name), (1, c"alsa_card.hw_CARD_PCH_DEV_0"));
    let profile_info = &cards[0].profiles[0];
    let sides = (profile_info.num_sinks, profile_info.num_sources);
    assert_eq!((&*profile_info.name, sides), (c"output+input", (1, 1)));
    let described = profile_info.description.as_deref();
    assert_eq!(described, Some(c"Output of 2 channels, input of 1"));
    assert_eq!(cards[0].active_profile.as_deref(), Some(c"output+input"));
    let shown = &scene.sinks_of(client)[0];
    assert_eq!((shown.card_index, shown.flags.contains(SinkFlags::HARDWARE)), (Some(0), true));
    let by_name = GetCardInfo { index: None, name: Some(cards[0].name.clone()) };
    assert_eq!(scene.ask::<CardInfo>(client, &Command::GetCardInfo(by_name)), Ok(cards[0].clone()));
    for (card, wanted, expected) in [
        ("alsa_card.hw_CARD_PCH_DEV_0", "output+input", Ok(())),
        ("alsa_card.hw_CARD_PCH_DEV_0", "off", Err(PulseError::NoEntity)),
        ("other", "output+input", Err(PulseError::NoEntity)),
    ] {
        assert_eq!(scene.tell(client, &profile(card, wanted)), expected, "{card} {wanted}");
    }
    scene.make_card(0, "hw:CARD=Other,DEV=0", &[]);
    assert_eq!(scene.changes_of(client), [(EventType::Changed, Facility::Card, Some(0))]);
    scene.front_end.devices_mut().devices[0].card = None;
    scene.front_end.devices_changed(0);
    assert_eq!(scene.changes_of(client), [(EventType::Removed, Facility::Card, Some(0))]);
    assert!(scene.cards(client).is_empty());
}

#[test]
fn a_further_card_is_a_card_of_its_sink_and_source_as_long_as_it_is_plugged_in() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let mask = SubscriptionMask::CARD | SubscriptionMask::SINK;
    scene.tell(client, &Command::Subscribe(mask)).expect("subscribed");
    scene.plug_in("Headset", 2, 1);
    let new = |facility| (EventType::New, facility, Some(1));
    assert_eq!(scene.changes_of(client), [new(Facility::Card), new(Facility::Sink)]);
    let cards = scene.cards(client);
    let names: Vec<_> = cards.iter().map(|card| (card.index, card.name.as_c_str())).collect();
    assert_eq!(names, [(1, c"alsa_card.hw_CARD_Headset_DEV_0")], "the timer that drives is none");
    for (key, expected) in [
        (Prop::DeviceDescription, c"A Headset"),
        (Prop::DeviceString, c"hw:CARD=Headset,DEV=0"),
        (Prop::DeviceBus, c"usb"),
        (Prop::DeviceIconName, c"audio-card-usb"),
    ] {
        assert_eq!(properties::text(&cards[0].props, key), Some(expected));
    }
    let sink = scene.sinks_of(client).remove(1);
    assert_eq!((sink.card_index, sink.description.as_deref()), (Some(1), Some(c"A Headset")));
    let sources: Vec<SourceInfo> = scene.ask(client, &Command::GetSourceInfoList).expect("a list");
    let of_card = sources.iter().filter(|source| source.card_index == Some(1));
    let names: Vec<_> = of_card.map(|source| source.name.as_c_str()).collect();
    assert_eq!(names, [c"Headset.monitor", c"Headset.capture"]);
    for name in ["1", "alsa_card.hw_CARD_Headset_DEV_0"] {
        assert_eq!(scene.tell(client, &profile(name, "output+input")), Ok(()), "{name}");
    }
    assert_eq!(scene.tell(client, &profile("0", "output")), Err(PulseError::NoEntity));
    scene.front_end.devices_mut().devices.pop();
    scene.front_end.devices_changed(0);
    let went = scene.changes_of(client);
    let removed = |facility| (EventType::Removed, facility, Some(1));
    assert_eq!(went, [removed(Facility::Sink), removed(Facility::Card)]);
    assert!(scene.cards(client).is_empty());
}

#[test]
fn programs_are_notified_when_a_card_is_told_apart_from_another_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.tell(client, &Command::Subscribe(SubscriptionMask::SINK)).expect("subscribed");
    let changed = (EventType::Changed, Facility::Sink, Some(1));
    scene.plug_in("Ears", 2, 0);
    assert!(!scene.changes_of(client).contains(&changed));
    scene.plug_in("More", 2, 0);
    assert!(scene.changes_of(client).contains(&changed), "it has another name for users");
    scene.front_end.devices_mut().devices.pop();
    scene.front_end.devices_changed(0);
    assert!(scene.changes_of(client).contains(&changed), "and its own one again");
}

#[test]
fn a_card_that_only_captures_has_a_profile_with_a_source_alone() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.plug_in("Mic", 0, 2);
    let cards = scene.cards(client);
    let profile = &cards[0].profiles[0];
    assert_eq!((&*profile.name, profile.num_sinks, profile.num_sources), (c"input", 0, 1));
    assert_eq!(scene.sinks_of(client).len(), 1, "and no sink");
}

#[test]
fn a_card_with_a_mixer_gets_the_volume_again_that_it_had_with_one() {
    let volume_of = |memory: &str, has_mixer: bool| {
        let mut devices = Silence::stereo();
        let quarter = ChannelGains::all(Gain::new(0.25).expect("a gain"));
        devices.devices[0].volume =
            HeardVolume { gains: quarter, muted: false, is_switched_off: false };
        (devices.devices[0].has_mixer, devices.devices[0].is_untouched) = (has_mixer, !has_mixer);
        let mut scene = Scene::remembering(devices, memory, "");
        scene.front_end.devices_mut().devices[0].volume.gains.channel(0).factor()
    };
    let mut scene = Scene::new();
    scene.front_end.devices_mut().devices[0].has_mixer = true;
    let gains = ChannelGains::all(Gain::new(0.125).expect("a gain"));
    scene.front_end.devices_mut().devices[0].volume =
        HeardVolume { gains, muted: false, is_switched_off: false };
    scene.front_end.devices_changed(0);
    let with = scene.front_end.memory().to_text();
    assert_eq!((volume_of(&with, true), volume_of(&with, false)), (0.125, 0.25));
    let without = with.replace("\"mixer\": true", "\"mixer\": false");
    assert_ne!(with, without);
    assert_eq!((volume_of(&without, true), volume_of(&without, false)), (0.25, 0.125));
}

#[test]
fn a_mixer_that_is_switched_off_mutes_its_sink_and_not_the_next_server() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let device = &mut scene.front_end.devices_mut().devices[0];
    (device.has_mixer, device.volume.is_switched_off) = (true, true);
    scene.front_end.devices_changed(0);
    assert!(scene.sinks_of(client)[0].muted);
    let memory = scene.front_end.memory().to_text();
    for is_switched_off in [false, true] {
        let mut devices = Silence::stereo();
        let device = &mut devices.devices[0];
        (device.has_mixer, device.volume.is_switched_off) = (true, is_switched_off);
        let mut next = Scene::remembering(devices, &memory, "");
        let volume = next.front_end.devices_mut().devices[0].volume;
        assert!(!volume.muted, "which alsamixer cannot undo");
        assert_eq!(volume.is_switched_off, is_switched_off, "it is the mixer's");
    }
    let device_index = Some(0);
    let unmute = SetDeviceMuteParams { device_index, device_name: None, mute: false };
    scene.tell(client, &Command::SetSinkMute(unmute)).expect("unmuted");
    let volume = scene.front_end.devices_mut().devices[0].volume;
    assert!(!volume.is_switched_off, "a user wants to hear it");
}
