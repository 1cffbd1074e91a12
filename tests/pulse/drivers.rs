//! Another driver takes the place of the one that plays: a program of PulseAudio hears of a sink of
//! another shape at most, and its stream goes on.

use std::time::Duration;

use harness::{Sound, in_three_attempts, only_part};

use crate::server_gone::{FADE, await_state, noises};
use crate::{RATE_HZ, Scene, path};

const SECOND: usize = RATE_HZ as usize;

/// What a program has written and nobody has heard is written again (decision 110), from the frame
/// on that was heard last: nothing is heard twice, and what is not heard at all is what the clock
/// of the driver before went on by until the front end looked at it.
#[test]
fn a_program_is_heard_on_one_driver_and_from_there_on_on_the_next_to_its_end() {
    let sound = noises(5 * SECOND);
    in_three_attempts(|| {
        let scene = Scene::with(&["--driver", "timer", "--quantum", "256"]);
        let song = scene.file("song.wav", &sound);
        let mut events = scene.subscribed();
        let player = scene.spawn("paplay", &[path(&song)]);
        await_state(&scene, "RUNNING");
        std::thread::sleep(Duration::from_secs(2));
        scene.server.check_rendered()?;
        // The next driver records into the file that is read at the end.
        let [recorded, first] =
            ["recorded.wav", "first.wav"].map(|name| scene.server.directory().join(name));
        std::fs::rename(recorded, &first).expect("it records");
        scene.server.consort(&["driver", "timer", "--capture", "3"]).expect_success();
        assert_eq!(player.finish().expect_success().stderr, "");
        scene.server.check_rendered()?;
        // Of the program, and of its sink.
        let events = events.stdout().to_owned();
        for event in ["'remove' on sink #", "'new' on sink #", "'new' on sink-input #"] {
            let most = usize::from(event.contains("input"));
            assert!(events.matches(event).count() <= most, "{event}: {events}");
        }
        scene.await_no_stream();
        let first = Sound::read(&first);
        let second = scene.recorded();
        for (channel, sent) in sound.channels.iter().enumerate() {
            let part = |recorded: &Sound| only_part(sent, &recorded.channels[channel], FADE);
            let (first, second) = (part(&first)?, part(&second)?);
            let said = format!("{first:?}, then {second:?} of {}", sent.len());
            assert_eq!((first.start, second.end), (0, sent.len()), "to its end: {said}");
            assert!(second.start >= first.end, "frames are heard twice: {said}");
            // On a busy machine, it looks later.
            if second.start - first.end > SECOND / 20 {
                return Err(format!("frames are not heard: {said}"));
            }
        }
        Ok(())
    });
}
