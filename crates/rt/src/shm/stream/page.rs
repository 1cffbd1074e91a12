//! What the server publishes about a stream.

use super::super::header::{Layout, SegmentHeader};
use super::super::snapshot::Snapshot;
use super::numbered::NumberedRing;
use super::schedule::{Due, Schedule};
use super::state::StreamState;
use super::timing::Timing;
use super::wishes::{Acknowledgement, WISHES};
use crate::park::Park;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Misses that are remembered one by one.
pub const MISSES: usize = if cfg!(loom) { 1 } else { 16 };

/// Blocks of frames whose peaks are remembered: 2.7 s at 48 kHz, more than the largest depth.
pub const PEAK_BLOCKS: usize = if cfg!(loom) { 1 } else { 64 };

/// Two channels in each word.
const PEAK_WORDS: usize = if cfg!(loom) { 1 } else { 16 };

/// States of the stream: the newest one, and the one before while that is being written.
const STATES: usize = 2;

/// Models share no state.
const STATE_WORDS: usize = if cfg!(loom) { 1 } else { StreamState::WORDS };

/// How long a program waits for a schedule that is just being written.
const BRIEFLY_NS: u64 = 1_000_000;

/// Written by the server, and mapped by the stream's program read-only. The device's thread
/// publishes everything but the kicks and the state.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug, Default)]
pub struct StreamPage {
    header: SegmentHeader,
    /// Counts the changes of the schedule that the program could not foresee: the futex word on
    /// which it sleeps, always with a deadline. No other program maps it.
    kicks: AtomicU32,
    /// 1: the server has ended the stream.
    ended: AtomicU32,
    lowest: AtomicU64,
    missed_frames: AtomicU64,
    schedule: Snapshot<{ Schedule::WORDS }>,
    timing: Snapshot<{ Timing::WORDS }>,
    acknowledged: NumberedRing<WISHES, 1>,
    misses: NumberedRing<MISSES, 3>,
    peaks: NumberedRing<PEAK_BLOCKS, PEAK_WORDS>,
    states: NumberedRing<STATES, STATE_WORDS>,
}

same_for_all_widths!(
    StreamPage: 12288 bytes;
    kicks at 16, ended at 20, lowest at 24, missed_frames at 32, schedule at 64, timing at 128,
    acknowledged at 192, misses at 576, peaks at 1088, states at 9792
);

#[cfg(not(loom))]
const _: () = assert!(size_of::<StreamPage>() == 3 * 4096);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for StreamPage {
    const KIND: u32 = 10;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

/// Frames that a device had to leave out, because the program had not written them (or, when
/// recording, because the device lost them).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miss {
    /// Position of the first one.
    pub position: u64,
    /// The device's frame at which silence began.
    pub device_frame: u64,
    /// How many.
    pub frames: u64,
}

/// Stands for the device frame of a wish that was refused.
const REFUSED: u64 = u64::MAX;

impl StreamPage {
    /// Returns the lowest position that may still be rendered: the program overwrites no frame from
    /// there on. Thread: any.
    pub fn lowest(&self) -> u64 {
        // Acquire: the program overwrites the frames below after the server has read them.
        // MUTATION: lowest.relaxed
        self.lowest.load(Ordering::Acquire)
    }

    /// Publishes the lowest position that may still be rendered; it never goes back. Device thread.
    /// Thread: cycle.
    pub fn set_lowest(&self, position: u64) {
        // Release: pairs with `lowest`.
        // MUTATION: set_lowest.relaxed
        self.lowest.store(position, Ordering::Release);
    }

    /// Returns whether the program may publish wish `number`: all that lie [`WISHES`] and more
    /// before it are acknowledged. Thread: any.
    pub fn has_room_for(&self, number: u64) -> bool {
        let wishes = WISHES as u64;
        // MUTATION: has_room_for.acknowledgement_not_awaited
        number <= wishes || self.acknowledged.number_at(number) == number - wishes
    }

