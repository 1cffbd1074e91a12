//! `jack_session_notify`: what it prints starts a session again.

use harness::{Server, eventually};

/// The lines that start clients and connect them.
fn orders(script: &str) -> Vec<&str> {
    let is_order = |line: &&str| line.starts_with("jack_connect") || line.ends_with('&');
    script.lines().filter(is_order).collect()
}

#[test]
fn a_session_saved_by_jack_session_notify_comes_back() {
    let server = Server::timer(256);
    let directory = server.directory().join("session");
    std::fs::create_dir(&directory).expect("a directory");
    let path = format!("{}/", directory.display());
    let mut client = server.spawn("jack_simple_session_client", &[]);
    server.await_connection("simple:input", "system:capture_1");
    server.await_connection("simple:output", "system:playback_1");
    server.run("jack_connect", &["simple:output", "system:playback_2"]).expect_success();
    // A client that does not take part in sessions.
    let _metro = server.spawn("jack_metro", &["-b", "60"]);
    server.await_port("metro:60_bpm");

    let script = server.run("jack_session_notify", &["save", &path]).expect_success().stdout;
    eventually("it saves", || client.stdout().contains("type: save").then_some(()));
    assert!(client.stdout().contains(&format!("path {path}simple/")), "{}", client.stdout());
    assert!(directory.join("simple").is_dir());
    assert!(!directory.join("metro").exists());
    let [start, ports @ ..] = &orders(&script)[..] else { panic!("no orders: {script}") };
    let uuid =
        start.strip_prefix("jack_simple_session_client ").and_then(|rest| rest.strip_suffix(" &"));
    let uuid = uuid.unwrap_or_else(|| panic!("{start}")).to_owned();
    let expected = [("input", "capture_1"), ("output", "playback_1"), ("output", "playback_2")]
        .map(|(port, other)| format!(r#"jack_connect -u "{uuid}:{port}" "system:{other}""#));
    assert_eq!(ports, expected, "{script}");

    // It takes no path; the client saves in the notifier's directory.
    server.run("jack_session_notify", &["quit"]).expect_success();
    client.finish().expect_success();
    assert!(server.directory().join("simple").is_dir());
    // So that clients and ports have other ids now.
    let _another = server.spawn("jack_metro", &["-b", "61"]);
    server.await_port("metro-01:61_bpm");
    let _client = server.spawn("jack_simple_session_client", &[&uuid]);
    // It leaves its connections to the session now.
    server.await_port("simple:output");
    for (port, other) in
        [("simple:input", "system:capture_1"), ("simple:output", "system:playback_2")]
    {
        let known = port.replace("simple", &uuid);
        eventually("its ports can be connected", || {
            let connected = server.run("jack_connect", &["-u", &known, other]);
            (connected.code == Some(0)).then_some(())
        });
        server.await_connection(port, other);
    }
}
