//! The clock of a card that only captures, for the loop of a device: it counts the frames that the
//! card has captured. Nothing is heard of what the loop renders meanwhile. Thread: cycle.

use mix::{Card, CardPosition, Planes};
use rt::rate::{duration_ns, frames_in};

use super::AlsaDriver;
use crate::Wake;

const PS_PER_SECOND: u64 = 1_000_000_000_000;
/// How much could be rendered ahead, ns.
const BUFFER_NS: u64 = 2_000_000_000;
/// Cycles that are due further apart than a quantum and this have lost what is between them.
const LOST_NS: u64 = 20_000_000;

/// A cycle that has been waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct CapturedCycle {
    /// Its length, frames.
    pub(super) quantum: u32,
    /// When its last frame was captured, `CLOCK_MONOTONIC` ns.
    pub(super) due_ns: u64,
    /// The card was restarted before it.
    pub(super) follows_loss: bool,
}

/// Where a card is that only captures. While it does not capture, it goes on at its nominal rate as
/// long as the loop lets it run, and stands otherwise.
#[derive(Debug)]
pub(super) struct CaptureClock {
    rate_hz: u32,
    is_open: bool,
    runs_cycles: bool,
    is_started: bool,
    /// A frame, and when it was captured.
    frame: u64,
    at_ns: u64,
    /// When the last cycle with frames was due; `None`: there was none since cycles began.
    due_ns: Option<u64>,
    /// The position that was reported last.
    played: u64,
    written: u64,
}

impl CaptureClock {
    /// Returns the clock of a card that has captured nothing.
    pub(super) fn new(rate_hz: u32) -> Self {
        Self {
            rate_hz,
            is_open: false,
            runs_cycles: false,
            is_started: false,
            frame: 0,
            at_ns: 0,
            due_ns: None,
            played: 0,
            written: 0,
        }
    }

    /// Notes whether the card is open.
    pub(super) fn note_open(&mut self, is_open: bool) {
        self.is_open = is_open;
        if !is_open {
            self.stop();
        }
    }

    /// Cycles begin at `now_ns`.
    pub(super) fn begin_cycles(&mut self, now_ns: u64) {
        let now = self.position(now_ns);
        (self.frame, self.at_ns, self.due_ns) = (now.played, now_ns, None);
        self.runs_cycles = true;
    }

    /// Cycles have ended.
    pub(super) fn end_cycles(&mut self) {
        self.runs_cycles = false;
    }

    /// Notes a cycle; `None`: the card had no frames for it.
    pub(super) fn note_cycle(&mut self, cycle: Option<CapturedCycle>) {
        let Some(CapturedCycle { quantum, due_ns, follows_loss }) = cycle else {
            self.due_ns = None;
            return;
        };
        let passed_ns = self.due_ns.map(|before_ns| due_ns.saturating_sub(before_ns));
        let regular_ns = duration_ns(quantum.into(), self.rate_hz);
        let frames = match passed_ns {
            Some(passed_ns) if follows_loss || passed_ns > regular_ns + LOST_NS => {
                frames_in(passed_ns, self.rate_hz).max(quantum.into())
            }
            _ => quantum.into(),
        };
        self.frame += frames;
        (self.at_ns, self.due_ns) = (due_ns, Some(due_ns));
    }
}

impl Card for CaptureClock {
    fn buffer_frames(&self) -> u32 {
        u32::try_from(frames_in(BUFFER_NS, self.rate_hz)).unwrap_or(u32::MAX)
    }

    fn safety_frames(&self) -> u32 {
        0
    }

    fn is_open(&self) -> bool {
        self.is_open
    }

    fn position(&mut self, now_ns: u64) -> CardPosition {
        let mut at_ns = now_ns;
        if self.is_open && self.runs_cycles {
            self.played = self.played.max(self.frame);
            at_ns = self.at_ns.min(now_ns);
        } else if self.is_open && self.is_started {
            let passed = frames_in(now_ns.saturating_sub(self.at_ns), self.rate_hz);
            self.played = self.played.max(self.frame + passed);
            at_ns = now_ns.min(self.at_ns + duration_ns(passed, self.rate_hz));
        }
        let frame_ps = PS_PER_SECOND / u64::from(self.rate_hz.max(1));
        CardPosition { played: self.played, at_ns, frame_ps }
    }

