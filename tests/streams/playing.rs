//! What a player plays is what leaves the device.

use convert::{
    ChannelMap, Filter, Options, PlaybackConverter, ProgramFormat, SampleFormat, Standard,
    StreamFormat,
};
use harness::{Sound, in_three_attempts};

use crate::{RATE_HZ, await_no_stream, file, play, play_to_end, ramps, server, streams};

/// Plays a sound to its end; returns what was heard of it.
fn heard(sound: &Sound, options: &[&str]) -> Result<Sound, String> {
    let server = server(1024);
    let path = file(&server, "played.wav", sound);
    play_to_end(&server, &path, options)?;
    server.check_rendered()?;
    await_no_stream(&server);
    Ok(server.recorded())
}

/// Compares a recording with what should be heard somewhere in it, and nothing else.
fn compare(recorded: &Sound, expected: &[Vec<f32>]) -> Result<(), String> {
    let begin = recorded.channels[0].iter().position(|sample| *sample != 0.0);
    let begin = begin.ok_or("nothing was heard")?;
    for (channel, expected) in expected.iter().enumerate() {
        let recorded = &recorded.channels[channel];
        let end = begin + expected.len();
        if recorded.len() < end || recorded[begin..end] != expected[..] {
            let same = recorded[begin..].iter().zip(expected);
            let same = same.take_while(|(recorded, expected)| recorded == expected).count();
            return Err(format!("channel {channel} differs after {same} frames"));
        }
        assert!(recorded[end..].iter().all(|sample| *sample == 0.0), "and then silence");
    }
    Ok(())
}

#[test]
fn a_file_of_the_devices_rate_is_heard_sample_for_sample() {
    // More than a ring holds.
    let sound = ramps(7 * RATE_HZ as usize);
    in_three_attempts(|| compare(&heard(&sound, &[])?, &sound.channels));
}

#[test]
fn a_short_latency_changes_no_sample() {
    let sound = ramps(2 * RATE_HZ as usize);
    in_three_attempts(|| compare(&heard(&sound, &["--latency", "60"])?, &sound.channels));
}

#[test]
fn a_file_of_another_rate_is_heard_as_the_converter_makes_it() {
    let sound = Sound { sample_rate_hz: 44_100, ..ramps(3 * 44_100) };
    let map = ChannelMap::standard(Standard::Alsa, 2).expect("stereo");
    let format = SampleFormat::Linear(dsp::Format::FloatLe);
    let program = ProgramFormat { format, rate_hz: 44_100, map };
    let options = Options { filter: Filter::Long, ..Options::default() };
    let stream = StreamFormat { rate_hz: RATE_HZ, map };
    let mut converter = PlaybackConverter::new(&program, &stream, options).expect("possible");
    let mut expected = vec![Vec::new(); 2];
    let frames = sound.channels[0].iter().zip(&sound.channels[1]);
    let bytes: Vec<u8> = frames
        .flat_map(|(left, right)| [left.to_le_bytes(), right.to_le_bytes()].concat())
        .collect();
    let mut keep = |planes: &[&[f32]]| {
        expected.iter_mut().zip(planes).for_each(|(all, plane)| all.extend_from_slice(plane));
    };
    converter.push(&bytes, &mut keep);
    converter.flush(&mut keep);
    in_three_attempts(|| compare(&heard(&sound, &["--quality", "long"])?, &expected));
}

#[test]
fn a_player_that_has_ended_leaves_no_stream() {
    let server = server(256);
    let path = file(&server, "short.wav", &ramps(4800));
    for _ in 0..3 {
        play(&server, &path, &[]).finish().expect_success();
        await_no_stream(&server);
    }
    let long = file(&server, "long.wav", &ramps(10 * RATE_HZ as usize));
    let players = [0, 1].map(|_| play(&server, &long, &["--latency", "200"]));
    crate::await_playing(&server);
    let [first, second] = players;
    first.signal(rustix::process::Signal::INT);
    assert_eq!(first.finish().code, Some(130), "the shell's code for Ctrl-C");
    second.terminate();
    await_no_stream(&server);
}

#[test]
fn streams_are_shown_with_their_programs() {
    let server = server(256);
    let path = file(&server, "song.wav", &ramps(10 * RATE_HZ as usize));
    let player = play(&server, &path, &["--latency", "500"]);
    crate::await_playing(&server);
    let [stream] = &streams(&server)[..] else { panic!("one stream") };
    assert_eq!(stream["program"], "consort play");
    assert_eq!(stream["name"], "song.wav");
    assert_eq!(stream["pid"], player.id());
    assert_eq!(stream["depth_frames"], 24_000);
    let text = server.consort(&["status"]).expect_success().stdout;
    assert!(text.contains("stream   1: consort play") && text.contains("song.wav"), "{text}");
    player.terminate();
}

#[test]
fn a_player_reports_how_long_frames_took_until_they_were_heard() {
    let server = server(256);
    let path = file(&server, "song.wav", &ramps(2 * RATE_HZ as usize));
    in_three_attempts(|| {
        let stdout = play_to_end(&server, &path, &["--latency", "60", "--report"])?.stdout;
        let line = stdout.lines().find_map(|line| line.strip_prefix("latency: "));
        let line = line.expect("a report").split_ascii_whitespace();
        let numbers: Vec<f64> = line.filter_map(|word| word.parse().ok()).collect();
        // A ring for 60 ms holds 8192 frames, which are 171 ms.
        match numbers[..] {
            [least, most] if least <= most && 40.0 < most && most <= 60.0 => Ok(()),
            _ => Err(stdout),
        }
    });
}
