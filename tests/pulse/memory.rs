//! Samples in blocks of memory that programs share, and programs that mean harm with them.

use std::fs;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use harness::eventually;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::bad_input::{beside_a_player, connect, frame, packet, read_to_end};
use crate::{RATE_HZ, Scene, compare, path, ramps};

/// The memory that programs share with the front end.
fn shared_memory(scene: &Scene) -> usize {
    let directory = format!("/proc/{}/fd", scene.front_end.id());
    let links = fs::read_dir(directory).expect("it runs").filter_map(|entry| {
        let link = fs::read_link(entry.ok()?.path()).ok()?;
        Some(link.to_string_lossy().starts_with("/memfd:pulseaudio"))
    });
    links.filter(|is_shared| *is_shared).count()
}

/// Bytes that the front end has read from files and memory, not from sockets.
fn bytes_read(scene: &Scene) -> u64 {
    let io = fs::read_to_string(format!("/proc/{}/io", scene.front_end.id()));
    let io = io.expect("it runs");
    let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.expect("a count").parse().expect("a number")
}

#[test]
fn a_player_passes_its_samples_in_memory_blocks() {
    // More than is queued at once.
    let sound = ramps(7 * RATE_HZ as usize);
    harness::in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("played.wav", &sound);
        let before = bytes_read(&scene);
        let player = scene.spawn("paplay", &[path(&file)]);
        eventually("its memory is here", || (shared_memory(&scene) == 1).then_some(()));
        player.finish().expect_success();
        // Two channels of 16 bits.
        let through_memory = bytes_read(&scene) - before;
        assert!(through_memory >= 4 * sound.channels[0].len() as u64, "{through_memory} bytes");
        eventually("its memory is closed", || (shared_memory(&scene) == 0).then_some(()));
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn a_player_without_shared_memory_is_heard_the_same() {
    let sound = ramps(3 * RATE_HZ as usize);
    harness::in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("played.wav", &sound);
        let config = scene.server.directory().join("client.conf");
        fs::write(&config, "enable-shm = no\n").expect("written");
        let before = bytes_read(&scene);
        let variable = format!("PULSE_CLIENTCONFIG={}", path(&config));
        scene.run("env", &[&variable, "paplay", path(&file)]).expect_success();
        assert!(bytes_read(&scene) - before < sound.channels[0].len() as u64);
        compare(&scene.recorded(), &sound.channels)
    });
}

/// A program that was answered that it may share memory.
fn sharing(scene: &Scene) -> UnixStream {
    let mut socket = connect(scene);
    let auth = packet(8, &[&b"L\xC0\0\0\x23x\0\0\x01\0"[..], &[0; 256]].concat());
    socket.write_all(&auth).expect("sent");
    let mut answer = [0; 35];
    socket.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer[30..], *b"L\xC0\0\0\x23");
    socket
}

/// Sends a packet that registers what a descriptor is about.
fn register(socket: &UnixStream, number: u32, descriptor: BorrowedFd<'_>) -> Result<(), ErrorKind> {
    let bytes = packet(103, &[b"L", &number.to_be_bytes()[..]].concat());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL);
    sent.map(drop).map_err(|errno| errno.kind())
}

/// A frame about a block of 100 bytes.
fn block(number: u32, segment: u32) -> Vec<u8> {
    let mut bytes = frame(16, 0, &[number, segment, 0, 100].map(u32::to_be_bytes).concat());
    bytes[16..20].copy_from_slice(&0xA000_0000_u32.to_be_bytes());
    bytes
}

fn memory(bytes: u64) -> OwnedFd {
    let memfd = memfd_create("pulseaudio", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&memfd, bytes).expect("memory");
    memfd
}

/// Asks for statistics, and waits until the answer has come.
fn is_answered(socket: &mut UnixStream) -> bool {
    socket.write_all(&packet(13, b"")).is_ok() && socket.read_exact(&mut [0; 55]).is_ok()
}

