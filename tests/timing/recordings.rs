//! Recordings of a running server, and what is made of them.

use std::collections::BTreeMap;
use std::path::Path;

use harness::{Program, Server};
use rt::cycle_number;
use rustix::process::Signal;
use serde_json::Value;

/// A server with a chain of three programs.
fn chain(options: &[&str]) -> (Server, Vec<Program>) {
    let server = Server::start(options);
    let programs = vec![
        server.probe(&["source", "first"]),
        server.probe(&["thru", "second", "--from", "first:out"]),
        server.probe(&["check", "third", "--from", "second:out"]),
    ];
    (server, programs)
}

fn record(server: &Server, seconds: &str) {
    server
        .consort(&["profile", "record", "--seconds", seconds, "--output", "run.rec"])
        .expect_success();
}

/// The events with a duration in a trace of `run.rec`.
fn spans(server: &Server) -> Vec<Value> {
    server.consort(&["profile", "trace", "run.rec", "--output", "run.json"]).expect_success();
    let text = std::fs::read_to_string(server.directory().join("run.json")).expect("a trace");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events").clone();
    events.into_iter().filter(|event| event["ph"] == "X").collect()
}

/// Start and end of a span, µs.
fn start_and_end(span: &Value) -> (f64, f64) {
    let number = |key: &str| span[key].as_f64().expect("a number");
    (number("ts"), number("ts") + number("dur"))
}

fn cycle_of(span: &Value) -> u32 {
    let cycle = span["args"]["cycle"].as_u64().expect("a number");
    u32::try_from(cycle).expect("32 bits")
}

#[test]
fn a_recording_has_every_cycle_once_in_the_order_of_the_graph() {
    let (server, _programs) = chain(&["--quantum", "256"]);
    record(&server, "2");
    let spans = spans(&server);
    let cycles: Vec<u32> =
        spans.iter().filter(|span| span["name"] == "cycle").map(cycle_of).collect();
    assert!(cycles.len() > 10, "two seconds are 375 cycles: {}", cycles.len());
    assert!(
        cycles.windows(2).all(|pair| pair[1] == cycle_number::next(pair[0])),
        "none is missing"
    );
    let mut clients: BTreeMap<u32, BTreeMap<&str, (f64, f64)>> = BTreeMap::new();
    for span in &spans {
        if let Some(name @ ("first" | "second" | "third")) = span["name"].as_str() {
            clients.entry(cycle_of(span)).or_default().insert(name, start_and_end(span));
        }
    }
    let whole: Vec<_> = clients.values().filter(|clients| clients.len() == 3).collect();
    assert!(!whole.is_empty(), "some cycles were finished by all three");
    for clients in whole {
        let order = ["first", "second", "third"].map(|name| clients[name]);
        assert!(order.iter().all(|(awake, finished)| awake <= finished), "{order:?}");
    }
}

/// The median time that the driver took for a cycle, µs.
fn driver_us(server: &Server) -> f64 {
    record(server, "1");
    let spans = spans(server);
    let cycles = spans.iter().filter(|span| span["name"] == "cycle").map(start_and_end);
    let mut durations: Vec<f64> = cycles.map(|(start, end)| end - start).collect();
    durations.sort_unstable_by(f64::total_cmp);
    durations[durations.len() / 2]
}

#[test]
fn in_sync_mode_the_driver_waits_only_for_clients_that_it_plays() {
    const FIFTH_US: f64 = 1024.0 / 48_000.0 * 1e6 / 5.0;
    let server = Server::start(&["--quantum", "1024", "--sync"]);
    let slow = server.probe(&["thru", "slow", "--fault", "fifth"]);
    let _next = server.probe(&["thru", "next", "--from", "slow:out"]);
    slow.signal(Signal::USR1);
    let unheard_us = driver_us(&server);
    assert!(unheard_us < FIFTH_US / 2.0, "it waits {unheard_us} us for a client that is not heard");
    server.consort(&["connect", "next:out", "system:playback_1"]).expect_success();
    let heard_us = driver_us(&server);
    assert!(heard_us >= FIFTH_US, "it waits {heard_us} us for a client that another one plays");
}

#[test]
fn the_recording_takes_less_than_four_megabytes_of_memory() {
    let (mut server, _programs) = chain(&["--quantum", "256"]);
    let path = format!("/proc/{}/smaps", server.program().id());
    let maps = std::fs::read_to_string(path).expect("the server runs");
    let mut lines = maps.lines().skip_while(|line| !line.contains("memfd:consort-recording"));
    let size = lines.find_map(|line| line.strip_prefix("Size:")).expect("it is mapped");
    let kib: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!((2048..4096).contains(&kib), "{kib} KiB");
}

