//! Bar, beat and tempo of the position where the transport is stopped.

use harness::{Server, c_program, eventually};
use serde_json::{Value, json};

use crate::kept::{end_server, keeping};
use crate::metronome::saved;

/// Makes a program move the transport to [`place`].
fn move_transport(server: &Server) {
    let program = c_program("state/reposition.c");
    let moved = server.run(&program, &[]);
    assert_eq!(moved.code, Some(0), "{}", moved.stderr);
}

fn place() -> Value {
    json!({
        "rolling": false,
        "frame": 72_000,
        "bar_beat_tick": {
            "bar": 2, "beat": 1, "tick": 96, "bar_start_tick": 7680.0, "beats_per_bar": 4.0, "beat_type": 4.0,
            "ticks_per_beat": 1920.0, "beats_per_minute": 160.5
        }
    })
}

fn await_place(server: &Server, expected: &Value) {
    eventually("the transport stands there", || {
        (saved(server)["transport"] == *expected).then_some(())
    });
}

#[test]
fn bar_beat_and_tempo_are_saved_and_restored() {
    let first = Server::timer(256);
    move_transport(&first);
    await_place(&first, &place());
    let path = first.directory().join("song.json").to_string_lossy().into_owned();
    first.consort(&["save", &path]).expect_success();
    let second = Server::timer(256);
    second.consort(&["restore", &path]).expect_success();
    await_place(&second, &place());
    // They belong to that position only.
    second.consort(&["transport", "locate", "100"]).expect_success();
    await_place(&second, &json!({"rolling": false, "frame": 100}));
}

#[test]
fn the_next_server_with_the_state_file_has_its_tempo_again() {
    let mut server = keeping();
    move_transport(&server);
    await_place(&server, &place());
    for _ in 0..2 {
        end_server(&mut server);
        server.start_again();
        await_place(&server, &place());
    }
}
