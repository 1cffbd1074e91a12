//! A program that writes nonsense into its stream's memory, in a process of its own
//! (`victims/hostile_stream.c`), beside one whose sound is compared frame by frame.

use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use harness::{Program, Server, c_program, eventually, in_three_attempts};
use proto::encode;
use proto::hello::{Hello, Role, encode_first};
use proto::request::{Numbered, Request};
use proto::stream::{Direction, NewStream, StreamRequest};
use rt::shm::{LAYOUT_VERSION, RingShape};
use rt::stream::Wish;
use rustix::process::Signal;
use sys::memory::{OwnRing, Segment};

use crate::patching::{heard, playing};
use crate::{RATE_HZ, server, streams};

const NONSENSE: [&str; 4] = ["backwards", "beyond", "samples", "anything"];
/// Of the two channels, the one on which the player is not compared.
const CHANNEL: u32 = 1;

fn bytes_of(segment: &Segment) -> Vec<u8> {
    let memfd: OwnedFd = segment.fd().try_clone_to_owned().expect("a descriptor");
    let file = std::fs::File::from(memfd);
    let length = file.metadata().expect("a size").len();
    let mut bytes = vec![0; usize::try_from(length).expect("small")];
    file.read_exact_at(&mut bytes, 0).expect("readable");
    bytes
}

/// Writes what a correct program sends into `directory`, for a stream that gets this number;
/// returns where in the ring's segment the count of written frames is, bytes.
fn prepare(directory: &Path, stream: u32) -> usize {
    let new = NewStream {
        program: "hostile".into(),
        name: "nonsense".into(),
        device: None,
        direction: Direction::Playback,
        channels: vec![CHANNEL],
        depth_frames: RATE_HZ / 10,
        samples: 0,
        account: 0,
        lets_sleep: false,
        reopens: false,
    };
    let shape = RingShape::for_depth(1, new.depth_frames).expect("possible");
    let ring = OwnRing::create(shape).expect("memory");
    let before = bytes_of(ring.segment());
    ring.header().publish(u64::MAX);
    let after = bytes_of(ring.segment());
    let count = before.iter().zip(&after).position(|(one, other)| one != other).expect("it counts");
    ring.header().publish(shape.capacity_frames().into());
    ring.wishes().publish(1, Wish::Run);
    let packet = |number, request| encode(&Numbered { number, message: Request::Stream(request) });
    let hello = encode_first(&Hello { layout: LAYOUT_VERSION, role: Role::Observer });
    std::fs::create_dir_all(directory).expect("a directory");
    for (name, bytes) in [
        ("hello", hello),
        ("open", packet(1, StreamRequest::Open(new))),
        ("begin", packet(2, StreamRequest::Begin { stream, position: 0 })),
        ("call", packet(3, StreamRequest::Call { stream })),
        ("ring", bytes_of(ring.segment())),
    ] {
        std::fs::write(directory.join(name), bytes).expect("written");
    }
    count
}

/// Starts one whose stream gets this number, and waits until it is heard.
fn hostile(server: &Server, nonsense: &str, stream: u32) -> Program {
    let directory = server.directory().join("hostile");
    let count = prepare(&directory, stream);
    let mut command = server.command(&c_program("victims/hostile_stream.c"));
    command
        .arg(server.directory().join("consort/under-test/control"))
        .arg(directory)
        .args([nonsense, &count.to_string()]);
    let mut program = Program::start(command);
    eventually("its stream plays", || {
        assert!(program.is_running(), "{}", program.stderr());
        let all = streams(server);
        let own = all.iter().find(|other| other["number"] == stream)?;
        (program.stdout().contains("ready") && own["plays"] == true).then_some(())
    });
    program
}

#[test]
fn nonsense_in_a_streams_memory_changes_no_frame_of_another_stream() {
    in_three_attempts(|| {
        let mut server = server(1024);
        let (player, played) = playing(&server);
        for (stream, nonsense) in (2..).zip(NONSENSE) {
            let mut hostile = hostile(&server, nonsense, stream);
            hostile.signal(Signal::USR1);
            std::thread::sleep(Duration::from_secs(1));
            assert!(hostile.is_running(), "{nonsense}: {}", hostile.stderr());
            assert!(server.program().is_running(), "{}", server.program().stderr());
            // Dead, with whatever it has written last.
            hostile.signal(Signal::KILL);
            drop(hostile.finish());
            eventually("its stream has gone", || (streams(&server).len() == 1).then_some(()));
        }
        let device = heard(server, player)?;
        let [left, right] = &device.channels[..] else { panic!("it has two channels") };
        assert!(right.iter().all(|sample| sample.is_finite()), "only numbers leave the device");
        let same = left.iter().zip(&played.channels[0]).take_while(|(one, other)| one == other);
        let same = same.count();
        let rest =
            left[same..].iter().rposition(|sample| *sample != 0.0).map_or(0, |last| last + 1);
        // Its end is a fade of 5 ms.
        let fade = RATE_HZ as usize / 200;
        assert!(same > 4 * RATE_HZ as usize && rest <= fade, "{same} frames, and {rest} others");
        Ok(())
    });
}
