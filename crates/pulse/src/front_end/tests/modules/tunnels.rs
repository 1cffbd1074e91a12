//! Modules that connect with other servers, and with sockets of raw samples: what they ask for.

use super::FAILED;
use super::*;
use crate::output::{NewLink, NewSimple, NewTunnel};
use crate::remote::RemoteCookie;

#[test]
fn a_tunnel_is_a_device_and_a_link_to_the_server_that_it_names() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let arguments = "server=tcp:one:99 sink=music cookie=/c format=s16le rate=44100 channels=1 \
                     latency_msec=100 reconnect_interval_ms=500 \
                     sink_properties=device.description=Kitchen";
    let index = scene.load_named(client, "module-tunnel-sink", arguments).expect("loaded");
    let expected = NewTunnel {
        device: "tunnel-sink.tcp_one_99".into(),
        server: "tcp:one:99".into(),
        far_device: Some("music".into()),
        cookie: RemoteCookie::File("/c".into()),
        format: "s16le".parse().expect("a format"),
        map: "mono".parse().expect("a map"),
        latency_ms: 100,
        reconnect_ms: Some(500),
    };
    assert_eq!(scene.links().get(&index), Some(&NewLink::TunnelSink(expected)));
    let sink = scene.sink_named(client, "tunnel-sink.tcp_one_99").expect("a sink");
    assert_eq!(sink.sample_spec.sample_rate, 44_100);
    assert_eq!(sink.description.as_deref(), Some(c"Kitchen"));
    let plain = "server=/run/native source_name=far reconnect_interval_ms=0 \
                 auth-cookie-enabled=no";
    let index = scene.load_named(client, "module-tunnel-source", plain).expect("loaded");
    match scene.links().get(&index) {
        Some(NewLink::TunnelSource(tunnel)) => {
            assert_eq!((tunnel.device.as_str(), tunnel.latency_ms), ("far", 200));
            assert_eq!((tunnel.far_device.as_ref(), tunnel.reconnect_ms), (None, None));
            assert_eq!(tunnel.cookie, RemoteCookie::Zeros);
        }
        other => panic!("{other:?}"),
    }
    assert!(scene.sink_named(client, "far").is_none());
}

#[test]
fn a_module_whose_process_says_why_it_ends_is_unloaded_with_that_reason() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let load = |scene: &mut Scene| {
        scene.load_named(client, "module-tunnel-sink", "server=one sink_name=far").expect("loaded")
    };
    let index = load(&mut scene);
    scene.front_end.link_has_ended(index, Some("the other server has gone"), 0);
    assert!(scene.module_names(client).is_empty() && scene.links().is_empty());
    assert!(scene.sink_named(client, "far").is_none());
    let said = scene.reported();
    assert!(said[0].ends_with("sink_name=far': the other server has gone"), "{said:?}");
}

#[test]
fn tunnels_and_sockets_that_make_no_sense_are_refused() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for (name, arguments, reason) in [
        ("module-tunnel-sink", "", "server is needed"),
        ("module-tunnel-sink", "server=", "server is empty"),
        ("module-tunnel-sink", "server=\"one two\"", "one is enough"),
        ("module-tunnel-sink", "server=one auto=yes", "name the server"),
        ("module-tunnel-sink", "server=one latency_msec=0", "latency_msec is '0'"),
        ("module-tunnel-sink", "server=one latency_msec=500", "400 is the most"),
        ("module-tunnel-sink", "server=one reconnect_interval_ms=-1", "reconnect_interval_ms is"),
        ("module-tunnel-sink", "server=one source=two", "no argument 'source'"),
        ("module-tunnel-source", "server=one cookie=", "cookie is empty"),
        ("module-tunnel-sink", "server=one cookie=/c auth-cookie-enabled=no", "shows none"),
        ("module-simple-protocol-tcp", "port=0", "port is '0'"),
        ("module-simple-protocol-tcp", "playback=no", "neither plays nor records"),
        ("module-simple-protocol-tcp", "listen=here", "takes an address"),
    ] {
        assert_eq!(scene.load_named(client, name, arguments), Err(FAILED), "{name} {arguments}");
        let said = scene.reported();
        assert!(said[0].contains(reason), "{arguments}: {said:?}");
    }
    assert!(scene.links().is_empty());
}

#[test]
fn sockets_of_raw_samples_play_on_pulseaudios_port_unless_arguments_say_otherwise() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let mut load = |arguments: &str| {
        let name = "module-simple-protocol-tcp";
        let index = scene.load_named(client, name, arguments).expect("loaded");
        match scene.links().get(&index) {
            Some(NewLink::Simple(simple)) => simple.clone(),
            other => panic!("{other:?}"),
        }
    };
    let plain = NewSimple {
        at: "[::]:4711".parse().expect("an address"),
        sink: None,
        source: None,
        plays: true,
        records: false,
        format: "s16le".parse().expect("a format"),
        rate_hz: 48_000,
        map: "front-left,front-right".parse().expect("a map"),
    };
    assert_eq!(load("source=not-recorded"), plain);
    let recorded = NewSimple {
        at: "127.0.0.1:99".parse().expect("an address"),
        source: Some("one".into()),
        plays: false,
        records: true,
        rate_hz: 8000,
        ..plain
    };
    let arguments = "listen=127.0.0.1 port=99 playback=0 record=1 source=one sink=two rate=8000";
    assert_eq!(load(arguments), recorded);
}
