//! Rings of messages in shared memory, and programs that mean harm with them.

use std::collections::VecDeque;
use std::fs;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use harness::eventually;
use rt::shm::{MessagePeer, MessageRings};
use rustix::fs::{FallocateFlags, OFlags, fallocate, fcntl_getfl, fcntl_setfl};
use rustix::io::write;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Signal;
use sys::memory::{Access, Segment, SegmentRequirements, Shared};

use crate::bad_input::{beside_a_player, connect, frame, packet, read_to_end};
use crate::{RATE_HZ, Scene, compare, path, ramps};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 20;

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
        u64::from_str_radix(count.trim(), 16).ok()
    });
    // One that the front end is about to read has 1.
    infos.any(|count| count > 1)
}

/// A program that was offered rings, and has mapped them.
struct Offered {
    socket: UnixStream,
    segment: Segment,
    rings: Shared<MessageRings>,
    end: MessagePeer,
    eventfds: [OwnedFd; 2],
    /// Bytes that are no whole frame, and what frames before them contain.
    came: Vec<u8>,
    frames: VecDeque<Vec<u8>>,
}

/// Requests whose frames are a whole number of words.
const REQUESTS: usize = 4;

impl Offered {
    /// Plays silence until it is offered rings.
    fn new(scene: &Scene) -> Self {
        // 16-bit stereo at 48 kHz, a tenth of a second.
        const STREAM: &[u8] = b"a\x03\x02\0\0\xbb\x80m\x02\x01\x02L\xff\xff\xff\xffN\
            L\xff\xff\xff\xff0L\0\0\x4b\0L\xff\xff\xff\xffL\xff\xff\xff\xff\
            L\0\0\0\0v\x02\0\x01\0\0\0\x01\0\x00000000000PN0000000B\0";
        let mut socket = connect(scene);
        socket.set_read_timeout(Some(PATIENCE)).expect("an option");
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
        let [memory, eventfd, other] = descriptors.try_into().expect("three");
        let wanted = SegmentRequirements::exactly(size_of::<MessageRings>() as u64);
        let segment = Segment::receive(memory, &wanted).expect("memory");
        let rings = Shared::open(&segment, Access::Writable).expect("rings");
        let (end, eventfds) = (MessagePeer::default(), [eventfd, other]);
        let frames = VecDeque::new();
        Self { socket, segment, rings, end, eventfds, came, frames }
    }

    /// Sends requests by the ring; returns whether the eventfd is to be written.
    fn request(&mut self) -> bool {
        let requests = packet(13, b"").repeat(REQUESTS);
        let words = requests.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word));
        let words: Vec<u32> = words.collect();
        let (sent, is_to_ring) = self.end.send(&self.rings, &words);
        assert_eq!(sent, words.len());
        is_to_ring
    }

    fn ring(&self) {
        write(&self.eventfds[0], &1_u64.to_ne_bytes()).expect("room");
    }

    fn accept(&mut self) {
        self.socket.write_all(&accepted()).expect("sent");
    }

    /// Accepts, and has the front end read from the ring alone.
    fn begin(&mut self) {
        self.accept();
        if self.request() {
            self.ring();
        }
        self.expect_answers(REQUESTS);
    }

    /// Returns what the next frame contains.
    fn next_frame(&mut self) -> Vec<u8> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return frame;
            }
            receive(&self.socket, &mut self.came, &mut Vec::new());
            self.frames.extend(take_frames(&mut self.came));
        }
    }

    /// Waits for this many answers to requests.
    fn expect_answers(&mut self, count: usize) {
        let answer = b"L\0\0\0\x02L\0\0\0\x07";
        (0..count).for_each(|_| while !self.next_frame().starts_with(answer) {});
    }
}

