//! `jack_property` and `jack_evmon`: properties of clients and ports.

use harness::{Program, Server, eventually};

const PRETTY_NAME: &str = "http://jackaudio.org/metadata/pretty-name";

/// Runs `jack_property` with these arguments; returns what it printed.
fn property(server: &Server, words: &[&str]) -> String {
    server.run("jack_property", words).expect_success().stdout
}

/// The uuid of the second port, `system:capture_2`, as JACK's programs write it.
const CAPTURE_2: &str = "4294967299";

#[test]
fn properties_of_jack_property_are_listed_until_deleted() {
    let server = Server::timer(256);
    assert_eq!(property(&server, &["-l"]), "");
    property(&server, &["-p", "-s", "system:capture_2", PRETTY_NAME, "Left & right", "text/plain"]);
    property(&server, &["-p", "-s", "system:capture_2", "order", "2"]);
    property(&server, &["-c", "-s", "system", "icon", "drum"]);
    let capture =
        format!("key: {PRETTY_NAME} value: Left & right type: text/plain\nkey: order value: 2\n");
    assert_eq!(property(&server, &["-p", "-l", "system:capture_2"]), capture);
    assert_eq!(property(&server, &["-l", CAPTURE_2]), capture, "also by its uuid");
    assert_eq!(property(&server, &["-p", "-l", "system:capture_2", PRETTY_NAME]), "Left & right\n");
    assert_eq!(
        property(&server, &["-l"]),
        format!("{CAPTURE_2}\n{capture}8589934593\nkey: icon value: drum\n")
    );
    let listed = server.consort(&["ls", "--properties", "capture_2"]).expect_success().stdout;
    assert!(listed.contains("    property  order = \"2\"\n"), "{listed}");

    property(&server, &["-p", "-s", "system:capture_2", "order", "3"]);
    assert_eq!(property(&server, &["-p", "-l", "system:capture_2", "order"]), "3\n");
    property(&server, &["-p", "-d", "system:capture_2", "order"]);
    let left = format!("key: {PRETTY_NAME} value: Left & right type: text/plain\n");
    assert_eq!(property(&server, &["-p", "-l", "system:capture_2"]), left);
    property(&server, &["-p", "-d", "system:capture_2"]);
    assert_eq!(property(&server, &["-l"]), "8589934593\nkey: icon value: drum\n");
    property(&server, &["-D"]);
    assert_eq!(property(&server, &["-l"]), "");
}

/// Runs `jack_property` and expects that it fails with this as the end of its output.
fn refused(server: &Server, words: &[&str], reason: &str) {
    let ended = server.run("jack_property", words);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert_ne!(ended.code, Some(0), "{words:?}: {said}");
    assert_eq!(said.lines().last(), Some(reason), "{words:?}");
}

#[test]
fn jack_property_fails_for_a_missing_property() {
    let server = Server::timer(256);
    let metro = server.spawn("jack_metro", &["-b", "120"]);
    server.await_port("metro:120_bpm");
    // Properties of the server's own port, and of a program's.
    for (client, port) in [("system", "system:playback_1"), ("metro", "metro:120_bpm")] {
        assert!(server.lsp(&[]).contains(port));
        for (of, subject, key, value) in
            [("-c", client, "colour", "blue"), ("-p", port, "order", "seven")]
        {
            let said = server.run("jack_property", &["-D"]).expect_success();
            // Newer releases spell it "deleted".
            assert!(said.stdout.starts_with("JACK metadata successfully delete"), "{said:?}");
            assert_eq!(property(&server, &["-l"]), "");
            assert_eq!(property(&server, &[of, "-l", subject]), "");
            assert_eq!(property(&server, &[of, "-s", subject, key, value]), "");
            let line = format!("key: {key} value: {value}");
            assert_eq!(property(&server, &[of, "-l", subject]), format!("{line}\n"));
            assert_eq!(property(&server, &[of, "-l", subject, key]), format!("{value}\n"));
            let all = property(&server, &["-l"]);
            let [uuid, listed] = all.lines().collect::<Vec<_>>()[..] else {
                panic!("one property: {all}")
            };
            assert_eq!(listed, line);
            assert_eq!(property(&server, &["-l", uuid]), format!("{line}\n"), "by its uuid alone");

            assert_eq!(property(&server, &["-d", uuid, key]), "");
            refused(
                &server,
                &[of, "-l", subject, key],
                &format!("Value not found for {key} of {subject}"),
            );
            let not_removed = format!("\"{key}\" property not removed for {subject}");
            refused(&server, &[of, "-d", subject, key], &not_removed);
            assert_eq!(property(&server, &[of, "-l", subject]), "");
            property(&server, &["-s", uuid, key, value]);
            assert_eq!(property(&server, &[of, "-d", subject, key]), "");
            assert_eq!(property(&server, &["-l"]), "");
        }
        let nothing = format!("{client}:nothing");
        refused(&server, &["-p", "-l", &nothing], &format!("cannot find port name {nothing}"));
    }
    refused(&server, &["-c", "-l", "nobody"], "cannot get UUID for client named nobody");
    metro.terminate();
    eventually("its client has gone", || (!server.has_ports("metro")).then_some(()));
    refused(&server, &["-c", "-l", "metro"], "cannot get UUID for client named metro");
}

#[test]
fn properties_of_a_client_go_with_it() {
    let server = Server::timer(256);
    let mut monitor = server.spawn("jack_evmon", &[]);
    server.await_active("event-monitor");
    let metro = server.spawn("jack_metro", &["-b", "240"]);
    server.await_port("metro:240_bpm");
    property(&server, &["-p", "-s", "metro:240_bpm", PRETTY_NAME, "Click"]);
    property(&server, &["-p", "-s", "metro:240_bpm", PRETTY_NAME, "Clack"]);
    property(&server, &["-c", "-s", "metro", "icon", "metronome"]);
    let changes = |monitor: &mut Program| -> Vec<String> {
        monitor
            .stdout()
            .lines()
            .filter(|line| line.starts_with("key "))
            .map(str::to_owned)
            .collect()
    };
    let subject = |line: &str| {
        line.split(" for ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned)
    };
    metro.terminate();
    let lines = eventually("both are reported as gone", || {
        let lines = changes(&mut monitor);
        (lines.iter().filter(|line| line.starts_with("key [] ")).count() == 2).then_some(lines)
    });
    let port = subject(&lines[0]).expect("a uuid");
    let client = subject(&lines[2]).expect("a uuid");
    assert_eq!(
        lines,
        [
            format!("key [{PRETTY_NAME}] for {port} created"),
            format!("key [{PRETTY_NAME}] for {port} changed"),
            format!("key [icon] for {client} created"),
            format!("key [] for {port} deleted"),
            format!("key [] for {client} deleted"),
        ]
    );
    assert_eq!(property(&server, &["-l"]), "");
}
