//! Record streams in two threads.

use rt::shm::{RingShape, Schedule, StreamDeviceName, StreamState, Timing};
use rt::stream::Wish;
use sys::futex::Futex;

use super::device::{Recorder, record, recorder};
use super::{in_a_minute, planes, shape, woven};
use crate::stream::{SamplesMut, StreamReader};

#[test]
fn a_program_that_keeps_up_reads_every_frame_in_either_arrangement() {
    let (mut reader, mut recorder) = record(shape(2, 1024));
    for frames in (0..100).map(|number| 1 + number * 379 % 1024) {
        let position = reader.position();
        recorder.record(frames);
        let mut left = vec![-1.0; frames / 2];
        let mut right = left.clone();
        let read = reader.read(SamplesMut::Planar(&mut [&mut left, &mut right]));
        assert_eq!(read, frames / 2);
        assert_eq!([left, right].as_slice(), planes(position, read, 2));
        let mut rest = vec![-1.0; 2 * 1024];
        let read = reader.read(SamplesMut::Interleaved(&mut rest));
        assert_eq!(read, frames - frames / 2);
        let expected = woven(position + frames as u64 / 2, read, 2);
        assert_eq!(rest[..2 * read], expected[..], "from {position} on");
        assert!(rest[2 * read..].iter().all(|sample| *sample == -1.0), "no more was written");
    }
    assert_eq!((reader.position(), reader.lost()), (recorder.position, 0));
}

#[test]
fn an_overtaken_reader_gets_whole_frames_and_knows_how_many_it_has_lost() {
    const FRAMES: u64 = 300_000;
    let (mut reader, mut recorder) = record(shape(2, 1024));
    let (mut read, mut lost) = (0, 0);
    std::thread::scope(|scope| {
        let recording = scope.spawn(move || {
            while recorder.position < FRAMES {
                recorder.record(100);
            }
        });
        let mut frames = [-1.0; 2 * 300];
        loop {
            let over = recording.is_finished();
            let (before, lost_before) = (reader.position(), reader.lost());
            let got = reader.read(SamplesMut::Interleaved(&mut frames));
            let position = before + reader.lost() - lost_before;
            assert_eq!(frames[..2 * got], woven(position, got, 2)[..], "from {position} on");
            (read, lost) = (read + got as u64, reader.lost());
            if over && reader.available() == 0 {
                break;
            }
        }
    });
    assert_eq!((read + lost, reader.position()), (FRAMES, FRAMES));
}

#[test]
fn a_reader_that_comes_too_late_resumes_with_the_newer_frames() {
    let (mut reader, mut recorder) = record(shape(1, 1024));
    (0..3).for_each(|_| recorder.record(800));
    let mut frames = [-1.0; 1024];
    // The oldest frame in the ring is number 2400 - 1024; a quarter of the ring is left alone.
    let (resumed, left) = (2400 - 1024 + 256, 1024 - 256);
    assert_eq!(reader.read(SamplesMut::Interleaved(&mut frames)), left);
    assert_eq!(frames[..left], woven(resumed, left, 1)[..]);
    assert_eq!((reader.lost(), reader.available()), (resumed, 0));
}

#[test]
fn a_program_wakes_after_the_device_has_recorded() {
    let (mut reader, mut recorder) = record(shape(1, 1024));
    let schedule = Schedule { wake_ns: 1, until: 64, ..Schedule::default() };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.await_frames(0, in_a_minute()));
        recorder.record(64);
        recorder.page.set_schedule(schedule);
        recorder.page.kick(&Futex);
        assert_eq!(waiting.join().unwrap(), 64);
    });
    reader.read(SamplesMut::Interleaved(&mut [0.0; 64]));
    let late_device = sys::clock::now_ns() + 3_000_000;
    recorder.page.set_schedule(Schedule { until: 128, ..schedule });
    assert_eq!(reader.await_frames(0, late_device), 0, "the device has not come");
    assert!(sys::clock::now_ns() >= late_device);
}