#[test]
fn gnuplot_draws_the_log_that_jack2_would_have_written() {
    let (server, _programs) = chain(&["--quantum", "256", "--sync"]);
    record(&server, "2");
    server
        .consort(&["profile", "plot", "run.rec", "--output", "plots", "--jack-log"])
        .expect_success();
    let plots = server.directory().join("plots");
    let files = |extension: &str| {
        let entries =
            std::fs::read_dir(&plots).expect("plots").map(|entry| entry.expect("a file").path());
        entries
            .filter(|path| path.extension().is_some_and(|found| found == extension))
            .collect::<Vec<_>>()
    };
    let (png, svg) = (files("png"), files("svg"));
    assert_eq!((png.len(), svg.len()), (6, 6));
    for path in &png {
        let bytes = std::fs::read(path).expect("a picture");
        // Signature, then the header with width and height (PNG specification, 5.2 and 11.2.2).
        assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n", "{}", path.display());
        assert_eq!(bytes[16..24], [0, 0, 4, 176, 0, 0, 2, 188], "1200 by 700");
    }
    for path in &svg {
        let text = std::fs::read_to_string(path).expect("a picture");
        assert!(text.matches("<circle").count() > 50, "{}", path.display());
    }
    let log = std::fs::read_to_string(plots.join("JackEngineProfiling.log")).expect("a log");
    assert!(
        log.lines().count() > 10 && log.lines().all(|line| line.split('\t').count() == 2 + 3 * 7)
    );
    for number in 1..=5 {
        let mut gnuplot = server.command("gnuplot");
        gnuplot.arg(format!("Timing{number}.plot")).current_dir(&plots);
        let finished = Program::start(gnuplot).finish().expect_success();
        assert_eq!(finished.stderr, "", "Timing{number}.plot");
        let drawn =
            std::fs::read_to_string(plots.join(format!("Timing{number}.svg"))).expect("drawn");
        assert!(drawn.trim_end().ends_with("</svg>") && drawn.contains("usec"));
    }
}

#[test]
fn each_clients_quantiles_are_shown_over_three_windows() {
    let (server, _programs) = chain(&["--quantum", "256"]);
    let shown = harness::eventually("all three clients have times", || {
        let shown = server.consort(&["profile", "show"]).expect_success().stdout;
        let mut starts = shown.lines().filter(|line| line.contains(" start "));
        let counted = |line: &str| line.split_whitespace().nth(3).is_some_and(|count| count != "0");
        (shown.matches(" start ").count() == 6 && starts.all(counted)).then_some(shown)
    });
    for line in shown
        .lines()
        .filter(|line| [" second ", " minute ", " start "].iter().any(|w| line.contains(w)))
    {
        let numbers: Vec<f64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert_eq!(numbers.len(), 5, "count, p50, p99, p99.9, max: {line}");
        assert!(numbers[1..].is_sorted(), "{line}");
    }
}

fn refusal(server: &Server, arguments: &[&str]) -> String {
    let finished = server.consort(arguments);
    assert_eq!(finished.code, Some(1), "{arguments:?}: {}", finished.stdout);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    finished.stderr
}

#[test]
fn an_incomplete_recording_is_refused_with_a_reason() {
    let server = Server::timer(256);
    record(&server, "1");
    let whole = std::fs::read(server.directory().join("run.rec")).expect("a recording");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(server.directory().join(name), bytes).expect("a file")
    };
    write("cut", &whole[..whole.len() / 2]);
    write("foreign", b"1333 \t 9 \t\n");
    write("nothing", b"");
    // Magic, version 1, origin of two empty texts, the end of 0 records.
    write("empty", b"consrec\n\x01\0\0\0O\0\0\0\0\0E\0\0\0\0\0\0\0\0");
    for (name, part) in [
        ("cut", "cut off at byte"),
        ("foreign", "not a recording of consort"),
        ("nothing", "not a recording of consort"),
        ("empty", "no two consecutive cycles"),
        ("absent", "No such file"),
    ] {
        let said = refusal(&server, &["profile", "plot", name, "--output", "plots"]);
        assert!(said.contains(part), "{name}: {said}");
    }
    assert!(!Path::new(&server.directory().join("plots")).exists(), "nothing was made of them");
    let said =
        refusal(&server, &["profile", "record", "--seconds", "1", "--output", "no/such/directory"]);
    assert!(said.contains("cannot write no/such/directory"), "{said}");
}

#[test]
fn without_a_server_there_is_nothing_to_record() {
    let server = Server::timer(256);
    let finished = server.consort(&["-n", "absent", "profile", "record", "--output", "run.rec"]);
    assert_eq!(finished.code, Some(3), "{}", finished.stderr);
    assert!(!server.directory().join("run.rec").exists());
}

/// Ends an hour's recording by a signal, as soon as the program waits for signals.
fn interrupted(server: &Server, arguments: &[&str], signal: Signal) {
    let recording =
        server.spawn_consort(&[&["profile"], arguments, &["--seconds", "3600"]].concat());
    let status = format!("/proc/{}/status", recording.id());
    harness::eventually("it waits for signals", || {
        let text = std::fs::read_to_string(&status).ok()?;
        let blocked = text.lines().find_map(|line| line.strip_prefix("SigBlk:"))?.trim();
        let blocked = u64::from_str_radix(blocked, 16).expect("a mask");
        (blocked & (1 << (signal.as_raw() - 1)) != 0).then_some(())
    });
    server.await_cycles(10);
    recording.signal(signal);
    recording.finish().expect_success();
}

#[test]
fn a_recording_that_a_signal_ends_is_whole() {
    let (server, _programs) = chain(&["--quantum", "256"]);
    for signal in [Signal::INT, Signal::TERM] {
        interrupted(&server, &["record", "--output", "run.rec"], signal);
        assert!(!spans(&server).is_empty(), "it can be read, and there is something in it");
    }
    interrupted(&server, &["trace", "--output", "live.json"], Signal::INT);
    let text = std::fs::read_to_string(server.directory().join("live.json")).expect("a trace");
    serde_json::from_str::<Value>(&text).expect("all of it");
}

#[test]
fn a_recording_can_go_to_standard_output() {
    let server = Server::timer(256);
    let consort = harness::binary("consort").to_string_lossy().into_owned();
    let script = "\"$0\" profile record --seconds 1 --output - > run.rec";
    let recorded = server.run("sh", &["-c", script, &consort]).expect_success();
    assert_eq!(recorded.stdout + &recorded.stderr, "");
    assert!(!spans(&server).is_empty());
    assert!(!server.directory().join("-").exists());
}
