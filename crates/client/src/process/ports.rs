//! A client's own ports as its cycles see them.

use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use proto::request::{PortType, SlabSlot};
use rt::midi::{MIDI_WORDS, MidiReader, MidiWords, MidiWriter};
use rt::sync::AtomicU32 as Word;
use sys::buffers::{BorrowedMidi, OwnBuffers, PrivateBuffer};
use sys::memory::{OwnSlab, SegmentError};

use crate::growing::Growing;

/// The slabs with this client's output buffers, in the order in which the server was told of them.
#[derive(Debug)]
pub(crate) struct OwnSlabs(Growing<OnceLock<OwnBuffers>, 1>);

impl OwnSlabs {
    pub(crate) fn new() -> Self {
        Self(Growing::new([OnceLock::new()]))
    }

    /// The slab of that number. Thread: cycle.
    pub(crate) fn get(&self, slab: u32) -> Option<&OwnBuffers> {
        self.0.get(slab as usize)?.get()
    }

    /// All slabs. Thread: cycle.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OwnBuffers> {
        self.0.iter().map_while(OnceLock::get)
    }

    /// Adds a slab as number `slab`; `None` past the last that there can be. Allocates.
    pub(crate) fn add(&self, slab: u32, segment: OwnSlab) -> Option<&OwnBuffers> {
        Some(self.0.make(slab as usize)?.get_or_init(|| OwnBuffers::new(segment)))
    }

    /// A fresh slab that is not in the list yet.
    pub(crate) fn create() -> Result<OwnSlab, SegmentError> {
        OwnSlab::create()
    }
}

/// What a place of the table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Free = 0,
    AudioInput = 1,
    MidiInput = 2,
    AudioOutput = 3,
    MidiOutput = 4,
}

/// The events that an input hears, in this process's own memory, all of it present.
#[derive(Debug)]
pub(crate) struct HeardEvents(Box<MidiWords>);

impl HeardEvents {
    /// Allocates; `None` never, but for the compiler.
    fn new() -> Option<Self> {
        // Written word by word from a value that the compiler does not know, so that no page is left for later.
        let words = std::iter::repeat_with(|| Word::new(std::hint::black_box(0)));
        let words: Box<[Word]> = words.take(MIDI_WORDS).collect();
        let events = Self(words.try_into().ok()?);
        MidiWriter::begin(&events.0, 0);
        Some(events)
    }

    /// To be filled. Thread: cycle.
    pub(crate) fn writer(&self, frames: u32) -> MidiWriter<'_> {
        MidiWriter::begin(&self.0, frames)
    }

    /// What is there. Thread: cycle.
    pub(crate) fn reader(&self) -> Option<MidiReader<'_>> {
        MidiReader::of(&self.0)
    }

    /// Where the events are, for foreign code; as long as this lives.
    pub(crate) fn base(&self) -> NonNull<f32> {
        NonNull::from_ref(&*self.0).cast()
    }
}

/// One of the client's ports. All fields are for any thread.
#[derive(Debug)]
pub(crate) struct PortCell {
    kind: AtomicU32,
    /// An audio input's own buffer: silence, a copy, or a mix.
    private: OnceLock<PrivateBuffer>,
    /// A MIDI input's own buffer.
    events: OnceLock<HeardEvents>,
    /// What the program gets, samples or events; null for an input that hears nothing.
    samples: AtomicPtr<f32>,
    slab: AtomicU32,
    slot: AtomicU32,
}

impl Default for PortCell {
    fn default() -> Self {
        Self::new()
    }
}

impl PortCell {
    const fn new() -> Self {
        Self {
            kind: AtomicU32::new(Kind::Free as u32),
            private: OnceLock::new(),
            events: OnceLock::new(),
            samples: AtomicPtr::new(null_mut()),
            slab: AtomicU32::new(0),
            slot: AtomicU32::new(0),
        }
    }

    #[inline]
    fn is(&self, kind: Kind) -> bool {
        // Acquire: pairs with the store that follows the rest of the cell.
        self.kind.load(Ordering::Acquire) == kind as u32
    }

