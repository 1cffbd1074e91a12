//! The example programs of the client library, as a chain.

use harness::{Program, Server, Sound, eventually, example, in_three_attempts};

fn start(server: &Server, name: &str, arguments: &[&str]) -> Program {
    let program = server.spawn(&example(name).to_string_lossy(), arguments);
    let port = format!("{name}:{}", if name == "synth" { "out" } else { "in" });
    server.await_port(&port);
    program
}

/// Checks two seconds of gain's output, which must be the synth's tone at half its level.
fn record(server: &Server) -> Result<(), String> {
    let file = server.directory().join("recording.wav");
    let mut command = server.command(&example("recorder").to_string_lossy());
    command.args(["--from", "gain:out", "--frames", "96000", "--file"]).arg(&file);
    Program::start(command).finish().expect_success();
    let recorded = Sound::read(&file);
    assert_eq!((recorded.sample_rate_hz, recorded.channels.len()), (48_000, 1));
    assert_eq!(recorded.channels[0].len(), 96_000);
    let sound = recorded.sounding(0);
    let (frames, hz) = (sound.channels[0].len(), sound.frequency_hz(0));
    let (peak, rms) = (f64::from(sound.peak(0)), sound.rms(0));
    let is_expected = frames > 90_000
        && (hz - 440.0).abs() < 1.0
        && (peak - 0.2).abs() < 0.0005
        && (rms - 0.2 / std::f64::consts::SQRT_2).abs() < 0.001;
    if is_expected {
        return Ok(());
    }
    let status = server.consort(&["status"]).stdout;
    Err(format!("{frames} frames of {hz} Hz, peak {peak}, rms {rms}; {status}"))
}

#[test]
fn the_recorder_and_the_meter_hear_the_synth_through_gain() {
    let server = Server::timer(256);
    let _synth = start(&server, "synth", &["--hz", "440", "--level", "0.4", "--seconds", "60"]);
    let _gain =
        start(&server, "gain", &["--factor", "0.5", "--from", "synth:out", "--seconds", "60"]);
    let mut meter = start(&server, "meter", &["--from", "gain:out", "--seconds", "60"]);
    server.await_connection("gain:in", "synth:out");

    in_three_attempts(|| record(&server));
    eventually("the meter shows the level", || {
        let levels = meter.stdout().lines().filter_map(|line| line.parse::<f32>().ok());
        (levels.filter(|level| (level - 0.2).abs() < 0.0005).count() >= 3).then_some(())
    });
}

#[test]
fn clicks_sound_on_the_beats_of_the_piece_to_the_frame() {
    // The piece rolls from the second cycle after the mark.
    const QUANTUM: usize = 256;
    const CYCLES: usize = 500;
    let mut marks = vec![0.0; CYCLES * QUANTUM];
    marks[10 * QUANTUM] = 1.0;
    let server = Server::playing(&Sound::of(48_000, &[marks]), &["--quantum", "256", "--fast"]);
    let arguments = ["--bpm", "180", "--to", "system:playback_1", "--seconds", "60"];
    let _clicks = server.spawn(&example("clicks").to_string_lossy(), &arguments);
    server.await_connection("system:playback_1", "clicks:out");
    // 180 beats in a minute are 16000 frames each: the fifth is the second bar's first.
    server.consort(&["transport", "locate", "64000"]).expect_success();
    eventually("the second bar", || {
        let shown = server.consort(&["transport"]).expect_success().stdout;
        let is_there = shown.contains("bar       2, beat 1, tick 0; 4/4, 180.00 beats per minute");
        (is_there && shown.contains("timebase  clicks")).then_some(())
    });
    let _conductor = server.probe(&["conduct", "conductor", "--from", "system:capture_1"]);
    let recorded = server.played().channels.swap_remove(0);
    let clicks = (0..recorded.len()).filter(|at| recorded[*at] != 0.0);
    let beats = (12 * QUANTUM..CYCLES * QUANTUM).step_by(16_000);
    assert_eq!(clicks.collect::<Vec<_>>(), beats.collect::<Vec<_>>());
}
