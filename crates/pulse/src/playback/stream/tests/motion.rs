//! When it begins, stops, ends and asks.

use client::stream::{Schedule, Timing, Wish};

use crate::output::Output as _;

use super::*;

const DEFAULT: u32 = u32::MAX;

#[test]
fn requests_keep_the_buffer_full_with_few_wake_ups_of_the_program() {
    let mut playback = playback(DEFAULT);
    let attributes = playback.attributes();
    playback.put(&bytes(0, attributes.target_length as usize / 2));
    let mut requests = 0;
    for tenth in 1..200 {
        for (_, notice) in playback.pass(tenth * SECOND_NS / 10) {
            match notice {
                Notice::Request(length) => {
                    requests += 1;
                    playback.put(&bytes(0, length as usize / 2));
                }
                Notice::Started => {}
                other => panic!("{other:?}"),
            }
        }
    }
    // Twenty seconds, of which each request brings nearly two.
    assert!((9..=11).contains(&requests), "{requests}");
}

/// Chromium does, by libpulse's count of what was requested. Once, the front end and then the
/// program are late, and what was written runs out.
#[test]
fn a_program_that_writes_whole_buffers_goes_on_playing() {
    // 512 frames.
    const BUFFER: u32 = 1024;
    const MS: u64 = 1_000_000;
    let buffer = BufferAttr {
        target_length: 3 * BUFFER,
        minimum_request_length: BUFFER / 2,
        ..BufferAttr::default()
    };
    for (late_ms, later_ms) in
        (0..60).step_by(3).flat_map(|ms| (0..60).step_by(3).map(move |other| (ms, other)))
    {
        let mut playback = playback_of(Requested { buffer, latency: Latency::Total });
        let mut requested = i64::from(playback.attributes().target_length);
        let mut written_at_turn = 0;
        for turn in 1..=40 {
            while requested > 0 {
                playback.put(&bytes(0, BUFFER as usize / 2));
                requested -= i64::from(BUFFER);
                written_at_turn = turn;
            }
            let now_ns = playback.output.now_ns + MS;
            let mut notices = Vec::new();
            let mut until_ns = now_ns + 10 * MS;
            if turn == 3 {
                until_ns = now_ns + late_ms * MS;
                notices.extend(playback.late(until_ns));
                until_ns += later_ms * MS;
            }
            notices.extend(playback.pass(until_ns));
            for (_, notice) in notices {
                if let Notice::Request(length) = notice {
                    requested += i64::from(length);
                }
            }
        }
        assert!(written_at_turn > 30, "stalled when {late_ms} ms and {later_ms} ms late");
    }
}

/// SDL 1.2 does.
#[test]
fn a_program_that_leaves_a_part_of_a_request_is_asked_again_in_time() {
    // 85 ms.
    const BUFFER: u32 = 8192;
    let buffer = BufferAttr {
        target_length: 4 * BUFFER,
        minimum_request_length: BUFFER,
        ..BufferAttr::default()
    };
    let mut playback = playback_of(Requested { buffer, latency: Latency::Total });
    let mut requested = i64::from(playback.attributes().target_length);
    for look in 1..300 {
        while requested >= i64::from(BUFFER) {
            playback.put(&bytes(0, BUFFER as usize / 2));
            requested -= i64::from(BUFFER);
        }
        for (at_ns, notice) in playback.pass(look * SECOND_NS / 100) {
            if let Notice::Request(length) = notice {
                requested += i64::from(length);
                let times = playback.times(at_ns);
                let left = times.write_index - times.read_index;
                assert!(left >= i64::from(BUFFER), "{left} bytes are left at look {look}");
            }
        }
    }
}

/// ALSA's plug-in wants to be, and asks its program for the same. Audacity has no more than two
/// periods of 75 ms ready, and sends silence for the rest.
#[test]
fn a_stream_with_early_requests_is_asked_for_each_as_soon_as_it_is_missing() {
    let period = 75 * SECOND / 1000;
    let mut playback = playback_of(early(period));
    playback.put(&bytes(0, playback.attributes().target_length as usize / 2));
    let most = period + SECOND / 1000 * 2;
    let mut requested = 0;
    for ms in 1..3000 {
        for (_, notice) in playback.pass(ms * SECOND_NS / 1000) {
            if let Notice::Request(length) = notice {
                let length = length as usize;
                assert!((period..most).contains(&length), "{length} bytes at {ms} ms");
                requested += length;
                playback.put(&bytes(0, length / 2));
            }
        }
    }
    assert!(requested > 5 * SECOND / 2, "{requested}");
}