    fn is_input(&self) -> bool {
        self.is(Kind::AudioInput) || self.is(Kind::MidiInput)
    }

    /// What travels through the port, and whether it is an output.
    pub(crate) fn kind(&self) -> Option<(PortType, bool)> {
        let kinds = [
            (Kind::AudioInput, PortType::Audio, false),
            (Kind::MidiInput, PortType::Midi, false),
            (Kind::AudioOutput, PortType::Audio, true),
            (Kind::MidiOutput, PortType::Midi, true),
        ];
        kinds.into_iter().find(|(kind, ..)| self.is(*kind)).map(|(_, port_type, output)| (port_type, output))
    }

    /// The audio input's private buffer. Thread: cycle.
    pub(crate) fn private(&self) -> Option<&PrivateBuffer> {
        self.private.get().filter(|_| self.is(Kind::AudioInput))
    }

    /// The MIDI input's own buffer. Thread: cycle.
    pub(crate) fn events(&self) -> Option<&HeardEvents> {
        self.events.get().filter(|_| self.is(Kind::MidiInput))
    }

    /// What the input reads in this cycle; null: silence. Process thread. Thread: cycle.
    #[inline]
    pub(crate) fn set_source(&self, samples: *mut f32) {
        if self.is_input() {
            // Release: threads that the program woke for the cycle see the mix behind it.
            self.samples.store(samples, Ordering::Release);
        }
    }

    /// What the input reads in this cycle. Thread: cycle.
    #[inline]
    pub(crate) fn source(&self) -> *mut f32 {
        self.samples.load(Ordering::Acquire)
    }

    /// Where an output's samples or events lie.
    pub(crate) fn slab_slot(&self) -> Option<SlabSlot> {
        let slot =
            SlabSlot { slab: self.slab.load(Ordering::Relaxed), slot: self.slot.load(Ordering::Relaxed) };
        (self.is(Kind::AudioOutput) || self.is(Kind::MidiOutput)).then_some(slot)
    }

    /// A MIDI output's buffer; `None` while somebody else has it. Thread: cycle.
    pub(crate) fn borrow_output_events<'a>(&self, own: &'a OwnSlabs) -> Option<BorrowedMidi<'a>> {
        if !self.is(Kind::MidiOutput) {
            return None;
        }
        let SlabSlot { slab, slot } = self.slab_slot()?;
        own.get(slab)?.borrow_midi(slot)
    }

    #[inline]
    fn buffer(
        &self,
        own: &OwnSlabs,
        frames: u32,
        quantum: impl FnOnce() -> Option<u32>,
    ) -> Option<NonNull<f32>> {
        if self.is(Kind::MidiOutput) {
            self.limit_events(own, quantum().unwrap_or(frames));
        }
        NonNull::new(self.source()).or_else(|| self.nothing(frames))
    }

    /// What the program writes now must lie within a cycle of `quantum` frames. It keeps what it wrote in the last one.
    fn limit_events(&self, own: &OwnSlabs, quantum: u32) {
        if let Some(events) = self.borrow_output_events(own)
            && let Some(writer) = MidiWriter::of(&events)
        {
            writer.set_frames(quantum);
        }
    }

    /// The input's own buffer, with nothing to be heard in it.
    fn nothing(&self, frames: u32) -> Option<NonNull<f32>> {
        if let Some(events) = self.events() {
            events.writer(frames);
            return Some(events.base());
        }
        let private = self.private()?;
        let frames = frames as usize;
        // Somebody else is silencing it at this moment, if it is borrowed.
        if let Some(mut samples) = private.borrow(frames) {
            samples.fill(0.0);
        }
        Some(private.base())
    }
}

/// The client's ports by its own numbers, and the way there from the server's ids.
#[derive(Debug)]
pub(crate) struct PortTable {
    cells: Growing<PortCell>,
    /// By port id: number + 1; 0: not a port of ours.
    numbers: Box<[AtomicU32]>,
}

impl PortTable {
    /// For a server with ports `1..=last_id`.
    pub(crate) fn new(last_id: u32) -> Self {
        let numbers = (0..=last_id).map(|_| AtomicU32::new(0)).collect();
        Self { cells: Growing::new([const { PortCell::new() }; _]), numbers }
    }

