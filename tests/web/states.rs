//! The state of the server, saved and restored through the page.

use std::io::{Read, Write};
use std::net::SocketAddr;

use harness::{Program, Server, eventually};
use serde_json::{Value, json};

use crate::http::{Answer, ask, connect, get, order, read_answer};
use crate::served::served;

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn saved(server: &Server) -> String {
    server.consort(&["save", "-"]).expect_success().stdout
}

/// Sends `content` as a state to be restored.
fn restore(address: SocketAddr, content: &[u8]) -> Answer {
    let mut stream = connect(address);
    let head = format!(
        "POST /state HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    stream.write_all(content).expect("all of it is taken");
    read_answer(stream).expect("an answer")
}

fn not_restored(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer: Value = serde_json::from_str(&answer.body).expect("JSON");
    let lines = answer["not_restored"].as_array().expect("a list");
    lines.iter().map(|line| line.as_str().expect("a line").to_owned()).collect()
}

/// Two programs of which one hears the other, with aliases and properties, and a transport
/// position.
fn populated() -> (Server, SocketAddr, [Program; 2]) {
    let (server, address) = served(&["--quantum", "1024"]);
    let programs = [
        server.probe(&["source", "first"]),
        server.probe(&["check", "second", "--from", "first:out"]),
    ];
    server.await_connection("first:out", "second:in");
    server.run("jack_alias", &["first:out", "melody"]).expect_success();
    server
        .run("jack_property", &["-s", "-c", "first", "urn:label", "Ä \"label\"", "text/plain"])
        .expect_success();
    server.run("jack_connect", &["first:out", "system:playback_2"]).expect_success();
    server.consort(&["transport", "locate", "48000"]).expect_success();
    eventually("the transport stands there", || {
        saved(&server).contains("\"frame\": 48000").then_some(())
    });
    (server, address, programs)
}

fn disconnect(address: SocketAddr, source: &str, destination: &str) {
    let ends = json!({ "disconnect": { "source": source, "destination": destination } });
    assert_eq!(order(address, &ends).status, 200);
}

#[test]
fn the_page_saves_the_same_document_as_consort_save() {
    let (server, address, _programs) = populated();
    let answer = get(address, "/state");
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert!(answer.body.contains("melody") && answer.body.contains("urn:label"), "{}", answer.body);
    assert_eq!(answer.body, saved(&server));
}

#[test]
fn a_graph_saved_by_the_page_is_restored() {
    let (server, address, _programs) = populated();
    let before = get(address, "/state").body;
    disconnect(address, "first:out", "second:in");
    disconnect(address, "first:out", "system:playback_2");
    assert_eq!(order(address, &json!({ "locate": { "frame": 0 } })).status, 200);
    server.run("jack_bufsize", &["512"]);
    eventually("all of it is another", || {
        let now: Value = serde_json::from_str(&saved(&server)).expect("JSON");
        (now["connections"] == json!([])
            && now["transport"]["frame"] == 0
            && now["buffer_size"] == 512)
            .then_some(())
    });
    assert_eq!(not_restored(&restore(address, before.as_bytes())), Vec::<String>::new());
    eventually("it is as it was", || (saved(&server) == before).then_some(()));
    assert_eq!(
        not_restored(&restore(address, before.as_bytes())),
        Vec::<String>::new(),
        "and again"
    );

    let ends = json!({ "connect": { "source": "first:out", "destination": "system:playback_1" } });
    assert_eq!(order(address, &ends).status, 200);
    assert_eq!(not_restored(&restore(address, before.as_bytes())), Vec::<String>::new());
    server.await_connection("first:out", "system:playback_1");
}

#[test]
fn the_page_reports_what_could_not_be_restored() {
    let (server, address, _programs) = populated();
    let state = json!({
        "consort_state": 1,
        "connections": [
            { "source": "gone:out", "destination": "second:in" },
            { "source": "first:out", "destination": "system:playback_1" },
        ],
        "aliases": { "gone:out": ["melody 2"] },
        "properties": [{ "owner": { "client": "gone" }, "key": "urn:label", "value": "label" }],
    });
    let file = server.directory().join("song.json");
    std::fs::write(&file, state.to_string()).expect("a file");
    let reported = not_restored(&restore(address, state.to_string().as_bytes()));
    server.await_connection("first:out", "system:playback_1");
    let by_command = server.consort(&["restore", &file.to_string_lossy()]).stderr;
    let by_command: Vec<&str> = by_command
        .lines()
        .map(|line| line.strip_prefix("consort: not restored: ").expect(line))
        .collect();
    assert_eq!(reported, by_command);
    assert!(
        reported.len() == 3 && reported.iter().all(|line| line.contains("there is no ")),
        "{reported:?}"
    );
}

#[test]
fn an_invalid_state_file_is_refused_by_the_page() {
    let (server, address, _programs) = populated();
    let before = saved(&server);
    let disconnecting = "\"buffer_size\": 512, \"transport\": {\"rolling\": true, \"frame\": 1}";
    let long = format!("{{\"consort_state\": 1, {disconnecting}}}{}", " ".repeat(4 * 1024 * 1024));
    let newer = format!("{{\"consort_state\": 2, {disconnecting}}}");
    let wrong = format!(
        "{{\"consort_state\": 1, {disconnecting}, \"connections\": [{{\"source\": \"first:out\"}}]}}"
    );
    let unknown = format!("{{\"consort_state\": 1, {disconnecting}, \"more\": 1}}");
    let half = format!("{{\"consort_state\": 1, {disconnecting}");
    for (content, status, reason) in [
        (&b""[..], 400, "not a state of consort's"),
        (b"\x89PNG\r\n\x1a\n", 400, "not UTF-8 text"),
        (b"[]", 400, "not a state of consort's"),
        (b"{\"tracks\": []}", 400, "'consort_state', is missing"),
        (newer.as_bytes(), 400, "of version 2, and this consort knows version 1"),
        (wrong.as_bytes(), 400, "destination"),
        (unknown.as_bytes(), 400, "more"),
        (half.as_bytes(), 400, "EOF"),
        (long.as_bytes(), 413, "has more than 4194304 bytes"),
        (&vec![b' '; 50_000_000], 413, "has more than 4194304 bytes"),
    ] {
        let answer = restore(address, content);
        assert_eq!(answer.status, status, "{}", answer.body);
        let error = serde_json::from_str::<Value>(&answer.body).expect("JSON")["error"].clone();
        assert!(error.as_str().is_some_and(|error| error.contains(reason)), "{reason}: {error}");
    }
    assert_eq!(saved(&server), before);
}

#[test]
fn an_upload_that_stalls_delays_only_other_states() {
    let (_server, address, _programs) = populated();
    let mut slow = connect(address);
    let head = format!(
        "POST /state HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
    );
    slow.write_all(head.as_bytes()).expect("sent");
    assert_eq!(order(address, &json!({ "locate": { "frame": 1 } })).status, 200);
    assert_eq!(get(address, "/metrics").status, 200);
    let answer = read_answer(slow).expect("an answer");
    assert_eq!(answer.status, 408, "{}", answer.body);
    eventually("states are saved again", || (get(address, "/state").status == 200).then_some(()));
    // A browser that disconnects in the middle.
    let mut gone = connect(address);
    gone.write_all(head.as_bytes()).expect("sent");
    gone.shutdown(std::net::Shutdown::Both).expect("open");
    let _ = gone.read(&mut [0; 16]);
    assert_eq!(get(address, "/state").status, 200);
}

#[test]
fn another_sites_page_neither_saves_nor_restores() {
    let (server, address, _programs) = populated();
    let before = saved(&server);
    let state = json!({ "consort_state": 1, "buffer_size": 512 }).to_string();
    let own = format!("http://{address}");
    for (headers, expected) in [
        (&[JSON, ("Origin", "http://evil.example")][..], 403),
        (&[JSON, ("Sec-Fetch-Site", "cross-site")], 403),
        (&[JSON, ("Host", "evil.example")], 421),
        (&[("Content-Type", "text/plain"), ("Origin", &own)], 415),
    ] {
        assert_eq!(ask(address, "POST", "/state", headers, &state).status, expected, "{headers:?}");
    }
    for header in [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "cross-site")] {
        assert_eq!(ask(address, "GET", "/state", &[header], "").status, 403, "{header:?}");
    }
    assert_eq!(ask(address, "DELETE", "/state", &[JSON], "").status, 405);
    assert_eq!(saved(&server), before);
    assert_eq!(
        ask(address, "POST", "/state", &[JSON, ("Origin", &own)], &state).status,
        200,
        "our own page may"
    );
    eventually("it is done", || saved(&server).contains("\"buffer_size\": 512").then_some(()));
}
