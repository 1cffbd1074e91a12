//! Programs that record: what is in their files is what was sent, sample for sample.

use std::path::Path;

use harness::{Program, Server, Sound, Stretch, in_three_attempts, noise};

/// How long the server plays: longer than any program takes to start and to record.
const SENT_FRAMES: usize = 8 * 48_000;
const ONE_SECOND_FRAMES: usize = 48_000;

/// Plays noise at `system:capture_1` while `record` runs a program that records at least 2 s of it
/// to the file that it is given, and asserts that the file has an unbroken second of the noise.
fn demand_a_second_of_what_was_sent(record: impl Fn(&Server, &str)) -> Sound {
    let sent = noise(1, SENT_FRAMES);
    in_three_attempts(|| {
        let server =
            Server::playing(&Sound::of(48_000, std::slice::from_ref(&sent)), &["--quantum", "256"]);
        let file = server.directory().join("program.wav").to_string_lossy().into_owned();
        record(&server, &file);
        let recorded = Sound::read(Path::new(&file));
        assert_eq!(recorded.sample_rate_hz, 48_000);
        let stretch = Stretch::longest(&sent, &recorded.channels[0]);
        let is_long = stretch.frames >= ONE_SECOND_FRAMES;
        if is_long {
            Ok(recorded)
        } else {
            Err(format!("{stretch:?} of {}", recorded.channels[0].len()))
        }
    })
}

#[test]
fn jack_rec_records_what_was_sent() {
    let recorded = demand_a_second_of_what_was_sent(|server, file| {
        server
            .run("jack_rec", &["-f", file, "-d", "2", "-b", "16", "system:capture_1"])
            .expect_success();
    });
    assert_eq!(recorded.channels[0].len(), 2 * ONE_SECOND_FRAMES, "as long as it was asked to");
}

#[test]
fn jack_capture_records_what_was_sent() {
    let recorded = demand_a_second_of_what_was_sent(|server, file| {
        let arguments = ["-d", "2", "-p", "system:capture_1", "-V", "-ns", file];
        server.run("jack_capture", &arguments).expect_success();
    });
    assert_eq!(recorded.channels[0].len(), 2 * ONE_SECOND_FRAMES, "as long as it was asked to");
}

#[test]
fn ffmpeg_records_what_was_sent() {
    demand_a_second_of_what_was_sent(|server, file| {
        let mut command = server.command("ffmpeg");
        command.args([
            "-hide_banner",
            "-loglevel",
            "warning",
            "-f",
            "jack",
            "-channels",
            "1",
            "-i",
            "ffmpeg",
        ]);
        command.args(["-t", "3", "-c:a", "pcm_f32le", "-y", file]);
        let ffmpeg = Program::start(command);
        server.await_active("ffmpeg");
        server.run("jack_connect", &["system:capture_1", "ffmpeg:input_1"]).expect_success();
        ffmpeg.finish().expect_success();
    });
}

#[test]
fn ecasound_records_what_was_sent() {
    demand_a_second_of_what_was_sent(|server, file| {
        let output = format!("-o:{file}");
        let arguments = [
            "-q",
            "-t:2",
            "-f:f32_le,1,48000",
            "-i:jack,system",
            &output,
            "-G:jack,ecasound,notransport",
        ];
        server.run("ecasound", &arguments).expect_success();
    });
}
