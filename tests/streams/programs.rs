//! Programs with streams in the test's own process: what they wish, and the device frames at which
//! they were obeyed.

use client::stream::{
    Acknowledgement, PlaybackOptions, PlaybackStream, RingSamples, Samples, StreamConnection,
};
use harness::{Server, Sound, eventually};
use sys::clock::now_ns;

use crate::{RATE_HZ, server};

/// Ten milliseconds.
pub const TEN_MS: u64 = RATE_HZ as u64 / 100;
/// A fade, 5 ms.
pub const FADE: usize = RATE_HZ as usize / 200;

/// A program that plays on a server whose device is recorded.
pub struct Player {
    pub server: Server,
    pub connection: StreamConnection,
    pub stream: PlaybackStream,
}

impl Player {
    /// A program with two seconds of depth, which has written these frames and runs.
    pub fn start(sound: &Sound) -> Self {
        let server = server(256);
        let connection = server.stream_connection();
        let stream = connection.play(PlaybackOptions {
            program: "by hand".into(),
            name: "sound".into(),
            device: None,
            channels: vec![0, 1],
            depth_frames: 2 * RATE_HZ,
            samples: RingSamples::Planes,
        });
        let mut player = Self { server, connection, stream: stream.expect("a stream") };
        player.write(sound);
        let run = player.stream.run().expect("runs");
        player.taken(run);
        player
    }

    /// Writes frames, all of which have room.
    pub fn write(&mut self, sound: &Sound) {
        let planes: Vec<&[f32]> = sound.channels.iter().map(Vec::as_slice).collect();
        let written = self.stream.writer_mut().write(Samples::Planar(&planes));
        assert_eq!(written, planes[0].len(), "there is room");
    }

    /// Returns the device frame at which a wish takes effect.
    pub fn taken(&self, wish: u64) -> u64 {
        let deadline_ns = now_ns() + 30_000_000_000;
        match self.stream.writer().control().await_acknowledgement(wish, deadline_ns) {
            Some(Acknowledgement::At(frame)) => frame,
            other => panic!("not obeyed: {other:?}"),
        }
    }

    /// Returns the device frame that is heard now.
    pub fn heard(&mut self) -> u64 {
        self.stream.writer_mut().control_mut().timing().device_frame_at(now_ns())
    }

    /// Waits until more than a second is queued.
    pub fn await_deep(&mut self) {
        eventually("the device is deep", || {
            let streams = self.connection.streams().expect("an answer");
            streams.iter().any(|stream| stream.rendered_us > 1_000_000).then_some(())
        });
    }

    /// Waits until this device frame is heard.
    pub fn await_heard(&mut self, frame: u64) {
        eventually("it is heard", || (self.heard() >= frame).then_some(()));
    }

    /// Waits until the device has stopped because nothing plays. Until then, its clock may run on
    /// beyond the frame at which it does.
    pub fn await_stop(&mut self) {
        eventually("the device stops", || {
            let timing = self.stream.writer_mut().control_mut().timing();
            (timing.frame_ps == 0).then_some(())
        });
    }

    /// Ends the stream; returns what was heard from the first stream on, by device frame. `Err` if
    /// the machine made holes in it.
    pub fn recorded(self) -> Result<Sound, String> {
        let Self { server, connection, stream } = self;
        server.check_in_time()?;
        drop((stream, connection));
        crate::await_no_stream(&server);
        Ok(server.recorded())
    }
}

/// Two channels of a constant level, one positive and one negative.
pub fn level(level: f32, frames: usize) -> Sound {
    Sound::of(RATE_HZ, &[vec![level; frames], vec![-level; frames]])
}

/// Asserts that no sample of a channel differs from the one before by more than a fade of 5 ms
/// moves a level of `full`.
#[track_caller]
pub fn assert_continuous(samples: &[f32], full: f32) {
    let most = 1.01 * full / FADE as f32;
    for (frame, pair) in samples.windows(2).enumerate() {
        assert!((pair[1] - pair[0]).abs() <= most, "a step at frame {frame}: {pair:?}");
    }
}

/// The levels at which a channel stays for at least `frames` frames, one after the other.
pub fn plateaus(samples: &[f32], frames: usize) -> Vec<f32> {
    let runs = samples.chunk_by(|one, other| one == other);
    runs.filter(|run| run.len() >= frames).map(|run| run[0]).collect()
}