    fn written(&self) -> u64 {
        self.written
    }

    fn rewind(&mut self, frames: u64) -> u64 {
        let taken = frames.min(self.written.saturating_sub(self.played));
        self.written -= taken;
        taken
    }

    fn write(&mut self, first: u64, planes: &Planes) {
        self.written = first + planes.frames() as u64;
    }

    fn start(&mut self, now_ns: u64) {
        if !self.runs_cycles {
            (self.frame, self.at_ns) = (self.played, now_ns);
        }
        self.is_started = true;
    }

    fn stop(&mut self) {
        self.rewind(u64::MAX);
        self.is_started = false;
    }
}

impl AlsaDriver {
    /// Returns this driver, of a card that only captures, as a device of streams: they follow the
    /// clock of what it captures in its cycles.
    #[must_use]
    pub fn recorded_by_streams(self) -> Self {
        Self { capture_clock: Some(CaptureClock::new(self.recipe.rate_hz)), ..self }
    }

    /// Has the clock of what is captured follow a cycle. Thread: cycle.
    pub(super) fn follow_capture(&mut self, wake: Wake) {
        let has_frames = self.running().is_some();
        if let (Some(clock), Wake::Cycle { due_ns, xrun_us }) = (&mut self.capture_clock, wake) {
            let (quantum, follows_loss) = (self.quantum, xrun_us.is_some());
            let cycle = CapturedCycle { quantum, due_ns, follows_loss };
            clock.note_cycle(has_frames.then_some(cycle));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn cycle(due_ns: u64) -> Option<CapturedCycle> {
        Some(CapturedCycle { quantum: 480, due_ns, follows_loss: false })
    }

    fn running() -> CaptureClock {
        let mut clock = CaptureClock::new(48_000);
        clock.note_open(true);
        clock.begin_cycles(100 * MS);
        clock.note_cycle(cycle(110 * MS));
        clock
    }

    #[test]
    fn its_position_is_what_was_captured_before_the_cycle() {
        let mut clock = running();
        for (count, due_ns) in (2..1000).map(|count: u64| (count, 100 * MS + count * 10_030_000)) {
            clock.note_cycle(cycle(due_ns));
            let position = clock.position(due_ns + 3 * MS);
            // The card is slower than its rate says: its own frames count.
            assert_eq!((position.played, position.at_ns), (480 * count, due_ns));
        }
    }

    #[test]
    fn frames_that_were_lost_between_cycles_count() {
        let mut clock = running();
        clock.note_cycle(cycle(210 * MS));
        assert_eq!(clock.position(211 * MS).played, 480 + 4800, "the machine slept");
        let due_ns = 225 * MS;
        clock.note_cycle(Some(CapturedCycle { quantum: 480, due_ns, follows_loss: true }));
        assert_eq!(clock.position(226 * MS).played, 480 + 4800 + 720, "the card was restarted");
        clock.note_cycle(None);
        clock.note_cycle(cycle(9_000 * MS));
        assert_eq!(clock.position(9_001 * MS).played, 480 + 4800 + 720 + 480, "it was away");
    }

    #[test]
    fn what_is_rendered_beyond_the_last_cycle_comes_to_its_end() {
        let mut clock = running();
        clock.write(480, &planes(480));
        clock.start(112 * MS);
        clock.end_cycles();
        assert_eq!(clock.position(115 * MS).played, 480 + 240);
        assert_eq!(clock.position(121 * MS).played, 480 + 528);
        clock.stop();
        let stands = clock.position(500 * MS);
        assert_eq!((stands.played, stands.at_ns), (480 + 528, 500 * MS));
        clock.begin_cycles(600 * MS);
        clock.note_cycle(cycle(610 * MS));
        assert_eq!(clock.position(611 * MS).played, 480 + 528 + 480, "it never goes back");
    }

    #[test]
    fn a_card_that_closes_has_lost_what_was_rendered() {
        let mut clock = running();
        clock.write(480, &planes(480));
        clock.start(112 * MS);
        clock.position(112 * MS);
        clock.note_open(false);
        assert_eq!((clock.written(), clock.is_open()), (480, false));
        assert_eq!(clock.position(900 * MS).played, 480);
    }

    fn planes(frames: usize) -> Planes {
        let mut planes = Planes::new(0, frames);
        planes.silence(frames);
        planes
    }
}
