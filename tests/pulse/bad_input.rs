//! Programs that mean harm: they lose their own connection, and no other program notices.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use harness::{PATIENCE, eventually};

use crate::{RATE_HZ, Scene, compare, path, ramps};

/// A frame: its length as stated, its channel, its content.
pub(crate) fn frame(length: u32, channel: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend(channel.to_be_bytes());
    bytes.extend([0; 12]);
    bytes.extend(content);
    bytes
}

/// A packet of a command and its values.
pub(crate) fn packet(command: u32, values: &[u8]) -> Vec<u8> {
    let mut content = b"L".to_vec();
    content.extend(command.to_be_bytes());
    content.extend(b"L\0\0\0\x07");
    content.extend(values);
    frame(content.len() as u32, u32::MAX, &content)
}

pub(crate) fn auth() -> Vec<u8> {
    packet(8, &[&b"L\0\0\0\x23x\0\0\x01\0"[..], &[0; 256]].concat())
}

pub(crate) fn connect(scene: &Scene) -> UnixStream {
    let socket = UnixStream::connect(scene.socket()).expect("connected");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

/// Reads until the front end ends the connection; returns what it had sent.
pub(crate) fn read_to_end(mut socket: UnixStream) -> Vec<u8> {
    let mut sent = Vec::new();
    match socket.read_to_end(&mut sent) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    sent
}

/// A program that plays beside what is done meanwhile is heard sample for sample.
pub(crate) fn beside_a_player(meanwhile: impl Fn(&Scene)) {
    harness::in_three_attempts(|| {
        let scene = Scene::new();
        let sound = ramps(3 * RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        let player = scene.spawn("paplay", &[path(&file)]);
        eventually("it plays", || {
            scene.pactl(&["list", "short", "sinks"]).contains("RUNNING").then_some(())
        });
        meanwhile(&scene);
        player.finish().expect_success();
        compare(&scene.recorded(), &sound.channels)
    });
}

/// Sends bytes that are no frames, before a program is let in and after it.
fn send_no_frames(scene: &Scene) {
    for bytes in [
        frame(u32::MAX, u32::MAX, b""),
        frame(u32::MAX, 0, b""),
        frame(1 << 24, u32::MAX, b""),
        // Memory that was not agreed to.
        [0, 0, 0, 16, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0].to_vec(),
        frame(4, u32::MAX, b"none"),
        packet(8, b"L\0\0\0\x23x\xff\xff\xff\xff"),
    ] {
        let mut socket = connect(scene);
        socket.write_all(&bytes).expect("sent");
        read_to_end(socket);
        let mut socket = connect(scene);
        socket.write_all(&auth()).expect("sent");
        let _ = socket.write_all(&bytes);
        drop(socket);
    }
}

#[test]
fn bytes_that_are_no_frames_end_their_connection_alone() {
    beside_a_player(send_no_frames);
}

#[test]
fn what_is_refused_wakes_no_device() {
    let scene = Scene::new();
    eventually("the device sleeps", || {
        (scene.server.consort_json(&["status"])["device"] == "parked").then_some(())
    });
    let wake_ups = || scene.server.stream_connection().device().expect("a device").wake_ups;
    let before = wake_ups();
    send_no_frames(&scene);
    send_refused_commands(&scene);
    crate::refused::send_refused(&scene);
    let silent: Vec<_> = (0..50).map(|_| connect(&scene)).collect();
    drop(silent);
    // Beyond every limit: the rate, and the length of the buffer.
    for wrong in [["--rate=4000000000", "--raw"], ["--channels=33", "--raw"]] {
        assert_eq!(scene.run("pacat", &[&wrong[..], &["/dev/zero"]].concat()).code, Some(1));
    }
    scene.run("pactl", &["set-sink-volume", "nowhere", "50%"]);
    scene.run("pactl", &["load-module", "module-nonsense"]);
    assert_eq!(wake_ups(), before, "its thread sleeps on");
}

#[test]
fn an_unknown_command_is_refused_and_the_connection_stays() {
    send_refused_commands(&Scene::new());
}

fn send_refused_commands(scene: &Scene) {
    let mut socket = connect(scene);
    socket.write_all(&auth()).expect("sent");
    for (command, values, error) in [
        (200, &b""[..], 19_u8),
        (101, b"", 19),
        (53, b"", 19),
        (10, b"tsink", 7),
        (20, b"L\0\0\0\0", 7),
        // A time that is none.
        (14, b"L\0\0\0\0T\0\0\0\0\xff\xff\xff\xff", 7),
    ] {
        socket.write_all(&packet(command, values)).expect("sent");
        let refusal = loop {
            let mut head = [0; 20];
            socket.read_exact(&mut head).expect("an answer");
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let mut content = vec![0; length as usize];
            socket.read_exact(&mut content).expect("an answer");
            if content[4] == 0 {
                break content;
            }
        };
        let expected = [&b"L\0\0\0\0L\0\0\0\x07L\0\0\0"[..], &[error]].concat();
        assert_eq!(refusal, expected, "{command}");
    }
}

#[test]
fn connections_that_are_silent_or_stop_halfway_hold_up_no_other_program() {
    let scene = Scene::new();
    // More than one program may have.
    let silent: Vec<_> = (0..600).map(|_| connect(&scene)).collect();
    // The last ones are ended at once.
    let mut last = silent.last().expect("one");
    match last.read(&mut [0]) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    // Long before the time of the first is up.
    let mut first = &silent[0];
    first.set_nonblocking(true).expect("a socket");
    assert_eq!(first.read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    // Others have theirs.
    let sound = ramps(4800);
    let file = scene.file("short.wav", &sound);
    scene.run("paplay", &[path(&file)]).expect_success();
    drop(silent);
    let _halfway: Vec<_> = (0..50)
        .map(|cut| {
            let mut socket = connect(&scene);
            socket.write_all(&auth()[..cut]).expect("sent");
            socket
        })
        .collect();
    scene.run("paplay", &[path(&file)]).expect_success();
}

#[test]
fn a_program_that_does_not_authenticate_is_disconnected() {
    let scene = Scene::new();
    let socket = connect(&scene);
    assert_eq!(read_to_end(socket), b"");
}

#[test]
fn a_program_that_never_reads_is_disconnected_or_waits_and_no_other_notices() {
    beside_a_player(|scene| {
        let mut socket = connect(scene);
        socket.set_write_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        socket.write_all(&auth()).expect("sent");
        // Events for it, and lists that it does not read.
        socket.write_all(&packet(35, b"L\0\0\x02\xff")).expect("sent");
        for _ in 0..200_000 {
            if socket.write_all(&packet(22, b"")).is_err() {
                break;
            }
        }
        assert!(scene.pactl(&["info"]).contains("consort"));
    });
}

/// A request to open a stream.
pub(crate) fn opened() -> Vec<u8> {
    // 16-bit stereo at 48 kHz, corked, with the usual buffer.
    const STREAM: &[u8] = b"a\x03\x02\0\0\xbb\x80m\x02\x01\x02L\xff\xff\xff\xffN\
        L\xff\xff\xff\xff1L\xff\xff\xff\xffL\xff\xff\xff\xffL\xff\xff\xff\xff\
        L\0\0\0\0v\x02\0\x01\0\0\0\x01\0\x00000000000PN0000000B\0";
    packet(3, STREAM)
}

/// Requests to open the stream that a connection opens as this one, and to delete it.
fn opened_and_deleted(channel: u32) -> Vec<u8> {
    let delete = packet(4, &[b"L", &channel.to_be_bytes()[..]].concat());
    [opened(), delete].concat()
}

/// Counts the requests of a connection that are done, until the connection ends.
fn count_answers(socket: &UnixStream, answered: &AtomicU32) {
    let mut socket = BufReader::new(socket);
    let mut head = [0; 20];
    while socket.read_exact(&mut head).is_ok() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let mut content = vec![0; length as usize];
        if socket.read_exact(&mut content).is_err() {
            return;
        }
        answered.fetch_add((content[..5] == *b"L\0\0\0\x02").into(), Ordering::Relaxed);
    }
}

#[test]
fn slow_requests_on_many_connections_hold_up_no_other_program() {
    const STREAMS: u32 = 300;
    beside_a_player(|scene| {
        let requests: Vec<u8> = (0..STREAMS).flat_map(opened_and_deleted).collect();
        let sockets: Vec<_> = (0..16)
            .map(|_| {
                let mut socket = connect(scene);
                socket.write_all(&auth()).expect("sent");
                socket.write_all(&requests).expect("sent");
                socket
            })
            .collect();
        let answered = AtomicU32::new(0);
        thread::scope(|threads| {
            for socket in &sockets {
                threads.spawn(|| count_answers(socket, &answered));
            }
            assert!(scene.pactl(&["info"]).contains("consort"));
            let before = answered.load(Ordering::Relaxed);
            for socket in &sockets {
                socket.shutdown(Shutdown::Both).expect("connected");
            }
            // Two requests for each stream, of sixteen programs.
            assert!(before > 0, "they are served as well");
            assert!(before < 16 * STREAMS, "all others waited for {before} requests");
        });
    });
}
