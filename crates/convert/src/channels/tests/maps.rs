use proptest::prelude::*;

use crate::{ChannelMap, ChannelPosition, InvalidMap, MAX_CHANNELS, Standard};

/// What libpulse returns for each standard and number of channels.
const MEASURED: &str = include_str!("../../../measured/maps.txt");

#[test]
fn standards_have_the_maps_of_pulseaudio() {
    for function in ["auto", "extend"] {
        for standard in Standard::ALL {
            for channels in (0..=MAX_CHANNELS + 1).chain([usize::MAX]) {
                let title = format!("{function} {standard:?} {channels} ");
                let expected = MEASURED.lines().find_map(|line| line.strip_prefix(&title));
                let map = match function {
                    "auto" => ChannelMap::standard(standard, channels),
                    _ => ChannelMap::extended(standard, channels),
                };
                assert_eq!(map.map(|map| map.to_string()).as_deref(), expected, "{title}");
            }
        }
    }
}

#[test]
fn maps_are_read_as_pulseaudio_reads_them() {
    // What `pa_channel_map_parse` of libpulse 16.1 returns.
    for (text, expected) in [
        ("mono", Some("mono")),
        ("stereo", Some("front-left,front-right")),
        ("surround-21", Some("front-left,front-right,lfe")),
        ("surround-40", Some("front-left,front-right,rear-left,rear-right")),
        ("surround-41", Some("front-left,front-right,rear-left,rear-right,lfe")),
        ("surround-50", Some("front-left,front-right,rear-left,rear-right,front-center")),
        ("surround-51", Some("front-left,front-right,rear-left,rear-right,front-center,lfe")),
        (
            "surround-71",
            Some(
                "front-left,front-right,rear-left,rear-right,front-center,lfe,side-left,side-right",
            ),
        ),
        ("left,right", Some("front-left,front-right")),
        ("center,subwoofer", Some("front-center,lfe")),
        ("lfe,lfe", Some("lfe,lfe")),
        ("aux31", Some("aux31")),
        ("front-left,", Some("front-left")),
        ("rear-center,top-rear-left", Some("rear-center,top-rear-left")),
        ("", None),
        (",", None),
        ("surround-30", None),
        ("front-left, front-right", None),
        ("FRONT-LEFT", None),
        ("aux32", None),
        ("aux00", None),
        ("aux5x", None),
        ("front-left,,mono", None),
        (",mono", None),
        ("mono,stereo", None),
        ("fl", None),
    ] {
        let map = text.parse::<ChannelMap>().map(|map| map.to_string()).ok();
        assert_eq!(map.as_deref(), expected, "{text}");
    }
    let (most, too_many) = (["aux0"; 32].join(","), ["aux0"; 33].join(","));
    assert_eq!(most.parse::<ChannelMap>().unwrap().channels(), 32);
    assert_eq!(too_many.parse::<ChannelMap>(), Err(InvalidMap::Channels(33)));
}

#[test]
fn a_map_without_channels_or_with_unknown_ones_is_refused() {
    assert_eq!(ChannelMap::new(&[]), Err(InvalidMap::Channels(0)));
    let unknown = ChannelMap::new(&[ChannelPosition::Mono, ChannelPosition::Aux(32)]);
    assert_eq!(unknown, Err(InvalidMap::UnknownPosition("aux32".into())));
}

proptest! {
    #[test]
    fn a_printed_map_is_read_as_the_same_map(
        numbers in prop::collection::vec(0_usize..51, 1..=MAX_CHANNELS)
    ) {
        // All that libpulse names: the map of every position there is.
        let all = ChannelMap::extended(Standard::WaveEx, MAX_CHANNELS).unwrap();
        let rest: ChannelMap = "side-left,mono,rear-center,aux30,aux31".parse().unwrap();
        let known = [all.positions(), rest.positions()].concat();
        let positions: Vec<_> = numbers.iter().map(|number| known[number % known.len()]).collect();
        let map = ChannelMap::new(&positions).unwrap();
        prop_assert_eq!(map.to_string().parse(), Ok(map));
    }
}
