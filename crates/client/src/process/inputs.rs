//! Makes the contents of a client's inputs in a cycle.

use std::ptr::null_mut;

use dsp::PeerSamples;
use rt::cycle_number;
use rt::midi::{Cursor, MidiReader, MidiSources, merge};
use rt::shm::{ASSIGNMENT_WORDS, AssignmentReader, InputSource};
use sys::buffers::{BUFFER_FRAMES, OwnBuffers};
use sys::memory::PeerSlab;

use super::ports::{InputEvents, OwnSlabs, PortCell, PortTable};
use super::tables::Tables;

/// Everything that the inputs of one cycle are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CycleInputs<'a> {
    pub(crate) assignment: AssignmentReader<'a>,
    pub(crate) ports: &'a PortTable,
    pub(crate) tables: &'a Tables,
    pub(crate) own: &'a OwnSlabs,
    pub(crate) cycle: u32,
    pub(crate) frames: usize,
}

/// Allocates, with its pages present, the cursors to merge as many sources as an assignment can
/// name.
pub(crate) fn merge_cursors() -> Vec<Cursor> {
    vec![std::hint::black_box(Cursor::default()); ASSIGNMENT_WORDS]
}

impl<'a> CycleInputs<'a> {
    /// Makes the contents of every connected input for this cycle. Runs on the process thread
    /// before the program's callback, so that the client's own outputs still hold the previous
    /// cycle. Thread: cycle.
    #[inline]
    pub(crate) fn prepare(self, cursors: &mut [Cursor]) {
        for group in self.assignment.groups() {
            let mut first = None;
            for cell in group.inputs.iter().filter_map(|port| self.ports.cell(*port)) {
                let source = match (cell.events(), group.sources, first) {
                    (Some(events), sources, _) => self.events_in(events, sources, cursors),
                    (None, [source], _) => self.copy(cell, *source),
                    (None, sources, None) => self.mix(cell, sources),
                    (None, sources, Some(first)) => self.repeat(first, cell, sources),
                };
                cell.set_source(source);
                first = first.or(Some(cell));
            }
        }
    }

