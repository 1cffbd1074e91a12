//! What a program wishes while two seconds are queued, by the frames that leave the device.

use std::time::Duration;

use client::stream::{Gains, Samples};
use harness::{Sound, eventually, in_three_attempts};
use rustix::process::Signal;
use sys::clock::now_ns;

use crate::programs::{FADE, Player, TEN_MS, assert_continuous, level, plateaus};
use crate::{RATE_HZ, ramps};

const SECOND: usize = RATE_HZ as usize;

/// Makes a wish; returns the device frame at which it takes effect, and asserts that this is within
/// ten milliseconds.
fn at_once(player: &mut Player, wish: impl FnOnce(&mut Player) -> u64) -> Result<usize, String> {
    let before = player.heard();
    let number = wish(player);
    let at = player.taken(number);
    assert!(at >= before, "what was heard is not changed: {at} is before {before}");
    let late = at - before;
    if late > TEN_MS {
        return Err(format!("heard {late} frames later"));
    }
    Ok(at as usize)
}

#[test]
fn a_pause_and_what_follows_are_heard_within_ten_milliseconds_and_without_a_step() {
    in_three_attempts(|| {
        let mut player = Player::start(&level(0.5, 5 * SECOND));
        player.await_deep();
        let paused = at_once(&mut player, |player| player.stream.hold().expect("held"))?;
        player.await_stop();
        let held = player.stream.heard(now_ns());
        assert_eq!(player.stream.heard(now_ns()), held, "it holds");
        let resumed = at_once(&mut player, |player| player.stream.run().expect("runs"))?;
        player.await_deep();
        let gains = Gains::all(0.25).expect("a gain");
        let softer =
            at_once(&mut player, |player| player.stream.set_gains(gains, 480).expect("set"))?;
        player.await_heard(softer as u64 + 10 * TEN_MS);
        assert_eq!((player.stream.underruns(), player.stream.has_drained(now_ns())), (0, false));
        let recorded = player.recorded()?;
        let channel = &recorded.channels[0];
        let begin = channel.iter().position(|sample| *sample != 0.0).expect("sound");
        assert_continuous(&channel[begin..], 0.5);
        // Between pause and resumption, the device stood for most of the time.
        let sounding: Vec<f32> =
            plateaus(&channel[begin..], FADE).into_iter().filter(|level| *level != 0.0).collect();
        assert_eq!(sounding[..3], [0.5, 0.5, 0.125]);
        // To the frame: the first one of a fade is softer than the one before.
        assert!(channel[paused - 1] == 0.5 && channel[paused] < 0.5);
        assert!(channel[paused + FADE..resumed].iter().all(|sample| *sample == 0.0));
        assert!(channel[resumed] > 0.0 && channel[resumed + FADE] == 0.5);
        assert!(channel[softer - 1] == 0.5 && channel[softer + 480] == 0.125);
        Ok(())
    });
}

#[test]
fn after_a_pause_each_frame_is_heard_that_follows_where_it_began() {
    in_three_attempts(|| {
        let sound = ramps(5 * SECOND);
        let mut player = Player::start(&sound);
        player.await_deep();
        let paused = at_once(&mut player, |player| player.stream.hold().expect("held"))?;
        player.await_stop();
        let held = player.stream.heard(now_ns()) as usize;
        let resumed = at_once(&mut player, |player| player.stream.run().expect("runs"))?;
        player.await_heard(resumed as u64 + 10 * TEN_MS);
        let recorded = player.recorded()?;
        for (channel, played) in recorded.channels.iter().zip(&sound.channels) {
            let begin = channel.iter().position(|sample| *sample != 0.0).expect("sound");
            assert_eq!(paused - begin, held, "it holds where the fade began");
            assert_eq!(channel[begin..paused], played[..held], "until then, every frame");
            let after = TEN_MS as usize;
            assert_eq!(
                channel[resumed + FADE..][..after],
                played[held + FADE..][..after],
                "and every frame from there on"
            );
        }
        Ok(())
    });
}

#[test]
fn a_seek_is_heard_within_ten_milliseconds_and_fades_into_what_is_new() {
    in_three_attempts(|| {
        let mut player = Player::start(&level(0.5, 4 * SECOND));
        player.await_deep();
        // In the ring, what is new follows after what is dropped.
        let new = level(-0.25, SECOND / 2);
        let planes: Vec<&[f32]> = new.channels.iter().map(Vec::as_slice).collect();
        let seek = |player: &mut Player| {
            let (wish, written) =
                player.stream.replace(Samples::Planar(&planes)).expect("replaced");
            assert_eq!(written, SECOND / 2, "it has room");
            wish
        };
        let at = at_once(&mut player, seek)?;
        player.await_heard(at as u64 + 10 * TEN_MS);
        let queued = player.stream.queued_frames(now_ns());
        assert!(queued < SECOND as u64 / 2, "what was dropped is not queued: {queued}");
        let again = at_once(&mut player, |player| {
            let written = player.stream.writer().position();
            player.stream.splice(written - SECOND as u64 / 4).expect("spliced")
        })?;
        player.await_heard(again as u64 + 10 * TEN_MS);
        let heard = player.stream.heard(now_ns());
        let from = 4 * SECOND as u64 + SECOND as u64 / 4;
        assert!(heard >= from + 10 * TEN_MS, "positions go on from there: {heard}");
        let recorded = player.recorded()?;
        let channel = &recorded.channels[0];
        let begin = channel.iter().position(|sample| *sample != 0.0).expect("sound");
        assert_continuous(&channel[begin..], 0.75);
        assert_eq!(plateaus(&channel[begin..], FADE)[..2], [0.5, -0.25]);
        assert!(channel[at - 1] == 0.5 && channel[at] < 0.5 && channel[at + FADE] == -0.25);
        Ok(())
    });
}

