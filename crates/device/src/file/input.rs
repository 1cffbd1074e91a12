//! The file that is played: the driver's side, and the thread that reads ahead.

use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use soundfile::{Reader, SoundFileError};

use super::FileDriverError;
use super::ring::{BLOCK_FRAMES, FrameConsumer, FrameProducer, frame_ring};
use super::thread::FileThread;
use crate::{Capture, silence};

/// Length of a file whose end has not been read yet.
const UNKNOWN: u64 = u64::MAX;

/// The file that is played.
#[derive(Debug)]
pub(super) struct Input {
    path: PathBuf,
    /// `None` once stopped.
    ring: Option<FrameConsumer>,
    /// Length of the file in frames, [`UNKNOWN`] at first; stored before its last frames are in the
    /// ring.
    end: Arc<AtomicU64>,
    /// Frames of the file that have been played.
    played_frames: u64,
    /// Frames of silence played because the ring was empty.
    silent_frames: u64,
    thread: FileThread,
}

impl Input {
    /// Starts reading ahead.
    pub(super) fn start(
        path: PathBuf,
        mut reader: Reader,
        poll: Duration,
    ) -> Result<Self, FileDriverError> {
        let channels = reader.channels();
        let (producer, consumer) = frame_ring(channels, reader.sample_rate_hz());
        let end = Arc::new(AtomicU64::new(UNKNOWN));
        let mark = EndMark { end: Arc::clone(&end), pushed_frames: 0 };
        let body = move || read_ahead(channels, producer, mark, poll, |planes| reader.read(planes));
        let thread = FileThread::start("file-reader", &path, body)?;
        Ok(Self { path, ring: Some(consumer), end, played_frames: 0, silent_frames: 0, thread })
    }

    /// Returns whether the longest quantum, or all that is left of the file, can be played.
    pub(super) fn is_ready(&self) -> bool {
        let available = self.ring.as_ref().map_or(0, FrameConsumer::available_frames) as u64;
        let left = self.end.load(Ordering::Acquire).saturating_sub(self.played_frames);
        self.ring.is_none() || available >= left.min(BLOCK_FRAMES as u64)
    }

    /// Plays `quantum` frames to the `channels` capture ports, with silence for missing ones.
    /// Thread: cycle.
    pub(super) fn play(&mut self, quantum: u32, channels: u32, capture: &mut dyn Capture) {
        let Some(ring) = &mut self.ring else { return silence(channels, capture) };
        let played = ring.pop(quantum as usize, |channel, samples| {
            let Some(port) =
                u32::try_from(channel).ok().and_then(|channel| capture.channel(channel))
            else {
                return;
            };
            let (heard, missing) = port.split_at_mut(samples.len().min(port.len()));
            heard.copy_from_slice(&samples[..heard.len()]);
            dsp::silence(missing);
        });
        self.played_frames += played as u64;
        // A reader of the last frames also sees the end, which was stored before them.
        if !self.has_ended() {
            self.silent_frames += u64::from(quantum).saturating_sub(played as u64);
        }
    }

    /// Returns whether all of the file has been played. Thread: cycle.
    pub(super) fn has_ended(&self) -> bool {
        self.played_frames >= self.end.load(Ordering::Acquire)
    }

    /// Returns the frames that playing has taken so far: those of the file and the silence in
    /// between. Thread: cycle.
    pub(super) fn delivered_frames(&self) -> u64 {
        self.played_frames + self.silent_frames
    }

    /// Makes the thread end, without waiting for it.
    pub(super) fn abandon(&mut self) {
        self.ring = None;
    }

    /// Waits for the thread, at most until `CLOCK_MONOTONIC` is `deadline_ns`.
    pub(super) fn join_until(&mut self, deadline_ns: u64) {
        self.thread.join_until(&self.path, deadline_ns);
    }

    /// Returns what happened, a line for each event.
    pub(super) fn summary(&self) -> Vec<String> {
        let path = self.path.display();
        let mut lines = vec![format!("played {} frames of {path}", self.played_frames)];
        if self.silent_frames > 0 {
            let silent = self.silent_frames;
            lines
                .push(format!("{silent} frames of silence in between: {path} was read too slowly"));
        }
        lines.extend(self.thread.failure().map(str::to_owned));
        lines
    }
}

/// Announces to the driver where the file ends: at the latest on drop, however the thread ends.
struct EndMark {
    end: Arc<AtomicU64>,
    pushed_frames: u64,
}

impl EndMark {
    /// Announces that the file ends after `frames` more frames.
    fn announce(&self, frames: usize) {
        self.end.store(self.pushed_frames + frames as u64, Ordering::Release);
    }
}

impl Drop for EndMark {
    fn drop(&mut self) {
        self.end.fetch_min(self.pushed_frames, Ordering::AcqRel);
    }
}

