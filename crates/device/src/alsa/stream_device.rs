//! A device that plays streams: its memory is filled as far ahead as the loop of streams likes, and
//! cycles may run beside them. Thread: cycle, unless said otherwise.

use alsa::{Fault, Pcm};
use mix::Planes;
use rt::rate::frames_in;

use super::device::{Device, Need, WakeSource, queued_frames};
use super::dither::Ditherer;
use super::period_clock::PeriodClock;
use super::stream_queue::StreamQueue;
use super::transfer::write_silence;

/// How long before it reads them a card may have fetched frames, at least, ns: what PulseAudio
/// never rewinds.
const LEAST_SAFETY_NS: u64 = 1_330_000;
/// By how much a position may move at once that was not measured, ns: that of a card without
/// hardware, on a kernel with the slowest ticks.
const UNMEASURED_STEP_NS: u64 = 10_000_000;
/// What follows the last frames of streams: 85 ms at 48 kHz, by which a device may be stopped late.
static SILENCE: [f32; 4096] = [0.0; 4096];
/// For how long the steps of a position are measured, and how often it is asked, ns.
const MEASURED_NS: u64 = 30_000_000;
const MEASURED_EACH_NS: u64 = 250_000;

impl Device {
    /// Returns whether the device is to play streams as it is: it is configured for them, or plays
    /// cycles of a graph that is heard, which are not to be interrupted.
    pub(super) fn can_begin_streams(&self, graph_is_heard: bool) -> bool {
        let is_for_streams = self.need == Need::Streams && !self.is_interim;
        is_for_streams || (graph_is_heard && self.clock.is_some())
    }

    /// From now on the device plays streams, from device frame `first` on. What it plays already is
    /// continued.
    pub(super) fn begin_streams(&mut self, first: u64) {
        let left = self.queue_frames.saturating_sub(self.quantum + self.not_written());
        let Some(playback) = &mut self.playback else { return };
        let mut streams = StreamQueue::at(first, self.rate_hz);
        let running = self.clock.as_ref().and_then(|_| playback.position(true).ok());
        match running {
            Some(position) => {
                streams.take_over(queued_frames(playback, position), position.at_ns);
                streams.await_cycle_with(left);
                self.runs_cycles = true;
            }
            None => {
                self.clock = None;
                playback.stop();
                // If it fails, starting does, too.
                let _ = playback.prepare();
            }
        }
        self.streams = Some(streams);
        if self.need == Need::Cycles {
            self.become_interim();
        }
    }

    /// Lets a device that was configured for cycles play streams beside them: by timer, since its
    /// interrupts are at other frames than the cycles that follow, and both directions on their
    /// own.
    fn become_interim(&mut self) {
        (self.need, self.is_interim) = (Need::Streams, true);
        self.wake_source = WakeSource::Timer;
        if let Some(capture) = self.capture.as_ref().filter(|_| self.linked) {
            capture.unlink();
            self.linked = false;
        }
    }

    /// Returns how many frames of the cycle that was due last are still to be written.
    fn not_written(&self) -> u32 {
        if self.has_written { 0 } else { self.quantum }
    }

    /// From now on the device gets cycles alone: what they play is appended to what is queued, and
    /// the next one is due when it would have been. Returns the frame that the device has come to.
    pub(super) fn end_streams(&mut self) -> Option<u64> {
        let streams = self.streams.take()?;
        let setup = self.playback.as_ref().and_then(Pcm::setup);
        let room = setup.map_or(0, |setup| setup.buffer_frames).max(2 * self.quantum);
        let to_write = i64::from(self.quantum) + i64::from(self.not_written());
        let queue_frames = streams.queued_at_cycle() + to_write;
        let queue_frames = u32::try_from(queue_frames).unwrap_or(0);
        self.queue_frames = queue_frames.clamp(2 * self.quantum, room);
        Some(streams.played())
    }

    /// Lets cycles run beside the streams: the first is due in a quantum, if playback runs; or else
    /// a quantum after it has been started.
    pub(super) fn begin_cycles(&mut self) -> Result<(), Fault> {
        self.runs_cycles = true;
        let runs = self.streams.as_ref().is_some_and(StreamQueue::runs);
        if runs { self.start_cycles() } else { Ok(()) }
    }

