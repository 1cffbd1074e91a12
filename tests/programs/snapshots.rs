//! `aj-snapshot`, which stores connections, and `jack_alias`, which gives ports further names.

use harness::Server;

/// A connection as `jack_lsp -c` shows it from its output.
fn connected(server: &Server, output: &str, inputs: &[&str]) {
    let peers: String = inputs.iter().map(|input| format!("   {input}\n")).collect();
    assert_eq!(server.lsp(&["-c", output]), format!("{output}\n{peers}"));
}

#[test]
fn aj_snapshot_restores_the_connections_that_it_stored() {
    let server = Server::timer(256);
    let [one, other] = ["system:capture_1", "system:capture_2"];
    for (source, destination) in
        [(one, "system:playback_2"), (other, "system:playback_1"), (one, "system:playback_1")]
    {
        server.run("jack_connect", &[source, destination]).expect_success();
    }
    server.run("aj-snapshot", &["-jf", "song.xml"]).expect_success();
    let stored =
        std::fs::read_to_string(server.directory().join("song.xml")).expect("it has written it");
    assert_eq!(stored.matches("<connection port=\"system:playback_").count(), 3, "{stored}");
    server.run("aj-snapshot", &["-jx"]).expect_success();
    connected(&server, one, &[]);
    connected(&server, other, &[]);
    server.run("jack_connect", &[other, "system:playback_2"]).expect_success();
    server.run("aj-snapshot", &["-jxr", "song.xml"]).expect_success();
    connected(&server, other, &["system:playback_1"]);
    let listed = server.lsp(&["-c", one]);
    let mut peers: Vec<&str> = listed.lines().skip(1).map(str::trim).collect();
    peers.sort_unstable();
    assert_eq!(peers, ["system:playback_1", "system:playback_2"]);
}

#[test]
fn jack_alias_sets_and_removes_names_of_a_port() {
    let server = Server::timer(256);
    let port = "system:playback_1";
    for alias in ["left", "speaker"] {
        server.run("jack_alias", &[port, alias]).expect_success();
    }
    assert_eq!(server.lsp(&["-A", port]), format!("{port}\n   left\n   speaker\n"));
    server.run("jack_connect", &["system:capture_1", "speaker"]).expect_success();
    connected(&server, "system:capture_1", &[port]);
    server.run("jack_alias", &["-u", port, "left"]).expect_success();
    assert_eq!(server.lsp(&["-A", port]), format!("{port}\n   speaker\n"));
    assert_ne!(server.run("jack_alias", &["-u", port, "left"]).code, Some(0));
}
