//! The streams of a link, and the thread that passes frames on from one to the other.
//!
//! It wakes when the source's device has recorded, a few times in its latency. While nothing is
//! heard there, it sleeps, and so do both devices.

use std::sync::Arc;

use anyhow::{Context, bail};
use client::stream::{
    PlaybackOptions, RecordOptions, RecordStream, SamplesMut, StreamConnection, Timing, Wish,
};
use effects::Ladspa;
use rt::rate::frames_in;
use sys::clock::now_ns;

use super::alignment::{Alignment, AlignmentShape, CHUNK, Step};
use super::circles::{DRIVER, Wiring};
use super::echo::Echo;
use super::frames::Frames;
use super::mix::Mix;
use super::options::{Ends, LinkOptions, Processing};
use super::outlet::Outlet;
use super::state::LinkState;

/// The source's device wakes this often within the latency.
pub(super) const INTERVALS: u64 = 8;
/// How long after the device's wake-up its frames are there, ns.
const AFTER_WAKE_NS: u64 = 1_000_000;
/// Frames that come this much later than expected do not come for now: the source is silent, ns.
const PATIENCE_NS: u64 = 20_000_000;
/// How often a link that sleeps looks whether its devices are still there, ns.
const IDLE_LOOK_NS: u64 = 5_000_000_000;
/// Frames that are read at once.
pub(super) const BLOCK_FRAMES: usize = 1024;

/// The device at which a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Source,
    Sink,
    /// The one whose sound comes back as an echo.
    Echo,
}

/// Passes frames on, on its own thread.
pub(super) struct Link {
    state: Arc<LinkState>,
    source: RecordStream,
    outlet: Outlet,
    ends: Ends,
    latency_ns: u64,
    alignment: Alignment,
    /// `None`: each channel is heard on one.
    mix: Option<Mix>,
    queue: Frames,
    block: Vec<Vec<f32>>,
    /// What the source's frames pass through as they come.
    plug_in: Option<Ladspa>,
    /// The sink's stream runs, or was asked to.
    plays: bool,
    /// What was lost on both sides, as far as it was noticed.
    source_misses: u64,
    sink_misses: u64,
    /// The device that plays: another one once somebody has moved the stream.
    plays_on: String,
}

impl Link {
    /// Opens both streams.
    ///
    /// # Errors
    /// The server refuses one of them; the source would be heard on itself through other links.
    pub(super) fn open(
        connection: &StreamConnection,
        options: &LinkOptions,
        state: Arc<LinkState>,
    ) -> anyhow::Result<Self> {
        let ends = options.ends(connection)?;
        // Before the streams, because a plug-in may need long to begin.
        let (mut plug_in, mut echo) = (None, None);
        match &options.processing {
            Some(Processing::Ladspa(ladspa)) => {
                plug_in = Some(Ladspa::open(ladspa, ends.channels, ends.source_hz)?);
            }
            Some(Processing::Echo(of)) => {
                echo = Some(Echo::open(connection, options, of, ends.sink_hz)?);
            }
            None => {}
        }
        let latency_ns = u64::from(options.latency_ms) * 1_000_000;
        let frames = |rate_hz: u32| u32::try_from(frames_in(latency_ns, rate_hz));
        let (source_frames, sink_frames) = (frames(ends.source_hz)?, frames(ends.sink_hz)?);
        let channels = ends.channels;
        let mut source = connection.record(RecordOptions {
            program: options.program.clone(),
            name: options.stream_name(),
            device: Some(options.from.device.clone()),
            monitor: !options.from.captures,
            channels: (0..u32::try_from(channels)?).collect(),
            // Room for more than is usual.
            interval_frames: source_frames,
            // Nobody listens to a device for what is captured there but through this link.
            lets_sleep: !options.from.captures,
        })?;
        source.set_interval((source_frames / INTERVALS as u32).max(1))?;
        let mut sink = connection.play(PlaybackOptions {
            program: options.program.clone(),
            name: options.stream_name(),
            device: Some(options.to.clone()),
            channels: ends.plays.clone(),
            depth_frames: sink_frames,
        })?;
        // Both streams are there, so of two links that close a circle at once, one sees the other.
        check_circle(connection, options, &options.to)?;
        // What is left of the latency beside it is for the source's intervals, for this thread, and
        // for what waits until it is a block.
        let block = echo.as_ref().map_or(0, |echo| echo.blocks.block());
        sink.set_depth(sink_frames.saturating_sub(u32::try_from(block)?) / 2)?;
        source.run()?;
        let (source_hz, sink_hz) = (ends.source_hz, ends.sink_hz);
        let shape = AlignmentShape { channels, source_hz, sink_hz, latency_ns };
        let alignment = Alignment::new(shape).map_err(anyhow::Error::msg)?;
        let mix = ends.matrix.clone().map(|matrix| Mix::new(matrix, alignment.most_frames()));
        Ok(Self {
            state,
            source,
            outlet: Outlet::new(sink, ends.plays.len(), echo),
            plug_in,
            latency_ns,
            alignment,
            mix,
            queue: Frames::new(channels),
            block: vec![vec![0.0; BLOCK_FRAMES]; channels],
            ends,
            plays: false,
            source_misses: 0,
            sink_misses: 0,
            plays_on: options.to.clone(),
        })
    }

