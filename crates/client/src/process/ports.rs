//! A client's own ports, as seen from its cycles.

use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use proto::request::{PortType, SlabSlot};
use rt::midi::{MIDI_WORDS, MidiReader, MidiWords, MidiWriter};
use rt::sync::AtomicU32 as Word;
use sys::buffers::{BorrowedMidi, OwnBuffers, PrivateBuffer};
use sys::memory::{OwnSlab, SegmentError};

use crate::chunked_list::ChunkedList;

/// The slabs with this client's output buffers, in the order in which they were announced to the
/// server.
#[derive(Debug)]
pub(crate) struct OwnSlabs(ChunkedList<OnceLock<OwnBuffers>, 1>);

impl OwnSlabs {
    pub(crate) fn new() -> Self {
        Self(ChunkedList::new([OnceLock::new()]))
    }

    /// Returns slab number `slab`. Thread: cycle.
    pub(crate) fn get(&self, slab: u32) -> Option<&OwnBuffers> {
        self.0.get(slab as usize)?.get()
    }

    /// Iterates over all slabs. Thread: cycle.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &OwnBuffers> {
        self.0.iter().map_while(OnceLock::get)
    }

    /// Adds a slab as number `slab`. Returns `None` beyond the largest possible number. Allocates.
    pub(crate) fn add(&self, slab: u32, segment: OwnSlab) -> Option<&OwnBuffers> {
        Some(self.0.make(slab as usize)?.get_or_init(|| OwnBuffers::new(segment)))
    }

    /// Creates a slab that is not in the list yet.
    pub(crate) fn create() -> Result<OwnSlab, SegmentError> {
        OwnSlab::create()
    }
}

/// What a cell of the table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Kind {
    Free = 0,
    AudioInput = 1,
    MidiInput = 2,
    AudioOutput = 3,
    MidiOutput = 4,
}

/// The events of a MIDI input, in this process's own memory, with all pages present.
#[derive(Debug)]
pub(crate) struct InputEvents(Box<MidiWords>);

impl InputEvents {
    /// Allocates. Always `Some`: the conversion below cannot fail.
    fn new() -> Option<Self> {
        // Written word by word from a value that the compiler does not know, so that every page is
        // touched here.
        let words = std::iter::repeat_with(|| Word::new(std::hint::black_box(0)));
        let words: Box<[Word]> = words.take(MIDI_WORDS).collect();
        let events = Self(words.try_into().ok()?);
        MidiWriter::begin(&events.0, 0);
        Some(events)
    }

    /// Empties the buffer and returns a writer for it. Thread: cycle.
    pub(crate) fn writer(&self, frames: u32) -> MidiWriter<'_> {
        MidiWriter::begin(&self.0, frames)
    }

    /// Returns a reader of the events. Thread: cycle.
    pub(crate) fn reader(&self) -> Option<MidiReader<'_>> {
        MidiReader::of(&self.0)
    }

    /// Returns the address of the events, for foreign code. Valid as long as this value lives.
    pub(crate) fn base(&self) -> NonNull<f32> {
        NonNull::from_ref(&*self.0).cast()
    }
}

/// One of the client's ports. All fields may be used from any thread.
#[derive(Debug)]
pub(crate) struct PortCell {
    kind: AtomicU32,
    /// Private buffer of an audio input: silence, a copy, or a mix.
    private: OnceLock<PrivateBuffer>,
    /// Private buffer of a MIDI input.
    events: OnceLock<InputEvents>,
    /// Address of the samples or events that the program gets; null for an input without a source.
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

    /// Returns the port's type and whether it is an output.
    pub(crate) fn kind(&self) -> Option<(PortType, bool)> {
        let kinds = [
            (Kind::AudioInput, PortType::Audio, false),
            (Kind::MidiInput, PortType::Midi, false),
            (Kind::AudioOutput, PortType::Audio, true),
            (Kind::MidiOutput, PortType::Midi, true),
        ];
        kinds
            .into_iter()
            .find(|(kind, ..)| self.is(*kind))
            .map(|(_, port_type, output)| (port_type, output))
    }

    /// Returns the private buffer of an audio input. Thread: cycle.
    pub(crate) fn private(&self) -> Option<&PrivateBuffer> {
        self.private.get().filter(|_| self.is(Kind::AudioInput))
    }

