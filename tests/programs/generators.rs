//! Programs that make sound: the server plays exactly what they make.

use harness::{Program, Server, Sound};

/// Silence for programs that are recorded without the loss of a frame: the server plays it as fast
/// as its clients can, from the first connection on.
fn as_fast_as_possible(seconds: usize) -> Server {
    let silence = Sound::of(48_000, &[vec![0.0; seconds * 48_000]]);
    Server::playing(&silence, &["--quantum", "256", "--playback", "2", "--fast"])
}

/// Starts, and waits for the end; returns what was recorded.
fn recorded_while_somebody_listens(server: Server) -> Sound {
    let _listener = server.probe(&["check", "listener", "--from", "system:capture_1"]);
    server.played()
}

/// The frames at which sound begins after at least `pause` silent frames, or at the start.
fn beginnings(samples: &[f32], pause: usize) -> Vec<usize> {
    let mut silent = pause;
    let mut found = Vec::new();
    for (frame, sample) in samples.iter().enumerate() {
        if *sample == 0.0 {
            silent += 1;
        } else {
            if silent >= pause {
                found.push(frame);
            }
            silent = 0;
        }
    }
    found
}

#[track_caller]
fn demand_close(what: &str, found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{what}: {found} instead of {expected} ± {tolerance}"
    );
}

#[test]
fn jack_simple_client_plays_a_tone_for_each_ear() {
    let server = as_fast_as_possible(4);
    let _client = server.spawn("jack_simple_client", &["simple"]);
    server.await_connection("simple:output1", "system:playback_1");
    server.await_connection("simple:output2", "system:playback_2");
    let recorded = recorded_while_somebody_listens(server);
    // Its table of 200 frames is read one by one for the left, every third frame for the right.
    for (what, channel, frequency_hz) in [("left", 0, 240.0), ("right", 1, 720.0)] {
        assert_eq!(recorded.channels[channel].len(), 4 * 48_000, "{what}");
        demand_close(what, recorded.frequency_hz(channel), frequency_hz, 0.05);
        demand_close(what, f64::from(recorded.peak(channel)), 0.2, 0.0001);
        let period = recorded.channels[channel][..200].to_vec();
        let repeats = recorded.channels[channel].chunks_exact(200).all(|chunk| chunk == period);
        assert!(repeats, "{what}: no frame is lost or heard twice");
    }
}

#[test]
fn jack_metro_beats_exactly_in_time() {
    let server = as_fast_as_possible(4);
    let _metro = server.spawn("jack_metro", &["-b", "240", "-f", "1000", "-D", "100"]);
    server.await_active("metro");
    server.run("jack_connect", &["metro:240_bpm", "system:playback_1"]).expect_success();
    let recorded = recorded_while_somebody_listens(server);
    let beats = beginnings(&recorded.channels[0], 1000);
    assert!(beats.len() >= 15, "4 in each of 4 seconds: {beats:?}");
    // The recording may start within a beat.
    let in_time = beats[1..].windows(2).all(|pair| pair[1] - pair[0] == 12_000);
    assert!(in_time, "{beats:?}");
    let beat = recorded.channels[0][beats[1]..][..4800].to_vec();
    let beat = Sound::of(48_000, &[beat]);
    demand_close("pitch", beat.frequency_hz(0), 1000.0, 5.0);
    demand_close("level", f64::from(beat.peak(0)), 0.5, 0.01);
}

#[test]
fn ecasound_plays_a_tone() {
    let server = Server::recording(&["--rate", "44100", "--quantum", "256"]);
    let arguments =
        "-q -t:2 -i:tone,sine,440,6 -f:f32,1,44100 -o:jack,system -G:jack,ecasound,notransport";
    server.run("ecasound", &arguments.split(' ').collect::<Vec<_>>()).expect_success();
    let sound = server.recorded().sounding(0);
    assert!(sound.channels[0].len() > 44_100, "2 s were asked for: {}", sound.channels[0].len());
    demand_close("pitch", sound.frequency_hz(0), 440.0, 2.0);
}

#[test]
fn a_sink_of_gstreamer_plays_what_its_pipeline_makes() {
    // Its pipeline's threads are not real-time: a second of sound lies between them and the cycles.
    let server = Server::recording(&["--quantum", "1024"]);
    let pipeline = "-q audiotestsrc num-buffers=100 samplesperbuffer=1024 freq=440 ! \
                    audio/x-raw,rate=48000,channels=1 ! \
                    jackaudiosink client-name=gst connect=auto name=audiosink buffer-time=1000000";
    server.run("gst-launch-1.0", &pipeline.split_whitespace().collect::<Vec<_>>()).expect_success();
    let sound = server.recorded().sounding(0);
    assert!(sound.channels[0].len() > 48_000, "2.1 s were asked for: {}", sound.channels[0].len());
    demand_close("pitch", sound.frequency_hz(0), 440.0, 2.0);
    demand_close("level", sound.rms(0), 0.8 / std::f64::consts::SQRT_2, 0.02);
}

/// A Standard MIDI File (RP-001) of format 0: an ocarina's A4 for two seconds, at 480 ticks to a
/// half second.
fn a4_for_two_seconds() -> Vec<u8> {
    // Each event behind its delay in ticks, 7 bits a byte: 0x8f 0x00 is 1920, 0x83 0x60 is 480.
    let track: &[u8] = &[
        0, 0xc0, 79, // the instrument
        0, 0x90, 69, 100, // on
        0x8f, 0x00, 0x80, 69, 0, // off
        0x83, 0x60, 0xff, 0x2f, 0, // the end
    ];
    let header = [
        &b"MThd"[..],
        &6_u32.to_be_bytes(),
        &[0, 0, 0, 1, 480_u16.to_be_bytes()[0], 480_u16.to_be_bytes()[1]],
    ];
    let length = (track.len() as u32).to_be_bytes();
    [&header.concat(), &b"MTrk"[..], &length, track].concat()
}

#[test]
fn fluidsynth_plays_the_note_of_a_midi_file() {
    let server = Server::recording(&["--quantum", "256"]);
    let file = server.directory().join("a4.mid");
    std::fs::write(&file, a4_for_two_seconds()).expect("written");
    let mut command = server.command("fluidsynth");
    command.args("-i -n -q -R 0 -C 0 -g 1 -a jack -r 48000 -o audio.jack.id=fluidsynth".split(' '));
    command.args("-o audio.jack.autoconnect=1 -o audio.jack.server=under-test".split(' '));
    command.arg("/usr/share/sounds/sf2/TimGM6mb.sf2").arg(&file);
    Program::start(command).finish().expect_success();
    let sound = server.recorded();
    for (what, channel) in [("left", 0), ("right", 1)] {
        let sound = sound.sounding(channel);
        assert!(sound.channels[0].len() > 48_000, "{what}: {}", sound.channels[0].len());
        demand_close(what, sound.frequency_hz(0), 440.0, 8.0);
        assert!(sound.peak(0) > 0.01, "{what}: {}", sound.peak(0));
    }
}