    /// Passes frames on until the server ends one of the streams, which it returns.
    ///
    /// # Errors
    /// The server has gone; the stream was moved to where the source would be heard on itself.
    pub(super) fn run(
        &mut self,
        connection: &StreamConnection,
        options: &LinkOptions,
    ) -> anyhow::Result<End> {
        let interval_ns = self.latency_ns / INTERVALS;
        loop {
            let patience_ns = if self.plays { interval_ns + PATIENCE_NS } else { IDLE_LOOK_NS };
            let deadline_ns = now_ns() + patience_ns;
            let found = self.source.reader().await_frames(AFTER_WAKE_NS, deadline_ns);
            if self.source.reader().control().page().has_ended() {
                return Ok(End::Source);
            }
            if self.outlet.sink.writer().control().page().has_ended() {
                return Ok(End::Sink);
            }
            self.follow_moves(connection, options)?;
            if self.outlet.echo.as_ref().is_some_and(Echo::has_ended) {
                return Ok(End::Echo);
            }
            // Before the frames: what it says of them is true then.
            let source = self.source.reader_mut().control_mut().timing();
            self.read();
            if found > 0 {
                self.begin()?;
            }
            // What a device publishes while it sleeps says nothing of frames that come later.
            let source_runs = source.until > source.position;
            if found > 0 && source_runs {
                self.pass(source);
            }
            if self.plays && !source_runs && self.source.reader().available() == 0 {
                self.end(source)?;
            }
        }
    }

    /// Looks whether the stream that plays was moved, and where to.
    fn follow_moves(
        &mut self,
        connection: &StreamConnection,
        options: &LinkOptions,
    ) -> anyhow::Result<()> {
        let Some(state) = self.outlet.sink.writer().control().page().state() else { return Ok(()) };
        let device = state.device.further().unwrap_or(DRIVER);
        if device != self.plays_on {
            self.plays_on = device.into();
            check_circle(connection, options, device)?;
        }
        Ok(())
    }

    /// Reads what is there. More than the latency is too late to be heard.
    fn read(&mut self) {
        loop {
            let mut planes: Vec<&mut [f32]> = self.block.iter_mut().map(|all| &mut **all).collect();
            let reader = self.source.reader_mut();
            let frames = reader.read(SamplesMut::Planar(&mut planes));
            if frames == 0 {
                break;
            }
            let position = reader.position() - frames as u64;
            if let Some(plug_in) = &mut self.plug_in {
                let planes = self.block.iter_mut().map(|all| &mut all[..frames]);
                plug_in.process(&mut planes.collect::<Vec<_>>());
            }
            let planes: Vec<&[f32]> = self.block.iter().map(|all| &all[..frames]).collect();
            if position != self.queue.first() + self.queue.len() as u64 {
                self.alignment.unlock();
            }
            self.queue.push(position, &planes);
        }
        let misses = self.source.reader_mut().control_mut().misses();
        if misses != self.source_misses {
            self.source_misses = misses;
            self.alignment.unlock();
        }
        let most = frames_in(self.latency_ns, self.ends.source_hz);
        if self.queue.keep(usize::try_from(most).unwrap_or(usize::MAX)) {
            self.alignment.unlock();
        }
    }

    /// Has the sink play, and keeps it playing.
    fn begin(&mut self) -> anyhow::Result<()> {
        let misses = self.outlet.sink.underruns();
        if misses != self.sink_misses {
            self.sink_misses = misses;
            self.state.note_gap();
            self.alignment.unlock();
        }
        let is_dry = self.plays && self.outlet.sink.has_drained(now_ns());
        if self.plays && !is_dry {
            return Ok(());
        }
        // Until it is known what is heard when: from then on, each frame has its time.
        self.alignment.unlock();
        let preroll = frames_in(self.latency_ns / 2, self.ends.sink_hz);
        let position = self.outlet.sink.writer().position();
        self.outlet.begin(preroll);
        if !self.plays {
            // A stream that has drained ends there until a splice says where to go on.
            let sink = &mut self.outlet.sink;
            sink.writer_mut().control_mut().wish(Wish::Splice { position })?;
            let wish = sink.run()?;
            let control = sink.writer().control();
            let _ = control.await_acknowledgement(wish, now_ns() + PATIENCE_NS);
            self.plays = true;
            self.state.set_plays(true);
        }
        Ok(())
    }