#[test]
fn a_stream_without_bytes_stops_and_begins_again_as_at_first() {
    let mut playback = playback(4000);
    playback.put(&bytes(0, 4800));
    let notices = playback.pass(SECOND_NS);
    let underflows: Vec<_> =
        notices.iter().filter(|(_, notice)| matches!(notice, Notice::Underflow(_))).collect();
    let [(at_ns, Notice::Underflow(9600))] = underflows[..] else { panic!("{notices:?}") };
    assert!((SECOND_NS / 10..SECOND_NS / 10 + 10_000_000).contains(at_ns), "{at_ns}");
    let end = Wish::Drain { end: 4800 };
    let splice = Wish::Splice { position: 4800 };
    assert_eq!(playback.output.obeyed, [Wish::Run, end, Wish::Hold, splice], "it ends exactly");
    assert!(playback.times(SECOND_NS).underrun_for > SECOND as u64 * 8 / 10);
    playback.put(&bytes(0, 1000));
    assert_eq!(playback.output.obeyed.len(), 4, "it waits for more");
    playback.put(&bytes(0, 1000));
    assert_eq!(playback.output.obeyed[4..], [Wish::Run]);
    let notices = playback.pass(SECOND_NS + SECOND_NS / 50);
    assert!(notices.iter().any(|(_, notice)| *notice == Notice::Started), "{notices:?}");
    assert_eq!(playback.times(SECOND_NS + SECOND_NS / 50).underrun_for, 0);
}

#[test]
fn a_stream_that_waits_for_nothing_runs_on_without_bytes() {
    let mut playback = playback(0);
    assert_eq!(playback.output.obeyed, []);
    playback.put(&bytes(0, 480));
    assert_eq!(playback.output.obeyed, [Wish::Run]);
    let notices = playback.pass(SECOND_NS);
    let underflows = notices.iter().filter(|(_, notice)| *notice == Notice::Underflow(960));
    assert_eq!(underflows.count(), 1, "{notices:?}");
    playback.put(&bytes(0, 4800));
    let goes_on = Wish::Drain { end: u64::MAX };
    assert_eq!(playback.output.obeyed, [Wish::Run, Wish::Drain { end: 480 }, goes_on]);
    let notices = playback.pass(2 * SECOND_NS);
    assert!(notices.iter().any(|(_, notice)| *notice == Notice::Underflow(10_560)), "{notices:?}");
}

#[test]
fn bytes_that_come_just_before_the_end_go_on() {
    let mut playback = playback(4000);
    playback.put(&bytes(0, 4800));
    playback.pass(SECOND_NS / 10 - 10_000_000);
    assert_eq!(playback.output.obeyed, [Wish::Run, Wish::Drain { end: 4800 }]);
    playback.put(&bytes(0, 4800));
    let goes_on = Wish::Drain { end: u64::MAX };
    assert_eq!(playback.output.obeyed[2..], [goes_on]);
    let notices = playback.pass(SECOND_NS / 5 - 1);
    assert!(!notices.iter().any(|(_, notice)| matches!(notice, Notice::Underflow(_))));
}

#[test]
fn a_device_that_ran_dry_and_sleeps_is_called_for_bytes_that_come_unnoticed() {
    let mut playback = playback(4000);
    playback.put(&bytes(0, 4800));
    playback.pass(SECOND_NS / 20);
    assert_eq!(playback.output.calls, 0, "the wish to run calls it");
    // Nobody has looked meanwhile.
    playback.output.now_ns = SECOND_NS / 5;
    playback.put(&bytes(0, 4800));
    assert_eq!((playback.output.calls, playback.output.obeyed.len()), (1, 1));
    playback.pass(SECOND_NS / 5 + SECOND_NS / 20);
    assert_eq!(playback.output.calls, 1, "once for the same bytes");
}

#[test]
fn a_device_that_sleeps_instead_of_beginning_is_called_again() {
    let mut playback = playback(4000);
    playback.output.is_deaf = true;
    playback.put(&bytes(0, 48_000));
    playback.pass(SECOND_NS);
    assert!((5..=10).contains(&playback.output.calls), "{}", playback.output.calls);
}

