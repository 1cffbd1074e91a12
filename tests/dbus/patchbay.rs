//! The graph over the bus.

use harness::{Program, eventually};

use crate::bus::Bus;

const NO_CONNECTIONS: &str = "@a(tstststst) []";

/// A bus with a server, and a client of it with one port.
pub(crate) fn with_a_client() -> (Bus, Program) {
    let bus = Bus::start();
    bus.answer("org.jackaudio.JackControl.StartServer", &[]);
    let mut metro = bus.command("jack_metro");
    metro.args(["-b", "120"]);
    let metro = Program::start(metro);
    eventually("its port can be connected", || {
        bus.call(NAMED, &["metro", "120_bpm", "system", "playback_1"])
            .code
            .filter(|code| *code == 0)
    });
    bus.answer(
        "org.jackaudio.JackPatchbay.DisconnectPortsByName",
        &["metro", "120_bpm", "system", "playback_1"],
    );
    (bus, metro)
}

const NAMED: &str = "org.jackaudio.JackPatchbay.ConnectPortsByName";

fn graph(bus: &Bus, known: &str) -> String {
    bus.answer("org.jackaudio.JackPatchbay.GetGraph", &[known])
}

/// The number after `before` in `text`.
fn number_after(text: &str, before: &str) -> u64 {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}"));
    let digits: String =
        rest.trim_start_matches("uint64 ").chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("no number after {before} in {text}"))
}

#[test]
fn ports_are_listed_and_connected_by_name_by_id_and_by_connection() {
    let (bus, metro) = with_a_client();
    let all = bus.answer("org.jackaudio.JackPatchbay.GetAllPorts", &[]);
    assert_eq!(
        all,
        "(['system:capture_1', 'system:capture_2', 'system:playback_1', 'system:playback_2', 'metro:120_bpm'],)"
    );
    let empty = graph(&bus, "0");
    assert!(
        empty.contains(
            "'system', [(uint64 1, 'capture_1', uint32 22, uint32 0), (2, 'capture_2', 22, 0)"
        ),
        "{empty}"
    );
    assert!(empty.contains("'metro', [(5, '120_bpm', 2, 0)])"), "{empty}");
    assert!(empty.ends_with(&format!("{NO_CONNECTIONS})")), "{empty}");
    let version = number_after(&empty, "(");
    assert_eq!(
        graph(&bus, &version.to_string()),
        format!("(uint64 {version}, @a(tsa(tsuu)) [], {NO_CONNECTIONS})"),
        "nothing is new"
    );

    bus.answer("org.jackaudio.JackPatchbay.ConnectPortsByID", &["5", "3"]);
    let connected = graph(&bus, "0");
    assert!(number_after(&connected, "(") > version, "{connected}");
    let client = number_after(&connected, "3, 'playback_1', 21, 0), (4, 'playback_2', 21, 0)]), (");
    let ends = format!(
        "[(uint64 {client}, 'metro', uint64 5, '120_bpm', uint64 1, 'system', uint64 3, 'playback_1', uint64 "
    );
    let connection = number_after(&connected, &ends);
    let listed = bus.run("jack_lsp", &["-c", "metro"]).expect_success().stdout;
    assert_eq!(listed, "metro:120_bpm\n   system:playback_1\n");
    bus.answer(
        "org.jackaudio.JackPatchbay.DisconnectPortsByConnectionID",
        &[&connection.to_string()],
    );
    assert!(graph(&bus, "0").ends_with(&format!("{NO_CONNECTIONS})")));
    bus.answer(NAMED, &["metro", "120_bpm", "system", "playback_2"]);
    bus.answer("org.jackaudio.JackPatchbay.DisconnectPortsByID", &["5", "4"]);
    assert!(graph(&bus, "0").ends_with(&format!("{NO_CONNECTIONS})")));
    let process = bus.answer("org.jackaudio.JackPatchbay.GetClientPID", &[&client.to_string()]);
    assert_eq!(process, format!("(int64 {},)", metro.id()));
}

#[test]
fn signals_report_every_change_of_the_graph() {
    let (bus, metro) = with_a_client();
    let mut monitor = bus.monitor();
    let mut await_signal = |signal: &str, about: &str| {
        eventually(&format!("{signal} of {about}"), || {
            let lines = monitor.stdout().lines();
            let mut found = lines.filter(|line| line.contains(&format!("JackPatchbay.{signal} (")));
            found.any(|line| line.contains(about)).then_some(())
        });
    };
    bus.answer(NAMED, &["metro", "120_bpm", "system", "playback_1"]);
    await_signal(
        "PortsConnected",
        "'metro', uint64 5, '120_bpm', uint64 1, 'system', uint64 3, 'playback_1'",
    );
    await_signal("GraphChanged", "uint64");
    metro.terminate();
    await_signal(
        "PortsDisconnected",
        "'metro', uint64 5, '120_bpm', uint64 1, 'system', uint64 3, 'playback_1'",
    );
    await_signal("PortDisappeared", "'metro', uint64 5, '120_bpm'");
    await_signal("ClientDisappeared", "'metro'");
    let mut simple = bus.command("jack_simple_client");
    simple.arg("simple");
    let simple = Program::start(simple);
    await_signal("ClientAppeared", "'simple'");
    await_signal("PortAppeared", "'output1', uint32 2, uint32 0");
    await_signal("PortsConnected", "'output2', uint64 1, 'system', uint64 4, 'playback_2'");
    drop(simple);
    await_signal("ClientDisappeared", "'simple'");
}