/// A socket whose close lasts an hour, and its other end.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let mut socket = TcpStream::connect(listener.local_addr().expect("bound")).expect("connects");
    let (other, _) = listener.accept().expect("accepts");
    set_socket_linger(&socket, Some(Duration::from_secs(3600))).expect("an option");
    socket.set_nonblocking(true).expect("an option");
    while socket.write(&[0; 65_536]).is_ok() {}
    (socket, other)
}

#[test]
fn memory_that_is_cut_short_ends_its_connection_alone() {
    beside_a_player(|scene| {
        let (mut socket, memfd) = (sharing(scene), memory(4096));
        register(&socket, 1, memfd.as_fd()).expect("sent");
        socket.write_all(&block(7, 1)).expect("sent");
        assert!(is_answered(&mut socket));
        ftruncate(&memfd, 99).expect("cut");
        socket.write_all(&block(8, 1)).expect("sent");
        read_to_end(socket);
    });
}

#[test]
fn a_thousand_segments_are_too_many_for_their_connection_alone() {
    beside_a_player(|scene| {
        eventually("the player's is there alone", || (shared_memory(scene) == 1).then_some(()));
        let socket = sharing(scene);
        let memfd = memory(4096);
        // It may have ended at any of them.
        let registered = (0..1000)
            .map(|number| register(&socket, number, memfd.as_fd()))
            .take_while(Result::is_ok);
        let _ = registered.count();
        read_to_end(socket);
        eventually("they are closed", || (shared_memory(scene) == 1).then_some(()));
    });
}

#[test]
fn what_is_no_memory_ends_its_connection_alone() {
    beside_a_player(|scene| {
        let (one, _other) = UnixStream::pair().expect("sockets");
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let file = fs::File::open("/proc/self/exe").expect("a file");
        for descriptor in [one.as_fd(), reader.as_fd(), file.as_fd(), memory(0).as_fd()] {
            let socket = sharing(scene);
            register(&socket, 1, descriptor).expect("sent");
            read_to_end(socket);
        }
        // Before it may.
        let socket = connect(scene);
        register(&socket, 1, memory(4096).as_fd()).expect("sent");
        read_to_end(socket);
    });
}

#[test]
fn descriptors_whose_close_lasts_hold_up_no_other_program() {
    beside_a_player(|scene| {
        let others = [0, 1, 2].map(|turn| {
            let (socket, other) = lingering();
            let mut program = sharing(scene);
            if turn == 1 {
                // What follows is never received.
                program.write_all(b"no frame, whatever it says").expect("sent");
            }
            let _ = register(&program, 1, socket.as_fd());
            let _ = register(&program, 2, socket.as_fd());
            // The last one to close it waits.
            std::thread::spawn(move || drop(socket));
            other
        });
        // No program is started meanwhile: it would have the sockets until its own code runs.
        assert!(is_answered(&mut sharing(scene)));
        drop(others);
    });
}

#[test]
fn blocks_that_are_released_or_taken_back_twice_change_nothing() {
    let scene = Scene::new();
    let (mut socket, memfd) = (sharing(&scene), memory(4096));
    register(&socket, 1, memfd.as_fd()).expect("sent");
    for flags in [0x4000_0000_u32, 0xC000_0000].map(u32::to_be_bytes) {
        let mut frame = frame(0, u32::MAX, b"");
        frame[16..20].copy_from_slice(&flags);
        for _ in 0..2 {
            socket.write_all(&frame).expect("sent");
        }
    }
    assert!(is_answered(&mut socket));
}

#[test]
fn a_block_may_be_sent_twice_and_is_released_each_time() {
    let scene = Scene::new();
    let (mut socket, memfd) = (sharing(&scene), memory(4096));
    register(&socket, 1, memfd.as_fd()).expect("sent");
    for _ in 0..2 {
        socket.write_all(&block(77, 1)).expect("sent");
    }
    socket.write_all(&packet(13, b"")).expect("sent");
    let mut releases = [0; 40];
    socket.read_exact(&mut releases).expect("releases come before the next packet");
    let release = [0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 77, 0, 0, 0, 0, 0x40, 0, 0, 0];
    assert_eq!(releases, [release, release].concat()[..]);
    socket.read_exact(&mut [0; 55]).expect("the answer");
}