    /// Returns the sources of `input`. Thread: cycle.
    pub(crate) fn sources_of(self, input: u32) -> &'a [u32] {
        let group = self.assignment.groups().find(|group| group.inputs.contains(&input));
        group.map_or(&[], |group| group.sources)
    }

    /// Merges the sources' events into the cell's own buffer. Even a single source is copied, so
    /// that the program never reads what another process may change. Thread: cycle.
    #[inline(never)]
    fn events_in(self, events: &InputEvents, sources: &[u32], cursors: &mut [Cursor]) -> *mut f32 {
        let frames = u32::try_from(self.frames).unwrap_or(u32::MAX);
        merge(&Events { heard: self, sources }, cursors, events.writer(frames), frames);
        events.base().as_ptr()
    }

    /// Copies what `first` receives from the same sources into the cell's private buffer: inputs
    /// share the mix, but not the buffer, which the program may write to. Returns its address, or
    /// null for silence. Thread: cycle.
    #[inline(never)]
    fn repeat(self, first: &PortCell, cell: &PortCell, sources: &[u32]) -> *mut f32 {
        if first.source().is_null() {
            return null_mut();
        }
        let mixed = first.private().and_then(|private| private.borrow(self.frames));
        let Some(mixed) = mixed else { return self.mix(cell, sources) };
        let Some(private) = cell.private() else { return null_mut() };
        let Some(mut into) = private.borrow(self.frames) else { return null_mut() };
        dsp::copy(PeerSamples::from_slice(&mixed), &mut into);
        private.base().as_ptr()
    }

    /// Copies the source into the cell's private buffer: the program may write there, and the
    /// source's owner may change the source at any time. Returns its address, or null for silence.
    /// Inlined, since most inputs have one source. Thread: cycle.
    #[inline(always)]
    fn copy(self, cell: &PortCell, source: u32) -> *mut f32 {
        let Some(private) = cell.private() else { return null_mut() };
        let Some(mut into) = private.borrow(self.frames) else { return null_mut() };
        let mut address = null_mut();
        self.with_samples(InputSource::from_word(source), self.frames, |samples| {
            dsp::copy(samples, &mut into);
            address = private.base().as_ptr();
        });
        address
    }

    /// Mixes the sources into the cell's private buffer. Returns its address, or null for silence.
    /// Thread: cycle.
    #[inline(never)]
    fn mix(self, cell: &PortCell, sources: &[u32]) -> *mut f32 {
        let Some(private) = cell.private() else { return null_mut() };
        let Some(mut into) = private.borrow(self.frames) else { return null_mut() };
        let mut silent = true;
        for word in sources {
            self.with_samples(InputSource::from_word(*word), self.frames, |samples| {
                if silent {
                    dsp::copy(samples, &mut into);
                } else {
                    dsp::add(samples, &mut into);
                }
                silent = false;
            });
        }
        if silent { null_mut() } else { private.base().as_ptr() }
    }

    /// Passes the source's samples to `take`, if they belong to the cycle to be read. Thread:
    /// cycle.
    fn with_samples(self, source: InputSource, frames: usize, take: impl FnOnce(PeerSamples<'_>)) {
        if !source.own {
            if let Some(samples) = self.foreign(source) {
                take(samples.truncated(frames));
            }
            return;
        }
        let Some(slab) = self.own_slab_of_previous_cycle(source) else { return };
        if let Some(samples) = slab.borrow(source.slot, frames) {
            take(PeerSamples::from_slice(&samples));
        }
    }

    /// Returns the samples of another client, if they are valid in this cycle. Thread: cycle.
    pub(crate) fn foreign(&self, source: InputSource) -> Option<PeerSamples<'_>> {
        self.foreign_slab(source)?.samples(source.slot, BUFFER_FRAMES)
    }

    /// Returns another client's slab if that client has finished this cycle, or, for a feedback
    /// connection, the previous one. Thread: cycle.
    fn foreign_slab(&self, source: InputSource) -> Option<&PeerSlab> {
        let slab = self.tables.slab(source.slab)?;
        let finished = slab.header().finished();
        let before = source.feedback && finished == cycle_number::previous(self.cycle);
        (finished == self.cycle || before).then_some(slab)
    }

    /// Returns the client's own slab, if it was finished in the previous cycle. Thread: cycle.
    fn own_slab_of_previous_cycle(&self, source: InputSource) -> Option<&OwnBuffers> {
        let slab = self.own.get(source.slab)?;
        (slab.slab().header().finished() == cycle_number::previous(self.cycle)).then_some(slab)
    }
}

/// The sources of a MIDI input.
struct Events<'a> {
    heard: CycleInputs<'a>,
    sources: &'a [u32],
}