    /// Returns the private buffer of a MIDI input. Thread: cycle.
    pub(crate) fn events(&self) -> Option<&InputEvents> {
        self.events.get().filter(|_| self.is(Kind::MidiInput))
    }

    /// Sets what the input reads in this cycle; null means silence. Process thread. Thread: cycle.
    #[inline]
    pub(crate) fn set_source(&self, samples: *mut f32) {
        if self.is_input() {
            // Release: threads that the program wakes for the cycle see the mix at this address.
            self.samples.store(samples, Ordering::Release);
        }
    }

    /// Returns what the input reads in this cycle. Thread: cycle.
    #[inline]
    pub(crate) fn source(&self) -> *mut f32 {
        self.samples.load(Ordering::Acquire)
    }

    /// Returns the location of an output's samples or events.
    pub(crate) fn slab_slot(&self) -> Option<SlabSlot> {
        let slot = SlabSlot {
            slab: self.slab.load(Ordering::Relaxed),
            slot: self.slot.load(Ordering::Relaxed),
        };
        (self.is(Kind::AudioOutput) || self.is(Kind::MidiOutput)).then_some(slot)
    }

    /// Borrows the buffer of a MIDI output; `None` while another thread holds it. Thread: cycle.
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
        NonNull::new(self.source()).or_else(|| self.silence(frames))
    }

    /// Limits further events to a cycle of `quantum` frames. Events from the previous call are
    /// kept.
    fn limit_events(&self, own: &OwnSlabs, quantum: u32) {
        if let Some(events) = self.borrow_output_events(own)
            && let Some(writer) = MidiWriter::of(&events)
        {
            writer.set_frames(quantum);
        }
    }

    /// Returns the input's private buffer, silenced.
    fn silence(&self, frames: u32) -> Option<NonNull<f32>> {
        if let Some(events) = self.events() {
            events.writer(frames);
            return Some(events.base());
        }
        let private = self.private()?;
        let frames = frames as usize;
        // If the buffer is borrowed, another thread is silencing it at this moment.
        if let Some(mut samples) = private.borrow(frames) {
            samples.fill(0.0);
        }
        Some(private.base())
    }
}

/// The client's ports by the client's own numbers, and the mapping from the server's ids to these
/// numbers.
#[derive(Debug)]
pub(crate) struct PortTable {
    cells: ChunkedList<PortCell>,
    /// Indexed by port id: number + 1, or 0 if the port is not this client's.
    numbers: Box<[AtomicU32]>,
}

impl PortTable {
    /// Creates the table for a server with ports `1..=last_id`.
    pub(crate) fn new(last_id: u32) -> Self {
        let numbers = (0..=last_id).map(|_| AtomicU32::new(0)).collect();
        Self { cells: ChunkedList::new([const { PortCell::new() }; _]), numbers }
    }

    /// Returns the port with number `number`. Thread: cycle.
    #[inline]
    pub(crate) fn cell(&self, number: u32) -> Option<&PortCell> {
        self.cells.get(number as usize).filter(|cell| !cell.is(Kind::Free))
    }

    /// Makes every input silent until it gets a source. Process thread. Thread: cycle.
    pub(crate) fn clear_sources(&self) {
        self.cells.iter().for_each(|cell| cell.set_source(null_mut()));
    }

    /// Returns the number of port `id`. Thread: cycle.
    #[inline]
    pub(crate) fn number(&self, id: u32) -> Option<u32> {
        self.numbers.get(id as usize)?.load(Ordering::Acquire).checked_sub(1)
    }

    /// Returns the address of the port's samples or events in this cycle of `quantum` frames; see
    /// `Session::port_buffer`. Thread: cycle.
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

    /// Makes number `number` an input. Returns `None` beyond the largest possible number.
    /// Allocates.
    pub(crate) fn add_input(&self, number: u32, port_type: PortType) -> Option<()> {
        let cell = self.cells.make(number as usize)?;
        let kind = match port_type {
            PortType::Audio => {
                cell.private.get_or_init(PrivateBuffer::new);
                Kind::AudioInput
            }
            PortType::Midi => {
                if cell.events.get().is_none() {
                    // Fails only if another thread has just stored an equal value.
                    let _ = cell.events.set(InputEvents::new()?);
                }
                Kind::MidiInput
            }
        };
        cell.samples.store(null_mut(), Ordering::Relaxed);
        cell.kind.store(kind as u32, Ordering::Release);
        Some(())
    }

