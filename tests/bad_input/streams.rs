//! Streams that a program asks for by hand: what cannot be is refused in words, and what plays
//! plays on.

use std::os::fd::{AsFd, OwnedFd};

use harness::{Server, Sound, eventually};
use proto::limits::MAX_STREAM_POSITION;
use proto::request::{Reply, Request};
use proto::stream::{Direction, NewStream, StreamReply, StreamRequest, StreamStatus};
use rt::shm::{RingShape, WishPage};
use rt::stream::Wish;
use sys::memory::{OwnRing, Shared};

use crate::wire::Wire;

/// A server that plays streams.
pub fn server() -> Server {
    Server::start(&["--driver", "timer", "--quantum", "256"])
}

/// A stream of two channels, to be asked for.
pub fn stereo() -> NewStream {
    NewStream {
        program: "by hand".into(),
        name: "stream".into(),
        device: None,
        direction: Direction::Playback,
        channels: vec![0, 1],
        depth_frames: 4800,
        samples: 0,
        account: 0,
        lets_sleep: false,
        reopens: false,
    }
}

fn ask(wire: &mut Wire, request: StreamRequest) -> Reply {
    wire.ask(Request::Stream(request))
}

/// Opens a stream; returns its number, and which memory it is to have.
pub fn opened(wire: &mut Wire) -> (u32, RingShape) {
    granted(wire, stereo())
}

/// Opens this stream of two channels.
pub fn granted(wire: &mut Wire, stream: NewStream) -> (u32, RingShape) {
    match ask(wire, StreamRequest::Open(stream)) {
        Reply::Stream(StreamReply::Granted { stream, capacity_frames, .. }) => {
            (stream, RingShape::new(2, capacity_frames).expect("possible"))
        }
        other => panic!("{other:?}"),
    }
}

/// The memory of a stream: a ring of this shape.
fn memory(shape: RingShape) -> OwnedFd {
    let ring = OwnRing::create(shape).expect("memory");
    ring.segment().fd().try_clone_to_owned().expect("a descriptor")
}

/// Begins a stream with this memory.
pub fn begin(wire: &mut Wire, stream: u32, memory: &[impl AsFd]) -> Reply {
    begin_at(wire, stream, 0, memory)
}

fn begin_at(wire: &mut Wire, stream: u32, position: u64, memory: &[impl AsFd]) -> Reply {
    let descriptors: Vec<_> = memory.iter().map(AsFd::as_fd).collect();
    wire.ask_with(Request::Stream(StreamRequest::Begin { stream, position }), &descriptors)
}

