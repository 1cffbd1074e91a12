//! What the options of a driver ask for.

use device_bridge::DeviceOptions;
use jack_parameters::{MidiHardware, midi_hardware};
use proto::driver::DriverChoice;

/// What a driver's options ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DriverRequest {
    /// To print this help.
    Help(String),
    /// To run the driver.
    Run {
        driver: DriverChoice,
        /// Frames of a cycle.
        quantum: Option<u32>,
        /// Options without effect, one line each.
        notices: Vec<String>,
        /// Devices in addition to the driver's own.
        devices: Vec<DeviceOptions>,
    },
    /// A driver that exists in jackd and not here.
    NotBuilt { instead: &'static str },
}

/// Returns the device that a driver of MIDI hardware stands for.
pub(crate) fn midi_device(driver: &str) -> Option<DeviceOptions> {
    Some(match midi_hardware(driver)? {
        MidiHardware::Sequencer => DeviceOptions::sequencer(),
        MidiHardware::Raw => DeviceOptions::raw_midi(),
    })
}
