//! Which device frames a card has, and which of them its hardware has read. Thread: cycle.

const PS_PER_SECOND: u64 = 1_000_000_000_000;
/// How long the hardware must have run before its rate is taken from its position, and how far it
/// may be from the nominal one.
const RATE_AFTER_NS: u64 = 2_000_000_000;
const RATE_TOLERANCE: u64 = 100;
/// Hardware that has frames, and does not move for this long, stands still.
const STILL_NS: u64 = 500_000_000;

/// The frames that were written to a card, by their numbers on the device.
///
/// Positions never go back, whatever the hardware reports.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamQueue {
    rate_hz: u32,
    /// The frame after the last one that the card has.
    written: u64,
    /// The frame that the hardware reads next, and when that was known.
    played: u64,
    at_ns: u64,
    /// When that frame was first seen.
    moved_ns: u64,
    /// Since when the hardware has run, and the frame of then. `None`: it is stopped.
    since: Option<(u64, u64)>,
    /// The frame with which the next cycle begins, and that of the cycle that was due last.
    cycle: u64,
    due: u64,
}

impl StreamQueue {
    /// Returns the queue of a stopped card that has nothing, at this frame.
    pub(super) fn at(frame: u64, rate_hz: u32) -> Self {
        Self {
            rate_hz,
            written: frame,
            played: frame,
            at_ns: 0,
            moved_ns: 0,
            since: None,
            cycle: frame,
            due: frame,
        }
    }

