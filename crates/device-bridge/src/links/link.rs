//! The streams of a link, and the thread that passes frames on from one to the other.
//!
//! It wakes when the source's device has recorded, a few times in its latency. While nothing is
//! heard there, it sleeps, and so do both devices.

use std::sync::Arc;

use anyhow::{Context, bail};
use client::stream::{
    Gain, PlaybackOptions, PlaybackStream, RecordOptions, RecordStream, RingSamples,
    StreamConnection, Timing,
};
use convert::Matrix;
use effects::Ladspa;
use rt::rate::frames_in;
use sys::clock::now_ns;

use super::alignment::{Alignment, AlignmentShape, CHUNK, Step};
use super::circles::{DRIVER, Wiring};
use super::echo::Echo;
use super::ends::{Sink, Source, write_silence};
use super::frames::Frames;
use super::inlet::Inlet;
use super::mix::Mix;
use super::options::{Ends, LinkOptions, Processing};
use super::outlet::Outlet;
use super::state::LinkState;

/// The source's device wakes this often within the latency.
pub(crate) const INTERVALS: u64 = 8;
/// Frames that come this much later than expected do not come for now: the source is silent, ns.
const PATIENCE_NS: u64 = 20_000_000;
/// How often a link that sleeps looks whether its devices are still there, ns.
const IDLE_LOOK_NS: u64 = 5_000_000_000;
/// Frames that are read at once.
pub(super) const BLOCK_FRAMES: usize = 1024;

/// The device at which a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Sink,
    /// The one whose sound comes back as an echo.
    Echo,
}

/// What a link passes on.
pub(crate) struct LinkShape {
    /// Channels of the source.
    pub(crate) channels: usize,
    /// Hz.
    pub(crate) source_hz: u32,
    /// Hz.
    pub(crate) sink_hz: u32,
    /// Channels of the sink.
    pub(crate) plays: usize,
    /// From the former to the latter; `None`: each is heard on one.
    pub(crate) matrix: Option<Matrix>,
    /// From when a frame is heard at the source until it is heard at the sink, ns.
    pub(crate) latency_ns: u64,
}

/// Passes frames on, on its own thread.
pub(crate) struct Link<F, T> {
    state: Arc<LinkState>,
    source: F,
    sink: T,
    shape: LinkShape,
    alignment: Alignment,
    /// `None`: each channel is heard on one.
    mix: Option<Mix>,
    queue: Frames,
    block: Vec<Vec<f32>>,
    /// The sink's stream runs, or was asked to.
    plays: bool,
    /// What was lost on both sides, as far as it was noticed.
    source_misses: u64,
    sink_misses: u64,
}

/// A link between two devices.
pub(super) type DeviceLink = Link<Inlet, Outlet>;

impl DeviceLink {
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
        let source = open_source(
            connection,
            RecordOptions {
                program: options.program.clone(),
                name: options.stream_name(),
                device: Some(options.from.device.clone()),
                monitor: !options.from.captures,
                channels: (0..u32::try_from(ends.channels)?).collect(),
                // Room for more than is usual.
                interval_frames: u32::try_from(frames_in(latency_ns, ends.source_hz))?,
                // Nobody listens to a device for what is captured there but through this link.
                lets_sleep: !options.from.captures,
            },
        )?;
        let block = echo.as_ref().map_or(0, |echo| echo.blocks.block());
        let sink = open_sink(
            connection,
            PlaybackOptions {
                program: options.program.clone(),
                name: options.stream_name(),
                device: Some(options.to.clone()),
                channels: ends.plays.clone(),
                depth_frames: u32::try_from(frames_in(latency_ns, ends.sink_hz))?,
                samples: RingSamples::Planes,
            },
            u32::try_from(block)?,
        )?;
        // Both streams are there, so of two links that close a circle at once, one sees the other.
        check_circle(connection, options, &options.to)?;
        let Ends { source_hz, sink_hz, channels, plays, matrix } = ends;
        let plays = plays.len();
        let shape = LinkShape { channels, source_hz, sink_hz, plays, matrix, latency_ns };
        Self::new(Inlet { source, plug_in }, Outlet { sink, echo }, shape, state)
    }

    /// Returns the volumes that users have given its streams, as far as they are known.
    fn volumes(&self) -> Volumes {
        let controls = [self.source.source.reader().control(), self.sink.sink.writer().control()];
        controls.map(|control| {
            let state = control.page().state()?;
            Some((Gain::new(state.gain).ok()?, state.muted))
        })
    }

    /// Gives its streams the volumes of those that were there before.
    ///
    /// # Errors
    /// The server has gone.
    fn set_volumes(&self, connection: &StreamConnection, volumes: Volumes) -> anyhow::Result<()> {
        let streams = [self.source.source.number(), self.sink.sink.number()];
        for (stream, volume) in streams.into_iter().zip(volumes) {
            if let Some((gain, muted)) = volume.filter(|volume| *volume != (Gain::UNITY, false)) {
                connection.set_volume(stream, Some(gain), Some(muted))?;
            }
        }
        Ok(())
    }
}

