//! What is not heard yet is there to be written again.

use std::collections::VecDeque;
use std::f64::consts::TAU;

use convert::{Options, PlaybackConverter};
use proptest::prelude::*;

use super::super::sent::SentBytes;
use super::*;

/// A rate of programs that is below the device's.
const LOWER_HZ: u32 = 44_100;

fn queued() -> Requested {
    let buffer = BufferAttr { pre_buffering: 1000, ..BufferAttr::default() };
    Requested { buffer, latency: Latency::Queue }
}

/// Seconds of 1 kHz at [`LOWER_HZ`], as 16-bit samples, each of which begins and ends silently: it
/// has no treble to be lost where it is cut off there.
fn tone(seconds: usize) -> Vec<u8> {
    let sample = |at: usize| {
        let seconds = at as f64 / f64::from(LOWER_HZ);
        let level = 16_000.0 * (TAU / 2.0 * seconds).sin().powi(2);
        (level * (TAU * 1000.0 * seconds).sin()) as i16
    };
    (0..seconds * LOWER_HZ as usize).flat_map(|at| sample(at).to_le_bytes()).collect()
}

fn samples(bytes: impl IntoIterator<Item = u8>) -> Vec<i32> {
    let bytes: Vec<u8> = bytes.into_iter().collect();
    bytes.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample).into()).collect()
}

/// Requires the same samples, but for rounding.
#[track_caller]
fn require_nearly(is: &[i32], ought: &[i32]) {
    assert_eq!(is.len(), ought.len());
    let differences: Vec<i32> =
        is.iter().zip(ought).map(|(is, ought)| (is - ought).abs()).collect();
    let worst = differences.iter().enumerate().max_by_key(|(_, difference)| **difference);
    assert!(worst.is_none_or(|(_, difference)| *difference <= 2), "{worst:?} of {}", is.len());
}

#[test]
fn only_what_could_be_heard_elsewhere_and_is_lost_to_the_device_is_kept() {
    let is_kept = |(map, rate_hz): (&str, u32), (device_map, device_hz): (&str, u32)| {
        let format = SampleFormat::Linear(dsp::Format::S16Le);
        let program = ProgramFormat { format, rate_hz, map: map.parse().expect("a map") };
        let map = device_map.parse().expect("a map");
        let device = StreamFormat { rate_hz: device_hz, map };
        let options = Options::default();
        let converter = PlaybackConverter::new(&program, &device, options).expect("possible");
        let sent = SentBytes::new(&converter, &program, &device, options.mixing, 0);
        matches!(sent, SentBytes::Kept(_))
    };
    assert!(!is_kept(("stereo", 44_100), ("stereo", 48_000)));
    assert!(!is_kept(("stereo", 96_000), ("stereo", 44_100)), "nobody hears that treble");
    assert!(!is_kept(("mono", 8_000), ("surround-51", 16_000)));
    assert!(is_kept(("stereo", 44_100), ("stereo", 16_000)), "speech has less treble");
    assert!(is_kept(("stereo", 48_000), ("mono", 48_000)), "one has both channels");
}

#[test]
fn what_is_kept_takes_little_more_memory_than_its_bytes() {
    let [.., mut playback] = each(0);
    playback.sent = SentBytes::Kept(VecDeque::new());
    let piece = bytes(0, 2048);
    for second in 1..=8 {
        while playback.times(playback.output.now_ns).write_index < (second + 1) * SECOND as i64 {
            playback.put(&piece);
        }
        playback.late(second as u64 * SECOND_NS);
    }
    let SentBytes::Kept(sent) = &playback.sent else { unreachable!("it stays so") };
    let (kept, room) = (sent.len(), sent.capacity());
    assert!(kept >= SECOND, "{kept} bytes are kept");
    let most = 2 * SECOND + piece.len();
    assert!(room <= most + most / 8 + piece.len(), "{kept} bytes are kept in {room}");
}

#[test]
fn what_the_ring_has_unchanged_is_kept_nowhere_else() {
    for mut playback in each(0) {
        playback.put(&bytes(0, RATE_HZ as usize));
        assert!(playback.sent.kept() <= 2);
        assert_eq!(playback.kept_bytes(), SECOND, "which counts all the same");
        let again = playback.unheard(0);
        assert!(again == bytes(0, RATE_HZ as usize), "bit for bit");
        playback.late(SECOND_NS / 2);
        let again = playback.unheard(SECOND_NS / 2);
        assert!(again == bytes(RATE_HZ as usize / 2, RATE_HZ as usize / 2), "what is not heard");
    }
}

#[test]
fn what_the_ring_has_at_a_higher_rate_is_converted_back() {
    let (all, second) = (tone(2), 2 * LOWER_HZ as usize);
    // More follows, so it is loud where the ring ends: at any place of the resampler's block.
    for frames in (0..600).step_by(97) {
        let all = &all[..second + second / 2 + 2 * frames];
        let mut playback = playback_at(LOWER_HZ, "mono", queued());
        all.chunks(777).for_each(|piece| playback.put(piece));
        let kept = playback.sent.kept();
        assert!(kept < second / 10, "{kept} bytes are kept");
        assert_eq!(playback.kept_bytes(), all.len(), "which counts all the same");
        playback.late(SECOND_NS);
        let again = samples(playback.unheard(SECOND_NS));
        require_nearly(&again, &samples(all[second..].to_vec()));
    }
}