    /// Acknowledges wish `number`: it takes effect at `device_frame`, or is refused (`None`).
    /// Device thread, in the order of the numbers. Thread: cycle.
    pub fn acknowledge(&self, number: u64, device_frame: Option<u64>) {
        self.acknowledged.write(number, &[device_frame.unwrap_or(REFUSED)]);
    }

    /// Returns what became of wish `number`; `None` as long as that is open. Thread: any.
    pub fn acknowledgement(&self, number: u64) -> Option<Acknowledgement> {
        match self.acknowledged.get(number) {
            Some([REFUSED]) => Some(Acknowledgement::Refused),
            Some([device_frame]) => Some(Acknowledgement::At(device_frame)),
            None if self.acknowledged.number_at(number) > number => {
                Some(Acknowledgement::Forgotten)
            }
            None => None,
        }
    }

    /// Publishes the relation of positions and time. Device thread. Thread: cycle.
    pub fn set_timing(&self, timing: Timing) {
        self.timing.write(&timing.to_words());
    }

    /// Returns the relation of positions and time; `None` while it is being written. Thread: any.
    pub fn timing(&self) -> Option<Timing> {
        self.timing.read().map(Timing::from_words)
    }

    /// Notes the `number`th miss, counted from 1. Device thread. Thread: cycle.
    pub fn note_miss(&self, number: u64, miss: Miss) {
        let missed = self.missed_frames.load(Ordering::Relaxed).saturating_add(miss.frames);
        self.missed_frames.store(missed, Ordering::Relaxed);
        self.misses.write(number, &[miss.position, miss.device_frame, miss.frames]);
    }

    /// Returns the `number`th miss, if there was one and it is still remembered. Thread: any.
    pub fn miss(&self, number: u64) -> Option<Miss> {
        let [position, device_frame, frames] = self.misses.get(number)?;
        Some(Miss { position, device_frame, frames })
    }

    /// Returns whether there were `number` misses since the stream began, or more. False for a
    /// moment while another one takes its place. Thread: any.
    pub fn has_missed(&self, number: u64) -> bool {
        self.misses.number_at(number) >= number
    }

    /// Returns the frames missed since the stream began. Thread: any.
    pub fn missed_frames(&self) -> u64 {
        self.missed_frames.load(Ordering::Relaxed)
    }

    /// Publishes the largest magnitude of each channel in a block of [`peak_block_frames`] of the
    /// device, counted from the device's frame 0. A rewind replaces it. Device thread. Thread:
    /// cycle.
    pub fn set_peaks(&self, block: u64, peaks: &[f32]) {
        let mut channels = peaks.iter().map(|peak| u64::from(peak.to_bits()));
        let words = core::array::from_fn(|_| {
            let mut channel = || channels.next().unwrap_or(0);
            channel() | channel() << 32
        });
        self.peaks.write(block.wrapping_add(1), &words);
    }

    /// Returns the peaks of a block, channels that the stream lacks as 0; `None` if the block is
    /// not rendered yet, or no longer remembered. Thread: any.
    pub fn peaks(&self, block: u64) -> Option<[f32; 2 * PEAK_WORDS]> {
        let words = self.peaks.get(block.wrapping_add(1))?;
        let bits = |channel: usize| (words[channel / 2] >> (channel % 2 * 32)) as u32;
        Some(core::array::from_fn(|channel| f32::from_bits(bits(channel))))
    }

    /// Publishes when the device wakes next. Device thread. Thread: cycle.
    ///
    /// If that is earlier, or needs more, than the program can expect from the schedule before, an
    /// ordinary thread has to [kick](Self::kick) it.
    pub fn set_schedule(&self, schedule: Schedule) {
        self.schedule.write(&schedule.to_words());
    }

    /// Returns when the device wakes next; `None` while that is being written. Thread: any.
    pub fn schedule(&self) -> Option<Schedule> {
        self.schedule.read().map(Schedule::from_words)
    }

