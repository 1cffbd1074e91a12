//! Record streams in two threads.

use rt::shm::Schedule;
use sys::futex::Futex;

use super::device::record;
use super::{in_a_minute, planes, shape, woven};
use crate::stream::SamplesMut;

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
