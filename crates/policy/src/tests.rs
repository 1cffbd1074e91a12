//! Promises that hold for any tables.

use proptest::prelude::*;

use crate::roles::with_role;
use crate::*;

const ROLES: [&str; 4] = ["music", "video", "phone", "event"];
const DEVICES: [&str; 3] = ["consort", "headset", "gone"];

fn volumes() -> impl Strategy<Value = Volumes> {
    let positions = prop::sample::subsequence(vec!["front-left", "front-right", "lfe"], 1..=3);
    (positions, prop::collection::vec(0..=MAX_VOLUME, 3))
        .prop_map(|(positions, volumes)| Volumes::of(positions.into_iter().zip(volumes)))
}

fn entry() -> impl Strategy<Value = StreamEntry> {
    let device = prop::option::of(prop::sample::select(DEVICES.to_vec()));
    (prop::option::of(volumes()), any::<Option<bool>>(), device).prop_map(
        |(volume, muted, device)| StreamEntry { volume, muted, device: device.map(str::to_owned) },
    )
}

fn memory() -> impl Strategy<Value = Memory> {
    let device = (volumes(), any::<bool>());
    let devices = prop::collection::vec((".{1,8}", device), 0..8);
    let streams = prop::collection::vec((".{1,8}", entry()), 0..8);
    (streams, devices).prop_map(|(streams, devices)| {
        let mut memory = Memory::default();
        streams.into_iter().for_each(|(name, entry)| {
            memory.set_stream(&name, entry);
        });
        devices.into_iter().for_each(|(name, (volume, muted))| {
            memory.set_device(&name, DeviceEntry { volume, muted, mixer: false });
        });
        memory
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(memory in memory()) {
        prop_assert_eq!(Memory::parse(&memory.to_text()).expect("a memory"), memory);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = Memory::parse(&text);
        let _ = Rules::parse(&text);
    }

    #[test]
    fn a_stream_begins_as_the_last_of_its_name_unless_its_program_or_a_rule_says_otherwise(
        entry in entry(),
        names_device in any::<bool>(),
        states_volume in any::<bool>(),
        states_mute in any::<bool>(),
        rule in prop::option::of(prop::sample::select(DEVICES.to_vec())),
    ) {
        let stream = with_role(Some("music"));
        let mut memory = Memory::default();
        memory.set_stream(&stream.key(), entry.clone());
        let (rules, _) = Rules::parse(&rule.map_or_else(String::new, |device| {
            format!("device={device} volume=50% muted=yes role=music")
        }));
        let asked = Asked { names_device, states_volume, states_mute };
        let start = start(&stream, asked, &rules, &memory, None, |device| device != "gone");
        match (rule, &start.volume.value) {
            (Some(_), volume) => {
                let volume = volume.as_ref().expect("the rule's");
                prop_assert_eq!(["lfe", "mono"].map(|at| volume.at(at)), [0x8000; 2]);
                prop_assert_eq!(start.muted.value, Some(true));
            }
            (None, volume) => {
                prop_assert_eq!(volume.clone(), entry.volume.filter(|_| !states_volume));
                prop_assert_eq!(start.muted.value, entry.muted.filter(|_| !states_mute));
            }
        }
        let is_there = |device: &String| device != "gone";
        let of_rule = rule.map(str::to_owned).filter(is_there);
        let remembered = entry.device.filter(|_| !names_device).filter(is_there);
        prop_assert_eq!(start.device.value, of_rule.or(remembered));
    }

    #[test]
    fn a_stream_gets_the_first_device_of_its_role_only_if_nothing_else_was_chosen(
        entry in entry(),
        names_device in any::<bool>(),
        rule in prop::option::of(prop::sample::select(DEVICES.to_vec())),
        first in prop::option::of(prop::sample::select(DEVICES.to_vec())),
    ) {
        let stream = with_role(Some("music"));
        let mut memory = Memory::default();
        memory.set_stream(&stream.key(), entry);
        if let Some(first) = first {
            memory.known_devices_mut().see(Direction::Playback, first, "A device", "");
        }
        let rule = rule.map_or_else(String::new, |device| format!("device={device} role=music"));
        let (rules, _) = Rules::parse(&rule);
        let asked = Asked { names_device, ..Asked::default() };
        let there = DEVICES.into_iter().filter(|device| *device != "gone");
        let routes = memory.known_devices().routes(Direction::Playback, there);
        let [without, with] = [None, routes.of(&stream)].map(|routed| {
            start(&stream, asked, &rules, &memory, routed, |device| device != "gone").device
        });
        let routed = first.filter(|first| *first != "gone");
        match routed.filter(|_| without.value.is_none() && !names_device) {
            Some(first) => {
                let role = Role::named("music").expect("a role");
                let reason = DeviceReason::Routed { role };
                prop_assert_eq!(with, Decided { value: Some(first.to_owned()), reason });
            }
            None => prop_assert_eq!(with, without),
        }
    }

    #[test]
    fn only_a_stream_that_is_heard_and_not_held_does_something_to_others_of_its_device(
        streams in prop::collection::vec((0..2_u32, 0..5_usize, any::<bool>()), 0..12),
        rules in prop::collection::vec(
            (any::<bool>(), 0..4_usize, 0..4_usize, -100..=0_i32), 0..5),
    ) {
        let lines = rules.iter().map(|(corks, trigger, other, decibels)| {
            let (trigger, other) = (ROLES[*trigger], ROLES[*other]);
            if *corks {
                format!("cork={other} role={trigger}\n")
            } else {
                format!("duck={other} by={decibels}dB role={trigger}\n")
            }
        });
        let (rules, complaints) = Rules::parse(&lines.collect::<String>());
        prop_assert_eq!(complaints, []);
        let known: Vec<Identity> =
            streams.iter().map(|(_, role, _)| with_role(ROLES.get(*role).copied())).collect();
        let streams: Vec<Playing<'_>> = (0..).zip(&streams).zip(&known)
            .map(|((number, (device, _, is_heard)), identity)| {
                let player = Player::Stream(number);
                Playing { player, device: *device, identity, is_heard: *is_heard }
            })
            .collect();
        let number_of = |player: &Player| match player {
            Player::Stream(number) => *number,
            Player::Client(name) => panic!("{name} is none"),
        };
        let done = interactions(&streams, &rules, &[]);
        for (number, interaction) in &done {
            let (of, by) = (&streams[*number as usize], number_of(interaction.by()));
            prop_assert_ne!(*number, by);
            prop_assert_eq!(of.device, streams[by as usize].device);
            prop_assert!(streams[by as usize].is_heard);
            prop_assert!((0.0..=1.0).contains(&interaction.factor()));
        }
        let holder = |number: &u32| match done.get(number) {
            Some(Interaction::Held { by, .. }) => Some(number_of(by)),
            _ => None,
        };
        for by in done.keys().filter_map(holder) {
            // It held before something else could hold it.
            prop_assert!(holder(&by).is_none_or(|of_holder| of_holder > by));
        }
        let mut turned: Vec<Playing<'_>> = streams.clone();
        turned.reverse();
        prop_assert_eq!(interactions(&turned, &rules, &[]), done, "in any order");
    }
}
