//! Volumes by name, of devices and of programs' streams: those that come again begin with them, on
//! this server and, by its state file, on the next one.

use proto::stream::{ChannelGains, DeviceVolume, NewStream, Volume};
use state::State;

use super::Streams;
use super::devices::DRIVER;
use crate::stream_budget::Account;

/// How many volumes of each kind are kept; those that were changed last.
pub(super) const MOST: usize = 256;

/// The names of a program and of what it plays or records.
type StreamName = (String, String);

/// What is kept. Without a state file, nothing is.
#[derive(Debug, Default)]
pub(in crate::control) struct KeptVolumes {
    is_on: bool,
    devices: Kept<String, DeviceVolume>,
    streams: Kept<StreamName, Volume>,
    has_changed: bool,
}

/// Volumes other than the default, in the order of their changes.
#[derive(Debug)]
struct Kept<N, V>(Vec<(N, V)>);

impl<N, V> Default for Kept<N, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<N: PartialEq, V: Copy + Default + PartialEq> Kept<N, V> {
    fn of(&self, is_it: impl Fn(&N) -> bool) -> V {
        let found = self.0.iter().find(|(name, _)| is_it(name));
        found.map(|(_, volume)| *volume).unwrap_or_default()
    }

    /// Returns whether that is new.
    fn note(&mut self, name: N, volume: V) -> bool {
        if self.of(|kept| *kept == name) == volume {
            return false;
        }
        self.0.retain(|(kept, _)| *kept != name);
        if volume != V::default() {
            self.0.push((name, volume));
        }
        self.0.drain(..self.0.len().saturating_sub(MOST));
        true
    }
}

impl KeptVolumes {
    /// Begins with those of a state, and keeps all changes from now on.
    fn of_state(state: &State) -> Self {
        let mut kept = Self { is_on: true, ..Self::default() };
        for state::DeviceVolume { device, volumes, muted } in &state.device_volumes {
            // None are refused where the state is read.
            let gains = ChannelGains::of(volumes).unwrap_or_default();
            kept.devices.note(device.clone(), DeviceVolume { gains, muted: *muted });
        }
        for state::StreamVolume { program, stream, volume, muted } in &state.stream_volumes {
            let volume = Volume { gain: *volume, muted: *muted };
            kept.streams.note((program.clone(), stream.clone()), volume);
        }
        kept
    }

    fn of_device(&self, name: &str) -> DeviceVolume {
        self.devices.of(|kept| kept == name)
    }

    fn of_stream(&self, program: &str, stream: &str) -> Volume {
        self.streams.of(|(kept, name)| kept == program && name == stream)
    }

    fn note_device(&mut self, name: &str, volume: DeviceVolume) {
        if self.is_on {
            self.has_changed |= self.devices.note(name.to_owned(), volume);
        }
    }

    pub(super) fn note_stream(&mut self, program: &str, stream: &str, volume: Volume) {
        if self.is_on {
            let name = (program.to_owned(), stream.to_owned());
            self.has_changed |= self.streams.note(name, volume);
        }
    }

    /// Returns whether there were changes since the last call.
    pub(in crate::control) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Adds them to a state.
    pub(in crate::control) fn add_to(&self, state: &mut State) {
        let device = |(name, volume): &(String, DeviceVolume)| state::DeviceVolume {
            device: name.clone(),
            volumes: volume.gains.shortest().to_vec(),
            muted: volume.muted,
        };
        let stream = |((program, stream), volume): &(StreamName, Volume)| state::StreamVolume {
            program: program.clone(),
            stream: stream.clone(),
            volume: volume.gain,
            muted: volume.muted,
        };
        state.device_volumes = self.devices.0.iter().map(device).collect();
        state.stream_volumes = self.streams.0.iter().map(stream).collect();
    }
}

impl Streams {
    /// Returns the volume with which a stream begins. Those that a process plays for others are
    /// remembered by that process.
    pub(super) fn kept_volume_of(&self, account: Account, new: &NewStream) -> Volume {
        match account.number {
            0 => self.kept_volumes.of_stream(&new.program, &new.name),
            _ => Volume::default(),
        }
    }

    /// Keeps the volume that a stream has been given.
    pub(super) fn keep_volume_of(&mut self, number: u32) {
        if let Some(stream) = self.streams.get(&number).filter(|open| open.account.number == 0) {
            self.kept_volumes.note_stream(&stream.program, &stream.name, stream.volume);
        }
    }

    /// Keeps the volume that a device has been given.
    pub(super) fn keep_volume_of_device(&mut self, number: u32) {
        let name = self.devices.any_name(number);
        if let (Some(name), Some(device)) = (name, self.devices.get(number)) {
            self.kept_volumes.note_device(name, device.volume);
        }
    }

    /// Gives devices and streams the volumes of a state, the device that drives at once, and keeps
    /// theirs.
    pub(in crate::control) fn keep_volumes(&mut self, state: &State) {
        self.kept_volumes = KeptVolumes::of_state(state);
        self.restore_device(DRIVER);
    }

    /// Gives a device that is new the volume that one of its name had.
    pub(super) fn restore_device(&mut self, number: u32) {
        let name = self.devices.any_name(number);
        let volume = name.map(|name| self.kept_volumes.of_device(name)).unwrap_or_default();
        if let Some(device) = self.devices.get_mut(number) {
            device.set_volume(volume);
        }
    }
}
