//! More streams than the server takes.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command};

use harness::{Program, Server, Sound, eventually, in_three_attempts};
use proto::hello::{Role, Welcome};
use proto::limits::{STREAMS, STREAMS_OF_PROCESS, STREAMS_OF_PROGRAM};
use proto::request::{Reply, Request};
use proto::stream::{Direction, NewStream, StreamReply, StreamRequest};
use rt::shm::RingShape;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use sys::memory::OwnRing;
use sys::socket::Connection;
use tempfile::TempDir;

use crate::wire::{Wire, socket_path};

const RATE_HZ: u32 = 48_000;
/// What all streams of a server may take: `StreamLimits` of the engine.
const BUDGET_KIB: u64 = 160 << 10;
/// What the server may need besides for what it knows of them.
const KNOWN_KIB: u64 = 16 << 10;

/// Another process, which has connected to the server and has passed that connection on.
struct Other {
    process: Child,
    /// It ends with this.
    _way: OwnedFd,
    wire: Wire,
}

impl Other {
    fn start(server: &Server) -> Self {
        const SCRIPT: &str = "import socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect(sys.argv[1])
way = socket.socket(fileno=0)
socket.send_fds(way, [b'.'], [server.fileno()])
way.recv(1)";
        let (own, others) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .expect("a pair of sockets");
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", SCRIPT]).arg(socket_path(server)).stdin(others);
        let process = command.spawn().expect("python3 is installed");
        drop(command);
        let way = Connection::from(own.try_clone().expect("a descriptor"));
        let until = Some(sys::clock::now_ns() + 30_000_000_000);
        let mut received = way.receive_until(&mut [0; 8], until).expect("its connection");
        let socket = received.descriptors.pop().expect("its connection");
        let mut wire = Wire::over(Connection::from(socket));
        assert_eq!(wire.greet(Role::Observer).0, Welcome::Observer);
        Self { process, _way: own, wire }
    }

    fn end(self) {
        let Self { mut process, _way: way, wire } = self;
        drop((way, wire));
        process.wait().expect("it ends");
    }
}

/// Opens streams of two seconds until one is refused, the next account of the process after each 64
/// of them; returns how many there are, the bytes of their rings, and the refusal.
fn open_all(wire: &mut Wire, first_account: u32) -> (usize, usize, String) {
    let (mut opened, mut bytes) = (0, 0);
    loop {
        let new = NewStream {
            program: "crowd".into(),
            name: "stream".into(),
            device: None,
            direction: Direction::Playback,
            channels: vec![0, 1],
            depth_frames: 2 * RATE_HZ,
            samples: 0,
            account: first_account + (opened / STREAMS_OF_PROGRAM) as u32,
            lets_sleep: false,
            reopens: false,
        };
        let (stream, shape) = match wire.ask(Request::Stream(StreamRequest::Open(new))) {
            Reply::Stream(StreamReply::Granted { stream, capacity_frames, .. }) => {
                (stream, RingShape::new(2, capacity_frames).expect("possible"))
            }
            Reply::Error(error) => return (opened, bytes, error.to_string()),
            other => panic!("{other:?}"),
        };
        let ring = OwnRing::create(shape).expect("memory");
        let begin = Request::Stream(StreamRequest::Begin { stream, position: 0 });
        let begun = wire.ask_with(begin, &[ring.segment().fd().as_fd()]);
        assert_eq!(begun, Reply::Stream(StreamReply::Begun), "stream {opened}");
        (opened, bytes) = (opened + 1, bytes + shape.bytes());
    }
}

/// Memory that the server has locked, KiB.
fn locked_kib(server: &mut Server) -> u64 {
    let path = format!("/proc/{}/status", server.program().id());
    let status = std::fs::read_to_string(path).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn streams(server: &Server) -> Vec<serde_json::Value> {
    server.consort_json(&["status"])["streams"].as_array().expect("a list").clone()
}

fn play(server: &Server, sound: &Sound) -> Program {
    let path = server.directory().join("played.wav");
    sound.write(&path);
    server.spawn_consort(&["play", &path.to_string_lossy()])
}

/// A player beside as many streams as two programs can get; its sound is compared frame by frame.
fn expect_a_player_unharmed() -> Result<(), String> {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let recorded = directory.path().join("recorded.wav");
    let options = ["--driver", "timer", "--quantum", "1024", "--port-max", "16384"];
    let mut server = Server::start_with(directory, &options, |command| {
        command.env("CONSORT_RECORD_NULL_DEVICE", recorded);
    });
    let numbers = |step: usize| {
        let all = (0..120 * RATE_HZ as usize).map(move |frame| 1 + frame * step % 30_011);
        all.map(|number| number as f32 / 32_768.0).collect::<Vec<f32>>()
    };
    let sound = Sound::of(RATE_HZ, &[numbers(7), numbers(5)]);
    let player = play(&server, &sound);
    eventually("it plays", || {
        streams(&server).iter().any(|stream| stream["plays"] == true).then_some(())
    });
    let before_kib = locked_kib(&mut server);

    let mut first = Wire::observer(&server);
    let (of_first, first_bytes, refusal) = open_all(&mut first, 1);
    assert_eq!(of_first, STREAMS_OF_PROCESS);
    assert!(
        refusal.contains("no room for another stream of one process")
            && refusal.contains("close one of its streams"),
        "{refusal}"
    );
    let mut other = Other::start(&server);
    let (of_other, other_bytes, refusal) = open_all(&mut other.wire, 1);
    assert_eq!(of_first + of_other + 1, STREAMS, "with the player's");
    assert!(
        refusal.contains("no room for another stream: the limit is 1024")
            && refusal.contains("end other programs that play"),
        "{refusal}"
    );
    // A program that has none yet is refused in the same words.
    let path = server.directory().join("played.wav");
    let late = server.consort(&["play", &path.to_string_lossy()]);
    assert_eq!(late.code, Some(1));
    assert!(late.stderr.contains("no room for another stream: the limit is 1024"), "{late:?}");

    let kib = (first_bytes + other_bytes) as u64 / 1024;
    assert!(kib <= BUDGET_KIB, "{kib} KiB of rings");
    let grown_kib = locked_kib(&mut server).saturating_sub(before_kib);
    assert!(
        (kib..=BUDGET_KIB + KNOWN_KIB).contains(&grown_kib),
        "{grown_kib} KiB are locked for {kib} KiB of rings"
    );
    assert_eq!(streams(&server).len(), STREAMS);
    let late = server.late_frames();
    drop(first);
    other.end();
    eventually("only the player is left", || (streams(&server).len() == 1).then_some(()));
    let again = Wire::observer(&server).ask(Request::Stream(StreamRequest::Devices));
    assert!(matches!(again, Reply::Stream(_)), "{again:?}");
    player.terminate();
    eventually("no stream is left", || streams(&server).is_empty().then_some(()));
    let heard = server.recorded();
    if late > 0 {
        return Err("the machine took a CPU for longer than is queued".into());
    }
    for (heard, sent) in heard.channels.iter().zip(&sound.channels) {
        let begin = heard.iter().position(|sample| *sample != 0.0).expect("sound");
        let heard = &heard[begin..];
        let same = heard.iter().zip(sent).take_while(|(one, other)| one == other).count();
        let rest =
            heard[same..].iter().rposition(|sample| *sample != 0.0).map_or(0, |last| last + 1);
        assert!(same > RATE_HZ as usize && rest <= 240, "{same} frames, and {rest} others");
    }
    Ok(())
}

#[test]
fn streams_beyond_a_thousand_are_refused_and_cost_a_player_no_frame() {
    in_three_attempts(expect_a_player_unharmed);
}
