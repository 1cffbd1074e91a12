//! What a server without a device for streams says.

use harness::Server;

use crate::{file, play, ramps};

#[test]
fn a_driver_that_plays_no_streams_says_so() {
    for options in [&["--loop"][..], &["--driver", "file", "--output", "/dev/null"]] {
        let server = Server::start(options);
        let path = file(&server, "short.wav", &ramps(480));
        let finished = play(&server, &path, &[]).finish();
        assert_eq!(finished.code, Some(1), "{options:?}");
        assert!(finished.stderr.contains("plays no streams yet"), "{}", finished.stderr);
    }
}

#[test]
fn a_file_that_is_none_is_refused_before_the_server_is_asked() {
    let server = Server::start(&["--driver", "timer"]);
    let path = server.directory().join("text.wav");
    std::fs::write(&path, "no sound").expect("written");
    let finished = play(&server, &path, &[]).finish();
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("not a sound file"), "{}", finished.stderr);
    let missing = play(&server, &server.directory().join("none.wav"), &[]).finish();
    assert!(missing.stderr.contains("there is no sound file"), "{}", missing.stderr);
}
