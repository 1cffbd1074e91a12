//! `consort run --state`: devices and streams that come again have their volumes.

use harness::{Program, Server, Sound, eventually};
use serde_json::Value;

use crate::kept::{end_server, keeping};

/// A minute, as a file.
fn song(server: &Server) -> String {
    let path = server.directory().join("song.wav");
    Sound::of(48_000, &vec![vec![0.25; 60 * 48_000]; 2]).write(&path);
    path.to_string_lossy().into_owned()
}

/// Adds the device `other`, and plays a minute there.
fn player(server: &Server) -> Program {
    server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    let path = song(server);
    let player = server.spawn_consort(&["play", "--device", "other", &path]);
    eventually("it plays", || {
        let status = server.consort_json(&["status"]);
        (status["streams"][0]["plays"] == true).then_some(())
    });
    player
}

fn end(server: &Server, player: Program) {
    player.terminate();
    eventually("its stream has ended", || {
        let status = server.consort_json(&["status"]);
        status["streams"].as_array()?.is_empty().then_some(())
    });
}

/// The volumes of the device that drives, of the further one and of the stream, and whether each is
/// muted.
fn volumes(server: &Server) -> [(Value, Value); 3] {
    let status = server.consort_json(&["status"]);
    let (device, stream) = (&status["further_devices"][0], &status["streams"][0]);
    [
        (status["device_volume"].clone(), status["device_muted"].clone()),
        (device["volume"].clone(), device["muted"].clone()),
        (stream["volume"].clone(), stream["muted"].clone()),
    ]
}

fn set_all(server: &Server) -> [(Value, Value); 3] {
    for command in [
        &["volume", "device", "0.75"][..],
        &["volume", "device:other", "0.25"],
        &["mute", "device:other"],
        &["volume", "consort play", "0.5"],
        &["mute", "consort play"],
    ] {
        server.consort(command).expect_success();
    }
    [(0.75, false), (0.25, true), (0.5, true)]
        .map(|(volume, muted)| (Value::from(volume), Value::from(muted)))
}

#[test]
fn devices_and_streams_of_the_next_server_have_the_volumes_of_the_last() {
    let mut server = keeping();
    let first = player(&server);
    let set = set_all(&server);
    assert_eq!(volumes(&server), set);
    end(&server, first);
    for _ in 0..2 {
        end_server(&mut server);
        server.start_again();
        let again = player(&server);
        assert_eq!(volumes(&server), set);
        end(&server, again);
    }
}

#[test]
fn a_killed_server_has_written_volumes() {
    let mut server = keeping();
    let first = player(&server);
    let set = set_all(&server);
    let kept = server.directory().join("kept.json");
    eventually("they are written", || {
        let written: Value = serde_json::from_str(&std::fs::read_to_string(&kept).ok()?).ok()?;
        (written["stream_volumes"][0]["muted"] == true).then_some(())
    });
    // It would return by itself, with its own volume.
    first.terminate();
    server.kill();
    server.start_again();
    let _again = player(&server);
    assert_eq!(volumes(&server), set);
}

#[test]
fn two_streams_of_one_name_return_with_their_own_volumes() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a directory");
    let kept = directory.path().join("kept.json");
    let options = ["--driver", "timer", "--state", &kept.to_string_lossy()];
    let mut server = Server::start_in(directory, &options);
    let path = song(&server);
    let _players = [(); 2].map(|()| server.spawn_consort(&["play", &path]));
    // One that returns is there, with the volume of its name, before it has its own and plays.
    let all = |server: &Server| {
        let status = server.consort_json(&["status"]);
        let playing = status["streams"].as_array()?.iter().filter(|stream| stream["plays"] == true);
        let volumes: Vec<Value> = playing.map(|stream| stream["volume"].clone()).collect();
        (volumes.len() == 2).then_some(volumes)
    };
    eventually("both play", || all(&server));
    server.consort(&["volume", "2", "0.5"]).expect_success();
    eventually("it is written", || {
        std::fs::read_to_string(&kept).ok()?.contains("stream_volumes").then_some(())
    });
    server.kill();
    server.start_again();
    let mut volumes = eventually("both play again", || all(&server));
    volumes.sort_by(|one, other| one.as_f64().partial_cmp(&other.as_f64()).expect("numbers"));
    assert_eq!(volumes, [0.5, 1.0].map(Value::from));
}

#[test]
fn saved_volumes_are_restored_to_what_is_there() {
    let server = Server::timer(256);
    let player = player(&server);
    let set = set_all(&server);
    let path = server.directory().join("saved.json").to_string_lossy().into_owned();
    server.consort(&["save", &path]).expect_success();
    for command in [
        &["volume", "device", "1"][..],
        &["volume", "device:other", "1"],
        &["unmute", "device:other"],
        &["volume", "consort play", "1"],
        &["unmute", "consort play"],
    ] {
        server.consort(command).expect_success();
    }
    server.consort(&["restore", &path]).expect_success();
    assert_eq!(volumes(&server), set);
    end(&server, player);
    server.consort(&["restore", &path]).expect_success();
    server.consort(&["device", "remove", "other"]).expect_success();
    let refused = server.consort(&["restore", &path]);
    assert!(refused.stderr.contains("the volume of the device 'other'"), "{}", refused.stderr);
}