    /// Publishes what other programs can change about the stream. Control thread.
    pub fn set_state(&self, state: &StreamState) {
        let words = state.to_words();
        let number = self.newest_state() + 1;
        self.states.write(number, &core::array::from_fn(|word| words[word]));
    }

    /// Returns the newest state, also of a server that died while it published another; `None`
    /// before the first. Thread: any.
    pub fn state(&self) -> Option<StreamState> {
        let newest = Some(self.newest_state()).filter(|number| *number > 0)?;
        let shared = self.states.get(newest)?;
        let mut words = [0; StreamState::WORDS];
        words.iter_mut().zip(shared).for_each(|(word, shared)| *word = shared);
        Some(StreamState::from_words(&words))
    }

    fn newest_state(&self) -> u64 {
        (0..STATES as u64).map(|place| self.states.number_at(place)).max().unwrap_or(0)
    }

    /// Notes that the stream has ended; a [kick](Self::kick) follows. Thread: any of the server.
    pub fn note_ended(&self) {
        // Relaxed: the kick orders it.
        self.ended.store(1, Ordering::Relaxed);
    }

    /// Returns whether the server has ended the stream: no wish will be obeyed. Thread: any.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) != 0
    }

    /// Wakes the program to look at the schedule or at an acknowledgement, which were published
    /// before. Any thread of the server but a real-time one: the wake-up is a system call whose
    /// time the sleepers of other programs influence.
    pub fn kick(&self, park: &impl Park) {
        // Release: a program that sees the count sees the schedule.
        // MUTATION: kick.relaxed, kick.count_unchanged
        self.kicks.fetch_add(1, Ordering::Release);
        // MUTATION: kick.without_wake_up
        park.wake(&self.kicks, 1);
    }

    /// Returns the number of kicks. The program reads it before what it waits for, so that a kick
    /// for something newer ends its sleep.
    fn kicks(&self) -> u32 {
        // Acquire: pairs with `kick`.
        // MUTATION: kicks.relaxed
        self.kicks.load(Ordering::Acquire)
    }

    /// Sleeps until the device is about to handle frames beyond position `done`, or until
    /// `deadline_ns`; returns the wake-up in the first case. One thread of the program.
    ///
    /// The sleep ends `shift_ns` after the device's wake-up; before it, if that is negative. By
    /// then the device may have published its next wake-up, which is not waited for.
    pub fn await_due(
        &self,
        done: u64,
        shift_ns: i64,
        deadline_ns: u64,
        park: &impl Park,
    ) -> Option<Due> {
        // What the last sleep was for, unless a kick ended it.
        let mut awaited: Option<(u32, Due, u64)> = None;
        loop {
            let kicks = self.kicks();
            // MUTATION: await_due.counts_kicks_late
            let schedule = self.schedule();
            let now_ns = park.now_ns();
            if let Some((_, due, _)) =
                awaited.filter(|(before, _, wake_ns)| *before == kicks && *wake_ns <= now_ns)
            {
                return Some(due);
            }
            let due = schedule.and_then(|schedule| schedule.due(done));
            let wake_ns = due.map_or(u64::MAX, |due| due.at_ns.saturating_add_signed(shift_ns));
            if wake_ns <= now_ns {
                return due;
            }
            if deadline_ns <= now_ns {
                return None;
            }
            awaited = due.map(|due| (kicks, due, wake_ns));
            if schedule.is_none() {
                park.wait_briefly(&self.kicks, kicks, now_ns.saturating_add(BRIEFLY_NS));
            } else {
                park.wait(&self.kicks, kicks, Some(wake_ns.min(deadline_ns)));
            }
        }
    }

    /// Sleeps until wish `number` is acknowledged, or until `deadline_ns`. The server kicks a
    /// program whose wish it was woken for. One thread of the program, the same that
    /// [awaits](Self::await_due) the device.
    pub fn await_acknowledgement(
        &self,
        number: u64,
        deadline_ns: u64,
        park: &impl Park,
    ) -> Option<Acknowledgement> {
        loop {
            let kicks = self.kicks();
            // MUTATION: await_acknowledgement.counts_kicks_late
            let acknowledgement = self.acknowledgement(number);
            if acknowledgement.is_some() || deadline_ns <= park.now_ns() {
                return acknowledgement;
            }
            park.wait(&self.kicks, kicks, Some(deadline_ns));
        }
    }
}

