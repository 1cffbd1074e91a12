//! A change of the cycle's length while a client's callback blocks: what the others lose is a gap
//! in what they record.

use std::ops::Range;
use std::time::Duration;

use harness::{Server, Sound, noise};

use crate::scenario::{alone, judged};

const RATE_HZ: usize = 48_000;
/// Longer than the programs take to start and to record.
const SENT_FRAMES: usize = 12 * RATE_HZ;
/// Frames of a cycle before the change, and after it.
const QUANTA: [usize; 2] = [256, 512];
/// What a pause may last: the server waits 20 ms for callbacks, and cycles before and after take
/// the plans with which it begins and ends. Without a limit of its own, the pause would last as
/// long as the answer waits for callbacks: half a second.
const LONGEST_GAP_FRAMES: usize = RATE_HZ / 50 + QUANTA[0] + QUANTA[1];

/// Records a sound that the server plays, with a change to 512 frames meanwhile.
fn recorded_over_a_change(mode: &[&str], sent: &[f32]) -> Vec<f32> {
    let server = Server::playing(&Sound::of(48_000, &[sent.to_vec()]), mode);
    let victim = server.probe(&["thru", "victim", "--fault", "block-buffer-size"]);
    let file = server.directory().join("recorded.wav");
    let path = file.to_string_lossy().into_owned();
    let arguments = ["-f", &path, "-d", "4", "-b", "16", "system:capture_1"];
    let recorder = server.spawn("jack_rec", &arguments);
    server.await_active("jackrec");
    std::thread::sleep(Duration::from_secs(1));
    server.run("jack_bufsize", &["512"]).expect_success();
    recorder.finish().expect_success();
    drop(victim);
    Sound::read(&file).channels.swap_remove(0)
}

/// Where in `sent` these frames of `recorded` are.
fn sent_at(sent: &[f32], recorded: &[f32], frames: Range<usize>) -> Result<usize, String> {
    let sought = recorded.get(frames.clone()).ok_or("the recording is too short")?;
    let found = sent.windows(sought.len()).position(|window| window == sought);
    found.ok_or_else(|| format!("frames {frames:?} of the recording were not sent"))
}

/// The frames that were sent and are not recorded, but for the first and last quarter of a second,
/// when a recorder may not be connected or may write what it has not heard.
fn gap_frames(sent: &[f32], recorded: &[f32]) -> Result<usize, String> {
    const ANCHOR_FRAMES: usize = 64;
    let (first, last) = (RATE_HZ / 4, recorded.len().saturating_sub(RATE_HZ / 4));
    let from = sent_at(sent, recorded, first..first + ANCHOR_FRAMES)?;
    let to = sent_at(sent, recorded, last..last + ANCHOR_FRAMES)?;
    (to - from).checked_sub(last - first).ok_or_else(|| "more than was sent".into())
}

#[test]
fn a_buffer_size_callback_that_blocks_costs_others_a_short_gap() {
    let _alone = alone();
    let sent = noise(1, SENT_FRAMES);
    for mode in [&["--quantum", "256"][..], &["--quantum", "256", "--sync"]] {
        judged(mode, || {
            let gap_frames = gap_frames(&sent, &recorded_over_a_change(mode, &sent))?;
            if (1..=LONGEST_GAP_FRAMES).contains(&gap_frames) {
                return Ok(());
            }
            Err(format!("{mode:?}: a gap of {gap_frames} frames, not 1 to {LONGEST_GAP_FRAMES}"))
        });
    }
}