#[test]
fn a_stream_that_will_run_dry_has_not_yet() {
    let mut playback = playback(4000);
    playback.put(&bytes(0, 9600));
    playback.pass(SECOND_NS / 10);
    let (now_ns, frame_ps) = (playback.output.now_ns, 1_000_000_000_000 / u64::from(RATE_HZ));
    // The device has nothing after its end, which is heard in 5 ms.
    let (at_ns, position) = (now_ns + 5_000_000, 9600);
    let held = Timing { at_ns, position, until: position, frame_ps, ..Timing::default() };
    playback.output.stated = Some(held);
    playback.update(now_ns);
    assert_eq!(playback.take_notices(), []);
    assert_eq!(playback.times(now_ns).read_index, 2 * (9600 - 240));
    playback.update(at_ns);
    assert_eq!(playback.take_notices(), [Notice::Underflow(2 * 9600)]);
}

#[test]
fn a_drain_is_answered_when_the_last_byte_is_heard() {
    let mut playback = playback(DEFAULT);
    playback.put(&bytes(0, 4800));
    playback.drain(7, 0);
    assert_eq!(playback.output.obeyed, [Wish::Run, Wish::Drain { end: 4800 }]);
    let notices = playback.pass(SECOND_NS);
    let [(_, Notice::Started), (at_ns, Notice::Drained { tag: 7 }), ..] = notices[..] else {
        panic!("{notices:?}")
    };
    assert!((SECOND_NS / 10..SECOND_NS / 10 + 5_000_000).contains(&at_ns), "{at_ns}");
    assert_eq!(playback.output.obeyed[2..], [Wish::Hold, Wish::Splice { position: 4800 }]);
    // What comes then waits for the prebuffer again.
    playback.put(&bytes(0, 100));
    assert_eq!(playback.output.obeyed.len(), 4);
    playback.drain(8, SECOND_NS);
    let notices = playback.pass(2 * SECOND_NS);
    assert!(notices.iter().any(|(_, notice)| *notice == Notice::Drained { tag: 8 }));
    assert_eq!(playback.output.heard(), 4900);
}

#[test]
fn a_stream_asks_for_more_early_with_others_and_in_time_alone() {
    let mut playback = playback(DEFAULT);
    playback.put(&bytes(0, 2 * RATE_HZ as usize));
    let begun = playback.pass(SECOND_NS / 100);
    let ahead = begun.iter().find_map(|(_, notice)| match notice {
        Notice::Request(bytes) => Some(*bytes as usize),
        _ => None,
    });
    let ahead = ahead.expect("a request for what the device renders ahead");
    playback.put(&bytes(2 * RATE_HZ as usize, ahead / 2));
    let begun = playback.pass(SECOND_NS / 2);
    assert!(begun.iter().all(|(_, notice)| !matches!(notice, Notice::Request(_))), "{begun:?}");
    let now_ns = playback.output.now_ns;
    let next = playback.next_look(now_ns).expect("a look");
    let early_ns = next.due_ns - next.slack_ns;
    assert!(now_ns < early_ns && early_ns < next.due_ns, "{next:?}");
    playback.output.now_ns = early_ns + 2_000_000;
    playback.update(playback.output.now_ns);
    assert_eq!(playback.take_notices(), [], "it is alone");
    playback.look(playback.output.now_ns);
    assert!(matches!(playback.take_notices()[..], [Notice::Request(_)]), "with others");
}

#[test]
fn a_drain_of_nothing_is_answered_at_once() {
    let mut playback = playback(DEFAULT);
    playback.drain(1, 0);
    assert_eq!(playback.take_notices(), [Notice::Drained { tag: 1 }]);
}

#[test]
fn bytes_after_a_drain_was_asked_for_are_heard_before_its_answer() {
    let mut playback = playback(DEFAULT);
    playback.put(&bytes(0, 4800));
    playback.drain(1, 0);
    playback.put(&bytes(0, 4800));
    let notices = playback.pass(SECOND_NS);
    let drained = notices.iter().find(|(_, notice)| *notice == Notice::Drained { tag: 1 });
    assert!(drained.expect("an answer").0 > SECOND_NS / 5);
}