/// Gain and mute of the source's stream and of the sink's.
type Volumes = [Option<(Gain, bool)>; 2];

/// Opens the recording of a link, which is woken a few times in the latency that `options` have as
/// their interval.
///
/// # Errors
/// The server refuses it.
pub(crate) fn open_source(
    connection: &StreamConnection,
    options: RecordOptions,
) -> anyhow::Result<RecordStream> {
    let interval = (options.interval_frames / INTERVALS as u32).max(1);
    let mut source = connection.record(options)?;
    source.set_interval(interval)?;
    source.run()?;
    Ok(source)
}

/// Opens the playback of a link, with room for the latency that `options` have as their depth, of
/// which `waiting` frames may wait until they are passed on.
///
/// # Errors
/// The server refuses it.
pub(crate) fn open_sink(
    connection: &StreamConnection,
    options: PlaybackOptions,
    waiting: u32,
) -> anyhow::Result<PlaybackStream> {
    let depth = options.depth_frames.saturating_sub(waiting) / 2;
    let mut sink = connection.play(options)?;
    // What is left of the latency beside it is for the source's intervals, and for this thread.
    sink.set_depth(depth)?;
    Ok(sink)
}

impl<F: Source, T: Sink> Link<F, T> {
    /// Connects two ends.
    ///
    /// # Errors
    /// The rates cannot be converted into each other.
    pub(crate) fn new(
        source: F,
        sink: T,
        mut shape: LinkShape,
        state: Arc<LinkState>,
    ) -> anyhow::Result<Self> {
        let LinkShape { channels, source_hz, sink_hz, latency_ns, .. } = shape;
        let aligned = AlignmentShape { channels, source_hz, sink_hz, latency_ns };
        let alignment = Alignment::new(aligned).map_err(anyhow::Error::msg)?;
        let matrix = shape.matrix.take();
        let mix = matrix.map(|matrix| Mix::new(matrix, alignment.most_frames()));
        Ok(Self {
            state,
            source,
            sink,
            alignment,
            mix,
            queue: Frames::new(channels),
            block: vec![vec![0.0; BLOCK_FRAMES]; channels],
            shape,
            plays: false,
            source_misses: 0,
            sink_misses: 0,
        })
    }

    /// Passes frames on until the server ends one of the streams, which it returns.
    ///
    /// # Errors
    /// The server has gone, why one of the ends has ended otherwise, or what `check` says, which is
    /// called each time that the thread wakes.
    pub(crate) fn run(
        &mut self,
        mut check: impl FnMut(&T) -> anyhow::Result<()>,
    ) -> anyhow::Result<End> {
        let interval_ns = self.shape.latency_ns / INTERVALS;
        loop {
            let patience_ns = if self.plays { interval_ns + PATIENCE_NS } else { IDLE_LOOK_NS };
            let deadline_ns = now_ns() + patience_ns;
            let deadline_ns = self.sink.look_ns().map_or(deadline_ns, |at| at.min(deadline_ns));
            let found = self.source.await_frames(deadline_ns);
            if self.source.has_ended()? {
                return Ok(End::Source);
            }
            if let Some(end) = self.sink.has_ended()? {
                return Ok(end);
            }
            check(&self.sink)?;
            // Before the frames: what it says of them is true then.
            let source = self.source.timing();
            self.read();
            if found > 0 {
                self.begin()?;
            }
            // What a device publishes while it sleeps says nothing of frames that come later.
            let source_runs = source.until > source.position;
            if found > 0 && source_runs {
                self.pass(source);
            }
            if self.plays && !source_runs && self.source.available() == 0 {
                self.end(source)?;
            }
            self.sink.commit()?;
        }
    }

