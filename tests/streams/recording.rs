//! Programs that record: what leaves the device, and what it captures.

use client::stream::{Acknowledgement, RecordOptions, RecordStream, SamplesMut, StreamConnection};
use harness::{Server, Sound, eventually, in_three_attempts, tone};
use sys::clock::now_ns;

use crate::{
    RATE_HZ, await_no_stream, end_recorder, file, play, play_to_end, ramps, recorded_all, server,
    streams, to_end,
};

fn open(connection: &StreamConnection, monitor: bool) -> RecordStream {
    let stream = connection.record(RecordOptions {
        program: "by hand".into(),
        name: "recording".into(),
        device: None,
        monitor,
        channels: vec![0, 1],
        interval_frames: RATE_HZ / 10,
        lets_sleep: false,
    });
    stream.expect("a stream")
}

/// Runs a stream; returns the device frame of its first one.
fn begun(stream: &mut RecordStream) -> u64 {
    let run = stream.run().expect("runs");
    let deadline_ns = now_ns() + 30_000_000_000;
    match stream.reader().control().await_acknowledgement(run, deadline_ns) {
        Some(Acknowledgement::At(frame)) => frame,
        other => panic!("not obeyed: {other:?}"),
    }
}

/// Reads what is there.
fn read(stream: &mut RecordStream, channels: &mut [Vec<f32>; 2]) {
    let (mut left, mut right) = (vec![0.0; 4096], vec![0.0; 4096]);
    loop {
        let into = SamplesMut::Planar(&mut [&mut left, &mut right]);
        let frames = stream.reader_mut().read(into);
        if frames == 0 {
            return;
        }
        channels[0].extend_from_slice(&left[..frames]);
        channels[1].extend_from_slice(&right[..frames]);
    }
}

/// Records until the device has no other stream, and a little more.
fn until_alone(server: &Server, stream: &mut RecordStream) -> [Vec<f32>; 2] {
    let mut channels = [Vec::new(), Vec::new()];
    eventually("only the recorder is left", || {
        read(stream, &mut channels);
        (streams(server).len() == 1).then_some(())
    });
    let more = channels[0].len() + RATE_HZ as usize / 2;
    eventually("it records on", || {
        read(stream, &mut channels);
        (channels[0].len() >= more).then_some(())
    });
    channels
}

#[test]
fn what_a_monitor_records_is_what_a_file_plays_sample_for_sample() {
    in_three_attempts(|| {
        let server = server(1024);
        let sound = ramps(4 * RATE_HZ as usize);
        let path = file(&server, "played.wav", &sound);
        let connection = server.stream_connection();
        let mut stream = open(&connection, true);
        begun(&mut stream);
        let player = play(&server, &path, &[]);
        let plays = |stream: &serde_json::Value| {
            stream["direction"] == "playback" && stream["plays"] == true
        };
        eventually("the player plays", || streams(&server).iter().any(plays).then_some(()));
        // With it, everything is rendered again; the file is heard as it is.
        server.consort(&["volume", "consort play", "50%"]).expect_success();
        server.consort(&["volume", "consort play", "100%"]).expect_success();
        let channels = until_alone(&server, &mut stream);
        to_end(player)?;
        if stream.reader().lost() > 0 {
            return Err(format!("{} lost", stream.reader().lost()));
        }
        server.check_in_time()?;
        drop((stream, connection));
        await_no_stream(&server);
        let recorded = server.recorded();
        for (channel, samples) in channels.iter().enumerate() {
            let heard = Sound::of(RATE_HZ, &[recorded.channels[channel].clone()]).sounding(0);
            let same = Sound::of(RATE_HZ, std::slice::from_ref(samples)).sounding(0);
            assert_eq!(same.channels[0].len(), sound.channels[channel].len(), "the whole file");
            assert!(same == heard, "what leaves the device is what the monitor has");
            let end = &same.channels[0][2 * RATE_HZ as usize..];
            assert_eq!(end, &sound.channels[channel][2 * RATE_HZ as usize..], "and it is the file");
        }
        Ok(())
    });
}

#[test]
fn a_stream_that_captures_on_a_device_without_capture_gets_silence_in_time() {
    let server = server(1024);
    let connection = server.stream_connection();
    let mut stream = open(&connection, false);
    assert_eq!(streams(&server)[0]["direction"], "record");
    begun(&mut stream);
    let mut channels = [Vec::new(), Vec::new()];
    eventually("half a second is recorded", || {
        read(&mut stream, &mut channels);
        (channels[0].len() >= RATE_HZ as usize / 2).then_some(())
    });
    assert!(channels.concat().iter().all(|sample| *sample == 0.0));
    eventually("the device runs for the recorder alone", || {
        (server.consort_json(&["status"])["device"] == "deep").then_some(())
    });
    stream.hold().expect("held");
    eventually("the device is parked", || {
        (server.consort_json(&["status"])["device"] == "parked").then_some(())
    });
    drop(stream);
    await_no_stream(&server);
}

