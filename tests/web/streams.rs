//! What the page shows of devices and streams, and how it controls them.

use std::time::Duration;

use harness::{Program, Server, Sound, binary, copy_program, eventually};
use serde_json::{Value, json};

use crate::http::{Events, ask, order};
use crate::served::{address_in, served, served_and_recorded};

const RATE_HZ: u32 = 48_000;
const SECRET: &str = "0123456789abcdef0123";

/// Plays a minute and a half of sound in two channels.
pub(crate) fn play(server: &Server, options: &[&str]) -> Program {
    let path = server.directory().join("song.wav");
    let channel = vec![0.25; 90 * RATE_HZ as usize];
    Sound::of(RATE_HZ, &[channel.clone(), channel]).write(&path);
    server.spawn_consort(&[&["play", &path.to_string_lossy()], options].concat())
}

fn add_device(server: &Server, name: &str) {
    server.consort(&["device", "add", "null", "--name", name]).expect_success();
}

/// The only stream, as `consort status` shows it.
fn stream(server: &Server) -> Value {
    server.consort_json(&["status"])["streams"][0].clone()
}

/// The only stream that the page shows.
fn shown(view: &Value) -> &Value {
    &view["streams"][0]
}

fn device<'a>(view: &'a Value, name: &str) -> &'a Value {
    let devices = view["devices"].as_array().expect("a list");
    devices.iter().find(|device| device["name"] == name).unwrap_or(&Value::Null)
}

fn await_playing(events: &mut Events) -> Value {
    events.await_event("streams", "the stream plays", |view| shown(view)["plays"] == true)
}

#[test]
fn the_page_sets_the_volume_of_a_stream_and_of_a_device() {
    let (server, address) = served(&["--driver", "timer", "--quantum", "1024"]);
    let _player = play(&server, &[]);
    let mut events = Events::of(address);
    let view = await_playing(&mut events);
    let found = shown(&view);
    assert_eq!(
        [&found["program"], &found["name"], &found["device"], &found["direction"]],
        ["consort play", "song.wav", "system", "playback"]
    );
    let number = found["number"].clone();
    let of = json!({ "stream": number });
    for command in [
        json!({ "volume": { "of": of, "factor": 0.5 } }),
        json!({ "mute": { "of": of, "muted": true } }),
        json!({ "volume": { "of": { "device": "system" }, "factor": 0.25 } }),
    ] {
        let done = order(address, &command);
        assert_eq!((done.status, done.body.as_str()), (200, "{}"), "{command}");
    }
    let found = stream(&server);
    assert_eq!((&found["volume"], &found["muted"]), (&json!(0.5), &json!(true)));
    let status = server.consort_json(&["status"]);
    assert_eq!((&status["device_volume"], &status["device_muted"]), (&json!(0.25), &json!(false)));
    events.await_event("streams", "all of it", |view| {
        let (stream, device) = (shown(view), device(view, "system"));
        [&stream["volume"], &stream["muted"], &device["volume"], &device["muted"]]
            == [&json!(0.5), &json!(true), &json!(0.25), &json!(false)]
    });
}

#[test]
fn a_volume_that_the_page_sets_is_heard() {
    let (server, address) = served_and_recorded(&["--driver", "timer", "--quantum", "1024"]);
    let player = play(&server, &[]);
    await_playing(&mut Events::of(address));
    // What is heard lasts a while each time.
    let hear = || std::thread::sleep(Duration::from_millis(300));
    hear();
    for of in [json!({ "stream": 1 }), json!({ "device": "system" })] {
        let command = json!({ "volume": { "of": of, "factor": 0.5 } });
        assert_eq!(order(address, &command).status, 200);
        hear();
    }
    player.terminate();
    eventually("the stream has ended", || stream(&server).is_null().then_some(()));
    let recorded = server.recorded();
    let levels = recorded.channels[0].chunk_by(|one, other| one == other);
    let lasting = levels.filter(|level| level[0] != 0.0 && level.len() >= 480);
    let mut lasting: Vec<f32> = lasting.map(|level| level[0]).collect();
    // A busy machine may interrupt one of them.
    lasting.dedup();
    assert_eq!(lasting, [0.25, 0.125, 0.0625]);
}

#[test]
fn the_page_moves_a_stream_to_another_device() {
    let (server, address) = served(&["--driver", "timer", "--quantum", "1024"]);
    add_device(&server, "other");
    let _player = play(&server, &[]);
    let mut events = Events::of(address);
    let number = shown(&await_playing(&mut events))["number"].clone();
    let mut move_to = |to: &str| {
        let moved = order(address, &json!({ "move": { "stream": number, "device": to } }));
        assert_eq!(moved.status, 200, "{}", moved.body);
        events.await_event("streams", "it plays there", |view| {
            shown(view)["device"] == to
                && shown(view)["plays"] == true
                && device(view, to)["state"] != "parked"
        });
    };
    move_to("other");
    assert_eq!(stream(&server)["device"], "other");
    move_to("system");
    assert_eq!(stream(&server)["device"], Value::Null);
}

