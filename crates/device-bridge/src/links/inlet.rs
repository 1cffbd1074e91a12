//! Where the frames of a link between devices come from: the stream of the source, through a
//! plug-in if there is one.

use client::stream::{RecordStream, Timing};
use effects::Ladspa;

use super::ends::Source;

/// The end of a link at which frames are recorded.
pub(super) struct Inlet {
    pub(super) source: RecordStream,
    /// What frames pass through as they come.
    pub(super) plug_in: Option<Ladspa>,
}

impl Source for Inlet {
    fn await_frames(&mut self, deadline_ns: u64) -> usize {
        self.source.await_frames(deadline_ns)
    }

    fn has_ended(&mut self) -> anyhow::Result<bool> {
        self.source.has_ended()
    }

    fn timing(&mut self) -> Timing {
        self.source.timing()
    }

    fn available(&self) -> usize {
        self.source.available()
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> (u64, usize) {
        let (position, frames) = self.source.read(planes);
        if let Some(plug_in) = self.plug_in.as_mut().filter(|_| frames > 0) {
            let read = planes.iter_mut().map(|all| &mut all[..frames]);
            plug_in.process(&mut read.collect::<Vec<_>>());
        }
        (position, frames)
    }

    fn misses(&mut self) -> u64 {
        self.source.misses()
    }
}
