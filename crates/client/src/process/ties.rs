//! Ports tied together: in each cycle an output repeats what an input receives, independently of
//! the program.

use dsp::PeerSamples;
use rt::midi::{Cursor, MidiReader, MidiSources, MidiWriter, merge};

use super::inputs::CycleInputs;
use super::ports::{InputEvents, PortCell};

/// An output that repeats an input, by the client's own port numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tie {
    pub(crate) output: u32,
    pub(crate) input: u32,
}

impl CycleInputs<'_> {
    /// Copies the contents of tied inputs to their outputs. After [`prepare`](Self::prepare) and
    /// before the program's callback. Thread: cycle.
    #[inline]
    pub(crate) fn copy_to_tied_outputs(self, cursors: &mut [Cursor]) {
        for tie in self.tables.ties() {
            self.copy_tied(*tie, cursors);
        }
    }

    #[inline(never)]
    fn copy_tied(self, tie: Tie, cursors: &mut [Cursor]) {
        let cells = self.ports.cell(tie.output).zip(self.ports.cell(tie.input));
        let Some((output, input)) = cells else { return };
        let sources = self.sources_of(tie.input);
        if let Some(events) = output.borrow_output_events(self.own) {
            let frames = u32::try_from(self.frames).unwrap_or(u32::MAX);
            let copied = TiedEvents(input.events().filter(|_| !sources.is_empty()));
            merge(&copied, cursors, MidiWriter::begin(&events, frames), frames);
        } else {
            self.copy_samples(output, input, sources);
        }
    }

    /// Copies the samples of one tie. Thread: cycle.
    fn copy_samples(self, output: &PortCell, input: &PortCell, sources: &[u32]) {
        let place = output.slab_slot();
        let slab = place.and_then(|place| self.own.get(place.slab));
        let Some(mut into) =
            place.zip(slab).and_then(|(place, slab)| slab.borrow(place.slot, self.frames))
        else {
            return;
        };
        // A null source means silence.
        let mixed = Some(input).filter(|input| !sources.is_empty() && !input.source().is_null());
        match mixed.and_then(PortCell::private).and_then(|private| private.borrow(self.frames)) {
            Some(samples) => dsp::copy(PeerSamples::from_slice(&samples), &mut into),
            None => dsp::silence(&mut into),
        }
    }
}

/// The events of an input, as the only source of an output.
struct TiedEvents<'a>(Option<&'a InputEvents>);

impl MidiSources for TiedEvents<'_> {
    fn count(&self) -> usize {
        usize::from(self.0.is_some())
    }

    fn with<R>(&self, _: usize, read: impl FnOnce(MidiReader<'_>) -> R) -> Option<R> {
        self.0?.reader().map(read)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto::request::{PortType, SlabSlot};
    use rt::shm::{ASSIGNMENT_WORDS, AssignmentReader, AssignmentWriter, Edges, InputSource};
    use sys::memory::{OwnSlab, PeerSlab};

    use super::super::inputs::merge_cursors;
    use super::super::ports::{OwnSlabs, PortTable};
    use super::super::tables::Tables;
    use super::*;

    const FRAMES: usize = 64;
    const CYCLE: u32 = 9;
    const OUTPUT: u32 = 2;

    /// Inputs 0 and 1, output 2, and two slots of another client.
    struct Graph {
        ports: PortTable,
        own: OwnSlabs,
        tables: Tables,
    }

    impl Graph {
        fn new() -> Self {
            let (ports, own, mut tables) = (PortTable::new(8), OwnSlabs::new(), Tables::default());
            for number in 0..2 {
                ports.add_input(number, PortType::Audio).unwrap();
            }
            let slab = own.add(0, OwnSlab::create().unwrap()).unwrap();
            let samples = slab.slab().slot(5).unwrap();
            ports
                .add_output(OUTPUT, PortType::Audio, SlabSlot { slab: 0, slot: 5 }, samples)
                .unwrap();
            slab.slab().header().finish(CYCLE - 1);
            let mut foreign = OwnSlab::create().unwrap();
            foreign.samples_mut(0, FRAMES).unwrap().fill(0.25);
            foreign.samples_mut(1, FRAMES).unwrap().fill(0.5);
            foreign.header().finish(CYCLE);
            tables.set_slab(0, Some(Arc::new(PeerSlab::map(foreign.segment()).unwrap())));
            Self { ports, own, tables }
        }

        /// Returns the value that the output has after the copy; it held 1.0 before.
        fn output_value(&self, sources: &[InputSource], inputs: &[u32]) -> f32 {
            let mut words = vec![0; ASSIGNMENT_WORDS];
            let mut writer = AssignmentWriter::new(&mut words, None, Edges::NONE, false);
            writer.group(sources, inputs);
            let assignment = AssignmentReader::new(writer.finish().unwrap());
            self.own.get(0).unwrap().borrow(5, FRAMES).unwrap().fill(1.0);
            let Self { ports, own, tables } = self;
            let heard =
                CycleInputs { assignment, ports, tables, own, cycle: CYCLE, frames: FRAMES };
            heard.prepare(&mut merge_cursors());
            heard.copy_to_tied_outputs(&mut merge_cursors());
            let said = self.own.get(0).unwrap().borrow(5, FRAMES).unwrap();
            assert!(said.iter().all(|sample| *sample == said[0]));
            said[0]
        }
    }

    const ONE: InputSource = InputSource { slab: 0, slot: 0, feedback: false, own: false };
    const OTHER: InputSource = InputSource { slot: 1, ..ONE };
    const NOWHERE: InputSource = InputSource { slab: 7, ..ONE };
    const ITSELF: InputSource = InputSource { slab: 0, slot: 5, feedback: false, own: true };

    #[test]
    fn a_tied_output_says_what_its_input_hears_however_that_is_made() {
        for (case, sources, inputs, expected) in [
            ("one source", &[ONE][..], &[1][..], 0.25),
            ("a mix", &[ONE, OTHER], &[1], 0.75),
            ("a mix that another input has", &[ONE, OTHER], &[0, 1], 0.75),
            ("one source of two inputs", &[OTHER], &[0, 1], 0.5),
            ("a source that is late", &[NOWHERE], &[1], 0.0),
            ("a mix of none", &[NOWHERE, NOWHERE], &[0, 1], 0.0),
            ("another input's", &[ONE], &[0], 0.0),
            ("nothing", &[], &[], 0.0),
            ("itself, a cycle before", &[ITSELF], &[1], 1.0),
        ] {
            let mut graph = Graph::new();
            assert!(graph.tables.tie(Tie { output: OUTPUT, input: 1 }));
            assert_eq!(graph.output_value(sources, inputs), expected, "{case}");
        }
    }

    #[test]
    fn an_output_follows_the_input_that_it_was_tied_to_last() {
        let mut graph = Graph::new();
        for input in [1, 0] {
            graph.tables.tie(Tie { output: OUTPUT, input });
        }
        assert_eq!(graph.output_value(&[ONE], &[1]), 0.0);
        assert_eq!(graph.output_value(&[ONE], &[0]), 0.25);
        assert!(graph.tables.clear(), "another server");
        assert_eq!(graph.tables.ties(), [Tie { output: OUTPUT, input: 0 }]);
        for port in [0, OUTPUT] {
            let mut graph = Graph::new();
            graph.tables.tie(Tie { output: OUTPUT, input: 0 });
            assert!(graph.tables.untie(port) && !graph.tables.untie(port));
            assert_eq!(graph.output_value(&[ONE], &[0]), 1.0, "its own again");
        }
    }
}
