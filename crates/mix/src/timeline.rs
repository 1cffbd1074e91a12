//! Where a stream is at each frame of its device, and how its parts fade into each other.
//!
//! A timeline is a list of segments. In each, the stream runs through its ring or holds a position;
//! at the beginning of the next, it fades out while that fades in. What was rendered can be
//! rendered again from the same list, and gives the same samples.

use rt::stream::Wish;

use crate::SEGMENTS;

/// One segment: what a stream does from a device frame on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// The device frame at which it begins.
    start: u64,
    /// The stream's position there.
    position: u64,
    /// The position at which it ends exactly, once the stream drains.
    end: u64,
    motion: Motion,
    /// How long the segment before fades out, frames; 0: it is cut.
    fade_frames: u32,
    /// It fades out over its last frames, played backwards: there are none after them.
    fades_backwards: bool,
    /// How long the segment itself fades in, frames; 0: it begins at full level.
    fade_in_frames: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Motion {
    /// Position by position.
    Runs,
    /// It stays.
    Holds,
    /// It holds because the program has written no more, and resumes when it does.
    Starves {
        /// The position up to which was written.
        written: u64,
    },
}

impl Motion {
    fn starves(self) -> bool {
        matches!(self, Self::Starves { .. })
    }
}

impl Segment {
    const HELD_AT_0: Self = Self {
        start: 0,
        position: 0,
        end: u64::MAX,
        motion: Motion::Holds,
        fade_frames: 0,
        fades_backwards: false,
        fade_in_frames: 0,
    };

    fn position_at(&self, frame: u64) -> u64 {
        if self.motion != Motion::Runs {
            return self.position;
        }
        let passed = frame.saturating_sub(self.start);
        self.position.saturating_add(passed).min(self.end.max(self.position))
    }
}

/// A part of a segment that sounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The first frame of the device.
    pub first: u64,
    /// Frames.
    pub frames: usize,
    /// The stream's position at the first frame, or at the last one if it is played backwards.
    pub position: u64,
    /// Whether it is played from its last position to its first.
    pub is_backwards: bool,
    fade_in: Option<Fade>,
    fade_out: Option<Fade>,
}

/// A line between silence and full level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fade {
    start: u64,
    frames: u32,
}

impl Fade {
    fn end(self) -> u64 {
        self.start.saturating_add(self.frames.into())
    }

    /// Returns the level of a fade-in at a device frame: neither 0 nor 1 within it.
    fn level(self, frame: u64) -> f32 {
        match frame.checked_sub(self.start) {
            None => 0.0,
            Some(passed) if passed >= u64::from(self.frames) => 1.0,
            Some(passed) => (passed + 1) as f32 / (self.frames + 1) as f32,
        }
    }
}

impl Part {
    /// Returns whether the part is at full level throughout.
    #[must_use]
    pub fn is_flat(self) -> bool {
        self.fade_in.is_none() && self.fade_out.is_none()
    }

    /// Returns the level at an offset from the first frame.
    #[must_use]
    pub fn level(self, offset: usize) -> f32 {
        let frame = self.first + offset as u64;
        let rising = self.fade_in.map_or(1.0, |fade| fade.level(frame));
        let falling = self.fade_out.map_or(1.0, |fade| 1.0 - fade.level(frame));
        rising * falling
    }
}

/// What a stream does at each frame of its device.
///
/// Changes come in the order of their frames. Segments are forgotten once nothing before them can
/// be heard or rendered again.
#[derive(Debug, Clone)]
pub struct Timeline {
    segments: Vec<Segment>,
    /// The position at which the stream holds was not played before: it begins at full level.
    is_fresh: bool,
    /// Frames of a fade.
    fade_frames: u32,
}

impl Timeline {
    /// Returns the timeline of a stream that holds at position 0. Not for a device's thread.
    #[must_use]
    pub fn new(fade_frames: u32) -> Self {
        Self::held_at(0, fade_frames)
    }

    /// Returns the timeline of a stream that holds at `position`, up to which it was played before.
    /// Not for a device's thread.
    #[must_use]
    pub fn held_at(position: u64, fade_frames: u32) -> Self {
        let mut segments = Vec::with_capacity(SEGMENTS);
        segments.push(Segment { position, ..Segment::HELD_AT_0 });
        Self { segments, is_fresh: position == 0, fade_frames }
    }