    /// Passes on what was read, as far as it is known when it will be heard.
    fn pass(&mut self, source: Timing) {
        let sink = self.outlet.sink.writer_mut().control_mut().timing();
        if sink.frame_ps == 0 || sink.until <= sink.position || source.frame_ps == 0 {
            // It stands, or is about to begin.
            return;
        }
        let next = self.outlet.position();
        if let Some(echo) = &mut self.outlet.echo {
            echo.listen(next, sink);
        }
        while self.queue.len() >= CHUNK {
            if self.outlet.room() < self.alignment.most_frames() {
                return;
            }
            for channel in 0..self.ends.channels {
                self.queue.copy(channel, self.alignment.input(channel));
            }
            let (first, next) = (self.queue.first(), self.outlet.position());
            match self.alignment.step(first, source, next, sink) {
                Step::Play(_) => {
                    self.queue.skip(CHUNK as u64);
                    let channels = 0..self.ends.channels;
                    let mut planes: Vec<&[f32]> =
                        channels.map(|channel| self.alignment.output(channel)).collect();
                    if let Some(mix) = &mut self.mix {
                        planes = mix.mix(&planes);
                    }
                    self.outlet.write(&planes);
                }
                Step::Silence(frames) => {
                    if self.outlet.write_silence(frames) < frames {
                        return;
                    }
                }
                Step::Skip(frames) => self.queue.skip(frames),
            }
        }
        self.state.set_locks(self.alignment.locks());
    }

    /// The source is silent: what is on its way is heard to its end, and then the sink may sleep.
    fn end(&mut self, source: Timing) -> anyhow::Result<()> {
        // To whole pieces, and one more, for what is inside of the filter.
        let frames = CHUNK - self.queue.len() % CHUNK + CHUNK;
        self.queue.push_silence(frames);
        self.pass(source);
        self.queue.clear();
        self.alignment.unlock();
        self.outlet.flush();
        self.outlet.sink.drain()?;
        self.plays = false;
        self.state.set_plays(false);
        Ok(())
    }
}

/// Runs a link until one of its devices is removed. If the one that drives ends its streams,
/// another driver takes its place, and the link begins again.
///
/// # Errors
/// Why it ended.
pub(super) fn run(
    mut link: Link,
    connection: &StreamConnection,
    options: &LinkOptions,
) -> anyhow::Result<()> {
    loop {
        let ended = match link.run(connection, options)? {
            End::Source => options.from.device.clone(),
            End::Sink => link.plays_on.clone(),
            End::Echo => match &options.processing {
                Some(Processing::Echo(echo)) => echo.of.clone(),
                _ => options.from.device.clone(),
            },
        };
        if ended != DRIVER {
            bail!("the device '{ended}' was removed");
        }
        let state = Arc::clone(&link.state);
        state.set_plays(false);
        drop(link);
        let deadline_ns = now_ns() + REOPEN_WITHIN_NS;
        link = loop {
            match Link::open(connection, options, Arc::clone(&state)) {
                Err(_) if now_ns() < deadline_ns => {
                    sys::clock::sleep_until(now_ns() + REOPEN_EVERY_NS);
                }
                decided => break decided.context("another driver has taken its place")?,
            }
        };
    }
}

/// Checks that a link that plays on `device` does not bring its source's sound back to the source.
fn check_circle(
    connection: &StreamConnection,
    options: &LinkOptions,
    device: &str,
) -> anyhow::Result<()> {
    if options.from.captures {
        return Ok(());
    }
    let (from, streams) = (&*options.from.device, connection.streams()?);
    let Some(circle) = Wiring::of(&streams).circle(from, device) else { return Ok(()) };
    let circle = circle.join(" to ");
    bail!(
        "'{from}' would be heard on itself, through {circle}: remove one of these links with \
         'consort device remove', or choose another device with --to"
    )
}

/// How long another driver takes at most, ns.
const REOPEN_WITHIN_NS: u64 = 10_000_000_000;
const REOPEN_EVERY_NS: u64 = 100_000_000;