    fn start_cycles(&mut self) -> Result<(), Fault> {
        if let Some(capture) = &mut self.capture {
            capture.stop();
            capture.prepare()?;
            capture.start()?;
        }
        // Where playback is now, capture begins: it has a quantum when playback has read one more.
        let now_ns = sys::clock::now_ns();
        self.follow(now_ns)?;
        self.hold_ns = 0;
        self.clock = Some(PeriodClock::started_at(now_ns, self.quantum, self.rate_hz));
        if let Some(streams) = &mut self.streams {
            streams.await_cycle_after(self.quantum);
        }
        Ok(())
    }

    /// Lets cycles continue after a fault, with capture started again. Playback that has stopped
    /// starts with what is written next.
    pub(super) fn restart_cycles(&mut self) -> Result<(), Fault> {
        match self.follow(sys::clock::now_ns()) {
            Ok(()) => self.begin_cycles(),
            Err(fault) => self.make_ready(fault),
        }
    }

    /// Stops capture: playback goes on without cycles.
    pub(super) fn end_cycles(&mut self) {
        self.runs_cycles = false;
        self.clock = None;
        if let Some(capture) = &mut self.capture {
            capture.stop();
        }
    }

    /// Reads the hardware's position.
    pub(super) fn follow(&mut self, now_ns: u64) -> Result<(), Fault> {
        let (Some(playback), Some(streams)) = (&mut self.playback, &mut self.streams) else {
            return Err(Fault::Gone);
        };
        if !streams.runs() {
            // Prepared before the machine slept, it would not take what is written.
            let has_slept = playback.check_runs() == Err(Fault::Suspended);
            return if has_slept { playback.prepare() } else { Ok(()) };
        }
        let position = playback.position(true)?;
        streams.note(queued_frames(playback, position), position.at_ns);
        if streams.stands_still(now_ns) { Err(Fault::Stalled) } else { Ok(()) }
    }

    /// Ends the streams' queue of a device that is given up; returns the frame that it has come to.
    pub(super) fn give_up_streams(&mut self, now_ns: u64) -> Option<u64> {
        let runs = self.streams.as_ref()?.runs();
        let followed = if runs { self.follow(now_ns) } else { Ok(()) };
        let mut streams = self.streams.take()?;
        if followed == Err(Fault::Gone) {
            streams.lose_now(now_ns);
        }
        Some(streams.played())
    }

    /// Makes a device that has stopped by itself ready to start with what is written next.
    pub(super) fn make_ready(&mut self, fault: Fault) -> Result<(), Fault> {
        self.clock = None;
        let (Some(playback), Some(streams)) = (&mut self.playback, &mut self.streams) else {
            return Err(Fault::Gone);
        };
        match fault {
            Fault::Xrun => streams.run_out(),
            // What it played since its position was last asked for was heard.
            Fault::Suspended => streams.lose_from(playback.triggered_ns(), sys::clock::now_ns()),
            Fault::Gone => streams.lose_now(sys::clock::now_ns()),
            _ => streams.lose(),
        }
        self.starts_with_next = true;
        playback.stop();
        playback.prepare()
    }

    /// Starts to play what was written. Returns whether that is new.
    pub(super) fn start_streams(&mut self) -> Result<bool, Fault> {
        let (Some(playback), Some(streams)) = (&mut self.playback, &mut self.streams) else {
            return Err(Fault::Gone);
        };
        self.starts_with_next = false;
        if streams.runs() {
            return Ok(false);
        }
        playback.start()?;
        streams.start(sys::clock::now_ns());
        if self.runs_cycles { self.start_cycles().map(|()| true) } else { Ok(true) }
    }

    /// Stops playback where it is.
    pub(super) fn stop_streams(&mut self) -> Result<(), Fault> {
        self.clock = None;
        self.starts_with_next = false;
        let (Some(playback), Some(streams)) = (&mut self.playback, &mut self.streams) else {
            return Ok(());
        };
        playback.stop();
        streams.lose();
        playback.prepare()
    }

    /// Takes the last `frames` frames back; returns how many the card has given.
    pub(super) fn rewind(&mut self, frames: u64) -> u64 {
        let unmeasured_safety = self.unmeasured_safety();
        let (Some(playback), Some(streams)) = (&mut self.playback, &mut self.streams) else {
            return 0;
        };
        let final_frames = if self.is_interim { unmeasured_safety.into() } else { 0 };
        let wanted = frames.min(streams.queued().saturating_sub(final_frames));
        let taken = u64::from(playback.rewind(u32::try_from(wanted).unwrap_or(0)));
        streams.remove(taken);
        taken
    }