#[test]
fn a_corked_stream_holds_and_goes_on_where_it_held() {
    let mut playback = playback(DEFAULT);
    playback.cork(true, 0);
    playback.put(&bytes(0, 2 * RATE_HZ as usize));
    playback.pass(SECOND_NS);
    assert_eq!(playback.output.obeyed, []);
    playback.cork(false, SECOND_NS);
    playback.pass(SECOND_NS + SECOND_NS / 2);
    playback.cork(true, SECOND_NS + SECOND_NS / 2);
    let before = playback.times(SECOND_NS + SECOND_NS / 2);
    assert_eq!(playback.next_look(SECOND_NS + SECOND_NS / 2), None);
    playback.pass(3 * SECOND_NS);
    let after = playback.times(3 * SECOND_NS);
    assert_eq!((before.read_index, after.playing_for), (after.read_index, 0));
    assert_eq!(after.read_index, SECOND as i64 / 2);
    assert_eq!(playback.output.obeyed, [Wish::Run, Wish::Hold]);
}

#[test]
fn a_trigger_plays_what_there_is() {
    let mut playback = playback(DEFAULT);
    playback.put(&bytes(0, 480));
    playback.trigger(0);
    assert_eq!(playback.output.obeyed, [Wish::Run]);
}

/// A stream of 20 ms.
fn short() -> Playback<Card> {
    let target_length = (SECOND / 50) as u32;
    let buffer = BufferAttr { target_length, ..BufferAttr::default() };
    playback_of(Requested { buffer, latency: Latency::Total })
}

/// What ALSA's plug-in asks for, with four periods.
fn early(period_bytes: usize) -> Requested {
    let period = period_bytes as u32;
    let buffer = BufferAttr {
        target_length: 4 * period,
        minimum_request_length: period,
        ..BufferAttr::default()
    };
    Requested { buffer, latency: Latency::Early }
}

#[test]
fn a_device_may_render_half_of_what_is_kept_however_short_the_sinks_latency() {
    let mut playback = short();
    assert_eq!(playback.attributes().sink_latency_us, 5000, "and the queue has 15 ms");
    playback.put(&bytes(0, 1));
    assert_eq!(playback.output.depth_frames, RATE_HZ / 100);
}

/// How long before the end of what there is a device looks for more at last, ns.
const LAST_LOOK_NS: u64 = 2_000_000;

/// How often a device wakes by its depth, ns: a fifth of it and 1 ms before the end of what it has
/// rendered.
fn period_ns(depth_frames: u32) -> u64 {
    let depth_ns = u64::from(depth_frames) * SECOND_NS / u64::from(RATE_HZ);
    depth_ns * 4 / 5 - 1_000_000
}

/// What has become of a short stream in six seconds.
struct Followed {
    /// How often its program was asked in the last two.
    asked: u32,
    /// The least that was left when an answer came, ns.
    least_ns: u64,
    /// The depth that is wished in the end, frames.
    depth_frames: u32,
}

/// Plays on a device; the program answers after `answer_ns` of the time.
fn asked_by_a_device(mut playback: Playback<Card>, answer_ns: impl Fn(u64) -> u64) -> Followed {
    let frames = |ns: u64| ns * u64::from(RATE_HZ) / SECOND_NS;
    let target = playback.attributes().target_length as usize / 2;
    playback.put(&bytes(0, target));
    let (mut wake_ns, mut answers, mut asked, mut least) = (0, Vec::new(), 0, u64::MAX);
    let mut depth = playback.output.depth_frames;
    while playback.output.now_ns < 6 * SECOND_NS {
        let deadline_ns = playback.next_look(playback.output.now_ns).map(|look| look.due_ns);
        let next = answers.first().map(|(at_ns, _)| *at_ns);
        let now_ns = [deadline_ns, next, Some(wake_ns)].into_iter().flatten().min().expect("one");
        playback.output.now_ns = now_ns;
        let is_settled = now_ns > 4 * SECOND_NS;
        if now_ns == wake_ns {
            let (heard, written) = (playback.output.heard(), playback.output.written());
            let rendered = written.min(heard + u64::from(depth));
            // As far as there are frames.
            let interval_ns = period_ns(depth);
            let ahead_ns = (rendered - heard) * SECOND_NS / u64::from(RATE_HZ);
            let lead_ns = u64::from(depth) * SECOND_NS / u64::from(RATE_HZ) - interval_ns;
            wake_ns += ahead_ns.saturating_sub(lead_ns).max(1_000_000);
            let until = rendered + frames(interval_ns);
            let interval_frames = frames(interval_ns);
            playback.output.schedule =
                Some(Schedule { wake_ns, until, interval_ns, interval_frames });
        } else if next == Some(now_ns) {
            let (_, length): (u64, u32) = answers.remove(0);
            if is_settled {
                least = least.min(playback.output.written() - playback.output.heard());
            }
            playback.put(&bytes(0, length as usize / 2));
        } else {
            playback.update(now_ns);
        }
        if playback.output.depth_frames
            > std::mem::replace(&mut depth, playback.output.depth_frames)
        {
            let left = playback.output.written() - playback.output.heard();
            assert!(left >= depth.into(), "all that the device may render is there: {left}");
        }
        for notice in playback.take_notices() {
            match notice {
                Notice::Request(length) => {
                    asked += u32::from(is_settled);
                    answers.push((now_ns + answer_ns(now_ns), length));
                }
                Notice::Started => {}
                other => panic!("{other:?} at {now_ns}"),
            }
        }
    }
    let least_ns = least * SECOND_NS / u64::from(RATE_HZ);
    Followed { asked, least_ns, depth_frames: depth }
}

