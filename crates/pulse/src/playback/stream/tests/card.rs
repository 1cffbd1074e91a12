//! A device that plays whatever its ring has, at its own clock.

use client::stream::{Schedule, Timing, Volume, Wish};

use crate::output::{Output, Refusal};

/// A stream on that device.
#[derive(Debug)]
pub(super) struct Card {
    pub now_ns: u64,
    /// Every sample that was written to the first channel.
    pub samples: Vec<f32>,
    /// Those of the second one, if there is one.
    right: Vec<f32>,
    /// Wishes that the device obeyed, but for gains and depths.
    pub obeyed: Vec<Wish>,
    /// How many frames there were each time it was to run.
    pub begun_with: Vec<u64>,
    /// The depth that was wished last.
    pub depth_frames: u32,
    /// How often it was called without a wish.
    pub calls: u32,
    /// What it says about its wake-ups.
    pub schedule: Option<Schedule>,
    /// It obeys no wishes.
    pub is_deaf: bool,
    /// Its ring has frames of 16-bit mono, and no planes.
    pub holds_frames: bool,
    /// What it says instead of what it does.
    pub stated: Option<Timing>,
    /// By how many frames it goes on each time it is asked, and how far it has gone on so.
    pub hurries_by: u64,
    hurried: u64,
    capacity: u64,
    wishes: Vec<Wish>,
    runs: bool,
    /// What was heard at a time.
    position: u64,
    since_ns: u64,
    end: u64,
}

impl Card {
    pub fn new(capacity: u64) -> Self {
        Self {
            now_ns: 0,
            samples: Vec::new(),
            right: Vec::new(),
            obeyed: Vec::new(),
            begun_with: Vec::new(),
            depth_frames: 0,
            calls: 0,
            schedule: None,
            is_deaf: false,
            holds_frames: false,
            stated: None,
            hurries_by: 0,
            hurried: 0,
            capacity,
            wishes: Vec::new(),
            runs: false,
            position: 0,
            since_ns: 0,
            end: u64::MAX,
        }
    }

    pub fn heard(&self) -> u64 {
        self.relation().position_at(self.now_ns)
    }

    fn relation(&self) -> Timing {
        let until = self.end.min(self.written()).max(self.position);
        Timing {
            at_ns: self.since_ns,
            device_frame: 0,
            position: self.position,
            until: if self.runs { until } else { self.position },
            frame_ps: 1_000_000_000_000 / u64::from(super::RATE_HZ),
            latency_ns: 0,
        }
    }

    /// Goes on from a position.
    fn turn(&mut self, position: u64) {
        (self.position, self.since_ns) = (position, self.now_ns);
    }

    fn obey(&mut self, wish: Wish) {
        let heard = self.heard();
        match wish {
            Wish::Gain { .. } => return,
            Wish::Depth { frames } => {
                self.depth_frames = frames;
                return;
            }
            Wish::Run => {
                self.turn(heard);
                self.begun_with.push(self.written());
                self.runs = true;
            }
            Wish::Hold => {
                self.turn(heard);
                self.runs = false;
            }
            Wish::Drain { end } => {
                self.turn(heard);
                self.end = end;
            }
            Wish::Splice { position } => {
                self.turn(position);
                self.end = u64::MAX;
            }
        }
        self.obeyed.push(wish);
    }
}

impl Output for Card {
    fn begin(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn start(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn has_begun(&mut self) -> Option<Result<(), Refusal>> {
        Some(Ok(()))
    }

    fn number(&self) -> Option<u32> {
        Some(0)
    }

    fn volume(&self) -> Volume {
        Volume::default()
    }

    fn capacity_frames(&self) -> u64 {
        self.capacity
    }

    fn room(&self) -> usize {
        (self.capacity - (self.written() - self.heard())) as usize
    }

    fn write(&mut self, planes: &[&[f32]]) {
        assert!(planes[0].len() <= self.room(), "there is no room");
        // Time that passed without frames is not made up for.
        self.turn(self.heard());
        self.samples.extend(planes[0]);
        if let Some(right) = planes.get(1) {
            self.right.extend(*right);
        }
    }

    /// As if its ring went round often.
    fn write_in_place(&mut self, write: impl FnOnce(&mut [&mut [f32]]) -> usize) {
        assert!(!self.holds_frames, "it has frames");
        let room = self.room().min(1000);
        let (mut left, mut right) = (vec![0.0; room], vec![0.0; room]);
        let frames = write(&mut [&mut left, &mut right]);
        self.write(&[&left[..frames], &right[..frames]]);
    }

    fn written(&self) -> u64 {
        self.samples.len() as u64
    }

    fn holds_frames(&self) -> bool {
        self.holds_frames
    }

    fn write_frames_in_place(&mut self, write: impl FnOnce(&mut [u8]) -> usize) {
        assert!(self.holds_frames, "it has planes");
        let mut room = vec![0; 2 * self.room().min(1000)];
        let bytes = write(&mut room);
        let mut samples = vec![0.0; bytes / 2];
        dsp::decode(dsp::Format::S16Le, &room[..bytes], &mut samples, 0, 1);
        self.write(&[&samples]);
    }

    fn read(&self, channel: u32, position: u64, into: &mut [f32]) {
        let oldest = self.written().saturating_sub(self.capacity);
        assert!(position >= oldest, "older ones are written over");
        let samples = if channel == 0 { &self.samples } else { &self.right };
        into.copy_from_slice(&samples[position as usize..][..into.len()]);
    }

    fn wish(&mut self, wish: Wish) {
        self.wishes.push(wish);
    }

    fn commit(&mut self) {
        let wishes = std::mem::take(&mut self.wishes);
        if !self.is_deaf {
            wishes.into_iter().for_each(|wish| self.obey(wish));
        }
    }

    fn call(&mut self) {
        self.calls += 1;
    }

    fn is_committed(&self) -> bool {
        self.wishes.is_empty()
    }

    fn timing(&mut self) -> Timing {
        let timing = self.stated.unwrap_or_else(|| self.relation());
        self.hurried += self.hurries_by;
        let position = timing.position.saturating_add(self.hurried).min(timing.until);
        Timing { position: position.max(timing.position), ..timing }
    }

    fn schedule(&self) -> Option<Schedule> {
        self.schedule
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn has_too_many_wishes(&self) -> bool {
        false
    }

    fn leave(&mut self, _now_ns: u64) {
        self.turn(self.heard());
        self.runs = false;
    }
}