#[test]
fn consort_record_writes_what_is_heard_into_a_file() {
    in_three_attempts(|| {
        let server = server(1024);
        let sound = ramps(3 * RATE_HZ as usize);
        let path = file(&server, "played.wav", &sound);
        let recorded = server.directory().join("heard.wav");
        let into = recorded.to_string_lossy().into_owned();
        let recorder = server.spawn_consort(&["record", "--monitor", &into]);
        eventually("it records", || {
            streams(&server).iter().any(|stream| stream["plays"] == true).then_some(())
        });
        play_to_end(&server, &path, &[])?;
        std::thread::sleep(std::time::Duration::from_millis(500));
        let finished = end_recorder(&server, recorder)?;
        assert!(finished.stdout.contains("48000 Hz, 2 channels"), "{finished:?}");
        for channel in 0..2 {
            let heard = Sound::read(&recorded).sounding(channel);
            assert!(heard.channels[0] == sound.channels[channel], "sample for sample");
        }
        let limited = server.consort(&["record", "--monitor", "--duration", "1", &into]);
        recorded_all(limited)?;
        assert_eq!(Sound::read(&recorded).channels[0], vec![0.0; RATE_HZ as usize]);
        Ok(())
    });
}

#[test]
fn a_recording_at_another_rate_in_another_format_has_the_same_sound() {
    in_three_attempts(|| {
        let server = server(1024);
        let tone = tone(1000.0, RATE_HZ, 4 * RATE_HZ as usize);
        let level = tone.iter().fold(0.0_f32, |level, sample| level.max(sample.abs()));
        let silent = vec![0.0; tone.len()];
        let path = file(&server, "tone.wav", &Sound::of(RATE_HZ, &[tone, silent]));
        let player = play(&server, &path, &[]);
        crate::await_playing(&server);
        let into = server.directory().join("heard.wav");
        let words = ["--rate", "44100", "--format", "s24", "--channels", "1", "--duration", "1"];
        let name = into.to_string_lossy();
        let record = [&["record", "--monitor", &name], &words[..]].concat();
        let recorded = recorded_all(server.consort(&record))?;
        assert!(recorded.stdout.contains("44100 Hz, 1 channel, 0:01.0"), "{recorded:?}");
        player.terminate();
        let heard = Sound::read(&into);
        assert_eq!((heard.sample_rate_hz, heard.channels.len()), (44_100, 1));
        assert_eq!(heard.channels[0].len(), 44_100, "to the frame");
        let bytes = std::fs::metadata(&into).expect("a file").len();
        assert!((3 * 44_100..3 * 44_100 + 1000).contains(&bytes), "{bytes} bytes");
        let hz = heard.frequency_hz(0);
        if (hz - 1000.0).abs() > 1.0 {
            return Err(format!("{hz} Hz"));
        }
        // One of two channels that are mixed into one.
        let loud = heard.rms(0) * std::f64::consts::SQRT_2 / f64::from(level);
        if (loud - 0.5).abs() > 0.01 {
            return Err(format!("it is {loud} as loud"));
        }
        Ok(())
    });
}

#[test]
fn a_client_of_the_graph_is_recorded_by_its_name() {
    let server = server(256);
    let _client = server.probe(&["thru", "client"]);
    let path = server.directory().join("take.wav").to_string_lossy().into_owned();
    let recorder = server.spawn_consort(&["record", "--device", "client", &path]);
    server.await_connection("client:out", "consort record:input_1");
    assert!(!server.lsp(&["-c"]).contains("consort record:input_2"), "it has one output");
    recorder.signal(rustix::process::Signal::INT);
    recorder.finish().expect_success();
    for (words, expected) in [
        (&["--device", "none"][..], "'none' has no outputs in the graph"),
        (&["--device", "none", "--monitor"], "there is no device 'none'"),
        (&["--device", "client", "--monitor"], "'client' is a client of the graph"),
        (&["--format", "s16be"], "a WAV file has no s16be"),
        (&["--rate", "7"], "7 is not in 1000..=768000"),
    ] {
        let refused = server.consort(&[&["record", &path], words].concat());
        assert!(refused.code != Some(0) && refused.stderr.contains(expected), "{refused:?}");
    }
    server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    let refused = server.consort(&["record", "--device", "other", &path]);
    assert!(refused.stderr.contains("--monitor records what leaves it"), "{refused:?}");
}
