//! Which streams a program may count on before the server is asked.

use client::stream::{
    Beginning, PlannedPlayback, PlaybackOptions, RingSamples, RingShape, Samples, StreamConnection,
};

use harness::{eventually, not_run};
use sys::clock::now_ns;

use crate::{RATE_HZ, server};

/// A program whose streams count together, for a process that plays for others.
const ACCOUNT: u32 = 5;

fn two_seconds() -> PlaybackOptions {
    PlaybackOptions {
        program: "by hand".into(),
        name: "sound".into(),
        device: None,
        channels: vec![0, 1],
        depth_frames: 2 * RATE_HZ,
        samples: RingSamples::Planes,
    }
}

fn expected(connection: &StreamConnection) -> Option<PlannedPlayback> {
    connection.expect_for(ACCOUNT, &two_seconds())
}

#[test]
fn a_stream_is_expected_after_one_that_was_granted_in_full() {
    let server = server(256);
    let connection = server.stream_connection();
    assert!(expected(&connection).is_none(), "nothing is known yet");
    let first = connection.grant_for(ACCOUNT, two_seconds()).expect("granted");
    let wanted = RingShape::for_depth(2, 2 * RATE_HZ).expect("possible");
    if first.shape() != wanted {
        return not_run("this server may lock too little memory to grant two seconds");
    }
    let mut streams = vec![first.begin().expect("begun")];
    let longer = PlaybackOptions { depth_frames: 5 * RATE_HZ, ..two_seconds() };
    let longer = connection.expect_for(ACCOUNT, &longer);
    assert!(longer.is_none(), "it may get less");
    // Those of one program get less when they are many.
    while let Some(planned) = expected(&connection) {
        assert_eq!((planned.number(), planned.shape()), (None, wanted));
        streams.push(planned.begin().expect("begun"));
        assert!(streams.len() < 64, "all of one program get two seconds");
    }
    let shapes: Vec<_> = streams.iter().map(|stream| stream.shape()).collect();
    let (last, others) = shapes.split_last().expect("some");
    assert!(others.len() > 1 && others.iter().all(|shape| *shape == wanted), "{shapes:?}");
    assert!(last.capacity_frames() < wanted.capacity_frames(), "{shapes:?}");
    let less = connection.grant_for(ACCOUNT, two_seconds()).expect("granted");
    assert!(less.shape() != wanted && expected(&connection).is_none());
    // One that is not begun ends at once.
    drop(less);
    let others = streams.len();
    assert_eq!(connection.streams().expect("answered").len(), others);
    // Another program has its own share.
    let other = connection.grant_for(ACCOUNT + 1, two_seconds()).expect("granted");
    assert_eq!(other.shape(), wanted);
    drop(other);
    // One that is expected is none until it begins.
    let _planned = expected(&connection).expect("expected");
    assert_eq!(connection.streams().expect("answered").len(), others);
}

#[test]
fn a_stream_that_is_expected_and_refused_is_none() {
    let server = server(256);
    let connection = server.stream_connection();
    drop(connection.grant_for(ACCOUNT, two_seconds()).expect("granted"));
    let options = PlaybackOptions { device: Some("none".into()), ..two_seconds() };
    let planned = connection.expect_for(ACCOUNT, &options).expect("expected");
    let refused = planned.begin().err().map(|error| error.to_string());
    assert!(refused.is_some_and(|text| text.contains("there is no device 'none'")));
    assert!(expected(&connection).is_none(), "the next one is asked for first");
    assert!(connection.streams().expect("answered").is_empty());
}

#[test]
fn a_stream_plays_what_was_written_before_the_server_had_taken_it() {
    let server = server(256);
    let connection = server.stream_connection();
    let planned = connection.grant_for(ACCOUNT, two_seconds()).expect("granted");
    let mut stream = planned.start().expect("started");
    let frames = RATE_HZ as usize / 10;
    let silence = vec![0.0; 2 * frames];
    assert_eq!(stream.writer_mut().write(Samples::Interleaved(&silence)), frames);
    assert_eq!(stream.beginning().expect("not refused"), Beginning::Unanswered);
    // What is called is answered after what was sent before.
    stream.run().expect("it runs");
    assert_eq!(stream.beginning().expect("taken"), Beginning::Begun);
    eventually("all of it is heard", || (stream.heard(now_ns()) == frames as u64).then_some(()));
}

#[test]
fn a_stream_that_is_dropped_before_the_server_has_taken_it_ends() {
    let server = server(256);
    let connection = server.stream_connection();
    let planned = connection.grant_for(ACCOUNT, two_seconds()).expect("granted");
    drop(planned.start().expect("started"));
    eventually("it has ended", || connection.streams().expect("answered").is_empty().then_some(()));
}