impl MidiSources for Events<'_> {
    fn count(&self) -> usize {
        self.sources.len()
    }

    fn with<R>(&self, index: usize, read: impl FnOnce(MidiReader<'_>) -> R) -> Option<R> {
        let source = InputSource::from_word(*self.sources.get(index)?);
        if source.own {
            let events = self.heard.own_slab_of_previous_cycle(source)?.borrow_midi(source.slot)?;
            MidiReader::of(&events).map(read)
        } else {
            MidiReader::of(self.heard.foreign_slab(source)?.midi(source.slot)?).map(read)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::request::PortType;
    use rt::midi::{MidiEvent, MidiWords, MidiWriter};
    use rt::shm::{AssignmentWriter, Edges};
    use sys::memory::OwnSlab;

    use super::*;

    const FRAMES: usize = 64;
    const CYCLE: u32 = 9;

    /// Two foreign slabs, 0 and 1, and one own slab, each with a distinct value in slot 3.
    struct Graph {
        ports: PortTable,
        own: OwnSlabs,
        foreign: Vec<OwnSlab>,
        tables: Tables,
        words: Vec<u32>,
    }

    const VALUES: [f32; 2] = [0.25, 0.5];
    const OWN_VALUE: f32 = 1.0;

    impl Graph {
        fn new() -> Self {
            let ports = PortTable::new(16);
            for number in 0..3 {
                ports.add_input(number, PortType::Audio).unwrap();
                ports.set_id(number, number + 1);
            }
            ports.add_input(3, PortType::Midi).unwrap();
            ports.set_id(3, 4);
            let (own, mut tables, mut foreign) = (OwnSlabs::new(), Tables::default(), Vec::new());
            let slab = own.add(0, OwnSlab::create().unwrap()).unwrap();
            slab.borrow(3, FRAMES).unwrap().fill(OWN_VALUE);
            slab.slab().header().finish(CYCLE - 1);
            for (index, value) in (0..).zip(VALUES) {
                let mut slab = OwnSlab::create().unwrap();
                slab.samples_mut(3, FRAMES).unwrap().fill(value);
                slab.header().finish(CYCLE);
                let peer = PeerSlab::map(slab.segment()).unwrap();
                assert!(tables.set_slab(index, Some(Arc::new(peer))));
                foreign.push(slab);
            }
            Self { ports, own, foreign, tables, words: Vec::new() }
        }

        fn assign(&mut self, groups: &[(&[InputSource], &[u32])]) {
            let mut words = vec![0; ASSIGNMENT_WORDS];
            let mut writer = AssignmentWriter::new(&mut words, None, Edges::NONE, false);
            groups.iter().for_each(|(sources, inputs)| writer.group(sources, inputs));
            self.words = writer.finish().unwrap().to_vec();
            self.ports.clear_sources();
        }

        fn prepare(&self) {
            let Self { ports, own, tables, .. } = self;
            let assignment = AssignmentReader::new(&self.words);
            let heard =
                CycleInputs { assignment, ports, tables, own, cycle: CYCLE, frames: FRAMES };
            heard.prepare(&mut merge_cursors());
        }

        fn source(&self, port: u32) -> *const f32 {
            self.ports.cell(port).unwrap().source()
        }

        fn private(&self, port: u32) -> (*const f32, f32) {
            let private = self.ports.cell(port).unwrap().private().unwrap();
            let samples = private.borrow(FRAMES).unwrap();
            assert!(samples.iter().all(|sample| *sample == samples[0]));
            (private.base().as_ptr(), samples[0])
        }
    }

    const FIRST: InputSource = InputSource { slab: 0, slot: 3, feedback: false, own: false };
    const SECOND: InputSource = InputSource { slab: 1, slot: 3, feedback: false, own: false };
    const OWN: InputSource = InputSource { slab: 0, slot: 3, feedback: false, own: true };

    #[test]
    fn each_input_has_a_buffer_of_its_own_which_the_program_may_write_to() {
        for (case, sources, expected) in
            [("one source", &[SECOND][..], VALUES[1]), ("a mix", &[FIRST, SECOND], 0.75)]
        {
            let mut graph = Graph::new();
            graph.assign(&[(&[FIRST], &[1]), (sources, &[2, 0])]);
            graph.prepare();
            for port in [0, 2] {
                assert_eq!(graph.private(port), (graph.source(port), expected), "{case}");
            }
            assert_ne!(graph.source(0), graph.source(2), "{case}");
            graph.ports.cell(2).unwrap().private().unwrap().borrow(FRAMES).unwrap().fill(9.0);
            assert_eq!(graph.private(0).1, expected, "{case}: the other was written to");
            assert_eq!(graph.private(1), (graph.source(1), VALUES[0]), "{case}");
        }
    }

    #[test]
    fn a_source_that_has_not_finished_the_cycle_is_silent() {
        for (case, finished, feedback, heard) in [
            ("this cycle", CYCLE, false, true),
            ("the one before", CYCLE - 1, false, false),
            ("feedback: the one before", CYCLE - 1, true, true),
            ("feedback: this cycle", CYCLE, true, true),
            ("feedback: an older one", CYCLE - 2, true, false),
        ] {
            let mut graph = Graph::new();
            graph.foreign[0].header().finish(finished);
            let source = InputSource { feedback, ..FIRST };
            graph.assign(&[(&[source], &[0, 2]), (&[source, SECOND], &[1])]);
            graph.prepare();
            for port in [0, 2] {
                assert_eq!(!graph.source(port).is_null(), heard, "{case}, port {port}");
            }
            assert_eq!(graph.private(1).1, if heard { 0.75 } else { 0.5 }, "{case}, in a mix");
        }
    }

    #[test]
    fn an_output_of_the_client_itself_is_heard_one_cycle_later() {
        let mut graph = Graph::new();
        graph.assign(&[(&[OWN], &[0]), (&[OWN, FIRST], &[1])]);
        graph.prepare();
        graph.own.get(0).unwrap().borrow(3, FRAMES).unwrap().fill(0.125);
        assert_eq!(
            graph.private(0),
            (graph.source(0), OWN_VALUE),
            "what is written now is not heard yet"
        );
        assert_eq!(graph.private(1), (graph.source(1), OWN_VALUE + VALUES[0]));
    }

    #[test]
    fn disconnected_inputs_are_silent_again() {
        let mut graph = Graph::new();
        graph.assign(&[(&[FIRST], &[0])]);
        graph.prepare();
        graph.assign(&[]);
        graph.prepare();
        assert!(graph.source(0).is_null());
    }

    #[test]
    fn orders_that_name_nothing_we_have_are_silent() {
        let mut graph = Graph::new();
        let nowhere = InputSource { slab: 77, ..FIRST };
        graph.assign(&[
            (&[nowhere], &[0, 90]),
            (&[nowhere, InputSource { own: true, ..nowhere }], &[1, 2]),
        ]);
        graph.prepare();
        assert!((0..3).all(|port| graph.source(port).is_null()));
    }

    const EVENTS_SLOT: u32 = 4;
    const FIRST_EVENTS: InputSource = InputSource { slot: EVENTS_SLOT, ..FIRST };
    const SECOND_EVENTS: InputSource = InputSource { slot: EVENTS_SLOT, ..SECOND };
    const OWN_EVENTS: InputSource = InputSource { slot: EVENTS_SLOT, ..OWN };

    impl Graph {
        /// A graph whose three sources have events at these times, each with a distinct number.
        fn with_events(times: [&[u32]; 3]) -> Self {
            let mut graph = Self::new();
            let [own, foreign @ ..] = times;
            write_events(&graph.own.get(0).unwrap().borrow_midi(EVENTS_SLOT).unwrap(), 0, own);
            for (number, times) in (1..).zip(foreign) {
                let slab = OwnBuffers::new(OwnSlab::create().unwrap());
                write_events(&slab.borrow_midi(EVENTS_SLOT).unwrap(), number, times);
                slab.slab().header().finish(CYCLE);
                let peer = Arc::new(PeerSlab::map(slab.slab().segment()).unwrap());
                assert!(graph.tables.set_slab(u32::from(number) - 1, Some(peer)));
            }
            graph
        }

        /// The events of the MIDI input, as (time, number of the source).
        fn events(&self) -> Vec<(u32, u8)> {
            let events = self.ports.cell(3).unwrap().events().unwrap();
            assert_eq!(self.source(3), events.base().as_ptr().cast_const());
            let number = |event: MidiEvent<'_>| event.copy_to(&mut [0]).unwrap()[0];
            events.reader().unwrap().events().map(|event| (event.time(), number(event))).collect()
        }
    }

    fn write_events(words: &MidiWords, number: u8, times: &[u32]) {
        let writer = MidiWriter::begin(words, FRAMES as u32);
        times.iter().for_each(|time| writer.write(*time, &[number]).unwrap());
    }

    #[test]
    fn events_of_several_sources_are_ordered_by_time_then_source() {
        let mut graph = Graph::with_events([&[0, 5], &[5, 6], &[2, 5, 7]]);
        graph.assign(&[(&[FIRST_EVENTS, OWN_EVENTS, SECOND_EVENTS], &[3])]);
        graph.prepare();
        assert_eq!(graph.events(), [(0, 0), (2, 2), (5, 1), (5, 0), (5, 2), (6, 1), (7, 2)]);
    }

    #[test]
    fn events_of_a_single_source_are_copied() {
        let mut graph = Graph::with_events([&[], &[3], &[]]);
        graph.assign(&[(&[FIRST_EVENTS], &[3])]);
        graph.prepare();
        assert_eq!(graph.events(), [(3, 1)]);
    }

    #[test]
    fn missing_and_late_sources_do_not_mute_the_others() {
        let mut graph = Graph::with_events([&[1], &[3], &[4]]);
        graph.own.get(0).unwrap().slab().header().finish(CYCLE - 2);
        graph.assign(&[(&[FIRST, FIRST_EVENTS, OWN_EVENTS], &[3])]);
        graph.prepare();
        assert_eq!(graph.events(), [(3, 1)]);
    }
}
