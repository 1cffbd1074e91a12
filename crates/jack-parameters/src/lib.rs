//! The parameters of `jackd` and its drivers, in one table.
//!
//! Three front ends render it: the command line of `jackd` with its help and man page, `jackctl` of
//! control.h, and the D-Bus interface `org.jackaudio.Configure`. A parameter has the same name,
//! default and range in all of them. Decision 60 lists where they differed and what was chosen.
#![forbid(unsafe_code)]

pub mod options;
mod parameter;
mod table;
mod value;

pub use parameter::{Constraint, Effect, Parameter, help_line};
pub use table::{ALSA, DUMMY, FILE, PROFILER, RAW_MIDI, SERVER, is_slave, midi_hardware};
pub use table::{MidiHardware, SERVER_NAME};
pub use value::{Kind, Value};
