//! The example programs of the client library, as a chain.

use harness::{Program, Server, Sound, eventually, example, in_three_attempts};

fn start(server: &Server, name: &str, arguments: &[&str]) -> Program {
    let program = server.spawn(&example(name).to_string_lossy(), arguments);
    let port = format!("{name}:{}", if name == "synth" { "out" } else { "in" });
    server.await_port(&port);
    program
}

/// Two seconds of what gain says, which must be the synth's tone at half its level.
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
    let _gain = start(&server, "gain", &["--factor", "0.5", "--from", "synth:out", "--seconds", "60"]);
    let mut meter = start(&server, "meter", &["--from", "gain:out", "--seconds", "60"]);
    server.await_connection("gain:in", "synth:out");

    in_three_attempts(|| record(&server));
    eventually("the meter shows the level", || {
        let levels = meter.stdout().lines().filter_map(|line| line.parse::<f32>().ok());
        (levels.filter(|level| (level - 0.2).abs() < 0.0005).count() >= 3).then_some(())
    });
}
