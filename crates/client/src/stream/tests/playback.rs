//! Playback streams in two threads.

use rt::shm::{Acknowledgement, Due, Miss, RingSamples, RingShape, Schedule, Timing, WISHES};
use rt::stream::Wish;
use sys::futex::Futex;
use sys::memory::Shared;

use super::device::{Player, copy, playback};
use super::{in_a_minute, planes, shape, woven};
use crate::stream::{NoRoomForWish, Samples, StreamWriter};

/// Chunks of all sizes up to the ring's, so that its end falls everywhere.
fn chunks() -> impl Iterator<Item = usize> {
    (0..).map(|number: usize| 1 + number * 379 % 1500)
}

#[test]
fn a_device_gets_every_frame_once_in_order_while_the_ring_is_written() {
    const FRAMES: u64 = 200_000;
    let (mut writer, mut player) = playback(shape(3, 2048));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut chunks = chunks();
            while writer.position() < FRAMES {
                let position = writer.position();
                let frames = chunks.next().unwrap().min((FRAMES - position) as usize);
                let planes = planes(position, frames, 3);
                match position % 3 {
                    0 => {
                        let planes: Vec<&[f32]> = planes.iter().map(Vec::as_slice).collect();
                        writer.write(Samples::Planar(&planes));
                    }
                    1 => {
                        writer.write(Samples::Interleaved(&woven(position, frames, 3)));
                    }
                    _ => writer.write_in_place(|room| {
                        let frames = frames.min(room[0].len());
                        for (room, plane) in room.iter_mut().zip(&planes) {
                            room[..frames].copy_from_slice(&plane[..frames]);
                        }
                        frames
                    }),
                }
                std::thread::yield_now();
            }
        });
        for frames in chunks() {
            let position = player.position;
            let played = player.play(frames);
            assert_eq!(played, planes(position, played[0].len(), 3), "from {position} on");
            if player.position == FRAMES {
                break;
            }
            std::thread::yield_now();
        }
    });
    assert_eq!(player.stream.faults(), 0);
}

/// Returns what is like these samples, and survives 16 bits.
fn coarse(samples: Vec<f32>) -> Vec<f32> {
    let coarse = |sample: f32| (f64::from(sample) % 65_536.0 - 32_768.0) / 32_768.0;
    samples.into_iter().map(|sample| coarse(sample) as f32).collect()
}

fn coarse_planes(position: u64, frames: usize) -> Vec<Vec<f32>> {
    planes(position, frames, 2).into_iter().map(coarse).collect()
}

fn of_frames(channels: u32, capacity_frames: u32) -> RingShape {
    shape(channels, capacity_frames).holding(RingSamples::Frames16).expect("possible")
}

#[test]
fn frames_that_are_written_as_they_are_are_played_like_any_others() {
    let (mut writer, mut player) = playback(of_frames(2, 2048));
    let mut chunks = chunks();
    let mut refused = 0;
    while writer.position() < 20_000 {
        let position = writer.position();
        let frames = chunks.next().unwrap();
        let samples = coarse(woven(position, frames, 2));
        if position % 2 == 0 {
            writer.write(Samples::Interleaved(&samples));
        } else {
            writer.write_frames_in_place(|room| {
                let most = frames.min(room.len() / 4);
                let words = samples.into_iter().map(|sample| (sample * 32_768.0) as i16);
                let bytes = words.flat_map(i16::to_le_bytes);
                room[..4 * most].iter_mut().zip(bytes).for_each(|(room, byte)| *room = byte);
                // The beginning of a frame is none.
                most * 4 + 3
            });
        }
        writer.write_in_place(|planes| {
            refused += usize::from(planes.is_empty());
            1
        });
        let written = (writer.position() - position) as usize;
        let mut left = vec![0.0; written];
        writer.read(0, position, &mut left);
        assert_eq!([left], coarse_planes(position, written)[..1]);
        assert_eq!(player.play(written), coarse_planes(position, written), "from {position} on");
    }
    assert!(refused > 10, "it has no planes");
    assert_eq!(player.stream.faults(), 0);
    let (mut planar, _player) = playback(shape(2, 2048));
    planar.write_frames_in_place(|room| room.len() + 8);
    assert_eq!(planar.position(), 0, "it has no frames");
}

