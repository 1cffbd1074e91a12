//! Rings of messages in shared memory, and programs that mean harm with them.

use std::fs;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::eventually;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{pread, pwrite, write};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Signal;

use crate::bad_input::{beside_a_player, connect, frame, packet, read_to_end};
use crate::{RATE_HZ, Scene, compare, path, ramps};

/// Bytes of a descriptor.
const DESCRIPTOR: usize = 20;
/// The program's count of the bytes that it has sent, and the first of them, from the beginning of
/// the memory.
const COUNT_AT: u64 = 64;
const BYTES_AT: u64 = 128;
/// Not 0: a program need not ring.
const RUNG_AT: u64 = 76;

#[test]
fn a_program_that_plays_on_sends_by_rings_and_is_heard_the_same() {
    let sound = ramps(7 * RATE_HZ as usize);
    harness::in_three_attempts(|| {
        let scene = Scene::new();
        let file = scene.file("played.wav", &sound);
        let player = scene.spawn("paplay", &[path(&file)]);
        let maps = format!("/proc/{}/maps", player.id());
        eventually("it has rings", || {
            let maps = fs::read_to_string(&maps).expect("it plays");
            maps.contains("/memfd:consort-messages").then_some(())
        });
        // It asks for the time, and nobody ever reads what it writes when it rings.
        eventually("it rings", || {
            player.signal(Signal::USR1);
            has_been_rung(&scene).then_some(())
        });
        player.finish().expect_success();
        compare(&scene.recorded(), &sound.channels)
    });
}

/// Whether a program has written an eventfd of the front end.
fn has_been_rung(scene: &Scene) -> bool {
    let directory = format!("/proc/{}/fdinfo", scene.front_end.id());
    let mut infos = fs::read_dir(directory).expect("it runs").filter_map(|entry| {
        let info = fs::read_to_string(entry.ok()?.path()).ok()?;
        let count = info.lines().find_map(|line| line.strip_prefix("eventfd-count:"))?;
        Some(count.trim() != "0")
    });
    infos.any(|is_rung| is_rung)
}

/// A program that was offered rings.
struct Offered {
    socket: UnixStream,
    memory: OwnedFd,
    eventfd: OwnedFd,
}

impl Offered {
    /// Plays silence until it is offered rings.
    fn new(scene: &Scene) -> Self {
        // 16-bit stereo at 48 kHz, a tenth of a second.
        const STREAM: &[u8] = b"a\x03\x02\0\0\xbb\x80m\x02\x01\x02L\xff\xff\xff\xffN\
            L\xff\xff\xff\xff0L\0\0\x4b\0L\xff\xff\xff\xffL\xff\xff\xff\xff\
            L\0\0\0\0v\x02\0\x01\0\0\0\x01\0\x00000000000PN0000000B\0";
        let mut socket = connect(scene);
        let auth = packet(8, &[&b"L\xC0\0\0\x23x\0\0\x01\0"[..], &[0; 256]].concat());
        socket.write_all(&auth).expect("sent");
        socket.write_all(&packet(3, STREAM)).expect("sent");
        socket.write_all(&samples(19_200)).expect("sent");
        let (mut came, mut descriptors) = (Vec::new(), Vec::new());
        loop {
            let frames = take_frames(&mut came);
            // What is asked for comes behind the command and the number of the stream.
            for asked in frames.iter().filter(|frame| frame.starts_with(b"L\0\0\0\x3d")) {
                let bytes = u32::from_be_bytes(asked[16..20].try_into().expect("four"));
                socket.write_all(&samples(bytes)).expect("sent");
            }
            let is_place = |frame: &Vec<u8>| frame.len() == 16;
            if descriptors.len() == 3 && frames.iter().any(is_place) {
                break;
            }
            receive(&socket, &mut came, &mut descriptors);
        }
        let [memory, eventfd, _other] = descriptors.try_into().expect("three");
        Self { socket, memory, eventfd }
    }

    /// Puts bytes into the ring, and states any number of them.
    fn put(&self, bytes: &[u8], stated: u32) {
        pwrite(&self.memory, bytes, BYTES_AT).expect("written");
        pwrite(&self.memory, &stated.to_ne_bytes(), COUNT_AT).expect("written");
    }

    fn accept(&mut self) {
        let accepted = frame(10, u32::MAX, b"L\0\0\0\x65L\0\0\0\x01");
        self.socket.write_all(&accepted).expect("sent");
    }
}