    /// Reads what is there. More than the latency is too late to be heard.
    fn read(&mut self) {
        loop {
            let mut planes: Vec<&mut [f32]> = self.block.iter_mut().map(|all| &mut **all).collect();
            let (position, frames) = self.source.read(&mut planes);
            if frames == 0 {
                break;
            }
            let planes: Vec<&[f32]> = self.block.iter().map(|all| &all[..frames]).collect();
            if position != self.queue.first() + self.queue.len() as u64 {
                self.alignment.unlock();
            }
            self.queue.push(position, &planes);
        }
        let misses = self.source.misses();
        if misses != self.source_misses {
            self.source_misses = misses;
            self.alignment.unlock();
        }
        let most = frames_in(self.shape.latency_ns, self.shape.source_hz);
        if self.queue.keep(usize::try_from(most).unwrap_or(usize::MAX)) {
            self.alignment.unlock();
        }
    }

    /// Has the sink play, and keeps it playing.
    fn begin(&mut self) -> anyhow::Result<()> {
        let misses = self.sink.misses();
        if misses != self.sink_misses {
            self.sink_misses = misses;
            self.state.note_gap();
            self.alignment.unlock();
        }
        let is_dry = self.plays && self.sink.has_run_dry();
        if self.plays && !is_dry {
            return Ok(());
        }
        // Until it is known what is heard when: from then on, each frame has its time.
        self.alignment.unlock();
        let preroll = frames_in(self.shape.latency_ns / 2, self.shape.sink_hz);
        let position = self.sink.preroll(preroll, self.shape.plays);
        if !self.plays {
            self.sink.begin(position)?;
            self.plays = true;
            self.state.set_plays(true);
        }
        Ok(())
    }

    /// Passes on what was read, as far as it is known when it will be heard.
    fn pass(&mut self, source: Timing) {
        let sink = self.sink.timing();
        if sink.frame_ps == 0 || sink.until <= sink.position || source.frame_ps == 0 {
            // It stands, or is about to begin.
            return;
        }
        while self.queue.len() >= CHUNK {
            let room = self.sink.room();
            if room < self.alignment.most_frames() {
                return;
            }
            for channel in 0..self.shape.channels {
                self.queue.copy(channel, self.alignment.input(channel));
            }
            let (first, next) = (self.queue.first(), self.sink.position());
            match self.alignment.step(first, source, next, sink) {
                Step::Play(_) => {
                    self.queue.skip(CHUNK as u64);
                    let channels = 0..self.shape.channels;
                    let mut planes: Vec<&[f32]> =
                        channels.map(|channel| self.alignment.output(channel)).collect();
                    if let Some(mix) = &mut self.mix {
                        planes = mix.mix(&planes);
                    }
                    self.sink.write(&planes);
                }
                Step::Silence(frames) => {
                    if write_silence(&mut self.sink, frames, self.shape.plays) < frames {
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
        self.sink.drain()?;
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
    mut link: DeviceLink,
    connection: &StreamConnection,
    options: &LinkOptions,
) -> anyhow::Result<()> {
    loop {
        let mut plays_on = options.to.clone();
        let ended = link.run(|outlet| {
            // Somebody may have moved the stream.
            let Some(device) = outlet.device().filter(|device| *device != plays_on) else {
                return Ok(());
            };
            plays_on = device;
            check_circle(connection, options, &plays_on)
        })?;
        let ended = match ended {
            End::Source => options.from.device.clone(),
            End::Sink => plays_on,
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
        let volumes = link.volumes();
        drop(link);
        let deadline_ns = now_ns() + REOPEN_WITHIN_NS;
        link = loop {
            match DeviceLink::open(connection, options, Arc::clone(&state)) {
                Err(_) if now_ns() < deadline_ns => {
                    sys::clock::sleep_until(now_ns() + REOPEN_EVERY_NS);
                }
                decided => break decided.context("another driver has taken its place")?,
            }
        };
        link.set_volumes(connection, volumes)?;
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