fn accepted() -> Vec<u8> {
    frame(10, u32::MAX, b"L\0\0\0\x65L\0\0\0\x01")
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

#[test]
fn what_a_program_sends_by_its_socket_comes_before_what_it_sends_by_its_ring() {
    /// More than is read at once.
    const BY_SOCKET: usize = 100;
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    // The end of a request is in the ring before its beginning is sent.
    let request = packet(13, b"");
    let (by_socket, by_ring) = request.split_at(request.len() - 4);
    let word = u32::from_ne_bytes(by_ring.try_into().expect("a word"));
    assert_eq!(program.end.send(&program.rings, &[word]).0, 1);
    let sent = [&accepted()[..], &request.repeat(BY_SOCKET), by_socket].concat();
    program.socket.write_all(&sent).expect("sent");
    program.expect_answers(BY_SOCKET + 1);
}

#[test]
fn the_memory_of_rings_keeps_its_pages_once_it_is_read() {
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    let discard = |program: &Offered| {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(program.segment.fd(), flags, 7 * 4096, 4096)
    };
    discard(&program).expect("it is not read yet");
    program.begin();
    assert_eq!(discard(&program), Err(rustix::io::Errno::PERM));
}

#[test]
fn a_program_that_rings_is_heard_though_nothing_else_happens() {
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    program.begin();
    // The stream has ended long since, and the front end sleeps.
    thread::sleep(Duration::from_secs(1));
    assert!(program.request(), "the program has to ring");
    program.ring();
    // The device goes to sleep some seconds later, which wakes the front end as well.
    program.socket.set_read_timeout(Some(Duration::from_secs(3))).expect("an option");
    program.expect_answers(REQUESTS);
}

#[test]
fn a_program_that_waits_for_room_in_its_ring_is_woken() {
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    program.begin();
    // A frame of samples that is longer than the ring, for a stream that there is not.
    let mut samples = frame(40_000, 9, &[0; 40_000]);
    samples.extend(packet(13, b"").repeat(REQUESTS));
    let words = samples.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word));
    let (words, mut sent) = (words.collect::<Vec<u32>>(), 0);
    loop {
        let (count, is_to_ring) = program.end.send(&program.rings, &words[sent..]);
        sent += count;
        if is_to_ring {
            program.ring();
        }
        if sent == words.len() {
            break;
        }
        // As libpulse does: until there is room, and its socket says so.
        while !program.next_frame().is_empty() {}
    }
    program.expect_answers(REQUESTS);
}

#[test]
fn a_count_of_more_than_the_ring_holds_ends_its_connection_alone() {
    beside_a_player(|scene| {
        for lie in [16_321, u32::MAX] {
            let mut program = Offered::new(scene);
            program.begin();
            program.end.lie(&program.rings, lie);
            program.ring();
            read_to_end(program.socket);
        }
    });
}

#[test]
fn a_program_that_rings_without_end_holds_up_no_other_program() {
    beside_a_player(|scene| {
        let mut program = Offered::new(scene);
        program.begin();
        // Who reads one when it is empty, or writes one when it is full, waits from now on.
        for eventfd in &program.eventfds {
            let flags = fcntl_getfl(eventfd).expect("an eventfd");
            fcntl_setfl(eventfd, flags & !OFlags::NONBLOCK).expect("an eventfd");
        }
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    program.ring();
                }
            });
            for _ in 0..20 {
                assert!(scene.pactl(&["info"]).contains("consort"));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        rustix::io::read(&program.eventfds[0], &mut [0; 8]).expect("it was written");
        for full in &program.eventfds {
            write(full, &(u64::MAX - 1).to_ne_bytes()).expect("room");
        }
        // It gets answers.
        program.request();
        program.expect_answers(REQUESTS);
        rustix::io::read(&program.eventfds[0], &mut [0; 8]).expect("it was written");
        assert!(scene.pactl(&["info"]).contains("consort"));
    });
}

#[test]
fn a_program_that_hangs_up_is_heard_to_its_end_and_forgotten() {
    let scene = Scene::new();
    let mut program = Offered::new(&scene);
    program.begin();
    program.request();
    program.socket.shutdown(std::net::Shutdown::Write).expect("connected");
    program.expect_answers(REQUESTS);
    program.socket.read_to_end(&mut Vec::new()).expect("it is disconnected");
    eventually("it is forgotten", || {
        scene.pactl(&["list", "short", "sink-inputs"]).is_empty().then_some(())
    });
}