    /// Makes number `number` an output whose samples or events lie in `place`, at `samples`.
    /// Allocates.
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

    /// Records that the server knows number `number` as port `id`. Returns `None` if there is no
    /// such id.
    pub(crate) fn set_id(&self, number: u32, id: u32) -> Option<()> {
        self.numbers.get(id as usize)?.store(number + 1, Ordering::Release);
        Some(())
    }

    /// Iterates over the client's ports as (id, number), by id.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..)
            .zip(&*self.numbers)
            .filter_map(|(id, number)| Some((id, number.load(Ordering::Acquire).checked_sub(1)?)))
    }

    /// Frees number `number`.
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
        table.set_id(3, 7).unwrap();
        let buffer = table.buffer(&own, 7, 64, || None).unwrap();
        table.cell(3).unwrap().private().unwrap().borrow(64).unwrap().fill(0.5);
        assert_eq!(table.buffer(&own, 7, 64, || None), Some(buffer));
        assert!(
            table.cell(3).unwrap().private().unwrap().borrow(64).unwrap().iter().all(|x| *x == 0.0)
        );
    }

    #[test]
    fn an_unconnected_midi_input_has_no_events_again_at_each_call() {
        let (table, own) = (PortTable::new(8), OwnSlabs::new());
        table.add_input(3, PortType::Midi).unwrap();
        table.set_id(3, 7).unwrap();
        let buffer = table.buffer(&own, 7, 64, || None).unwrap();
        let events = table.cell(3).unwrap().events().unwrap();
        assert_eq!(events.base(), buffer);
        events.writer(64).write(63, &[0xf8]).unwrap();
        assert_eq!(events.reader().unwrap().len(), 1);
        assert_eq!(table.buffer(&own, 7, 64, || None), Some(buffer));
        assert!(events.reader().unwrap().is_empty());
    }

    #[test]
    fn only_existing_own_ports_have_a_buffer() {
        let (table, own) = (PortTable::new(8), OwnSlabs::new());
        table.add_input(0, PortType::Midi).unwrap();
        table.set_id(0, 8).unwrap();
        assert_eq!(table.ids().collect::<Vec<_>>(), [(8, 0)]);
        assert!(table.set_id(0, 9).is_none(), "past the last id");
        assert!(table.buffer(&own, 8, 64, || None).is_some());
        assert!(table.buffer(&own, 0, 64, || None).is_none());
        assert!(table.buffer(&own, 9, 64, || None).is_none(), "past the last id");
        table.remove(0, Some(8));
        assert!(table.buffer(&own, 8, 64, || None).is_none());
        assert!(table.cell(0).is_none());
    }

    #[test]
    fn slabs_are_found_by_number() {
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
        table.set_id(0, 1).unwrap();
        assert_eq!(table.buffer(&slabs, 1, 64, || None), Some(samples));
        assert_eq!(slabs.iter().count(), 1);
    }

    #[test]
    fn a_midi_output_accepts_events_within_the_current_quantum() {
        let slabs = OwnSlabs::new();
        let own = slabs.add(0, OwnSlabs::create().unwrap()).unwrap();
        let place = SlabSlot { slab: 0, slot: 2 };
        MidiWriter::begin(&own.borrow_midi(2).unwrap(), 0);
        let table = PortTable::new(8);
        table.add_output(0, PortType::Midi, place, own.slab().slot(2).unwrap()).unwrap();
        table.set_id(0, 1).unwrap();
        for (frames, time, written) in
            [(64, 63, true), (64, 64, false), (128, 127, true), (64, 100, false)]
        {
            assert!(table.buffer(&slabs, 1, frames, || None).is_some());
            let events = own.borrow_midi(2).unwrap();
            let writer = MidiWriter::of(&events).unwrap();
            assert_eq!(writer.write(time, &[0xf8]).is_ok(), written, "{time} of {frames}");
        }
        assert_eq!(MidiReader::of(&own.borrow_midi(2).unwrap()).unwrap().len(), 2);
    }
}
