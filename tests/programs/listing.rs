//! `jack_lsp`, `jack_connect`, `jack_disconnect`: what the graph looks like from outside.

use harness::{Finished, Server};

/// One port as `jack_lsp -c -p -t -l` prints it.
fn listed(name: &str, peer: Option<&str>, latencies: [u32; 2], direction: &str) -> String {
    let [playback, capture] = latencies;
    let peer = peer.map(|peer| format!("   {peer}\n")).unwrap_or_default();
    format!(
        "{name}\n{peer}\tport playback latency = [ {playback} {playback} ] frames\n\
         \tport capture latency = [ {capture} {capture} ] frames\n\
         \tproperties: {direction},physical,terminal,\n\t32 bit float mono audio\n"
    )
}

#[test]
fn jack_lsp_lists_the_drivers_ports_with_all_details() {
    for (what, options, playback_frames) in [
        ("a cycle is played one cycle later", &["--quantum", "256"][..], 512),
        ("a cycle is played at its own end", &["--quantum", "256", "--sync"][..], 256),
    ] {
        let server = Server::start(options);
        server.run("jack_connect", &["system:capture_1", "system:playback_2"]).expect_success();
        let (capture, playback) = ("system:capture_1", "system:playback_2");
        let expected = [
            listed(capture, Some(playback), [playback_frames, 256], "output"),
            listed("system:capture_2", None, [0, 256], "output"),
            listed("system:playback_1", None, [playback_frames, 0], "input"),
            listed(playback, Some(capture), [playback_frames, 256], "input"),
        ];
        // Latencies follow a connection within a cycle or two.
        let found = harness::eventually(what, || {
            let found = server.lsp(&["-c", "-p", "-t", "-l"]);
            (found == expected.concat()).then_some(found)
        });
        assert_eq!(found, expected.concat(), "{what}");
        assert_eq!(server.lsp(&["playback"]), "system:playback_1\nsystem:playback_2\n", "{what}");
    }
}

#[test]
fn jack_connect_and_jack_disconnect_change_what_jack_lsp_shows() {
    let server = Server::timer(256);
    let ports = ["system:capture_1", "system:playback_2"];
    let unconnected = "system:capture_1\nsystem:capture_2\nsystem:playback_1\nsystem:playback_2\n";
    assert_eq!(server.lsp(&["-c"]), unconnected);
    server.run("jack_connect", &ports).expect_success();
    let connected = "system:capture_1\n   system:playback_2\nsystem:capture_2\nsystem:playback_1\n\
                     system:playback_2\n   system:capture_1\n";
    assert_eq!(server.lsp(&["-c"]), connected);

    let refused = |finished: Finished, why: &str| {
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains(why), "{finished:?}");
    };
    refused(server.run("jack_connect", &ports), "already connected");
    refused(
        server.run("jack_connect", &["system:nothing", "system:playback_2"]),
        "not a valid port",
    );
    assert_eq!(server.lsp(&["-c"]), connected);

    server.run("jack_disconnect", &ports).expect_success();
    assert_eq!(server.lsp(&["-c"]), unconnected);
    refused(server.run("jack_disconnect", &ports), "already disconnected");
}