#[test]
fn what_commands_and_programs_do_is_pushed_to_every_browser() {
    let (server, address) = served(&["--driver", "timer", "--quantum", "1024"]);
    add_device(&server, "other");
    let mut browsers = [Events::of(address), Events::of(address)];
    let mut both = |what: &str, is_wanted: &dyn Fn(&Value) -> bool| {
        for events in &mut browsers {
            events.await_event("streams", what, is_wanted);
        }
    };
    both("both devices sleep, and nobody plays", &|view| {
        device(view, "system")["state"] == "parked"
            && device(view, "other")["state"] == "parked"
            && view["streams"] == json!([])
    });
    let player = play(&server, &["--device", "other"]);
    both("it plays on the other device, which wakes for it", &|view| {
        let other = device(view, "other");
        shown(view)["plays"] == true
            && shown(view)["device"] == "other"
            && other["state"] == "deep"
            && other["awake_reason"].as_str().is_some_and(|why| why.contains("consort play"))
            && other["wake_ups_per_second"].as_f64() > Some(0.0)
            && device(view, "system")["state"] == "parked"
    });
    server.consort(&["mute", "1"]).expect_success();
    both("it is muted", &|view| shown(view)["muted"] == true);
    server.consort(&["volume", "device:other", "50%"]).expect_success();
    both("the device is turned down", &|view| device(view, "other")["volume"] == 0.5);
    player.terminate();
    both("it has ended, and its device sleeps", &|view| {
        view["streams"] == json!([]) && device(view, "other")["state"] == "parked"
    });
    server.consort(&["device", "remove", "other"]).expect_success();
    both("the device is gone", &|view| device(view, "other").is_null());
}

#[test]
fn while_all_devices_sleep_the_page_asks_nothing_about_them() {
    let (_server, address) = served(&["--driver", "timer", "--quantum", "1024"]);
    let mut events = Events::of(address);
    events.await_event("streams", "it sleeps", |view| device(view, "system")["state"] == "parked");
    // It may have been seen before it was noted as a change. In the three seconds after the first,
    // streams would be read three times while a device is awake.
    let mut lives = 0;
    while lives < 20 {
        let (name, data) = events.next().expect("an event");
        assert!(lives < 5 || name != "streams", "nothing has changed: {data}");
        lives += usize::from(name == "live");
    }
}

#[test]
fn commands_about_streams_that_cannot_be_obeyed_are_refused_with_a_reason() {
    let (server, address) = served(&["--driver", "timer", "--quantum", "1024"]);
    let _player = play(&server, &[]);
    await_playing(&mut Events::of(address));
    let volume = |of: Value, factor: f64| json!({ "volume": { "of": of, "factor": factor } });
    for (command, status, words) in [
        (volume(json!({ "stream": 99 }), 0.5), 409, "there is no stream 99"),
        (volume(json!({ "device": "none" }), 0.5), 409, "there is no device 'none'"),
        (
            volume(json!({ "stream": 1 }), 17.0),
            400,
            "17 is not a gain: it must be between 0 and 16",
        ),
        (volume(json!({ "stream": 1 }), -0.5), 400, "-0.5 is not a gain"),
        (volume(json!({ "stream": 1 }), 1e300), 400, ""),
        (volume(json!({ "stream": "1" }), 0.5), 400, "not a command"),
        (volume(json!(1), 0.5), 400, "not a command"),
        (json!({ "mute": { "of": { "stream": 1 }, "muted": "yes" } }), 400, "not a command"),
        (json!({ "mute": { "of": { "stream": 1 } } }), 400, "not a command"),
        (json!({ "move": { "stream": 1, "device": "none" } }), 409, "there is no device 'none'"),
        (json!({ "move": { "stream": 99, "device": "system" } }), 409, "there is no stream 99"),
    ] {
        let refused = order(address, &command);
        assert_eq!(refused.status, status, "{command}: {}", refused.body);
        assert!(refused.body.contains(words), "{command}: {}", refused.body);
    }
    let found = stream(&server);
    assert_eq!(
        (&found["volume"], &found["muted"], &found["device"]),
        (&json!(1.0), &json!(false), &Value::Null)
    );
}

#[test]
fn a_page_may_do_no_more_with_streams_than_its_own_process() {
    let directory = tempfile::TempDir::with_prefix("consort-policy-").expect("room");
    let policy = directory.path().join("policy");
    std::fs::write(&policy, "connect,play,record exe=*/page\neverything\n").expect("room");
    let policy = policy.to_string_lossy();
    let server = Server::start(&["--driver", "timer", "--quantum", "1024", "--policy", &policy]);
    add_device(&server, "other");
    let _player = play(&server, &[]);
    let program = server.directory().join("page");
    copy_program(binary("consort"), &program);
    std::fs::write(server.directory().join("token"), SECRET).expect("room");
    let mut command = server.command(&program.to_string_lossy());
    command.args(["web", "127.0.0.1:0", "--token-file", "token"]);
    let mut page = Program::start(command);
    let address = eventually("the page is announced", || {
        assert!(page.is_running(), "{}", page.stderr());
        address_in(page.stderr())
    });
    let bearer = format!("Bearer {SECRET}");
    let headers = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
    eventually("the stream is there", || (stream(&server)["plays"] == true).then_some(()));
    for (command, words) in [
        (
            json!({ "volume": { "of": { "stream": 1 }, "factor": 0.5 } }),
            "change the volume of another program's stream",
        ),
        (
            json!({ "mute": { "of": { "device": "system" }, "muted": true } }),
            "change the volume of a device",
        ),
        (json!({ "move": { "stream": 1, "device": "other" } }), "move another program's stream"),
    ] {
        let refused = ask(address, "POST", "/order", &headers, &command.to_string());
        assert_eq!(refused.status, 409, "{command}: {}", refused.body);
        assert!(refused.body.contains("policy"), "{}", refused.body);
        assert!(refused.body.contains(words), "{}", refused.body);
    }
    let found = stream(&server);
    assert_eq!((&found["volume"], &found["device"]), (&json!(1.0), &Value::Null));
    assert_eq!(server.consort_json(&["status"])["device_muted"], false);
}