    /// The port with the client's own number `number`. Thread: cycle.
    #[inline]
    pub(crate) fn cell(&self, number: u32) -> Option<&PortCell> {
        self.cells.get(number as usize).filter(|cell| !cell.is(Kind::Free))
    }

    /// No input hears anything, until it is said what. Process thread. Thread: cycle.
    pub(crate) fn forget_sources(&self) {
        self.cells.iter().for_each(|cell| cell.set_source(null_mut()));
    }

    /// The client's own number of port `id`. Thread: cycle.
    #[inline]
    pub(crate) fn number(&self, id: u32) -> Option<u32> {
        self.numbers.get(id as usize)?.load(Ordering::Acquire).checked_sub(1)
    }

    /// The address of the port's samples or events in this cycle, of `quantum` frames: see `Session::port_buffer`.
    /// Thread: cycle.
    #[inline]
    pub(crate) fn buffer(
        &self,
        own: &OwnSlabs,
        id: u32,
        frames: u32,
        quantum: impl FnOnce() -> Option<u32>,
    ) -> Option<NonNull<f32>> {
        self.cell(self.number(id)?)?.buffer(own, frames, quantum)
    }

    /// Makes number `number` an input. Allocates. `None` past the last number that there can be.
    pub(crate) fn add_input(&self, number: u32, port_type: PortType) -> Option<()> {
        let cell = self.cells.make(number as usize)?;
        let kind = match port_type {
            PortType::Audio => {
                cell.private.get_or_init(PrivateBuffer::new);
                Kind::AudioInput
            }
            PortType::Midi => {
                if cell.events.get().is_none() {
                    // Fails only if somebody else was faster, with the same.
                    let _ = cell.events.set(HeardEvents::new()?);
                }
                Kind::MidiInput
            }
        };
        cell.samples.store(null_mut(), Ordering::Relaxed);
        cell.kind.store(kind as u32, Ordering::Release);
        Some(())
    }

    /// Makes number `number` an output, whose samples or events lie in `place`, at `samples`. Allocates.
    pub(crate) fn add_output(
        &self,
        number: u32,
        port_type: PortType,
        place: SlabSlot,
        samples: NonNull<f32>,
    ) -> Option<()> {
        let cell = self.cells.make(number as usize)?;
        cell.samples.store(samples.as_ptr(), Ordering::Relaxed);
        cell.slab.store(place.slab, Ordering::Relaxed);
        cell.slot.store(place.slot, Ordering::Relaxed);
        let kind = if port_type == PortType::Midi { Kind::MidiOutput } else { Kind::AudioOutput };
        cell.kind.store(kind as u32, Ordering::Release);
        Some(())
    }

    /// The server knows number `number` as port `id`. `None`: there is no such id.
    pub(crate) fn name(&self, number: u32, id: u32) -> Option<()> {
        self.numbers.get(id as usize)?.store(number + 1, Ordering::Release);
        Some(())
    }