/// Returns the length of a block of [`StreamPage::peaks`] on a device of this rate, frames: a
/// power of two, and 43 ms at 48 kHz.
#[must_use]
pub const fn peak_block_frames(sample_rate_hz: u32) -> u32 {
    if sample_rate_hz > 768_000 { 1 << 15 } else { (sample_rate_hz / 25).next_power_of_two() }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::state::StreamDeviceName;
    use super::*;

    #[test]
    fn the_outcome_of_a_wish_is_known_until_its_place_is_used_again() {
        let page = StreamPage::default();
        page.acknowledge(1, Some(480));
        page.acknowledge(2, None);
        let outcomes = [1, 2, 3].map(|number| page.acknowledgement(number));
        let (at, refused) = (Acknowledgement::At(480), Acknowledgement::Refused);
        assert_eq!(outcomes, [Some(at), Some(refused), None]);
        let wishes = WISHES as u64;
        assert!(page.has_room_for(wishes) && page.has_room_for(wishes + 2));
        assert!(!page.has_room_for(wishes + 3), "the third is not acknowledged");
        page.acknowledge(wishes + 1, Some(960));
        assert_eq!(page.acknowledgement(1), Some(Acknowledgement::Forgotten));
    }

    #[test]
    fn the_newest_state_is_the_one_that_was_written_whole() {
        let page = StreamPage::default();
        assert_eq!(page.state(), None);
        let state = |rate| StreamState {
            sample_rate_hz: rate,
            gain: 1.0,
            muted: false,
            device: StreamDeviceName::default(),
            ports: [0; 32],
        };
        for rate in 1..5 {
            page.set_state(&state(rate));
            assert_eq!(page.state(), Some(state(rate)));
        }
        page.states.withdraw(5);
        assert_eq!(page.state(), Some(state(4)), "its server died while it wrote the next one");
    }

    #[test]
    fn misses_are_listed_and_added_up() {
        let page = StreamPage::default();
        let miss = |number: u64| Miss { position: number, device_frame: 7, frames: 10 };
        (1..=MISSES as u64 + 1).for_each(|number| page.note_miss(number, miss(number)));
        assert_eq!((page.miss(1), page.miss(2)), (None, Some(miss(2))));
        let most = MISSES as u64 + 1;
        assert!([1, 2, most].into_iter().all(|number| page.has_missed(number)));
        assert!(![most + 1, 2 * most].into_iter().any(|number| page.has_missed(number)));
        assert_eq!(page.missed_frames(), 10 * (MISSES as u64 + 1));
    }

    #[test]
    fn peaks_of_all_channels_are_kept_by_block() {
        let page = StreamPage::default();
        let peaks: [f32; 2 * PEAK_WORDS] = core::array::from_fn(|channel| channel as f32);
        page.set_peaks(0, &peaks);
        page.set_peaks(1, &[0.5, 0.25, 0.125]);
        assert_eq!(page.peaks(0), Some(peaks));
        assert_eq!(
            page.peaks(1).map(|peaks| [peaks[0], peaks[2], peaks[3]]),
            Some([0.5, 0.125, 0.0])
        );
        page.set_peaks(PEAK_BLOCKS as u64, &peaks);
        assert_eq!((page.peaks(0), page.peaks(2)), (None, None));
    }

    #[test]
    fn remembered_peaks_cover_the_largest_depth() {
        for rate in [8000, 44_100, 48_000, 192_000, 768_000] {
            let seconds = PEAK_BLOCKS as u32 * peak_block_frames(rate) / rate;
            assert!(seconds >= 2, "{rate}");
        }
        assert_eq!((peak_block_frames(48_000), peak_block_frames(u32::MAX)), (2048, 1 << 15));
    }
}