#[test]
fn what_is_written_after_a_flush_is_heard_next() {
    in_three_attempts(|| {
        let mut player = Player::start(&level(0.5, 5 * SECOND));
        player.await_deep();
        let held = at_once(&mut player, |player| player.stream.hold().expect("held"))?;
        at_once(&mut player, |player| player.stream.flush().expect("flushed"))?;
        let new_position = 5 * SECOND as u64;
        eventually("its new position is published", || {
            (player.stream.heard(now_ns() + 20_000_000) == new_position).then_some(())
        });
        player.write(&level(0.25, SECOND / 4));
        player.await_stop();
        let run = at_once(&mut player, |player| player.stream.run().expect("runs"))?;
        player.await_heard(run as u64 + 5 * TEN_MS);
        assert_eq!(player.stream.underruns(), 0, "a stream that holds misses nothing");
        let recorded = player.recorded()?;
        let channel = &recorded.channels[0];
        assert!(channel[held - 1] == 0.5 && channel[held] < 0.5);
        let between = &channel[held + FADE..run];
        assert!(between.iter().all(|sample| *sample == 0.0), "nothing is heard until it runs");
        assert_eq!(channel[run], 0.25, "new frames begin at once");
        assert_eq!(channel[run..][..4 * TEN_MS as usize], vec![0.25; 4 * TEN_MS as usize]);
        Ok(())
    });
}

/// Plays two halves of a sound, and drains after each. A drain that comes when the first half is
/// heard is too late: it has run dry then.
fn expect_exact_ends(sound: &Sound) -> Result<(), String> {
    let half = |from: usize| {
        let channels: Vec<Vec<f32>> =
            sound.channels.iter().map(|all| all[from..from + SECOND / 2].to_vec()).collect();
        Sound::of(RATE_HZ, &channels)
    };
    let mut player = Player::start(&half(0));
    player.stream.drain().expect("drained");
    let end = SECOND as u64 / 2;
    if player.stream.heard(now_ns()) > end / 2 {
        return Err("the machine is busy: half of it was heard before it was drained".to_owned());
    }
    eventually("it has drained", || player.stream.has_drained(now_ns()).then_some(()));
    assert_eq!(player.stream.heard(now_ns()), end);
    assert_eq!(player.stream.underruns(), 0);
    player.write(&half(SECOND / 2));
    player.stream.drain().expect("drained");
    eventually("it has drained", || player.stream.has_drained(now_ns()).then_some(()));
    let recorded = player.recorded()?;
    for (channel, played) in recorded.channels.iter().zip(&sound.channels) {
        let parts: Vec<&[f32]> =
            channel.split(|sample| *sample == 0.0).filter(|part| !part.is_empty()).collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [SECOND / 2; 2]);
        assert!(parts.concat() == *played, "other samples were heard");
    }
    Ok(())
}

#[test]
fn a_drained_end_is_exact_and_a_stream_goes_on_after_it() {
    let sound = ramps(SECOND);
    in_three_attempts(|| expect_exact_ends(&sound));
}

#[test]
fn a_stream_that_runs_dry_says_so_and_counts_it_once() {
    let mut player = Player::start(&level(0.5, SECOND / 4));
    eventually("it has run dry", || player.stream.has_drained(now_ns()).then_some(()));
    assert_eq!(player.stream.underruns(), 0, "not over yet");
    std::thread::sleep(std::time::Duration::from_millis(50));
    player.write(&level(0.5, SECOND / 4));
    player.stream.call().expect("called");
    eventually("it goes on", || (player.stream.underruns() == 1).then_some(()));
    assert!(player.stream.writer().control().missed_frames() > 0);
}

#[test]
fn frames_that_a_device_did_not_render_in_time_are_counted_as_its_own() {
    let mut player = Player::start(&level(0.5, 5 * SECOND));
    player.await_deep();
    // Longer than all that is queued lasts.
    player.server.program().signal(Signal::STOP);
    std::thread::sleep(Duration::from_millis(2200));
    player.server.program().signal(Signal::CONT);
    eventually("it is counted", || {
        let status = player.server.consort_json(&["status"]);
        (status["device_lost_frames"].as_u64() > Some(0)).then_some(())
    });
    assert_eq!(player.stream.writer().control().missed_frames(), 0, "the program was in time");
    let shown = player.server.consort(&["status"]).expect_success().stdout;
    assert!(shown.contains(" frames not rendered in time\n"), "{shown}");
}