#[test]
fn what_was_converted_before_a_drain_is_converted_back_as_well() {
    let mut playback = playback_at(LOWER_HZ, "mono", queued());
    // It ends between two frames of the device.
    let second = &tone(1)[..2 * (LOWER_HZ as usize - 90)];
    playback.put(second);
    playback.drain(0, 0);
    playback.put(second);
    playback.drain(1, 0);
    playback.late(SECOND_NS / 2);
    let mut ought = second[LOWER_HZ as usize..].to_vec();
    ought.extend(second);
    require_nearly(&samples(playback.unheard(SECOND_NS / 2)), &samples(ought));
}

#[test]
fn each_channel_is_converted_back_from_where_it_is() {
    let mut playback = playback_from("front-right,front-left", LOWER_HZ, "stereo", queued());
    let (one, other) = (tone(1), tone(2));
    let both = one.as_chunks::<2>().0.iter().zip(other.as_chunks::<2>().0.iter().skip(9));
    let both: Vec<u8> = both.flat_map(|(one, other)| [*one, *other]).flatten().collect();
    playback.put(&both);
    require_nearly(&samples(playback.unheard(0)), &samples(both));
}

#[test]
fn what_was_drained_too_often_to_be_remembered_is_left_out() {
    let mut playback = playback_at(LOWER_HZ, "mono", queued());
    let second = tone(1);
    playback.put(&second);
    playback.drain(0, 0);
    (0..64).for_each(|_| playback.put(&[0; 2000]));
    playback.put(&second);
    let again = samples(playback.unheard(0));
    assert!(again.len() < LOWER_HZ as usize + 64 * 1000, "the first of them");
    let last = again.len() - LOWER_HZ as usize;
    require_nearly(&again[last..], &samples(second));
}

#[test]
fn an_incomplete_frame_at_a_drain_shifts_nothing_that_follows() {
    for mut playback in each(0) {
        playback.put(&bytes(0, 3)[..5]);
        playback.drain(0, 0);
        playback.put(&bytes(10, 5));
        assert!(playback.unheard(0) == [bytes(0, 2), bytes(10, 5)].concat());
    }
}

#[test]
fn what_is_converted_back_is_an_effort_of_its_program() {
    let seconds = 2_u64;
    let all = tone(seconds as usize);
    let spent_ns = [LOWER_HZ, RATE_HZ].map(|rate_hz| {
        let mut playback = playback_at(rate_hz, "mono", queued());
        playback.put(&all);
        playback.write(Seek::Relative(-2), &all[..2], 0);
        playback.rewritten_until_ns * u64::from(rate_hz) / u64::from(LOWER_HZ)
    });
    assert_eq!(spent_ns[0] / 1_000_000, seconds * 1000 / 8, "all of it");
    assert!(spent_ns[1] <= spent_ns[0], "what is not resampled is not more");
}

#[test]
fn a_program_that_goes_back_has_its_bytes_kept_from_then_on() {
    let mut playback = playback_at(LOWER_HZ, "mono", queued());
    let all = tone(2);
    playback.put(&all);
    let middle = all.len() / 2;
    playback.write(Seek::Absolute(middle as i64), &all[middle..][..1000], 0);
    require_nearly(&samples(playback.unheard(0)), &samples(all[..middle + 1000].to_vec()));
    playback.sent.clear(0);
    playback.put(&all);
    assert_eq!(playback.sent.kept(), all.len());
}

#[test]
fn half_a_frame_is_written_again_as_well() {
    for mut playback in each(0) {
        playback.put(&bytes(0, 3)[..5]);
        assert!(playback.unheard(0) == &bytes(0, 3)[..5]);
    }
}

proptest! {
    #[test]
    fn as_many_frames_are_written_again_whether_they_are_kept_or_not(
        rate_hz in prop::sample::select(vec![8_000, LOWER_HZ, 44_101, RATE_HZ, 96_000]),
        steps in prop::collection::vec((0..6_usize, 1..10_000_usize), 1..30),
        half in 0..2_usize,
    ) {
        let mut playbacks = [(); 2].map(|()| playback_at(rate_hz, "stereo", queued()));
        playbacks[1].sent = SentBytes::Kept(VecDeque::new());
        let unheard = playbacks.map(|mut playback| {
            for (step, frames) in &steps {
                let now_ns = playback.output.now_ns;
                match step {
                    0 => drop(playback.pass(now_ns + *frames as u64 * 20_000)),
                    1 => playback.drain(0, now_ns),
                    2 => playback.flush(now_ns),
                    3 => playback.write(Seek::Relative(2 * *frames as i64), &[], now_ns),
                    _ => playback.put(&bytes(0, *frames)),
                }
            }
            // In a drain, half a frame is thrown away.
            playback.put(&bytes(0, 1)[..half]);
            let now_ns = playback.output.now_ns;
            samples(playback.unheard(now_ns))
        });
        if rate_hz == RATE_HZ {
            prop_assert!(unheard[0] == unheard[1]);
        }
        prop_assert_eq!(unheard[0].len(), unheard[1].len());
    }
}