    /// The client's ports: (id, the client's own number), by id.
    pub(crate) fn named(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..)
            .zip(&*self.numbers)
            .filter_map(|(id, number)| Some((id, number.load(Ordering::Acquire).checked_sub(1)?)))
    }

    /// Number `number` is free again.
    pub(crate) fn remove(&self, number: u32, id: Option<u32>) {
        if let Some(place) = id.and_then(|id| self.numbers.get(id as usize)) {
            place.store(0, Ordering::Release);
        }
        if let Some(cell) = self.cells.get(number as usize) {
            cell.kind.store(Kind::Free as u32, Ordering::Release);
            cell.samples.store(null_mut(), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn an_unconnected_input_is_silent_again_at_each_call() {
        let (table, own) = (PortTable::new(8), OwnSlabs::new());
        table.add_input(3, PortType::Audio).unwrap();
        table.name(3, 7).unwrap();
        let buffer = table.buffer(&own, 7, 64, || None).unwrap();
        table.cell(3).unwrap().private().unwrap().borrow(64).unwrap().fill(0.5);
        assert_eq!(table.buffer(&own, 7, 64, || None), Some(buffer));
        assert!(table.cell(3).unwrap().private().unwrap().borrow(64).unwrap().iter().all(|x| *x == 0.0));
    }

    #[test]
    fn an_unconnected_midi_input_has_no_events_again_at_each_call() {
        let (table, own) = (PortTable::new(8), OwnSlabs::new());
        table.add_input(3, PortType::Midi).unwrap();
        table.name(3, 7).unwrap();
        let buffer = table.buffer(&own, 7, 64, || None).unwrap();
        let events = table.cell(3).unwrap().events().unwrap();
        assert_eq!(events.base(), buffer);
        events.writer(64).write(63, &[0xf8]).unwrap();
        assert_eq!(events.reader().unwrap().len(), 1);
        assert_eq!(table.buffer(&own, 7, 64, || None), Some(buffer));
        assert!(events.reader().unwrap().is_empty());
    }

    #[test]
    fn ports_of_others_and_ports_that_are_gone_have_no_buffer() {
        let (table, own) = (PortTable::new(8), OwnSlabs::new());
        table.add_input(0, PortType::Midi).unwrap();
        table.name(0, 8).unwrap();
        assert_eq!(table.named().collect::<Vec<_>>(), [(8, 0)]);
        assert!(table.name(0, 9).is_none(), "past the last id");
        assert!(table.buffer(&own, 8, 64, || None).is_some());
        assert!(table.buffer(&own, 0, 64, || None).is_none());
        assert!(table.buffer(&own, 9, 64, || None).is_none(), "past the last id");
        table.remove(0, Some(8));
        assert!(table.buffer(&own, 8, 64, || None).is_none());
        assert!(table.cell(0).is_none());
    }

    #[test]
    fn slabs_are_found_by_number_and_come_in_order() {
        let slabs = OwnSlabs::new();
        // More than the list's first chunk.
        for number in 0..18 {
            assert!(slabs.get(number).is_none());
            let slab = slabs.add(number, OwnSlabs::create().unwrap()).unwrap();
            assert!(ptr::eq(slabs.get(number).unwrap(), slab));
        }
        let in_order = (0..18).map(|number| ptr::from_ref(slabs.get(number).unwrap()));
        assert!(slabs.iter().map(ptr::from_ref).eq(in_order));
    }

    #[test]
    fn an_output_is_its_slot() {
        let slabs = OwnSlabs::new();
        let own = slabs.add(0, OwnSlabs::create().unwrap()).unwrap();
        let samples = own.slab().slot(5).unwrap();
        let table = PortTable::new(8);
        table.add_output(0, PortType::Audio, SlabSlot { slab: 0, slot: 5 }, samples).unwrap();
        table.name(0, 1).unwrap();
        assert_eq!(table.buffer(&slabs, 1, 64, || None), Some(samples));
        assert_eq!(slabs.iter().count(), 1);
    }

    #[test]
    fn a_midi_output_keeps_its_events_and_takes_those_of_the_present_quantum() {
        let slabs = OwnSlabs::new();
        let own = slabs.add(0, OwnSlabs::create().unwrap()).unwrap();
        let place = SlabSlot { slab: 0, slot: 2 };
        MidiWriter::begin(&own.borrow_midi(2).unwrap(), 0);
        let table = PortTable::new(8);
        table.add_output(0, PortType::Midi, place, own.slab().slot(2).unwrap()).unwrap();
        table.name(0, 1).unwrap();
        for (frames, time, written) in [(64, 63, true), (64, 64, false), (128, 127, true), (64, 100, false)] {
            assert!(table.buffer(&slabs, 1, frames, || None).is_some());
            let events = own.borrow_midi(2).unwrap();
            let writer = MidiWriter::of(&events).unwrap();
            assert_eq!(writer.write(time, &[0xf8]).is_ok(), written, "{time} of {frames}");
        }
        assert_eq!(MidiReader::of(&own.borrow_midi(2).unwrap()).unwrap().len(), 2);
    }
}