fn streams(server: &Server) -> Vec<StreamStatus> {
    match ask(&mut Wire::observer(server), StreamRequest::List { after: 0 }) {
        Reply::Stream(StreamReply::Streams(streams)) => streams,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_says(reply: &Reply, words: &str) {
    match reply {
        Reply::Error(error) => assert!(error.to_string().contains(words), "{error}"),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn memory_that_is_no_stream_is_refused_and_costs_the_connection() {
    let server = server();
    let mut bystander = Wire::observer(&server);
    let (stream, shape) = opened(&mut bystander);
    assert_eq!(begin(&mut bystander, stream, &[memory(shape)]), Reply::Stream(StreamReply::Begun));
    let (pipe, _writer) = std::io::pipe().expect("a pipe");
    let halved = memory(shape.halved().expect("large"));
    let mono = memory(RingShape::new(1, shape.capacity_frames()).expect("possible"));
    let (_, wishes) = Shared::<WishPage>::for_readers("wishes").expect("memory");
    for (memory, words) in [
        (vec![], "one descriptor is expected, 0 came"),
        (vec![memory(shape), memory(shape)], "one descriptor is expected, 2 came"),
        (vec![wishes], "bytes"),
        (vec![halved], "bytes"),
        (vec![mono], "bytes"),
        (vec![pipe.into()], "not a memfd"),
    ] {
        let mut wire = Wire::observer(&server);
        let (stream, _) = opened(&mut wire);
        assert_says(&begin(&mut wire, stream, &memory), words);
        wire.assert_closed();
    }
    eventually("only the bystander's stream is left", || {
        (streams(&server).len() == 1).then_some(())
    });
    assert_eq!(
        ask(&mut bystander, StreamRequest::Call { stream }),
        Reply::Stream(StreamReply::Called)
    );
}

#[test]
fn a_stream_begins_at_no_position_that_cannot_be() {
    let mut server = server();
    for position in [MAX_STREAM_POSITION + 1, u64::MAX] {
        let mut wire = Wire::observer(&server);
        let (stream, shape) = opened(&mut wire);
        let refused = begin_at(&mut wire, stream, position, &[memory(shape)]);
        assert_says(&refused, "no stream can have come to position");
        wire.assert_closed();
    }
    // The last one that can be plays like any other, also if nothing that it says is possible.
    let mut wire = Wire::observer(&server);
    let (stream, shape) = opened(&mut wire);
    let ring = OwnRing::create(shape).expect("memory");
    let sent = [ring.segment().fd().try_clone_to_owned().expect("a descriptor")];
    let begun = begin_at(&mut wire, stream, MAX_STREAM_POSITION, &sent);
    assert_eq!(begun, Reply::Stream(StreamReply::Begun));
    ring.wishes().publish(1, Wish::Run);
    for written in [0, MAX_STREAM_POSITION + 1000, u64::MAX] {
        ring.header().publish(written);
        let called = Reply::Stream(StreamReply::Called);
        assert_eq!(ask(&mut wire, StreamRequest::Call { stream }), called);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    eventually("it plays", || streams(&server).iter().any(|stream| stream.plays).then_some(()));
    assert!(server.program().is_running());
}

#[test]
fn streams_that_no_device_can_play_are_refused_in_words() {
    let server = server();
    let mut wire = Wire::observer(&server);
    for (new, words) in [
        (NewStream { channels: vec![0, 2], ..stereo() }, "no channel 2"),
        (NewStream { channels: Vec::new(), ..stereo() }, "use 1 to 32"),
        (NewStream { channels: vec![0; 33], ..stereo() }, "use 1 to 32"),
        (
            NewStream { direction: Direction::Monitor, channels: vec![2], ..stereo() },
            "it plays 2 channels",
        ),
        (NewStream { name: "n".repeat(60_000), ..stereo() }, "the stream's name"),
        (NewStream { program: String::new(), ..stereo() }, "the program's name"),
        (
            NewStream { device: Some("d".repeat(50_000)), ..stereo() },
            "no device has a name of more",
        ),
    ] {
        assert_says(&ask(&mut wire, StreamRequest::Open(new)), words);
    }
    assert!(streams(&server).is_empty());
}

#[test]
fn another_programs_stream_is_out_of_reach() {
    let server = server();
    let (mut owner, mut other) = (Wire::observer(&server), Wire::observer(&server));
    let (stream, shape) = opened(&mut owner);
    assert_eq!(begin(&mut owner, stream, &[memory(shape)]), Reply::Stream(StreamReply::Begun));
    for request in [StreamRequest::Call { stream }, StreamRequest::Close { stream }] {
        assert_says(&ask(&mut other, request), "there is no stream");
    }
    assert_says(&begin(&mut other, stream, &[memory(shape)]), "there is no stream");
    assert_eq!(streams(&server).len(), 1);
    assert_eq!(
        ask(&mut owner, StreamRequest::Close { stream }),
        Reply::Stream(StreamReply::Closed)
    );
    eventually("it has ended", || streams(&server).is_empty().then_some(()));
    assert_says(&ask(&mut owner, StreamRequest::Call { stream }), "it has ended");
}

#[test]
fn a_program_has_its_share_of_streams() {
    let server = server();
    let mut wire = Wire::observer(&server);
    let small = || NewStream { channels: vec![0], depth_frames: 0, ..stereo() };
    let most = proto::limits::STREAMS_OF_PROGRAM;
    for _ in 0..most {
        let Reply::Stream(_) = ask(&mut wire, StreamRequest::Open(small())) else {
            panic!("refused")
        };
    }
    assert_says(&ask(&mut wire, StreamRequest::Open(small())), "one program");
    assert_eq!(streams(&server).len(), most);
    drop(wire);
    eventually("its streams have gone with it", || streams(&server).is_empty().then_some(()));
}

#[test]
fn a_program_cannot_take_all_ports_for_its_streams() {
    let server = Server::start(&["--driver", "timer", "--quantum", "256", "--port-max", "64"]);
    let mut wire = Wire::observer(&server);
    let mut refused = None;
    let mut open = |number: usize| {
        let program = format!("program {number}");
        match ask(&mut wire, StreamRequest::Open(NewStream { program, ..stereo() })) {
            Reply::Stream(_) => true,
            reply => {
                refused = Some(reply);
                false
            }
        }
    };
    // Programs are told apart by their processes, not by the names that they state.
    let opened = (0..64).take_while(|number| open(*number)).count();
    assert_eq!(opened, 16, "a quarter of the clients");
    assert_says(&refused.expect("refused"), "client of one program");
    let many = NewStream { channels: vec![0; 32], program: "program 0".into(), ..stereo() };
    assert_says(&ask(&mut wire, StreamRequest::Open(many)), "port of one program");
    assert_eq!((server.lsp(&[]).lines().count(), streams(&server).len()), (4 + 32, 16));
    // Another program still plays.
    let path = server.directory().join("short.wav");
    Sound::of(48_000, &[vec![0.25; 480], vec![0.25; 480]]).write(&path);
    server.consort(&["play", &path.to_string_lossy()]).expect_success();
}

#[test]
fn a_stream_is_named_by_its_program_as_far_as_a_client_can_be() {
    let server = server();
    let mut wire = Wire::observer(&server);
    for (program, client) in
        [("system", "system-01"), ("a:b", "a_b"), (&"n".repeat(128), &"n".repeat(59))]
    {
        let program = program.to_owned();
        let opened = ask(&mut wire, StreamRequest::Open(NewStream { program, ..stereo() }));
        assert!(matches!(opened, Reply::Stream(_)), "{opened:?}");
        let ports = server.lsp(&[client]);
        assert_eq!(ports, format!("{client}:output_FL\n{client}:output_FR\n"));
    }
    assert_says(
        &ask(&mut wire, StreamRequest::Open(NewStream { program: " ".into(), ..stereo() })),
        "empty",
    );
}