#[test]
fn a_full_ring_takes_only_what_the_device_has_given_back() {
    let (mut writer, mut player) = playback(shape(1, 1024));
    let frames = woven(0, 3000, 1);
    assert_eq!((writer.write(Samples::Interleaved(&frames)), writer.available()), (1024, 0));
    assert_eq!(writer.write(Samples::Interleaved(&frames[1024..])), 0);
    writer.write_in_place(|room| {
        assert_eq!(room, [[0.0; 0]]);
        1
    });
    assert_eq!(player.play(100), planes(0, 100, 1));
    assert_eq!(writer.available(), 100, "no more was written than there was room");
    assert_eq!(writer.write(Samples::Interleaved(&frames[1024..])), 100);
    assert_eq!(player.play(3000), planes(100, 1024, 1), "nothing was overwritten");
}

#[test]
fn frames_written_ahead_are_heard_once_they_are_published() {
    let (mut writer, mut player) = playback(shape(2, 1024));
    let (begin, rest) = (woven(0, 100, 2), woven(100, 900, 2));
    assert_eq!(writer.write_at(100, Samples::Interleaved(&rest)), 900);
    assert_eq!(player.stream.written(), 0);
    assert_eq!(writer.write_at(0, Samples::Interleaved(&begin)), 100);
    assert!(writer.publish(100));
    assert_eq!(player.play(1000), planes(0, 100, 2));
    assert!(writer.publish(1000));
    assert_eq!(player.play(1000), planes(100, 900, 2));
    assert_eq!(writer.write_at(999, Samples::Interleaved(&begin)), 0, "it was published");
    assert!(!writer.publish(999) && !writer.publish(1000 + 1025) && writer.publish(1000));
    assert_eq!(player.stream.faults(), 0);
}

#[test]
fn channels_that_a_program_leaves_out_are_silent() {
    let (mut writer, mut player) = playback(shape(3, 1024));
    writer.write(Samples::Interleaved(&woven(0, 1024, 3)));
    player.play(1024);
    let left = [0.5; 10];
    assert_eq!(writer.write(Samples::Planar(&[&left, &left[..8]])), 8, "the shortest counts");
    assert_eq!(player.play(10), [vec![0.5; 8], vec![0.5; 8], vec![0.0; 8]]);
    assert_eq!(writer.write(Samples::Planar(&[])), 0);
}

#[test]
fn wishes_arrive_in_order_and_as_many_as_can_wait() {
    let (mut writer, mut player) = playback(shape(1, 1024));
    let control = writer.control_mut();
    let last = WISHES as u64;
    for number in 1..=last {
        assert_eq!(control.wish(Wish::Splice { position: number }), Ok(number));
    }
    assert_eq!(control.wish(Wish::Hold), Err(NoRoomForWish));
    for number in 1..=last {
        assert_eq!(control.acknowledgement(number), None);
        assert_eq!(
            player.stream.next_wish(),
            Some((number, Some(Wish::Splice { position: number })))
        );
        player.stream.acknowledge(number, Some(100 * number));
        assert_eq!(control.acknowledgement(number), Some(Acknowledgement::At(100 * number)));
    }
    assert_eq!(player.stream.next_wish(), None);
    assert_eq!(control.wish(Wish::Run), Ok(last + 1));
    assert_eq!(player.stream.next_wish(), Some((last + 1, Some(Wish::Run))));
}

#[test]
fn a_program_waits_for_its_wish_without_a_socket() {
    let (mut writer, mut player) = playback(shape(1, 1024));
    let wish = writer.control_mut().wish(Wish::Hold).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.control().await_acknowledgement(wish, in_a_minute()));
        let (number, _) = player.stream.next_wish().unwrap();
        player.stream.acknowledge(number, None);
        player.stream.page().kick(&Futex);
        assert_eq!(waiting.join().unwrap(), Some(Acknowledgement::Refused));
    });
    assert_eq!(writer.control().await_acknowledgement(wish + 1, 0), None, "after its deadline");
}