    /// Returns the timeline of the stream on another device: it holds where this one does in the
    /// end. Not for a device's thread.
    #[must_use]
    pub fn moved(&self) -> Self {
        let Segment { position, end, .. } = self.last();
        let mut segments = Vec::with_capacity(SEGMENTS);
        segments.push(Segment { position, end, ..Segment::HELD_AT_0 });
        Self { segments, is_fresh: self.is_fresh, fade_frames: self.fade_frames }
    }

    /// Lets it hold at device frame `at`, without a fade: nothing of it is heard after that.
    /// Thread: cycle.
    pub fn cut_off(&mut self, at: u64) {
        let (position, end) = (self.position(at), self.last().end);
        self.segments.clear();
        self.push(Segment { start: at, position, end, ..Segment::HELD_AT_0 });
    }

    fn last(&self) -> Segment {
        // There is always one: `prune` leaves the newest, and `begin` replaces or adds.
        self.segments.last().copied().unwrap_or(Segment::HELD_AT_0)
    }

    /// Returns whether another change can be noted. Thread: cycle.
    #[must_use]
    pub fn has_room(&self) -> bool {
        // One place is for a segment in which the stream starves.
        self.segments.len() + 1 < SEGMENTS
    }

    /// Returns the first frame at which a change may take effect: changes keep their order.
    /// Thread: cycle.
    #[must_use]
    pub fn first_changeable(&self) -> u64 {
        let decided = self.segments.iter().rev().find(|segment| !segment.motion.starves());
        decided.map_or(0, |segment| segment.start)
    }

    /// Returns the position at a device frame. Thread: cycle.
    #[must_use]
    pub fn position(&self, frame: u64) -> u64 {
        self.at(frame).position_at(frame)
    }

    /// Returns the position after the last frame before a [change](Self::next_change). Thread:
    /// cycle.
    #[must_use]
    pub fn position_before(&self, change: u64) -> u64 {
        self.at(change.saturating_sub(1)).position_at(change)
    }

    /// Returns the first device frame after `frame` at which the stream goes on elsewhere. Thread:
    /// cycle.
    #[must_use]
    pub fn next_change(&self, frame: u64) -> Option<u64> {
        self.segments.iter().map(|segment| segment.start).find(|start| *start > frame)
    }

    /// Returns the segment in force at a device frame.
    fn at(&self, frame: u64) -> Segment {
        let segment = self.segments.iter().rev().find(|segment| segment.start <= frame);
        segment.or_else(|| self.segments.first()).copied().unwrap_or(Segment::HELD_AT_0)
    }

