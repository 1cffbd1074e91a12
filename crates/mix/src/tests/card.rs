//! A card with a virtual clock.

use crate::{Card, CardCycle, CardPosition, Planes};

/// What a card does differently from an ideal one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// Its pointer moves in steps of this many frames.
    pub(super) coarse_frames: u64,
    /// It refuses to take back more than this part of what it is asked for, in 256ths; 0: all.
    pub(super) refused: u64,
    /// Its clock is faster than the machine's by this many millionths.
    pub(super) drift_ppm: i64,
    /// Nothing comes of what is written to it.
    pub(super) is_unheard: bool,
    /// It reads fewer frames before they are played than its safety: this many.
    pub(super) fetched_frames: Option<u32>,
}

/// A card that plays into memory.
#[derive(Debug)]
pub(super) struct SimulatedCard {
    rate_hz: u64,
    channels: usize,
    pub(super) faults: Faults,
    /// Frames, by number, interleaved; as they are until the hardware reads them.
    pub(super) written: Vec<f32>,
    /// Frames that the hardware has read.
    played: u64,
    /// When it was started, and the frame of then.
    started: Option<(u64, u64)>,
    /// Frames that were written after it had read them.
    pub(super) underruns: u64,
    pub(super) starts: u64,
    /// How often frames were taken back.
    pub(super) rewinds: u64,
    /// The hardware is not open.
    pub(super) is_closed: bool,
    /// It can be opened.
    pub(super) is_there: bool,
    /// It has been asked for.
    pub(super) is_wanted: bool,
    /// The graph's cycle that it has begun.
    pub(super) cycle: Option<CardCycle>,
    /// It was opened for the graph's cycles, with room for this many frames.
    pub(super) room_of_cycles: Option<u32>,
    /// The pointer is reported as it was at this frame, and no further.
    pub(super) stands_at: Option<u64>,
}

impl SimulatedCard {
    pub(super) fn new(rate_hz: u32, channels: usize, faults: Faults) -> Self {
        Self {
            rate_hz: rate_hz.into(),
            channels,
            faults,
            written: Vec::new(),
            played: 0,
            started: None,
            underruns: 0,
            starts: 0,
            rewinds: 0,
            is_closed: false,
            is_there: false,
            is_wanted: false,
            cycle: None,
            room_of_cycles: None,
            stands_at: None,
        }
    }

    /// Lets the hardware read up to `now_ns`.
    pub(super) fn advance(&mut self, now_ns: u64) {
        let Some((at_ns, frame)) = self.started else { return };
        let rate = self.rate_hz as i128 * (1_000_000 + i128::from(self.faults.drift_ppm));
        let passed = i128::from(now_ns - at_ns) * rate / 1_000_000_000_000_000;
        let played = frame + u64::try_from(passed).unwrap();
        self.played = played;
    }

    pub(super) fn frames(&self) -> u64 {
        (self.written.len() / self.channels) as u64
    }

    pub(super) fn played(&self) -> u64 {
        self.played
    }

    /// The hardware goes away, with what it has not read.
    pub(super) fn lose(&mut self) {
        self.started = None;
        self.written.truncate(self.played as usize * self.channels);
        (self.is_closed, self.is_there, self.is_wanted) = (true, false, false);
    }

    pub(super) fn safety(&self) -> u32 {
        self.safety_frames()
    }

    fn frame_ps(&self) -> u64 {
        1_000_000_000_000 / self.rate_hz
    }
}

impl Card for SimulatedCard {
    fn buffer_frames(&self) -> u32 {
        if self.is_closed {
            return 0;
        }
        self.room_of_cycles.unwrap_or_else(|| u32::try_from(2 * self.rate_hz).unwrap())
    }

    fn safety_frames(&self) -> u32 {
        if self.is_closed {
            return 0;
        }
        u32::try_from(64 + self.faults.coarse_frames).unwrap()
    }

    fn fetched_frames(&self) -> u32 {
        self.faults.fetched_frames.unwrap_or_else(|| self.safety_frames())
    }

    fn is_open(&self) -> bool {
        !self.is_closed
    }

    fn open(&mut self) -> bool {
        self.is_wanted = true;
        self.is_closed &= !self.is_there;
        self.is_open()
    }

    fn is_makeshift(&self) -> bool {
        self.room_of_cycles.is_some()
    }

    fn reopen(&mut self) {
        self.lose();
        self.room_of_cycles = None;
    }

    fn position(&mut self, now_ns: u64) -> CardPosition {
        self.advance(now_ns);
        let step = self.faults.coarse_frames.max(1);
        let first = self.started.map_or(self.played, |(_, frame)| frame);
        let played = first + (self.played - first) / step * step;
        let played = self.stands_at.map_or(played, |frame| frame.min(played));
        CardPosition { played, at_ns: now_ns, frame_ps: self.frame_ps() }
    }

    fn cycle(&self) -> Option<CardCycle> {
        self.cycle
    }

    fn written(&self) -> u64 {
        self.frames()
    }

    fn is_heard(&self) -> bool {
        !self.faults.is_unheard
    }

    fn rewind(&mut self, frames: u64) -> u64 {
        self.rewinds += 1;
        let given = frames - frames * self.faults.refused / 256;
        assert!(self.frames() - given >= self.played, "frames are taken back that were read");
        self.written.truncate((self.frames() - given) as usize * self.channels);
        given
    }

    fn write(&mut self, first: u64, planes: &Planes) {
        assert!(first >= self.frames(), "frame {first} was written before");
        self.underruns += self.played.saturating_sub(first);
        self.written.resize(first as usize * self.channels, 0.0);
        for frame in 0..planes.frames() {
            self.written.extend((0..self.channels).map(|channel| planes.channel(channel)[frame]));
        }
    }

    fn start(&mut self, now_ns: u64) {
        assert!(self.started.is_none());
        self.started = Some((now_ns, self.played));
        self.starts += 1;
    }

    fn stop(&mut self) {
        assert!(self.played >= self.frames(), "what was written has not been played");
        self.started = None;
    }
}
