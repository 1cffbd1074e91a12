//! `consort save` and `consort restore`.

use harness::Server;
use serde_json::json;

use crate::metronome::{METRO, await_state, metro, populate, populated, saved};

/// A path in the server's directory.
fn file(server: &Server, name: &str) -> String {
    server.directory().join(name).to_string_lossy().into_owned()
}

#[test]
fn a_saved_state_is_restored_by_another_server() {
    let first = Server::timer(256);
    let _metro = metro(&first);
    populate(&first);
    await_state(&first, &populated());
    let path = file(&first, "song.json");
    first.consort(&["save", &path]).expect_success();

    let second = Server::timer(256);
    let _metro = metro(&second);
    let restored = second.consort(&["restore", &path]).expect_success();
    assert_eq!(restored.stderr, "");
    await_state(&second, &populated());
    let again = second.consort(&["restore", &path]).expect_success();
    assert_eq!(again.stderr, "", "what is there already is no failure");
    await_state(&second, &populated());
}

#[test]
fn entries_that_cannot_be_restored_are_named_with_the_reason() {
    let server = Server::timer(256);
    let path = file(&server, "song.json");
    let state = populated();
    std::fs::write(&path, state.to_string()).expect("a file");
    let restored = server.consort(&["restore", &path]);
    assert_eq!(restored.code, Some(1), "{}", restored.stderr);
    let mut lines: Vec<&str> = restored.stderr.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "consort: not restored: the alias 'click' of port 'metro:120_bpm': there is no port 'metro:120_bpm'",
            "consort: not restored: the connection 'metro:120_bpm' to 'system:playback_2': there is no port 'metro:120_bpm'",
            "consort: not restored: the property 'urn:label' of client 'metro': there is no client 'metro'",
            "consort: not restored: the property 'urn:label' of port 'metro:120_bpm': there is no port 'metro:120_bpm'",
        ]
    );
    let mut rest = state;
    rest["connections"] = json!([]);
    rest["aliases"] = json!({});
    rest["properties"].as_array_mut().expect("a list").truncate(1);
    await_state(&server, &rest);
}

#[test]
fn other_connections_stay_unless_the_state_is_to_be_restored_exactly() {
    let server = Server::timer(256);
    let _metro = metro(&server);
    let path = file(&server, "song.json");
    server.run("jack_connect", &[METRO, "system:playback_1"]).expect_success();
    server.consort(&["save", &path]).expect_success();
    server.run("jack_disconnect", &[METRO, "system:playback_1"]).expect_success();
    server.run("jack_connect", &[METRO, "system:playback_2"]).expect_success();
    server.consort(&["restore", &path]).expect_success();
    server.await_connection(METRO, "system:playback_1");
    server.await_connection(METRO, "system:playback_2");
    server.consort(&["restore", "--exact", &path]).expect_success();
    let listed = server.lsp(&["-c", METRO]);
    assert_eq!(listed, format!("{METRO}\n   system:playback_1\n"));
}

#[test]
fn an_invalid_state_file_is_refused_with_the_reason() {
    let server = Server::timer(256);
    let _metro = metro(&server);
    populate(&server);
    let before = saved(&server);
    let path = file(&server, "nonsense.json");
    for (nonsense, reason) in [
        ("", "not a state of consort's"),
        ("\u{0}\u{1}", "not a state of consort's"),
        ("{\"consort_state\": 9}", "version 9"),
        ("{\"consort_state\": 1, \"buffer_size\": 64, \"connections\": 7}", "invalid type"),
        (
            "{\"consort_state\": 1, \"buffer_size\": 64, \"transport\": {\"rolling\": true, \"frame\": -1}}",
            "-1",
        ),
        ("{\"consort_state\": 1, \"buffer_size\": 9000}", "9000 frames is out of range"),
        (
            "{\"consort_state\": 1, \"buffer_size\": 64, \"aliases\": {\"\": [\"x\"]}}",
            "must not be empty",
        ),
    ] {
        std::fs::write(&path, nonsense).expect("a file");
        let refused = server.consort(&["restore", "--exact", &path]);
        assert_eq!(refused.code, Some(1), "{nonsense}");
        assert!(refused.stderr.contains(reason), "{nonsense}: {}", refused.stderr);
        assert!(refused.stderr.contains(&path), "{nonsense}: {}", refused.stderr);
        assert_eq!(saved(&server), before, "{nonsense}");
    }
    let missing = server.consort(&["restore", &file(&server, "missing.json")]);
    assert!(missing.code == Some(1) && missing.stderr.contains("missing.json"), "{missing:?}");
    let nowhere = server.consort(&["save", "/proc/nowhere/song.json"]);
    assert!(nowhere.code == Some(1) && nowhere.stderr.contains("cannot write"), "{nowhere:?}");
    assert!(
        nowhere.stderr.contains("No such file or directory"),
        "the kernel's words: {nowhere:?}"
    );
}

#[test]
fn a_state_is_written_through_links_and_pipes() {
    let first = Server::timer(256);
    let _metro = metro(&first);
    populate(&first);
    let link = file(&first, "link.json");
    std::os::unix::fs::symlink("song.json", &link).expect("a link");
    first.consort(&["save", &link]).expect_success();
    assert!(std::path::Path::new(&link).is_symlink(), "the link stays");
    let song = std::fs::read(file(&first, "song.json")).expect("its target");

    let pipe = file(&first, "pipe");
    let consort = harness::binary("consort").to_string_lossy().into_owned();
    let script = "mkfifo \"$1\" && { \"$0\" save \"$1\" & } && cat \"$1\"";
    let piped = first.run("sh", &["-c", script, &consort, &pipe]).expect_success();
    assert_eq!(piped.stdout.as_bytes(), song);

    let second = Server::timer(256);
    let _metro = metro(&second);
    let script = "\"$0\" restore - < \"$1\"";
    second.run("sh", &["-c", script, &consort, &link]).expect_success();
    await_state(&second, &populated());
    let nonsense = second.run("sh", &["-c", "echo nonsense | \"$0\" restore -", &consort]);
    assert!(nonsense.code == Some(1) && nonsense.stderr.contains("standard input"), "{nonsense:?}");
}