#[test]
fn a_program_wakes_before_the_device_needs_what_is_not_written() {
    let (mut writer, player) = playback(shape(1, 1024));
    let wake_ns = sys::clock::now_ns() + 20_000_000;
    let schedule = Schedule { wake_ns, until: 64, interval_ns: 5_000_000, interval_frames: 64 };
    player.stream.page().set_schedule(schedule);
    let lead_ns = 10_000_000;
    for due in [Due { at_ns: wake_ns, until: 64 }, Due { at_ns: wake_ns + 5_000_000, until: 128 }] {
        assert_eq!(writer.await_demand(lead_ns, in_a_minute()), Some(due));
        assert!(sys::clock::now_ns() >= due.at_ns - lead_ns, "not before");
        let frames = (due.until - writer.position()) as usize;
        writer.write(Samples::Interleaved(&woven(writer.position(), frames, 1)));
    }
    let (soon, minute_ns) = (sys::clock::now_ns() + 1_000_000, 60_000_000_000);
    player.stream.page().set_schedule(Schedule { wake_ns: in_a_minute(), until: 192, ..schedule });
    assert_eq!(writer.await_demand(0, soon), None, "not after the deadline");
    let due = writer.await_demand(2 * minute_ns, soon);
    assert_eq!(due.map(|due| due.until), Some(192), "as early as asked for");
}

#[test]
fn a_program_with_a_full_ring_waits_for_a_device_that_is_late() {
    let (mut writer, mut player) = playback(shape(1, 1024));
    writer.write(Samples::Interleaved(&woven(0, 1024, 1)));
    let due = Due { at_ns: 1, until: 2048 };
    player.stream.page().set_schedule(Schedule {
        wake_ns: due.at_ns,
        until: due.until,
        ..Schedule::default()
    });
    assert_eq!(writer.await_demand(0, sys::clock::now_ns() + 3_000_000), None);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.await_demand(0, in_a_minute()));
        player.play(1);
        assert_eq!(waiting.join().unwrap(), Some(due));
    });
}

#[test]
fn a_paused_program_sleeps_until_the_schedule_changes() {
    let (writer, player) = playback(shape(1, 1024));
    player.stream.page().set_schedule(Schedule { until: 0, ..Schedule::default() });
    let due = Due { at_ns: 1, until: 64 };
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| writer.await_demand(0, in_a_minute()));
        player.stream.page().set_schedule(Schedule {
            wake_ns: due.at_ns,
            until: due.until,
            ..Schedule::default()
        });
        player.stream.page().kick(&Futex);
        assert_eq!(waiting.join().unwrap(), Some(due));
    });
}

#[test]
fn a_program_reads_what_is_heard_when() {
    let (mut writer, player) = playback(shape(1, 1024));
    assert_eq!(writer.control_mut().timing(), Timing::default());
    let timing = Timing {
        at_ns: 1_000_000,
        device_frame: 500,
        position: 10,
        until: 1000,
        frame_ps: 20_000_000,
        latency_ns: 3_000_000,
    };
    player.stream.page().set_timing(timing);
    assert_eq!(writer.control_mut().timing(), timing);
    assert_eq!(writer.control_mut().timing().position_at(2_000_000), 60);
}

/// 50 kHz: a frame is 20 µs.
const RUNNING: Timing = Timing {
    at_ns: 1_000_000,
    device_frame: 500,
    position: 100,
    until: 700,
    frame_ps: 20_000_000,
    latency_ns: 0,
};

/// The program's end of a stream on another server, whose device has it from `position` on, and
/// that device.
fn returned(writer: &mut StreamWriter, position: u64, shape: RingShape) -> (StreamWriter, Player) {
    let ring = writer.copy_ring(position, shape).expect("memory");
    let (player, page) = Player::receive(shape, copy(&ring));
    let player = Player { stream: player.stream.beginning_at(position), position };
    (writer.following(ring, Shared::receive(page).expect("a page")), player)
}

#[test]
fn what_was_queued_is_played_by_the_next_server_from_any_position_in_a_ring_of_any_size() {
    for (position, capacity) in [(0, 1024), (1500, 1024), (1500, 4096), (2400, 1024)] {
        for shape in [shape, of_frames] {
            is_played_by_the_next_server(position, [shape(2, 2048), shape(2, capacity)]);
        }
    }
}

