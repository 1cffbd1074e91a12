//! Modules that send to a group, and play what is sent there: what they ask for.

use std::net::{IpAddr, Ipv6Addr};

use super::FAILED;
use super::*;
use crate::output::{NewLink, NewRtpReceiver, NewRtpSender};

#[test]
fn a_sender_sends_to_pulseaudios_group_unless_arguments_say_otherwise() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let mut load = |arguments: &str| {
        let index = scene.load_named(client, "module-rtp-send", arguments).expect("loaded");
        match scene.links().get(&index) {
            Some(NewLink::RtpSender(sender)) => sender.clone(),
            other => panic!("{other:?}"),
        }
    };
    let plain = NewRtpSender {
        source: None,
        from: None,
        to: [224, 0, 0, 56].into(),
        port: None,
        payload: 1280,
        hops: 1,
        loops: false,
        name: None,
        rate_hz: 48_000,
        map: "front-left,front-right".parse().expect("a map"),
    };
    assert_eq!(load("format=s16be enable_opus=no"), plain);
    let other = NewRtpSender {
        source: Some("consort.monitor".into()),
        from: Some([127, 0, 0, 1].into()),
        to: [239, 1, 2, 3].into(),
        port: Some(5004),
        payload: 6,
        hops: 32,
        loops: true,
        name: Some("two words".into()),
        rate_hz: 44_100,
        map: "front-left,front-right,front-center".parse().expect("a map"),
    };
    let arguments = "source=consort.monitor source_ip=127.0.0.1 destination_ip=239.1.2.3 \
        port=5004 mtu=6 ttl=32 loop=yes stream_name=\"two words\" rate=44100 channels=3 \
        inhibit_auto_suspend=only_with_non_monitor_sources";
    assert_eq!(load(arguments), other);
    let whole_frames = load("channels=3");
    assert_eq!((whole_frames.payload, whole_frames.port), (1278, None));
    assert_eq!(load("destination=::1").to, IpAddr::from(Ipv6Addr::LOCALHOST));
}

#[test]
fn a_receiver_listens_at_pulseaudios_group_unless_arguments_say_otherwise() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let mut load = |arguments: &str| {
        let index = scene.load_named(client, "module-rtp-recv", arguments).expect("loaded");
        match scene.links().get(&index) {
            Some(NewLink::RtpReceiver(receiver)) => receiver.clone(),
            other => panic!("{other:?}"),
        }
    };
    let plain = NewRtpReceiver { sink: None, group: [224, 0, 0, 56].into(), latency_ms: 500 };
    assert_eq!(load(""), plain);
    let sink = Some("consort".into());
    let other = NewRtpReceiver { sink, group: [127, 0, 0, 1].into(), latency_ms: 40 };
    assert_eq!(load("sink=consort sap_address=127.0.0.1 latency_msec=5"), other);
}

#[test]
fn packets_and_groups_that_make_no_sense_are_refused() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for (name, arguments, reason) in [
        ("module-rtp-send", "source=none", "there is no source 'none'"),
        ("module-rtp-send", "format=s16le", "format is s16be"),
        ("module-rtp-send", "enable_opus=yes", "enable_opus"),
        ("module-rtp-send", "inhibit_auto_suspend=always", "inhibit_auto_suspend is always"),
        ("module-rtp-send", "rate=192001", "4000 to 192000 can be sent"),
        ("module-rtp-send", "mtu=1281", "a frame has 4 bytes"),
        ("module-rtp-send", "mtu=65536", "mtu is '65536'"),
        ("module-rtp-send", "destination_ip=host", "takes an address"),
        ("module-rtp-send", "destination=::1 destination_ip=::1", "destination is destination_ip"),
        ("module-rtp-send", "source_ip=::1", "another kind"),
        ("module-rtp-send", "port=65536", "port is '65536'"),
        ("module-rtp-send", "ttl=0", "ttl is '0'"),
        ("module-rtp-recv", "sink=none", "there is no sink 'none'"),
        ("module-rtp-recv", "sap_address=here", "takes an address"),
        ("module-rtp-recv", "latency_msec=2001", "2000 is the most"),
    ] {
        assert_eq!(scene.load_named(client, name, arguments), Err(FAILED), "{name} {arguments}");
        let said = scene.reported();
        assert!(said[0].contains(reason), "{arguments}: {said:?}");
    }
    assert!(scene.links().is_empty());
}
