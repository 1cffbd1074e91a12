//! What programs ask about the server.

use crate::Scene;

#[test]
fn pactl_shows_the_server_and_its_sink() {
    let scene = Scene::new();
    let info = scene.pactl(&["info"]);
    for line in [
        "Server Protocol Version: 35",
        "Is Local: yes",
        "Server Name: consort",
        "Default Sample Specification: float32le 2ch 48000Hz",
        "Default Sink: consort\n",
        "Default Source: consort.monitor",
    ] {
        assert!(info.contains(line), "{line}: {info}");
    }
    let list = scene.pactl(&["list"]);
    for line in ["Sink #0", "Source #0", "Monitor of Sink: consort", "application.name = \"pactl\""]
    {
        assert!(list.contains(line), "{line}: {list}");
    }
    let sinks = scene.pactl(&["list", "short", "sinks"]);
    assert_eq!(sinks, "0\tconsort\tconsort\tfloat32le 2ch 48000Hz\tSUSPENDED\n");
    assert_eq!(scene.pactl(&["list", "short", "modules"]), "");
    assert_eq!(scene.pactl(&["list", "short", "cards"]), "");
    assert!(scene.pactl(&["stat"]).contains("Sample cache size: 0 B"));
    assert_eq!(scene.pactl(&["get-default-sink"]), "consort\n");
}

#[test]
fn what_is_not_there_is_an_error_of_pactl() {
    let scene = Scene::new();
    for (arguments, error) in [
        (&["load-module", "module-nothing"][..], "Module initialization failed"),
        (&["load-module", "module-null-sink", "rate=0"], "Module initialization failed"),
        (&["move-sink-input", "99", "consort"], "No such entity"),
        (&["unload-module", "7"], "No such entity"),
        (&["set-default-sink", "other"], "No such entity"),
        (&["exit"], "Not supported"),
    ] {
        let finished = scene.run("pactl", arguments);
        assert_eq!(finished.code, Some(1), "{arguments:?}");
        assert!(finished.stderr.contains(error), "{arguments:?}: {}", finished.stderr);
    }
    assert!(scene.pactl(&["info"]).contains("consort"));
}

#[test]
fn a_second_front_end_on_the_same_socket_is_refused() {
    let scene = Scene::new();
    let second = scene.server.consort(&["pulse"]);
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("another sound server listens on"), "{}", second.stderr);
    assert!(scene.pactl(&["info"]).contains("consort"));
}

#[test]
fn a_front_end_leaves_no_socket_behind_and_replaces_a_stale_one() {
    let mut scene = Scene::new();
    scene.front_end.signal(rustix::process::Signal::KILL);
    harness::eventually("it has ended", || (!scene.front_end.is_running()).then_some(()));
    assert!(scene.socket().exists());
    scene.front_end = scene.server.spawn_consort(&["pulse"]);
    harness::eventually("the next one answers", || {
        (scene.run("pactl", &["info"]).code == Some(0)).then_some(())
    });
    let socket = scene.socket();
    scene.front_end.terminate().expect_success();
    assert!(!socket.exists());
}

#[test]
fn without_a_server_the_front_end_says_how_to_start_one() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a directory");
    let mut command = harness::command_in(directory.path(), &harness::binary("consort"));
    command.arg("pulse");
    let finished = harness::Program::start(command).finish();
    assert_eq!(finished.code, Some(3));
    assert!(finished.stderr.contains("start one with"), "{}", finished.stderr);
}

#[test]
fn objects_that_take_messages_are_listed() {
    let scene = Scene::new();
    let list = scene.pactl(&["list", "message-handlers"]);
    assert_eq!(list, "Message Handler /core\n\tDescription: Core message handler\n");
    let sent = scene.pactl(&["send-message", "/core", "list-handlers"]);
    assert_eq!(sent, "[{\"name\":\"/core\",\"description\":\"Core message handler\"}]\n");
    for (arguments, reason) in [
        (["send-message", "/other", "list-handlers"], "No such entity"),
        (["send-message", "/core", "other"], "Missing implementation"),
        (["set-sink-port", "consort", "other"], "Missing implementation"),
        (["set-source-port", "consort.monitor", "other"], "Missing implementation"),
        (["set-sink-port", "none", "other"], "No such entity"),
        (["set-card-profile", "0", "other"], "No such entity"),
    ] {
        let refused = scene.run("pactl", &arguments);
        assert!(refused.stderr.contains(reason), "{arguments:?}: {}", refused.stderr);
    }
}
