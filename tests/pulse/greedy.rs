//! Programs that take memory and time of the front end without end: others are not concerned.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use harness::eventually;

use crate::bad_input::{auth, connect, frame, opened, packet};
use crate::{RATE_HZ, Scene, compare, path, ramps};

/// A connection that was let in, and has taken the answer to that.
fn let_in(scene: &Scene) -> UnixStream {
    let mut socket = connect(scene);
    socket.write_all(&auth()).expect("sent");
    read_packet(&mut socket).expect("let in");
    socket
}

/// Reads a frame; returns its content.
fn read_packet(socket: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut head = [0; 20];
    socket.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    let mut content = vec![0; length as usize];
    socket.read_exact(&mut content)?;
    Ok(content)
}

/// Reads what comes until the connection ends; returns how many frames that were.
fn read_all(socket: &mut UnixStream) -> usize {
    std::iter::from_fn(|| read_packet(socket).ok()).count()
}

fn has_ended(mut socket: &UnixStream) -> bool {
    socket.set_nonblocking(true).expect("a socket");
    match socket.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

#[test]
fn packets_that_never_end_are_kept_as_far_as_one_program_has_room() {
    const CONNECTIONS: usize = 40;
    /// Of 16 MiB for one program.
    const MOST: usize = 16;
    let scene = Scene::new();
    // A megabyte, but for its last byte.
    let packet = frame(1 << 20, u32::MAX, &vec![0; (1 << 20) - 1]);
    let sockets: Vec<UnixStream> = (0..CONNECTIONS)
        .map(|_| {
            let mut socket = let_in(&scene);
            // One that is ended meanwhile does not take all of it.
            let _ = socket.write_all(&packet);
            socket
        })
        .collect();
    let ended = || sockets.iter().filter(|socket| has_ended(socket)).count();
    eventually("those beyond are ended", || (ended() >= CONNECTIONS - MOST).then_some(()));
    assert!(scene.pactl(&["info"]).contains("consort"));
    assert!(ended() < CONNECTIONS, "not more than necessary");
}

/// A request to record the monitor as the most bytes that there can be: 32 channels at 384 kHz, in
/// pieces of one frame.
fn costly_recording() -> Vec<u8> {
    const CHANNELS: u8 = 32;
    /// The first of the protocol's auxiliary positions.
    const AUX: u8 = 12;
    let map: Vec<u8> = (AUX..AUX + CHANNELS).collect();
    let volume = 0x1_0000_u32.to_be_bytes().repeat(CHANNELS.into());
    let values = [
        &b"a\x05\x20\x00\x05\xdc\x00m\x20"[..],
        &map,
        b"L\xff\xff\xff\xffNL\xff\xff\xff\xff0L\0\0\0\x80000000000PNL\xff\xff\xff\xff000B\0v\x20",
        &volume,
        b"00000",
    ];
    packet(5, &values.concat())
}

#[test]
fn recorders_that_are_costly_hold_up_no_other_program() {
    // Four times as many as there is time for in a debug build.
    const STREAMS: usize = 16;
    let sound = ramps(2 * RATE_HZ as usize);
    harness::in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("played.wav", &sound);
        // One that has something to take is not read from, so each has a connection.
        let sockets: Vec<UnixStream> = (0..STREAMS)
            .map(|_| {
                let mut socket = let_in(&scene);
                socket.write_all(&costly_recording()).expect("sent");
                let reply = read_packet(&mut socket).expect("an answer");
                assert_eq!(reply[..5], *b"L\0\0\0\x02", "it records");
                socket
            })
            .collect();
        scene.run("paplay", &["--latency-msec=300", path(&file)]).expect_success();
        drop(sockets);
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn a_mixer_that_stands_still_is_not_disconnected_by_a_program_that_changes_its_stream() {
    // Their events would be more than what waits for a program at most.
    const CHANGES: usize = 120_000;
    let scene = Scene::new();
    let mut mixer = let_in(&scene);
    mixer.write_all(&packet(35, b"L\0\0\x02\xff")).expect("sent");
    read_packet(&mut mixer).expect("subscribed");
    let mut socket = let_in(&scene);
    thread::scope(|threads| {
        let mut reader = socket.try_clone().expect("a descriptor");
        let answers = threads.spawn(move || read_all(&mut reader));
        socket.write_all(&opened()).expect("sent");
        let cork = |is_corked: u8| packet(41, &[b"L\0\0\0\0", &[is_corked][..]].concat());
        let both = [cork(b'1'), cork(b'0')].concat();
        for _ in 0..CHANGES / 1000 {
            socket.write_all(&both.repeat(500)).expect("sent");
        }
        // After all that was asked before.
        socket.write_all(&packet(4, b"L\0\0\0\0")).expect("sent");
        eventually("all is done", || {
            scene.pactl(&["list", "short", "sink-inputs"]).is_empty().then_some(())
        });
        socket.shutdown(Shutdown::Both).expect("connected");
        assert!(answers.join().expect("no panic") > CHANGES);
    });
    mixer.write_all(&packet(20, b"")).expect("it is connected");
    let before = std::iter::from_fn(|| read_packet(&mut mixer).ok())
        .take_while(|content| content[..5] != *b"L\0\0\0\x02")
        .count();
    assert!((1..CHANGES).contains(&before), "{before} events");
}