/// The thread's body: reads block by block, always one ahead of the ring, so that it knows which
/// block is the last.
///
/// `read` is [`Reader::read`].
fn read_ahead(
    channels: usize,
    mut ring: FrameProducer,
    mut mark: EndMark,
    poll: Duration,
    mut read: impl FnMut(&mut [Vec<f32>]) -> Result<usize, SoundFileError>,
) -> Result<(), SoundFileError> {
    let mut planes = vec![vec![0.0; BLOCK_FRAMES]; channels];
    let mut following = planes.clone();
    let mut frames = read(&mut planes)?;
    while frames > 0 {
        let next = read(&mut following);
        if !matches!(next, Ok(1..)) {
            mark.announce(frames);
        }
        while ring.room_frames() < frames {
            if ring.is_abandoned() {
                return Ok(());
            }
            thread::sleep(poll);
        }
        // A file of floating-point samples may contain values that are not finite.
        planes.iter_mut().for_each(|plane| dsp::scrub(plane));
        ring.push(frames, frames, |channel, samples| {
            samples.copy_from_slice(&planes[channel][..frames])
        });
        mark.pushed_frames += frames as u64;
        mem::swap(&mut planes, &mut following);
        frames = next?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::Ports;

    /// An input whose file thread is the test.
    fn input_and_thread() -> (Input, FrameProducer, EndMark) {
        let (producer, consumer) = frame_ring(1, 1);
        let end = Arc::new(AtomicU64::new(UNKNOWN));
        let mark = EndMark { end: Arc::clone(&end), pushed_frames: 0 };
        let thread = FileThread::Ended(Ok(()));
        let path = "slow.wav".into();
        let input =
            Input { path, ring: Some(consumer), end, played_frames: 0, silent_frames: 0, thread };
        (input, producer, mark)
    }

    fn play(input: &mut Input, quantum: u32) -> Vec<f32> {
        let mut ports = Ports::new(1, quantum);
        input.play(quantum, 1, &mut ports);
        ports.planes.remove(0)
    }

    fn wait_until(condition: impl Fn() -> bool) {
        let deadline_ns = sys::clock::now_ns() + 60_000_000_000;
        while !condition() {
            assert!(sys::clock::now_ns() < deadline_ns, "in vain");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn an_empty_ring_costs_no_frame_of_the_file() {
        let (mut input, mut ring, mark) = input_and_thread();
        ring.push(6, 6, |_, samples| samples.copy_from_slice(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]));
        assert_eq!(play(&mut input, 4), [0.1, 0.2, 0.3, 0.4]);
        assert_eq!(play(&mut input, 4), [0.5, 0.6, 0.0, 0.0]);
        assert_eq!(play(&mut input, 4), [0.0; 4]);
        assert_eq!((input.played_frames, input.silent_frames), (6, 6));

        mark.announce(6 + 1);
        ring.push(1, 1, |_, samples| samples.fill(0.7));
        assert_eq!(play(&mut input, 4), [0.7, 0.0, 0.0, 0.0]);
        assert!(input.has_ended());
        assert_eq!(
            input.delivered_frames(),
            6 + 6 + 1,
            "silence after the end is not counted as a gap"
        );
        assert_eq!(
            input.summary(),
            [
                "played 7 frames of slow.wav",
                "6 frames of silence in between: slow.wav was read too slowly"
            ]
        );
    }

    #[test]
    fn the_input_is_ready_with_a_longest_quantum_or_with_all_that_is_left() {
        let (mut input, mut ring, mark) = input_and_thread();
        ring.push(BLOCK_FRAMES, BLOCK_FRAMES - 1, |_, samples| samples.fill(0.0));
        assert!(!input.is_ready());
        ring.push(1, 1, |_, samples| samples.fill(0.0));
        assert!(input.is_ready());
        play(&mut input, 1);
        assert!(!input.is_ready());
        mark.announce(BLOCK_FRAMES);
        assert!(input.is_ready());
    }

    #[test]
    fn the_end_is_known_before_the_last_frames_can_be_played() {
        let (mut input, mut ring, mut mark) = input_and_thread();
        let room = ring.room_frames();
        while ring.push(BLOCK_FRAMES, BLOCK_FRAMES, |_, samples| samples.fill(0.0)) > 0 {}
        mark.pushed_frames = room as u64;
        let mut blocks = [BLOCK_FRAMES, BLOCK_FRAMES, 0].into_iter();
        let read =
            move |_: &mut [Vec<f32>]| Ok(blocks.next().expect("nothing is read after the end"));
        let thread =
            thread::spawn(move || read_ahead(1, ring, mark, Duration::from_millis(1), read));

        // The first block waits for room, and the reader does not know what follows the second.
        assert_eq!(input.end.load(Ordering::Acquire), UNKNOWN);
        play(&mut input, BLOCK_FRAMES as u32);
        // Now the second waits, and is known to be the last.
        wait_until(|| input.end.load(Ordering::Acquire) != UNKNOWN);
        assert_eq!(input.end.load(Ordering::Acquire), (room + 2 * BLOCK_FRAMES) as u64);
        assert_eq!(input.ring.as_ref().unwrap().available_frames(), room);
        while !input.has_ended() {
            wait_until(|| input.is_ready());
            play(&mut input, BLOCK_FRAMES as u32);
        }
        assert_eq!(input.silent_frames, 0);
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn a_thread_that_breaks_off_ends_the_input_where_it_was() {
        let (mut input, ring, mark) = input_and_thread();
        let mut blocks = [100, 50].into_iter();
        let broken = thread::spawn(move || {
            read_ahead(1, ring, mark, Duration::ZERO, move |_| {
                Ok(blocks.next().expect("breaks here"))
            })
        });
        assert!(broken.join().is_err());
        // The second block was read but waited for a third.
        play(&mut input, 64);
        assert!(input.is_ready() && !input.has_ended());
        play(&mut input, 64);
        assert!(input.has_ended());
        assert_eq!((input.played_frames, input.silent_frames), (100, 0));
    }
}