    pub(super) fn played(&self) -> u64 {
        self.played
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Returns when the hardware was at [`played`](Self::played).
    pub(super) fn at_ns(&self) -> u64 {
        self.at_ns
    }

    /// Returns how many frames are queued.
    pub(super) fn queued(&self) -> u64 {
        self.written - self.played
    }

    pub(super) fn runs(&self) -> bool {
        self.since.is_some()
    }

    /// Notes that the hardware has this many frames left at `at_ns`.
    pub(super) fn note(&mut self, left: u32, at_ns: u64) {
        let played = self.written.saturating_sub(left.into());
        if played > self.played {
            (self.played, self.moved_ns) = (played, at_ns);
        }
        self.at_ns = at_ns.max(self.at_ns);
    }

    /// Returns whether the hardware does not move although it has frames.
    pub(super) fn stands_still(&self, now_ns: u64) -> bool {
        self.runs() && self.queued() > 0 && now_ns.saturating_sub(self.moved_ns) > STILL_NS
    }

    /// Notes frames that were written.
    pub(super) fn add(&mut self, frames: u64) {
        self.written += frames;
    }

    /// Notes frames that were taken back.
    pub(super) fn remove(&mut self, frames: u64) {
        self.written = self.written.saturating_sub(frames).max(self.played);
    }

    /// The hardware starts.
    pub(super) fn start(&mut self, now_ns: u64) {
        self.since = Some((now_ns, self.played));
        (self.at_ns, self.moved_ns) = (now_ns, now_ns);
    }

    /// The hardware has stopped after it had read everything.
    pub(super) fn run_out(&mut self) {
        self.played = self.written;
        self.since = None;
    }

    /// The hardware has stopped, and what it has not read is lost.
    pub(super) fn lose(&mut self) {
        self.written = self.played;
        self.since = None;
    }

    /// The hardware has stopped at `stopped_ns`, as far as that is known and between its last
    /// position and `now_ns`, and what it has not read is lost.
    pub(super) fn lose_from(&mut self, stopped_ns: Option<u64>, now_ns: u64) {
        let stopped_ns = stopped_ns.filter(|stopped_ns| (self.at_ns..=now_ns).contains(stopped_ns));
        let ran_ns = stopped_ns.map_or(0, |stopped_ns| stopped_ns - self.at_ns);
        let read = ran_ns.saturating_mul(1000) / self.frame_ps().max(1);
        self.played = self.written.min(self.played.saturating_add(read));
        self.lose();
    }

    /// The hardware is gone, which is noticed at once, and what it has not read is lost. It says no
    /// more how far it has come: since its position was last known, it has run.
    pub(super) fn lose_now(&mut self, now_ns: u64) {
        self.lose_from(self.runs().then_some(now_ns), now_ns);
    }

    /// Takes over hardware that runs, with frames that were played before there were streams.
    pub(super) fn take_over(&mut self, left: u32, at_ns: u64) {
        self.written = self.played + u64::from(left);
        self.start(at_ns);
    }

    /// Lets the next cycle begin this many frames after the hardware's position.
    pub(super) fn await_cycle_after(&mut self, frames: u32) {
        self.cycle = self.played + u64::from(frames);
        self.due = self.played;
    }

    /// Lets the next cycle begin when this many of the frames that are queued now are left.
    pub(super) fn await_cycle_with(&mut self, left: u32) {
        self.cycle = self.written.saturating_sub(left.into());
        self.due = self.cycle;
    }

    /// A cycle has begun; the next one begins `quantum` frames later.
    pub(super) fn begin_cycle(&mut self, quantum: u32) {
        self.due = self.cycle;
        self.cycle += u64::from(quantum);
    }

    /// Returns the frame with which the cycle began that was due last.
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    /// Returns how far the hardware is beyond the beginning of the next cycle; negative: before it.
    pub(super) fn ahead_of_cycle(&self) -> i64 {
        difference(self.played, self.cycle)
    }

    /// Returns how many of the frames that are queued now are left when the next cycle begins.
    pub(super) fn queued_at_cycle(&self) -> i64 {
        difference(self.written, self.cycle)
    }

    /// Returns how long a frame lasts, as measured since the hardware was started, ps.
    pub(super) fn frame_ps(&self) -> u64 {
        let nominal_ps = PS_PER_SECOND / u64::from(self.rate_hz.max(1));
        let measured_ps = self.since.and_then(|(since_ns, frame)| {
            let passed_ns = self.moved_ns.saturating_sub(since_ns);
            let frames = self.played - frame;
            let is_long = passed_ns >= RATE_AFTER_NS && frames > 0;
            is_long.then(|| u128::from(passed_ns) * 1000 / u128::from(frames))
        });
        let measured_ps = measured_ps.and_then(|ps| u64::try_from(ps).ok());
        let is_near = |ps: &u64| ps.abs_diff(nominal_ps) <= nominal_ps / RATE_TOLERANCE;
        measured_ps.filter(is_near).unwrap_or(nominal_ps)
    }
}

fn difference(frame: u64, other: u64) -> i64 {
    i64::try_from(i128::from(frame) - i128::from(other)).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A queue of a card that has run since time 0, with a second written.
    fn running() -> StreamQueue {
        let mut queue = StreamQueue::at(1000, 48_000);
        queue.add(48_000);
        queue.start(0);
        queue
    }

    #[test]
    fn a_position_that_jumps_back_stays_where_it_was() {
        let mut queue = running();
        queue.note(47_000, 20 * MS);
        queue.note(47_500, 21 * MS);
        assert_eq!((queue.played(), queue.at_ns()), (2000, 21 * MS));
        queue.note(60_000, 22 * MS);
        assert_eq!((queue.played(), queue.queued()), (2000, 47_000));
    }

    #[test]
    fn hardware_that_stands_still_with_frames_is_noticed() {
        let mut queue = running();
        queue.note(47_000, 20 * MS);
        assert!(!queue.stands_still(500 * MS));
        queue.note(47_000, 521 * MS);
        assert!(queue.stands_still(521 * MS));
        queue.run_out();
        assert!(!queue.stands_still(9999 * MS), "it is stopped");
    }

    #[test]
    fn the_length_of_a_frame_is_measured_and_a_wrong_one_is_not_believed() {
        let nominal_ps = PS_PER_SECOND / 48_000;
        let mut queue = running();
        queue.add(10 * 48_000);
        queue.note(queue.queued() as u32 - 480, 20 * MS);
        assert_eq!(queue.frame_ps(), nominal_ps, "too short a time");
        // 100 ppm fast, after four seconds.
        queue.note((queue.written() - 1000 - 192_019) as u32, 4000 * MS);
        assert_eq!(queue.frame_ps(), 20_831_271);
        queue.note(0, 4100 * MS);
        assert_eq!(queue.frame_ps(), nominal_ps, "twice as fast");
    }

    #[test]
    fn what_the_hardware_has_not_read_is_lost_with_it() {
        let mut queue = running();
        queue.note(40_000, 170 * MS);
        queue.lose();
        assert_eq!((queue.played(), queue.written(), queue.runs()), (9000, 9000, false));
        queue.add(100);
        queue.run_out();
        assert_eq!((queue.played(), queue.written()), (9100, 9100));
    }

    #[test]
    fn what_was_heard_before_the_machine_slept_is_not_played_again() {
        let slept = |stopped_ns, now_ns| {
            let mut queue = running();
            queue.note(40_000, 170 * MS);
            queue.lose_from(stopped_ns, now_ns);
            (queue.played(), queue.written(), queue.runs())
        };
        assert_eq!(slept(Some(270 * MS), 900 * MS), (9000 + 4800, 9000 + 4800, false));
        assert_eq!(slept(Some(9000 * MS), 9000 * MS), (49_000, 49_000, false), "all was heard");
        // Not known, or a time of another clock.
        for stopped_ns in [None, Some(169 * MS), Some(901 * MS)] {
            assert_eq!(slept(stopped_ns, 900 * MS), (9000, 9000, false), "{stopped_ns:?}");
        }
    }

    #[test]
    fn what_was_heard_before_the_card_was_pulled_out_is_not_played_again() {
        let mut queue = running();
        queue.note(40_000, 170 * MS);
        queue.lose_now(270 * MS);
        assert_eq!((queue.played(), queue.written(), queue.runs()), (13_800, 13_800, false));
        // It stood still by then.
        queue.add(100);
        queue.lose_now(900 * MS);
        assert_eq!((queue.played(), queue.written()), (13_800, 13_800));
    }

    #[test]
    fn frames_of_cycles_before_the_streams_are_continued() {
        let mut queue = StreamQueue::at(0, 48_000);
        queue.take_over(128, 10 * MS);
        queue.await_cycle_with(80);
        assert_eq!(
            (queue.written(), queue.ahead_of_cycle(), queue.queued_at_cycle()),
            (128, -48, 80)
        );
        queue.note(64, 12 * MS);
        queue.begin_cycle(64);
        assert_eq!((queue.ahead_of_cycle(), queue.queued_at_cycle()), (-48, 16));
    }
}
