//! What the page shows and controls.

use harness::{Server, eventually};
use serde_json::{Value, json};

use crate::http::{Events, get, order};
use crate::served::{metric, served};

fn is_connected(server: &Server, source: &str, destination: &str) -> bool {
    let listed = server.lsp(&["-c"]);
    let mut lines = listed.lines().skip_while(|line| *line != source).skip(1);
    lines.by_ref().map_while(|line| line.strip_prefix("   ")).any(|peer| peer == destination)
}

fn port<'a>(graph: &'a Value, name: &str) -> Option<&'a Value> {
    let clients = graph.as_array()?.iter();
    clients
        .flat_map(|client| client["ports"].as_array().into_iter().flatten())
        .find(|port| port["name"] == name)
}

#[test]
fn every_browser_sees_each_change_of_a_connection() {
    let (server, address) = served(&["--quantum", "1024"]);
    let _source = server.probe(&["source", "first"]);
    let _check = server.probe(&["check", "second"]);
    let mut events = Events::of(address);
    let graph = events.await_event("graph", "both clients", |graph| {
        port(graph, "first:out").is_some() && port(graph, "second:in").is_some()
    });
    let input = port(&graph, "second:in").expect("it")["id"].clone();
    assert_eq!(port(&graph, "first:out").expect("it")["readers"], json!([]));

    let ends = json!({ "source": "first:out", "destination": "second:in" });
    let made = order(address, &json!({ "connect": ends }));
    assert_eq!((made.status, made.body.as_str()), (200, "{}"));
    assert!(is_connected(&server, "first:out", "second:in"));
    events.await_event("graph", "the connection", |graph| {
        port(graph, "first:out").is_some_and(|port| port["readers"] == json!([input]))
    });
    let again = order(address, &json!({ "connect": ends }));
    assert_eq!(again.status, 409);
    assert!(
        again.body.contains("'first:out' and 'second:in' are connected already"),
        "{}",
        again.body
    );

    assert_eq!(order(address, &json!({ "disconnect": ends })).status, 200);
    assert!(!is_connected(&server, "first:out", "second:in"));
    events.await_event("graph", "no connection", |graph| {
        port(graph, "first:out").is_some_and(|port| port["readers"] == json!([]))
    });
}

#[test]
fn the_page_controls_the_transport() {
    let (_server, address) = served(&["--quantum", "1024"]);
    let mut events = Events::of(address);
    assert_eq!(order(address, &json!({ "locate": { "frame": 480_000 } })).status, 200);
    events.await_event("live", "the new place", |live| {
        live["transport"] == json!({ "rolling": false, "frame": 480_000 })
    });
    assert_eq!(order(address, &json!({ "roll": { "roll": true } })).status, 200);
    events.await_event("live", "it rolls", |live| {
        live["transport"]["rolling"] == true && live["transport"]["frame"].as_u64() > Some(480_000)
    });
    assert_eq!(order(address, &json!({ "roll": { "roll": false } })).status, 200);
    events.await_event("live", "it stands", |live| live["transport"]["rolling"] == false);
}

#[test]
fn each_cycle_shows_its_clients_times() {
    let (server, address) = served(&["--quantum", "1024"]);
    let _source = server.probe(&["source", "first"]);
    let _check = server.probe(&["check", "second", "--from", "first:out"]);
    let mut events = Events::of(address);
    let in_order = |live: &Value| {
        let passes = live["latest"]["clients"].as_array()?;
        let [first, second] = &passes[..] else { return None };
        let time = |pass: &Value, key: &str| pass[key].as_f64();
        let times = [
            time(first, "signaled_us")?,
            time(first, "awake_us")?,
            time(first, "finished_us")?,
            time(second, "awake_us")?,
            time(second, "finished_us")?,
        ];
        Some(times.is_sorted())
    };
    let live =
        events.await_event("live", "a cycle that both finished", |live| in_order(live).is_some());
    assert_eq!(in_order(&live), Some(true), "{live}");
    assert_eq!(live["latest"]["period_us"], 21333.3);
    let column = events.await_event("live", "a column with both", |live| {
        live["columns"].as_array().is_some_and(|columns| {
            columns.iter().any(|column| {
                column["clients"].as_object().is_some_and(|clients| clients.len() == 2)
            })
        })
    });
    for column in column["columns"].as_array().expect("columns") {
        for spread in [&column["periods"], &column["ends"]] {
            let spread: Vec<f64> =
                spread.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
            assert!(
                spread.is_sorted() && spread.len().is_multiple_of(3),
                "least, median, most: {column}"
            );
        }
    }
}

#[test]
fn a_stopped_client_is_in_the_list_of_xruns_and_in_the_metrics() {
    let (server, address) = served(&["--quantum", "1024", "--client-timeout", "100"]);
    let victim = server.probe(&["source", "victim"]);
    eventually("the victim is counted", || {
        metric(address, "consort_client_wakeups_total{client=\"victim\"}")
            .filter(|count| *count > 10.0)
    });
    let mut events = Events::of(address);
    let before =
        metric(address, "consort_xrun_verdicts_total{verdict=\"stopped\"}").unwrap_or_default();
    victim.signal(rustix::process::Signal::STOP);
    let listed = events.await_event("xruns", "the victim's xrun with its verdict", |xruns| {
        xruns.as_array().is_some_and(|xruns| {
            xruns.iter().any(|xrun| xrun["client"] == "victim" && xrun["verdict"] == "stopped")
        })
    });
    let numbers: Vec<u64> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|xrun| xrun["number"].as_u64())
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[0] > pair[1]), "newest first: {numbers:?}");
    eventually("the bypass is counted", || {
        metric(address, "consort_client_bypasses_total{client=\"victim\"}")
            .filter(|count| *count >= 1.0)
    });
    assert_eq!(metric(address, "consort_client_bypassed{client=\"victim\"}"), Some(1.0));
    let after =
        metric(address, "consort_xrun_verdicts_total{verdict=\"stopped\"}").expect("counted");
    assert!(after > before, "{before} became {after}");
    victim.signal(rustix::process::Signal::CONT);
    eventually("it is let in again", || {
        metric(address, "consort_client_bypassed{client=\"victim\"}")
            .filter(|bypassed| *bypassed == 0.0)
    });
}

#[test]
fn metrics_have_their_type_and_agree_with_the_server() {
    let (server, address) = served(&["--quantum", "512", "--rate", "44100"]);
    let _source = server.probe(&["source", "first"]);
    let answer = get(address, "/metrics");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for (name, expected) in [
        ("consort_up", 1.0),
        ("consort_sample_rate_hertz", 44_100.0),
        ("consort_quantum_frames", 512.0),
        ("consort_clients", 1.0),
        ("consort_client_active{client=\"first\"}", 1.0),
    ] {
        assert_eq!(metric(address, name), Some(expected), "{name}");
    }
    let count = "consort_client_duration_seconds_count{client=\"first\"}";
    let first =
        eventually("durations are counted", || metric(address, count).filter(|count| *count > 0.0));
    eventually("more are counted", || metric(address, count).filter(|count| *count > first));
    let cycles = metric(address, "consort_cycles_total").expect("counted");
    eventually("cycles are counted", || {
        metric(address, "consort_cycles_total").filter(|count| *count > cycles)
    });
}
