//! The record streams of a device, and what it keeps for them.

use crate::boxes::Boxes;
use crate::history::FrameHistory;
use crate::memory::RecordMemory;
use crate::planes::Planes;
use crate::recorder::{Recorder, Workspace};
use crate::stream::Heard;

/// The record streams of a device. Belongs to the device's thread.
#[derive(Debug)]
pub struct Recorders<R> {
    recorders: Boxes<Recorder<R>>,
    /// What leaves the device, for streams that monitor it.
    monitor: Option<Box<FrameHistory>>,
    /// A stream monitors, so what leaves the device is kept.
    keeps: bool,
}

impl<R: RecordMemory> Recorders<R> {
    /// Returns room for `recorders` of them. Not for a device's thread.
    pub(crate) fn new(recorders: usize) -> Self {
        Self { recorders: Boxes::new(recorders), monitor: None, keeps: false }
    }

    /// Adds a record stream. Thread: cycle.
    ///
    /// # Errors
    /// Returns the stream if the device is full.
    pub fn add(&mut self, recorder: Box<Recorder<R>>) -> Result<(), Box<Recorder<R>>> {
        self.recorders.add(recorder)
    }

    /// Gives it room to keep what leaves the device, for as long as the device exists: streams that
    /// monitor it need that. Returns what it had before, to be dropped elsewhere. Thread: cycle.
    pub fn set_monitor(&mut self, monitor: Box<FrameHistory>) -> Option<Box<FrameHistory>> {
        self.keeps = false;
        self.monitor.replace(monitor)
    }

    /// Has the graph's cycles bring the frames of the streams of `which`, and of no others. Thread:
    /// cycle.
    pub fn feed(&mut self, which: impl Fn(&R) -> bool) {
        for recorder in self.recorders.iter_mut() {
            recorder.set_fed(which(recorder.memory()));
        }
    }

    /// Returns whether one of them needs the graph's cycles. Thread: cycle.
    #[must_use]
    pub fn need_cycles(&self) -> bool {
        self.iter().any(|recorder| recorder.is_fed() && recorder.keeps_awake())
    }

    /// Records a cycle of the graph: see [`Recorder::record_cycle`]. Thread: cycle.
    pub(crate) fn record_cycle(
        &mut self,
        end: u64,
        slack: u64,
        samples: &mut [f32],
        mut bring: impl FnMut(&R, usize, &mut [f32]),
    ) {
        for recorder in self.recorders.iter_mut().filter(|recorder| recorder.is_fed()) {
            recorder.record_cycle(end, slack, samples, &mut bring);
        }
    }

    /// Ends the streams of `which`, with what is heard by the next wake-up. Thread: cycle.
    pub fn close(&mut self, which: impl Fn(&R) -> bool) {
        let recorders = self.recorders.iter_mut();
        recorders.filter(|recorder| which(recorder.memory())).for_each(|recorder| recorder.close());
    }

    /// Returns a stream that was [closed](Self::close), and is over. It is to be dropped elsewhere.
    /// Thread: cycle.
    pub fn take_closed(&mut self) -> Option<Box<Recorder<R>>> {
        self.recorders.take(Recorder::is_over)
    }

    /// Returns a stream, for a device that ends. It is to be dropped elsewhere. Thread: cycle.
    pub fn take_any(&mut self) -> Option<Box<Recorder<R>>> {
        self.recorders.take(|_| true)
    }

    fn iter(&self) -> impl Iterator<Item = &Recorder<R>> {
        self.recorders.iter()
    }

    /// Returns whether the device runs for one of them. Thread: cycle.
    pub(crate) fn keep_awake(&self) -> bool {
        self.iter().any(Recorder::keeps_awake)
    }

    /// Returns the device frames at which enough has been heard for one of them. Thread: cycle.
    pub(crate) fn due(&self) -> impl Iterator<Item = u64> {
        self.iter().filter_map(Recorder::due)
    }

    /// Records what was heard before device frame `played`, at most `most` frames. Thread: cycle.
    pub(crate) fn record(&mut self, played: u64, most: u64, mut work: Workspace<'_>) {
        let Self { recorders, monitor, .. } = self;
        for recorder in recorders.iter_mut().filter(|recorder| !recorder.is_fed()) {
            let kept = monitor.as_deref().filter(|_| recorder.is_monitor());
            recorder.record(played, most, kept, &mut work);
        }
    }

    /// Looks at their wishes; returns whether the first of them is to monitor, so that what leaves
    /// the device has to be rendered again, and kept. Thread: cycle.
    pub(crate) fn begin_to_keep(&mut self) -> bool {
        let recorders = self.recorders.iter_mut();
        recorders.fold(false, |any, recorder| recorder.look() | any) && !self.keeps
    }

    /// Has them obey their wishes, where frames before `rendered` are not rendered again now.
    /// Thread: cycle.
    pub(crate) fn obey(&mut self, played: u64, rendered: u64) {
        let begins = self.begin_to_keep();
        if let Some(monitor) = self.monitor.as_deref_mut().filter(|_| begins) {
            monitor.restart(rendered);
        }
        let kept = self.monitor.as_deref().map_or(rendered, FrameHistory::begin);
        for recorder in self.recorders.iter_mut() {
            let first = if recorder.is_monitor() { kept.max(played) } else { played };
            recorder.obey(first, played);
        }
        self.keeps = self.monitor.is_some() && self.iter().any(Recorder::monitors);
    }

    /// Returns whether what leaves the device is kept, because a stream monitors it. Thread: cycle.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Keeps what leaves the device from device frame `first` on, if a stream monitors it. Thread:
    /// cycle.
    pub(crate) fn keep(&mut self, first: u64, planes: &Planes) {
        if let Some(monitor) = self.monitor.as_deref_mut().filter(|_| self.keeps) {
            // What the card had to leave out was silence.
            monitor.be_silent_until(first);
            monitor.push(first, planes);
        }
    }

    /// Publishes what was heard when. Thread: cycle.
    pub(crate) fn publish(&mut self, heard: Heard) {
        self.recorders.iter_mut().for_each(|recorder| recorder.publish(heard));
    }
}