fn samples(bytes: u32) -> Vec<u8> {
    frame(bytes, 0, &vec![0; bytes as usize])
}

/// Removes whole frames; returns what they contain.
fn take_frames(bytes: &mut Vec<u8>) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some(length) = bytes.first_chunk::<4>() {
        let end = DESCRIPTOR + u32::from_be_bytes(*length) as usize;
        if bytes.len() < end {
            break;
        }
        let frame: Vec<u8> = bytes.drain(..end).collect();
        frames.push(frame[DESCRIPTOR..].to_vec());
    }
    frames
}

fn receive(socket: &UnixStream, bytes: &mut Vec<u8>, descriptors: &mut Vec<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut room = [0; 4096];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut room)], &mut control, flags);
    let count = received.expect("received").bytes;
    assert!(count > 0, "it was disconnected");
    bytes.extend_from_slice(&room[..count]);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
}

/// Waits for the answer to the only request.
fn expect_answer(program: &Offered) {
    let (mut came, mut descriptors) = (Vec::new(), Vec::new());
    loop {
        let is_answer = |frame: &Vec<u8>| frame.starts_with(b"L\0\0\0\x02L\0\0\0\x07");
        if take_frames(&mut came).iter().any(is_answer) {
            return;
        }
        receive(&program.socket, &mut came, &mut descriptors);
    }
}

#[test]
fn what_a_program_sends_by_its_socket_comes_before_what_it_sends_by_its_ring() {
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    // Half of a request, and the rest of it.
    let statistics = packet(13, b"");
    let (by_socket, by_ring) = statistics.split_at(11);
    program.put(by_ring, by_ring.len() as u32);
    program.accept();
    program.socket.write_all(by_socket).expect("sent");
    expect_answer(&program);
}

#[test]
fn a_program_that_rings_is_heard_though_nothing_else_happens() {
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    program.accept();
    let listens = || {
        let mut rung = [0; 4];
        pread(&program.memory, &mut rung, RUNG_AT).expect("read");
        rung == [0; 4]
    };
    eventually("it listens", || listens().then_some(()));
    // The stream has ended long since, and the front end sleeps.
    thread::sleep(Duration::from_secs(1));
    let statistics = packet(13, b"");
    program.put(&statistics, statistics.len() as u32);
    assert!(listens(), "the program has to ring");
    pwrite(&program.memory, &1_u32.to_ne_bytes(), RUNG_AT).expect("written");
    write(&program.eventfd, &1_u64.to_ne_bytes()).expect("room");
    // The device goes to sleep some seconds later, which wakes the front end as well.
    program.socket.set_read_timeout(Some(Duration::from_secs(3))).expect("an option");
    expect_answer(&program);
}

#[test]
fn a_count_of_more_than_the_ring_holds_ends_its_connection_alone() {
    beside_a_player(|scene| {
        for lie in [16_321, u32::MAX] {
            let mut program = Offered::new(scene);
            program.put(b"", lie);
            program.accept();
            read_to_end(program.socket);
        }
    });
}

#[test]
fn a_program_that_rings_without_end_holds_up_no_other_program() {
    beside_a_player(|scene| {
        let mut program = Offered::new(scene);
        program.accept();
        // Who reads it when it is empty, or writes it when it is full, waits from now on.
        let flags = fcntl_getfl(&program.eventfd).expect("an eventfd");
        fcntl_setfl(&program.eventfd, flags & !OFlags::NONBLOCK).expect("an eventfd");
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    write(&program.eventfd, &1_u64.to_ne_bytes()).expect("room");
                }
            });
            for _ in 0..20 {
                assert!(scene.pactl(&["info"]).contains("consort"));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        // Fill it up.
        rustix::io::read(&program.eventfd, &mut [0; 8]).expect("it was written");
        write(&program.eventfd, &(u64::MAX - 1).to_ne_bytes()).expect("room");
        assert!(scene.pactl(&["info"]).contains("consort"));
        rustix::io::read(&program.eventfd, &mut [0; 8]).expect("it was written");
        assert!(scene.pactl(&["info"]).contains("consort"));
    });
}

#[test]
fn a_program_that_hangs_up_with_rings_is_forgotten() {
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    program.accept();
    program.socket.shutdown(std::net::Shutdown::Write).expect("connected");
    program.socket.read_to_end(&mut Vec::new()).expect("it is disconnected");
    eventually("it is forgotten", || {
        scene.pactl(&["list", "short", "sink-inputs"]).is_empty().then_some(())
    });
}
