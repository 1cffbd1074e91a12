//! The file that is recorded: the driver's side, and the thread that writes.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use soundfile::{SoundFileError, Writer};

use super::FileDriverError;
use super::ring::{BLOCK_FRAMES, FrameConsumer, FrameProducer, frame_ring};
use super::thread::FileThread;
use crate::Playback;

/// The file that is recorded.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    /// `None` once stopped.
    ring: Option<FrameProducer>,
    /// Frames given to the thread.
    recorded_frames: u64,
    /// Frames that the ring had no room for.
    lost_frames: u64,
    thread: FileThread,
}

impl Output {
    /// Starts the thread that writes what is recorded.
    pub(crate) fn start(
        path: PathBuf,
        mut writer: Writer,
        channels: usize,
        sample_rate_hz: u32,
        poll: Duration,
    ) -> Result<Self, FileDriverError> {
        let (producer, consumer) = frame_ring(channels, sample_rate_hz);
        let body = move || {
            write_behind(channels, consumer, poll, |planes| writer.write(planes))?;
            writer.finish()
        };
        let thread = FileThread::start("file-writer", &path, body)?;
        Ok(Self { path, ring: Some(producer), recorded_frames: 0, lost_frames: 0, thread })
    }

    /// Returns whether there is room for the longest quantum, or no point in waiting for it.
    pub(super) fn is_ready(&self) -> bool {
        self.ring
            .as_ref()
            .is_none_or(|ring| ring.room_frames() >= BLOCK_FRAMES || ring.is_abandoned())
    }

    /// Records the first `kept_frames` of a cycle of `frames`. Thread: cycle.
    pub(crate) fn record(&mut self, frames: u32, kept_frames: u32, playback: &mut dyn Playback) {
        let Some(ring) = self.ring.as_mut().filter(|ring| !ring.is_abandoned()) else { return };
        let pushed = ring.push(frames as usize, kept_frames as usize, |channel, samples| {
            // There are far fewer channels than 2^32: the writer has accepted them.
            playback.mix_into(channel as u32, samples);
        });
        self.recorded_frames += pushed as u64;
        self.lost_frames += u64::from(kept_frames).saturating_sub(pushed as u64);
    }

    /// Makes the thread write what is left and end, without waiting for it.
    pub(crate) fn abandon(&mut self) {
        self.ring = None;
    }

    /// Waits for the thread, at most until `CLOCK_MONOTONIC` is `deadline_ns`.
    pub(crate) fn join_until(&mut self, deadline_ns: u64) {
        self.thread.join_until(&self.path, deadline_ns);
    }

    /// Returns what happened, a line for each event.
    pub(super) fn summary(&self) -> Vec<String> {
        let path = self.path.display();
        let mut lines = match self.thread.failure() {
            Some(failure) => vec![format!("recording stopped: {failure}")],
            None => vec![format!("recorded {} frames to {path}", self.recorded_frames)],
        };
        if self.lost_frames > 0 {
            lines.push(format!("{} frames lost: {path} was written too slowly", self.lost_frames));
        }
        lines
    }
}

/// The thread's body: writes in large blocks, and the rest when the driver has dropped its end of
/// the ring.
///
/// `write` is [`Writer::write`].
fn write_behind(
    channels: usize,
    mut ring: FrameConsumer,
    poll: Duration,
    mut write: impl FnMut(&[Vec<f32>]) -> Result<(), SoundFileError>,
) -> Result<(), SoundFileError> {
    let mut planes = vec![Vec::with_capacity(BLOCK_FRAMES); channels];
    loop {
        // Checked before the frames: the ring receives no more after that.
        let is_last = ring.is_abandoned();
        if ring.available_frames() < BLOCK_FRAMES && !is_last {
            thread::sleep(poll);
            continue;
        }
        planes.iter_mut().for_each(Vec::clear);
        if ring.pop(BLOCK_FRAMES, |channel, samples| planes[channel].extend_from_slice(samples))
            == 0
        {
            return Ok(());
        }
        write(&planes)?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::file::tests::Ports;

    fn output(ring: FrameProducer, thread: FileThread) -> Output {
        Output {
            path: "out.wav".into(),
            ring: Some(ring),
            recorded_frames: 0,
            lost_frames: 0,
            thread,
        }
    }

    #[test]
    fn a_full_ring_costs_frames_that_are_counted() {
        let (producer, consumer) = frame_ring(1, 1);
        let room = producer.room_frames();
        let mut output = output(producer, FileThread::Ended(Ok(())));
        let mut ports = Ports::new(1, BLOCK_FRAMES as u32);
        let quantum = 3000;
        for _ in 0..room / 3000 + 2 {
            output.record(quantum, quantum, &mut ports);
        }
        assert_eq!(consumer.available_frames(), room);
        assert_eq!(output.recorded_frames, room as u64);
        let given = (room as u64 / 3000 + 2) * 3000;
        assert_eq!(output.lost_frames, given - room as u64);
        let expected =
            format!("{} frames lost: out.wav was written too slowly", output.lost_frames);
        assert_eq!(output.summary()[1], expected);
    }

    #[test]
    fn a_full_disk_stops_the_recording_but_not_the_cycles() {
        let (producer, consumer) = frame_ring(1, 1);
        let (written, blocks) = mpsc::channel();
        let body = move || {
            let mut room_for_blocks = 2;
            write_behind(1, consumer, Duration::from_millis(1), |planes| {
                if room_for_blocks == 0 {
                    return Err(SoundFileError::DiskFull {
                        path: "out.wav".into(),
                        frames: 2 * 8192,
                    });
                }
                room_for_blocks -= 1;
                written.send(planes[0].len()).expect("the test listens");
                Ok(())
            })
        };
        let thread = FileThread::start("test", "out.wav".as_ref(), body).unwrap();
        let mut output = output(producer, thread);
        let mut ports = Ports::new(1, BLOCK_FRAMES as u32);
        for _ in 0..3 {
            output.record(BLOCK_FRAMES as u32, BLOCK_FRAMES as u32, &mut ports);
        }
        // The sender is dropped with the thread's body, after the ring.
        assert_eq!(blocks.iter().collect::<Vec<_>>(), [BLOCK_FRAMES; 2]);
        output.join_until(sys::clock::now_ns() + 60_000_000_000);
        for _ in 0..100 {
            output.record(BLOCK_FRAMES as u32, BLOCK_FRAMES as u32, &mut ports);
        }
        assert_eq!(output.lost_frames, 0);
        assert_eq!(
            output.summary(),
            [
                "recording stopped: the disk is full: out.wav ends after 16384 frames; make room or write elsewhere"
            ]
        );
    }

    #[test]
    fn no_thread_waits_for_room_in_an_abandoned_ring() {
        let (producer, consumer) = frame_ring(1, 1);
        let mut output = output(producer, FileThread::Ended(Ok(())));
        let mut ports = Ports::new(1, BLOCK_FRAMES as u32);
        while output.is_ready() {
            output.record(BLOCK_FRAMES as u32, BLOCK_FRAMES as u32, &mut ports);
        }
        drop(consumer);
        assert!(output.is_ready());
    }

    #[test]
    fn the_rest_of_the_ring_is_written_when_the_driver_drops_it() {
        let (mut producer, consumer) = frame_ring(2, 1);
        producer.push(70, 70, |channel, samples| samples.fill(channel as f32));
        drop(producer);
        let mut blocks = Vec::new();
        write_behind(2, consumer, Duration::ZERO, |planes| {
            blocks.push(planes.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(blocks, [[vec![0.0; 70], vec![1.0; 70]]]);
    }
}
