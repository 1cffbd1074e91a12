//! `jack_property` and `jack_evmon`: properties of clients and ports.

use harness::{Program, Server, eventually};

const PRETTY_NAME: &str = "http://jackaudio.org/metadata/pretty-name";

/// Runs `jack_property` with these words; what it printed.
fn property(server: &Server, words: &[&str]) -> String {
    server.run("jack_property", words).expect_success().stdout
}

/// The uuid of the second port, `system:capture_2`, as JACK's programs write it.
const CAPTURE_2: &str = "4294967299";

#[test]
fn what_jack_property_sets_another_jack_property_and_consort_list_until_it_is_deleted() {
    let server = Server::timer(256);
    assert_eq!(property(&server, &["-l"]), "");
    property(&server, &["-p", "-s", "system:capture_2", PRETTY_NAME, "Left & right", "text/plain"]);
    property(&server, &["-p", "-s", "system:capture_2", "order", "2"]);
    property(&server, &["-c", "-s", "system", "icon", "drum"]);
    let capture = format!("key: {PRETTY_NAME} value: Left & right type: text/plain\nkey: order value: 2\n");
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

#[test]
fn properties_of_a_client_and_its_ports_go_with_it_and_jack_evmon_is_told() {
    let server = Server::timer(256);
    let mut monitor = server.spawn("jack_evmon", &[]);
    server.await_active("event-monitor");
    let metro = server.spawn("jack_metro", &["-b", "240"]);
    server.await_port("metro:240_bpm");
    property(&server, &["-p", "-s", "metro:240_bpm", PRETTY_NAME, "Click"]);
    property(&server, &["-p", "-s", "metro:240_bpm", PRETTY_NAME, "Clack"]);
    property(&server, &["-c", "-s", "metro", "icon", "metronome"]);
    let told = |monitor: &mut Program| -> Vec<String> {
        monitor.stdout().lines().filter(|line| line.starts_with("key ")).map(str::to_owned).collect()
    };
    let subject =
        |line: &str| line.split(" for ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned);
    metro.terminate();
    let lines = eventually("both are told as gone", || {
        let lines = told(&mut monitor);
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
