//! Events in the buffers of MIDI ports: what [`MidiInputBuffer`] and [`MidiOutputBuffer`] are made
//! of, and `libjack` too.

pub use rt::midi::{MidiError, MidiEvent, MidiReader, MidiWords, MidiWriter};

pub use crate::typed::{MidiInputBuffer, MidiInputPort, MidiOutputBuffer, MidiOutputPort};
