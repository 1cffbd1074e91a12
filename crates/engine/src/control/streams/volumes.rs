//! The server's volume of streams and of devices.
//!
//! Requests that follow each other closely are one change for a device's thread: it reads the
//! newest value when it is called.

use proto::request::RequestError;
use proto::stream::{ChannelGains, DeviceVolume, Gain, Volume, VolumeSource};
use rt::stream::{Gains, MAX_GAIN};
use sys::clock::now_ns;

use super::{Streams, refused, unknown};
use crate::control::Control;
use crate::policy::{Permissions, refusal};

/// What of a stream's volume is to change.
type Change = (Option<Gain>, Option<bool>);
/// What of a device's volume is to change.
type DeviceChange = (Option<ChannelGains>, Option<bool>);

impl Control {
    /// Changes a stream's volume, and has the device's thread move to it.
    pub(super) fn set_volume(
        &mut self,
        peer: u64,
        stream: u32,
        change: Change,
    ) -> Result<Volume, RequestError> {
        let permissions = self.peers.permissions(peer);
        let process = self.peers.watch(peer, &self.poller).unwrap_or(0);
        let volume = self.streams.set_volume((peer, process), permissions, stream, change)?;
        self.call_if_due();
        Ok(volume)
    }

    /// Changes a device's volume, and has its thread move to it.
    pub(super) fn set_device_volume(
        &mut self,
        peer: u64,
        device: Option<&str>,
        change: DeviceChange,
    ) -> Result<DeviceVolume, RequestError> {
        let permissions = self.peers.permissions(peer);
        let volume = self.streams.set_device_volume(permissions, device, change)?;
        self.call_if_due();
        Ok(volume)
    }
}

impl Streams {
    /// A program may set the volume of its own streams, and with the permission to patch, that of
    /// all.
    pub(super) fn set_volume(
        &mut self,
        (peer, process): (u64, u32),
        permissions: Permissions,
        number: u32,
        (gain, muted): Change,
    ) -> Result<Volume, RequestError> {
        let stream = self.streams.get_mut(&number).ok_or_else(|| unknown(number))?;
        let is_own = stream.is_of(peer, process);
        // MUTATION: set_volume.of_others, set_volume.of_others_by_page
        if !permissions.patch && !is_own {
            return Err(refusal("change the volume of another program's stream"));
        }
        let change = (stream.volume, stream.volume.changed(gain, muted));
        let source = if is_own { VolumeSource::Program } else { VolumeSource::OtherProgram };
        stream.volume_sources = stream.volume_sources.changed(change, source);
        stream.volume = change.1;
        stream.gain.set(stream.volume.factor());
        let volume = stream.volume;
        if let Some(device) = self.devices.get_mut(stream.home()) {
            device.calls.need(now_ns());
        }
        self.show_state(number);
        self.keep_volume_of(number);
        Ok(volume)
    }

    /// A device's volume concerns all programs.
    pub(super) fn set_device_volume(
        &mut self,
        permissions: Permissions,
        name: Option<&str>,
        (gains, muted): DeviceChange,
    ) -> Result<DeviceVolume, RequestError> {
        // MUTATION: set_device_volume.by_anyone
        if !permissions.control {
            return Err(refusal("change the volume of a device"));
        }
        let number = self.devices.find(name)?;
        self.devices.check_plays(number)?;
        let device = self.devices.get_mut(number).ok_or_else(|| refused("the device has gone"))?;
        device.set_volume(device.volume.changed(gains, muted));
        device.calls.need(now_ns());
        let volume = device.volume;
        self.watches.note_change();
        self.keep_volume_of_device(number);
        Ok(volume)
    }
}

// What a message can say, the driver thread can apply.
const _: () = assert!(Gain::MAX.factor() <= MAX_GAIN);
const _: () = assert!(ChannelGains::CHANNELS == Gains::CHANNELS);