#[test]
fn a_short_stream_is_asked_once_for_each_wake_up_of_its_device() {
    let Followed { asked, least_ns, depth_frames } = asked_by_a_device(short(), |_| 100_000);
    assert_eq!(depth_frames, RATE_HZ / 50 * 7 / 8);
    // Each 13 ms.
    assert!((152..=156).contains(&asked), "{asked}");
    assert!(least_ns > 6_000_000, "{least_ns}");
}

#[test]
fn a_short_stream_of_a_slow_program_is_asked_earlier() {
    for answer_ms in 2..6 {
        let followed = asked_by_a_device(short(), |_| answer_ms * 1_000_000);
        let Followed { asked, least_ns, depth_frames } = followed;
        assert_eq!(depth_frames, RATE_HZ / 100, "{answer_ms} ms");
        assert!((200..=400).contains(&asked), "{answer_ms} ms: {asked}");
        assert!(least_ns > LAST_LOOK_NS, "{answer_ms} ms: {least_ns}");
    }
}

#[test]
fn a_short_stream_whose_program_becomes_slow_is_asked_earlier_again() {
    let slow_from_ns = 4 * SECOND_NS;
    for answer_ms in 3..5 {
        let answer_ns =
            |now_ns| if now_ns < slow_from_ns { 100_000 } else { answer_ms * 1_000_000 };
        let Followed { least_ns, depth_frames, .. } = asked_by_a_device(short(), answer_ns);
        assert_eq!(depth_frames, RATE_HZ / 100, "{answer_ms} ms");
        assert!(least_ns > LAST_LOOK_NS, "{answer_ms} ms: {least_ns}");
    }
}

#[test]
fn a_short_stream_with_early_requests_does_not_follow_its_device() {
    let playback = playback_of(early(SECOND / 200));
    let total_us = playback.attributes().total_us(playback.pace());
    assert_eq!(total_us, 25_000);
    let Followed { asked, depth_frames, .. } = asked_by_a_device(playback, |_| 100_000);
    assert_eq!(u64::from(depth_frames), u64::from(RATE_HZ) * total_us / 2_000_000);
    // Each 5 ms, and LEAST_NS later at most.
    assert!((330..=401).contains(&asked), "{asked}");
}

#[test]
fn bytes_without_room_wait_until_shortly_before_they_are_needed() {
    let seconds = |count: u32| u64::from(count) * u64::from(RATE_HZ);
    let buffer = BufferAttr { target_length: 10 * SECOND as u32, ..BufferAttr::default() };
    let mut playback = playback_of(Requested { buffer, latency: Latency::Queue });
    // The ring has room for eight of these seconds.
    playback.put(&bytes(0, 10 * RATE_HZ as usize));
    playback.pass(SECOND_NS);
    // It wakes at 1.5 s, renders up to 3 s then, and two seconds more each two seconds.
    playback.output.schedule = Some(Schedule {
        wake_ns: 3 * SECOND_NS / 2,
        until: seconds(3),
        interval_ns: 2 * SECOND_NS,
        interval_frames: seconds(2),
    });
    let due_ns = playback.next_look(SECOND_NS).expect("a look").due_ns;
    assert_eq!(due_ns, 15 * SECOND_NS / 2 - SECOND_NS / 5, "it has rendered eight seconds then");
    // That it needs more sooner leaves no time to wait for.
    playback.output.schedule = Some(Schedule { wake_ns: 3 * SECOND_NS / 2, ..Schedule::default() });
    let due_ns = playback.next_look(SECOND_NS).expect("a look").due_ns;
    assert!(due_ns < 8 * SECOND_NS / 5, "{due_ns}: it has room when the device has woken");
}