    /// Returns whether it runs in the end, or waits for its program to write. Thread: cycle.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.last().motion != Motion::Holds
    }

    /// Returns the device frame from which on nothing sounds, once it holds. Thread: cycle.
    #[must_use]
    pub fn silent_from(&self) -> u64 {
        let fades = self.segments.iter();
        fades.fold(0, |end, next| end.max(next.start.saturating_add(next.fade_frames.into())))
    }

    /// Returns whether something of the stream sounds at or after a device frame. Thread: cycle.
    #[must_use]
    pub fn plays_at(&self, frame: u64) -> bool {
        self.parts(frame, usize::MAX).next().is_some()
    }

    /// Returns whether the stream has waited for its program to write, and now that is `written`,
    /// or all that it is to play was written before. Thread: cycle.
    #[must_use]
    pub fn can_be_fed(&self, written: u64) -> bool {
        let Segment { end, motion, .. } = self.last();
        let Motion::Starves { written: before } = motion else { return false };
        before < written || end <= written
    }

    /// Returns the device frame after the last one for which there are frames, now that the
    /// program has written up to `written`; `None` if it needs no more. Thread: cycle.
    #[must_use]
    pub fn runs_out_at(&self, written: u64) -> Option<u64> {
        let Segment { start, position, end, motion, .. } = self.last();
        let runs_out = motion == Motion::Runs && written < end;
        runs_out.then(|| start.saturating_add(written.saturating_sub(position)))
    }

    /// Returns the device frame from which on the stream waits for its program to write. Thread:
    /// cycle.
    #[must_use]
    pub fn starves_from(&self) -> Option<u64> {
        Some(self.last()).filter(|last| last.motion.starves()).map(|last| last.start)
    }

    /// Returns the device frame at which the stream has ended exactly, if it is known. Thread:
    /// cycle.
    #[must_use]
    pub fn drained_at(&self) -> Option<u64> {
        let last = self.last();
        let left = last.end.checked_sub(last.position).filter(|_| last.end != u64::MAX)?;
        (last.motion == Motion::Runs).then(|| last.start.saturating_add(left))
    }

    /// Notes a wish that takes effect at device frame `at`, at or after
    /// [`first_changeable`](Self::first_changeable). The program has written up to `written`.
    /// Thread: cycle.
    pub fn apply(&mut self, wish: Wish, at: u64, written: u64) {
        let position = self.position(at);
        let runs = self.runs();
        match wish {
            Wish::Run if !runs => self.run(at, position, written),
            Wish::Hold if runs => self.begin(at, position, Motion::Holds, written, false),
            Wish::Drain { end } => {
                if runs && position == self.last().end {
                    // It had ended before, and goes on.
                    self.begin(at, position, Motion::Runs, written, false);
                }
                self.drain(end.max(position));
            }
            Wish::Splice { position } => {
                let motion = if runs { Motion::Runs } else { Motion::Holds };
                self.is_fresh |= !runs;
                self.begin(at, position, motion, written, runs);
                self.drain(u64::MAX);
            }
            Wish::Run | Wish::Hold | Wish::Gain { .. } | Wish::Depth { .. } => {}
        }
    }

    /// The stream ends at position `end`, also when it runs later.
    fn drain(&mut self, end: u64) {
        let starves = self.last().motion.starves();
        // A segment that starves may turn out never to have been.
        let meant = self.segments.iter_mut().rev().take(1 + usize::from(starves));
        meant.for_each(|segment| segment.end = end);
    }

    fn run(&mut self, at: u64, position: u64, written: u64) {
        let fades_in = !core::mem::take(&mut self.is_fresh);
        self.begin(at, position, Motion::Runs, written, fades_in);
    }

    /// Begins a segment. What runs at that frame fades out over the frames that are written.
    fn begin(&mut self, at: u64, position: u64, motion: Motion, written: u64, fades_in: bool) {
        let before = self.at(at);
        let end = self.last().end;
        // What was to begin at or after this frame never does; its predecessor's fade remains.
        let mut replaced = None;
        while self.segments.len() > 1 && self.last().start >= at {
            replaced = self.segments.pop().filter(|gone| gone.start == at);
        }
        if self.segments.len() == 1 && self.last().start >= at {
            self.segments.clear();
        }
        let left = written.min(before.end).saturating_sub(before.position_at(at));
        let left = u32::try_from(left).unwrap_or(u32::MAX).min(self.fade_frames);
        self.push(Segment {
            start: at,
            position,
            end,
            motion,
            fade_frames: replaced.map_or(left, |gone| gone.fade_frames),
            fades_backwards: replaced.is_some_and(|gone| gone.fades_backwards),
            fade_in_frames: if fades_in { self.fade_frames } else { 0 },
        });
    }

    fn push(&mut self, segment: Segment) {
        if self.segments.len() < SEGMENTS {
            self.segments.push(segment);
        }
    }

    /// Lets the stream starve where the frames from `from` to before `until` need more than was
    /// `written`: there it holds, and its last frames fade out backwards, as far as the segment has
    /// played them, and down to `lowest`, the lowest position that can be read. Thread: cycle.
    pub fn starve(&mut self, from: u64, until: u64, written: u64, lowest: u64) {
        let last = self.last();
        if last.motion != Motion::Runs || last.position_at(until) <= written || until <= last.start
        {
            return;
        }
        let runs_out_at = last.start + written.saturating_sub(last.position);
        let at = runs_out_at.max(from);
        let motion = Motion::Starves { written };
        if at <= last.start {
            self.set_motion(motion);
            return;
        }
        let played = written.saturating_sub(lowest.max(last.position));
        let played = if at == runs_out_at { u32::try_from(played).unwrap_or(u32::MAX) } else { 0 };
        self.push(Segment {
            start: at,
            position: last.position_at(at),
            end: last.end,
            motion,
            fade_frames: played.min(self.fade_frames),
            fades_backwards: true,
            fade_in_frames: 0,
        });
    }

    fn set_motion(&mut self, motion: Motion) {
        if let Some(segment) = self.segments.last_mut() {
            segment.motion = motion;
        }
    }

    /// Resumes a starving stream now that more is `written`. If the frame at which it starved is
    /// not rendered yet (at or after `at`), it never starved; otherwise it resumes at `at`.
    /// Returns the frames that it missed. Thread: cycle.
    pub fn feed(&mut self, at: u64, written: u64) -> u64 {
        let last = self.last();
        if !self.can_be_fed(written) {
            return 0;
        }
        if at <= last.start {
            if self.segments.len() == 1 || self.is_own_start(last) {
                self.set_motion(Motion::Runs);
            } else {
                self.segments.pop();
            }
        } else if last.end <= last.position {
            // Nothing is missing any more: it has ended.
            self.set_motion(Motion::Runs);
        } else {
            self.begin(at, last.position, Motion::Runs, written, true);
            return at - last.start;
        }
        0
    }

    /// Returns whether a starving segment took the place of one that began to run at its frame,
    /// instead of ending the one before.
    fn is_own_start(&self, starving: Segment) -> bool {
        let before = self.segments.iter().rev().nth(1);
        before.is_none_or(|before| {
            before.motion != Motion::Runs || before.position_at(starving.start) != starving.position
        })
    }

    /// The device played nothing from `from` to before `to`: the stream continues at `to` where it
    /// was at `from`. Thread: cycle.
    pub fn skip(&mut self, from: u64, to: u64, written: u64) {
        let last = self.last();
        if last.motion == Motion::Runs && last.start < to {
            let position = self.position(from.max(last.start));
            self.begin(to, position, Motion::Runs, written, true);
        }
    }

    /// Returns the parts that sound in `frames` frames from device frame `first` on, in a fixed
    /// order. Thread: cycle.
    pub fn parts(&self, first: u64, frames: usize) -> impl Iterator<Item = Part> + '_ {
        let end = first.saturating_add(frames as u64);
        let segments = self.segments.iter().enumerate();
        segments.filter(|(_, segment)| segment.motion == Motion::Runs).flat_map(
            move |(index, segment)| {
                self.parts_of(*segment, self.segments.get(index + 1), first, end)
            },
        )
    }

    /// Returns the parts of a segment: in its fade-in, at full level, and in its fade-out.
    fn parts_of(
        &self,
        segment: Segment,
        next: Option<&Segment>,
        first: u64,
        end: u64,
    ) -> impl Iterator<Item = Part> + use<> {
        let fade_in = Fade { start: segment.start, frames: segment.fade_in_frames };
        let fade_out = next.map(|next| Fade { start: next.start, frames: next.fade_frames });
        let fades_backwards = next.is_some_and(|next| next.fades_backwards);
        let drained = segment.start.saturating_add(segment.end.saturating_sub(segment.position));
        let faded = fade_out.map_or(u64::MAX, Fade::end);
        // What is played backwards does not reach the end.
        let end = end.min(faded).min(if fades_backwards { u64::MAX } else { drained });
        let falls_from = fade_out.map_or(u64::MAX, |fade| fade.start);
        let full_from = fade_in.end().min(falls_from);
        let ranges = [
            (segment.start, full_from, Some(fade_in), None),
            (full_from, falls_from, None, None),
            // A fade-in that has not ended goes on in the fade-out.
            (falls_from, u64::MAX, Some(fade_in).filter(|fade| fade.end() > falls_from), fade_out),
        ];
        ranges.into_iter().filter_map(move |(from, to, fade_in, fade_out)| {
            let (from, to) = (from.max(first), to.min(end));
            let frames = usize::try_from(to.checked_sub(from)?).ok().filter(|count| *count > 0)?;
            let is_backwards = fades_backwards && fade_out.is_some();
            // It turns back at `falls_from`.
            let from_there = if is_backwards { (2 * falls_from).saturating_sub(to) } else { from };
            let passed = from_there.saturating_sub(segment.start);
            let position = segment.position.saturating_add(passed);
            Some(Part { first: from, frames, position, is_backwards, fade_in, fade_out })
        })
    }

    /// Forgets what lies before device frame `frame` and is needed for no frame from there on.
    /// Thread: cycle.
    pub fn prune(&mut self, frame: u64) {
        let is_over = |next: &Segment| {
            next.start <= frame && next.start.saturating_add(next.fade_frames.into()) <= frame
        };
        let over = self.segments.iter().skip(1).take_while(|next| is_over(next)).count();
        self.segments.drain(..over);
    }

    /// Returns the lowest position that frames from `frame` on may read. Thread: cycle.
    #[must_use]
    pub fn lowest(&self, frame: u64) -> u64 {
        let read = self.parts(frame, usize::MAX).map(|part| part.position).min();
        let later = Some(self.last()).filter(|last| last.start > frame).map(|last| last.position);
        [read, later].into_iter().flatten().fold(self.position(frame), u64::min)
    }
}