#[test]
fn a_program_wakes_although_the_device_already_says_when_it_comes_next() {
    let (reader, mut recorder) = record(shape(1, 1024));
    let wake_ns = sys::clock::now_ns() + 20_000_000;
    let schedule = Schedule { wake_ns, until: 64, interval_ns: 1, interval_frames: 64 };
    recorder.page.set_schedule(schedule);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.await_frames(200_000_000, in_a_minute()));
        sys::clock::sleep_until(wake_ns);
        recorder.record(64);
        let next_ns = in_a_minute() + 60_000_000_000;
        recorder.page.set_schedule(Schedule { wake_ns: next_ns, until: 128, ..schedule });
        assert_eq!(waiting.join().unwrap(), 64);
    });
}

/// 50 kHz: a frame is 20 µs.
fn recorded(recorder: &Recorder, at_ns: u64) {
    recorder.page.set_timing(Timing {
        at_ns,
        device_frame: 0,
        position: recorder.position,
        until: u64::MAX,
        frame_ps: 20_000_000,
        latency_ns: 0,
    });
}

/// Has a stream go on at another server; returns the device there.
fn returned(reader: &mut StreamReader, shape: RingShape) -> Recorder {
    let (recorder, ring, pages) = recorder(shape, reader.end());
    let control = reader.control().following(pages.wishes, pages.page);
    reader.follow(ring, control);
    recorder.page.set_state(&StreamState {
        sample_rate_hz: 50_000,
        gain: 1.0,
        muted: false,
        device: StreamDeviceName::default(),
        ports: [0; 32],
    });
    recorder
}

#[test]
fn what_a_dead_server_has_recorded_is_read_before_what_the_next_one_records() {
    let (mut reader, mut first) = record(shape(2, 1024));
    first.record(700);
    reader.read(SamplesMut::Interleaved(&mut [0.0; 2 * 100]));
    reader.leave(0);
    let mut next = returned(&mut reader, shape(2, 2048));
    next.record(50);
    let mut frames = vec![-1.0; 2 * 2048];
    for (position, count) in [(100, 600), (700, 50)] {
        assert_eq!(reader.available(), count);
        assert_eq!(reader.read(SamplesMut::Interleaved(&mut frames)), count);
        assert_eq!(frames[..2 * count], woven(position, count, 2)[..]);
    }
    // What is not read before the next death but one is lost.
    next.record(30);
    reader.leave(0);
    let mut third = returned(&mut reader, shape(2, 1024));
    third.record(10);
    reader.leave(0);
    let mut last = returned(&mut reader, shape(2, 1024));
    last.record(5);
    let read = std::iter::from_fn(|| {
        let read = reader.read(SamplesMut::Interleaved(&mut frames));
        (read > 0).then_some(read)
    });
    assert_eq!(read.collect::<Vec<_>>(), [10, 5]);
    assert_eq!((reader.lost(), reader.position()), (30, 795));
}

#[test]
fn the_time_without_a_server_is_counted_in_frames_once_the_next_one_records() {
    let (mut reader, mut first) = record(shape(1, 1024));
    reader.control_mut().wish(Wish::Run).unwrap();
    first.record(100);
    recorded(&first, 10_000_000);
    // The server dies, with 50 frames that it had not passed on, and the program notices it later.
    reader.leave(12_000_000);
    assert_eq!(reader.control_mut().timing().position_at(u64::MAX), 100, "nothing more comes");
    assert_eq!(reader.unrecorded_frames(), None);
    let mut next = returned(&mut reader, shape(1, 1024));
    assert_eq!(reader.unrecorded_frames(), None);
    // Its first frame is heard at 30 ms.
    next.record(200);
    recorded(&next, 34_000_000);
    assert_eq!(reader.unrecorded_frames(), Some(1000));
    // It holds when the next one dies.
    reader.control_mut().wish(Wish::Hold).unwrap();
    reader.leave(50_000_000);
    let mut last = returned(&mut reader, shape(1, 1024));
    last.record(1);
    recorded(&last, 90_000_000);
    assert_eq!(reader.unrecorded_frames(), Some(1000), "nothing was to be recorded meanwhile");
}