fn is_played_by_the_next_server(position: u64, shapes: [RingShape; 2]) {
    let (mut writer, mut player) = playback(shapes[0]);
    let write = |writer: &mut StreamWriter, from, frames| {
        writer.write(Samples::Interleaved(&coarse(woven(from, frames, 2))));
    };
    write(&mut writer, 0, 1000);
    player.play(position.min(1000) as usize);
    if position > 1000 {
        write(&mut writer, 1000, 1500);
        player.play((position - 1000) as usize);
    }
    // Not published yet.
    let end = writer.position();
    writer.write_at(end, Samples::Interleaved(&coarse(woven(end, 20, 2))));
    let (mut writer, mut next) = returned(&mut writer, position, shapes[1]);
    assert_eq!(next.play(2000), coarse_planes(position, (end - position) as usize));
    assert!(writer.publish(end + 20));
    assert_eq!(next.play(2000), coarse_planes(end, 20), "written before, published after");
    write(&mut writer, end + 20, 500);
    assert_eq!(next.play(2000), coarse_planes(end + 20, 500));
    assert_eq!(next.stream.faults(), 0);
}

#[test]
fn what_was_queued_is_there_before_the_next_server_has_the_ring() {
    let (mut writer, _player) = playback(shape(1, 1024));
    writer.write(Samples::Interleaved(&woven(0, 1000, 1)));
    let ring = writer.copy_ring(100, shape(1, 1024)).expect("memory");
    let (player, _page) = Player::receive(ring.shape(), copy(&ring));
    assert_eq!(player.stream.beginning_at(100).written(), 1000);
}

#[test]
fn the_next_server_is_told_what_the_program_wants_and_counts_go_on() {
    let (mut writer, mut player) = playback(shape(1, 1024));
    writer.write(Samples::Interleaved(&woven(0, 1000, 1)));
    let run = writer.control_mut().wish(Wish::Run).unwrap();
    player.stream.acknowledge(run, Some(0));
    player.stream.note_miss(Miss { position: 90, device_frame: 0, frames: 7 });
    player.stream.page().set_timing(RUNNING);
    // Half of a frame later.
    let gone_ns = 1_210_000;
    writer.control_mut().leave(gone_ns, 1000);
    let control = writer.control_mut();
    assert_eq!(control.timing().position_at(u64::MAX), 110, "it stays where it was heard");
    player.stream.page().set_timing(Timing { position: 500, ..RUNNING });
    assert_eq!(control.timing().position, 110, "whatever is published now");
    let wishes = u64::try_from(WISHES).unwrap();
    for _ in 0..2 * wishes {
        control
            .wish(Wish::Depth { frames: 480 })
            .expect("there is always room for the next server");
    }
    let last = run + 2 * wishes;
    assert_eq!(control.acknowledgement(last), None);
    let (mut writer, mut next) = returned(&mut writer, 110, shape(1, 1024));
    let told = [next.stream.next_wish(), next.stream.next_wish(), next.stream.next_wish()];
    let depth = Wish::Depth { frames: 480 };
    assert_eq!(told, [Some((1, Some(depth))), Some((2, Some(Wish::Run))), None]);
    let control = writer.control_mut();
    assert_eq!(control.acknowledgement(last), Some(Acknowledgement::Forgotten));
    let hold = control.wish(Wish::Hold).unwrap();
    assert_eq!((hold, next.stream.next_wish()), (last + 3, Some((3, Some(Wish::Hold)))));
    next.stream.acknowledge(3, Some(480));
    assert_eq!(control.acknowledgement(hold), Some(Acknowledgement::At(480)));
    assert_eq!(control.timing().position_at(u64::MAX), 110, "it holds there");
    next.stream.note_miss(Miss { position: 110, device_frame: 0, frames: 5 });
    assert_eq!((control.misses(), control.missed_frames()), (2, 12));
}

#[test]
fn a_seek_that_nothing_was_heard_of_is_where_the_next_server_begins() {
    let (mut writer, player) = playback(shape(1, 1024));
    writer.write(Samples::Interleaved(&woven(0, 1000, 1)));
    let control = writer.control_mut();
    player.stream.page().set_timing(RUNNING);
    control.wish(Wish::Splice { position: 800 }).unwrap();
    control.leave(1_200_000, 1000);
    assert_eq!(control.timing().position, 800);
    control.wish(Wish::Splice { position: 900 }).unwrap();
    assert_eq!(control.timing().position_at(u64::MAX), 900, "also one without a server");
}
