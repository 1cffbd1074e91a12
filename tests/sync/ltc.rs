//! Linear time code, with libltc at the other ends.

use std::path::Path;
use std::process::Command;

use harness::{Program, Server, Sound, c_program_with};
use tempfile::TempDir;

const RATE_HZ: u32 = 48_000;

/// A frame, as libltc reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    /// Hours, minutes, seconds, frames, and whether numbers are dropped.
    code: [u32; 5],
    /// The sample with which it begins.
    begin: i64,
}

fn libltc(words: &[&str]) -> String {
    let mut command = Command::new(c_program_with("ltc", "sync/ltc.c"));
    command.args(words);
    Program::start(command).finish().expect_success().stdout
}

/// Time code from an hour less two seconds on.
fn encoded(directory: &Path, fps: &str, drops: bool, seconds: &str) -> Vec<f32> {
    let path = directory.join("encoded.raw");
    let drops = if drops { "1" } else { "0" };
    libltc(&["encode", &path.to_string_lossy(), fps, drops, "0", "59", "58", seconds]);
    let bytes = std::fs::read(path).expect("a file");
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four"))).collect()
}

fn decoded(directory: &Path, samples: &[f32]) -> Vec<Frame> {
    let path = directory.join("decoded.raw");
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    std::fs::write(&path, bytes).expect("a file");
    let printed = libltc(&["decode", &path.to_string_lossy()]);
    let frame = |line: &str| {
        let numbers: Vec<i64> = line.split(' ').map(|word| word.parse().expect(line)).collect();
        let [hours, minutes, seconds, frames, drops, reverse, begin] = numbers[..] else {
            panic!("{line}")
        };
        assert_eq!(reverse, 0, "{line}");
        let code = [hours, minutes, seconds, frames, drops];
        Frame { code: code.map(|part| u32::try_from(part).expect("positive")), begin }
    };
    printed.lines().map(frame).collect()
}

#[test]
fn the_transport_follows_linear_time_code_and_sends_the_same() {
    let place = TempDir::with_prefix("consort-ltc-").expect("a temporary directory");
    for (rate, fps, drops) in [
        ("24", "24", false),
        ("25", "25", false),
        ("29.97", "29.97", true),
        ("29.97nd", "29.97", false),
        ("30", "30", false),
    ] {
        let played = encoded(place.path(), fps, drops, "6");
        let sent = decoded(place.path(), &played);
        assert!(sent.len() > 120, "{rate}: {}", sent.len());
        // As fast as the graph, so that no client is late; it begins with the follower.
        let sound = Sound::of(RATE_HZ, &[played]);
        let server = Server::playing(&sound, &["--fast", "--quantum", "256"]);
        let sender = ["sync", "send", "ltc", "--rate", rate, "--client-name", "sender"];
        let _sender = server.spawn_consort(&[&sender[..], &["--to", "system:playback_1"]].concat());
        server.await_connection("sender:out", "system:playback_1");
        let follower = ["sync", "follow", "ltc", "--from", "system:capture_1"];
        let follower = server.spawn_consort(&follower);
        let recorded = server.played();
        let said = follower.finish().stderr;
        assert!(said.contains("the server has ended"), "{said}");
        let peak = recorded.peak(0);
        assert!((peak - 0.1259).abs() < 0.001, "-18 dB: {peak}");
        let heard = decoded(place.path(), &recorded.channels[0]);
        // It rolls after eight frames and 0.3 s.
        assert!(heard.len() + 40 > sent.len(), "{rate}: {} of {}", heard.len(), sent.len());
        for frame in &heard {
            let same = sent.iter().find(|sent| sent.code == frame.code);
            let same = same.unwrap_or_else(|| panic!("{rate}: {frame:?} was not sent"));
            assert!((same.begin - frame.begin).abs() <= 4, "{rate}: {frame:?} and {same:?}");
        }
        let last = |frames: &[Frame]| frames.last().map(|frame| frame.code);
        assert_eq!(last(&heard), last(&sent), "{rate}: it rolls to the end");
    }
}
