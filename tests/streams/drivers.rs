//! Players that go on with another driver: what leaves the one that they began on, and each that
//! follows.

use std::ops::Range;
use std::time::Duration;

use harness::{Server, Sound, eventually, in_three_attempts, noise, only_part};

use crate::programs::FADE;
use crate::{RATE_HZ, await_no_stream, await_playing, file, play, server, streams, to_end};

const SECOND: usize = RATE_HZ as usize;

/// Has another driver take the place of the one that plays, which has recorded into the file of
/// this name by then: the next one records into the file that is read at the end.
fn change_driver(server: &Server, capture: &str, part: &str) -> Result<(), String> {
    server.check_rendered()?;
    let before = streams(server)[0]["number"].clone();
    let files = ["recorded.wav", part].map(|name| server.directory().join(name));
    std::fs::rename(&files[0], &files[1]).expect("it records");
    server.consort(&["driver", "timer", "--capture", capture]).expect_success();
    eventually("it plays on the other driver", || {
        let is_next = |stream: &serde_json::Value| stream["number"] != before;
        streams(server)
            .iter()
            .any(|stream| is_next(stream) && stream["plays"] == true)
            .then_some(())
    });
    Ok(())
}

/// The frames of a sound that a device played, the same of each channel.
fn part(recorded: &Sound, sound: &Sound) -> Result<Range<usize>, String> {
    let channels = recorded.channels.iter().zip(&sound.channels);
    let mut parts = channels.map(|(recorded, sent)| only_part(sent, recorded, FADE));
    let (left, right) = (parts.next().expect("left")?, parts.next().expect("right")?);
    assert_eq!(left, right, "both channels of the same frames");
    Ok(left)
}

/// Another driver ends all streams (decision 86), and a player goes on with the frame that was
/// heard last: nothing is heard twice, and what is not heard at all is what the clock of the driver
/// before went on by until the player looked at it.
#[test]
fn what_leaves_one_driver_after_the_other_is_the_file_from_its_first_frame_to_its_last() {
    let sound = Sound::of(RATE_HZ, &[noise(1, 6 * SECOND), noise(2, 6 * SECOND)]);
    in_three_attempts(|| {
        let server = server(256);
        let path = file(&server, "song.wav", &sound);
        let player = play(&server, &path, &[]);
        await_playing(&server);
        for (capture, name) in [("3", "first.wav"), ("2", "second.wav")] {
            std::thread::sleep(Duration::from_millis(1500));
            change_driver(&server, capture, name)?;
        }
        to_end(player)?;
        await_no_stream(&server);
        server.check_rendered()?;
        let files = ["first.wav", "second.wav"].map(|name| server.directory().join(name));
        let before = files.map(|file| Sound::read(&file));
        let last = server.recorded();
        let [first, second] = before.map(|recorded| part(&recorded, &sound));
        let (first, second, last) = (first?, second?, part(&last, &sound)?);
        let said = format!("{first:?}, {second:?}, {last:?}");
        assert_eq!((first.start, last.end), (0, 6 * SECOND), "the whole file: {said}");
        for (before, after) in [(&first, &second), (&second, &last)] {
            assert!(after.start >= before.end, "frames are heard twice: {said}");
            // On a busy machine, it looks later.
            if after.start - before.end > SECOND / 20 {
                return Err(format!("frames are not heard: {said}"));
            }
        }
        Ok(())
    });
}
