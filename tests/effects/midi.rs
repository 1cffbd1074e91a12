//! The functions of MIDI buffers: what one process writes, another reads, and events that do not
//! fit are counted.

use harness::{Server, c_program, eventually};

#[test]
fn midi_events_reach_another_process_as_they_were_written() {
    let server = Server::timer(256);
    let program = c_program("effects/midi.c");
    let mut sender = server.spawn(&program, &["send"]);
    eventually("the sender has written", || {
        assert!(sender.is_running(), "{}", sender.stderr());
        sender.stdout().ends_with('\n').then_some(())
    });
    // -105 is -ENOBUFS, -22 -EINVAL.
    assert_eq!(
        sender.stdout(),
        "0, room for less: 1, reserved: 1, too long: -105, lost: 1, last frame: 0, later: -22\n"
    );
    let received = server.run(&program, &["receive"]).expect_success().stdout;
    assert_eq!(received, "at 1: 90 3c 64; at 2: f0 01 02 f7; at 255: 90 3c 64; beyond: -105\n");
}