    /// Writes frames from device frame `first` on, unless there is no room for them: the loop sees
    /// what was written.
    pub(super) fn write_streams(
        &mut self,
        first: u64,
        planes: &Planes,
        dither: &mut Option<Ditherer>,
        scratch: &mut [f32],
    ) -> Result<(), Fault> {
        let (Some(playback), Some(streams)) = (&mut self.playback, &mut self.streams) else {
            return Err(Fault::Gone);
        };
        let buffer_frames = playback.setup().map_or(0, |setup| setup.buffer_frames);
        let gap = first.saturating_sub(streams.written());
        let frames = planes.frames() as u64;
        if streams.queued() + gap + frames > buffer_frames.into() {
            return Ok(());
        }
        if gap > 0 {
            write_silence(playback, u32::try_from(gap).unwrap_or(0))?;
            streams.add(gap);
        }
        let mut block = playback.write(u32::try_from(frames).unwrap_or(0))?;
        for (channel, number) in (0..planes.channels()).zip(0..) {
            let samples = planes.channel(channel);
            match (dither.as_mut(), scratch.get_mut(..samples.len())) {
                (Some(dither), Some(scratch)) => {
                    scratch.copy_from_slice(samples);
                    dither.apply(number, scratch);
                    block.encode(number, scratch);
                }
                _ => block.encode(number, samples),
            }
        }
        block.commit()?;
        streams.add(frames);
        self.has_written = true;
        Ok(())
    }

    /// Silences what lies behind the frames that were written, where there are older ones: the
    /// position is known to some frames only, so that the device is stopped somewhat later. For a
    /// device that has a fault, it does nothing.
    pub(super) fn silence_after_streams(&mut self) {
        let (Some(playback), Some(streams)) = (&mut self.playback, &self.streams) else { return };
        let (buffer_frames, channels) =
            playback.setup().map_or((0, 0), |setup| (setup.buffer_frames, setup.channels));
        let room = u64::from(buffer_frames).saturating_sub(streams.queued());
        let frames = room.min(SILENCE.len() as u64) as u32;
        if let Ok(mut block) = playback.write(frames) {
            // Not passed to the device, so not counted as what it has of silence: it reads them
            // only if it is stopped late.
            (0..channels).for_each(|channel| block.encode(channel, &SILENCE));
        }
    }

    /// Returns how many frames after its position the loop of streams leaves alone. A device that
    /// was configured for cycles has them as late as without streams.
    pub(super) fn safety(&self) -> u32 {
        match (self.is_interim, self.runs_cycles) {
            (false, _) => self.safety_frames,
            (true, true) => 0,
            // The rest of the queue is to be slept through.
            (true, false) => self.unmeasured_safety().min(self.first_queue_frames / 2),
        }
    }

    fn unmeasured_safety(&self) -> u32 {
        let step = u32::try_from(frames_in(UNMEASURED_STEP_NS, self.rate_hz));
        self.safety_for(step.unwrap_or(u32::MAX))
    }

    /// Returns how many frames after its position cannot be changed, if that moves by `step_frames`
    /// at once. Thread: any.
    pub(super) fn safety_for(&self, step_frames: u32) -> u32 {
        let least = u32::try_from(frames_in(LEAST_SAFETY_NS, self.rate_hz)).unwrap_or(u32::MAX);
        least.saturating_add(step_frames)
    }

    /// Measures by how much the device's position moves at once, which nothing else tells, while
    /// some silence is played. Thread: not the cycle's; it takes [`MEASURED_NS`].
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) fn measure_step(&mut self) -> Result<u32, Fault> {
        let Some(playback) = &mut self.playback else { return Ok(0) };
        let buffer_frames = playback.setup().map_or(0, |setup| setup.buffer_frames);
        playback.prepare()?;
        let frames = frames_in(2 * MEASURED_NS, self.rate_hz).min(buffer_frames.into());
        let frames = u32::try_from(frames).unwrap_or(buffer_frames);
        write_silence(playback, frames)?;
        playback.start()?;
        let start_ns = sys::clock::now_ns();
        let (mut step, mut queued, mut at_ns) = (0, frames, start_ns);
        while at_ns < start_ns + MEASURED_NS {
            sys::clock::sleep_until(at_ns + MEASURED_EACH_NS);
            let left = queued_frames(playback, playback.position(true)?);
            let now_ns = sys::clock::now_ns();
            let passed = frames_in(now_ns.saturating_sub(at_ns), self.rate_hz);
            let moved = u64::from(queued.saturating_sub(left));
            step = step.max(moved.saturating_sub(passed));
            (queued, at_ns) = (left, now_ns);
        }
        playback.stop();
        Ok(u32::try_from(step).unwrap_or(0))
    }
}
