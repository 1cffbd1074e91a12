//! The devices of a server that play streams.

use proto::request::{Reply, Request};
use proto::stream::{
    ChannelGains, ClientRole, DeviceState, DeviceVolume, FurtherDevice, NewDevice, StreamReply,
    StreamRequest, WakeUpRate,
};

use super::StreamConnection;
use super::connection::ask;
use crate::requests::Requests;
use crate::{Error, Observer};

/// What streams on a device are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamDevice {
    /// Hz.
    pub sample_rate_hz: u32,
    /// Channels that can be played, counted from 0; 0: the device plays no streams.
    pub channels: u32,
    /// Channels that can be recorded, counted from 0.
    pub captured: u32,
    /// They are more than silence.
    pub captures: bool,
    /// How often its thread has woken since it began.
    pub wake_ups: u64,
    /// How often lately.
    pub wake_up_rate: WakeUpRate,
    /// Frames that streams were to play and that were not rendered in time.
    pub lost_frames: u64,
    /// What it does now.
    pub state: DeviceState,
    /// The volume of all that leaves it.
    pub volume: DeviceVolume,
}

/// Returns what streams on a device are converted to; `None`: on the one that drives.
pub(crate) fn device(requests: &Requests, name: Option<&str>) -> Result<StreamDevice, Error> {
    match ask(requests, StreamRequest::Device { device: name.map(Into::into) })? {
        StreamReply::Device {
            sample_rate_hz,
            channels,
            captured,
            captures,
            wake_ups,
            wake_up_rate,
            lost_frames,
            state,
            volume,
        } => Ok(StreamDevice {
            sample_rate_hz,
            channels,
            captured,
            captures,
            wake_ups,
            wake_up_rate,
            lost_frames,
            state,
            volume,
        }),
        _ => Err(Error::OTHER_REPLY),
    }
}

impl StreamConnection {
    /// Returns what streams on the device that drives are converted to.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn device(&self) -> Result<StreamDevice, Error> {
        device(self.requests(), None)
    }

    /// Returns what drives the graph, as `consort status` shows it.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn driver(&self) -> Result<String, Error> {
        match self.requests().ask(Request::Status, &[])? {
            Reply::Status(status) => Ok(status.driver),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Returns what streams on the device of this name are converted to; `None`: on the one that
    /// drives.
    ///
    /// # Errors
    /// [`Error::Refused`], with the names that there are, if there is no such device;
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn device_named(&self, name: Option<&str>) -> Result<StreamDevice, Error> {
        device(self.requests(), name)
    }

    /// Returns the roles of the graph's active clients that state one.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn client_roles(&self) -> Result<Vec<ClientRole>, Error> {
        match ask(self.requests(), StreamRequest::Roles)? {
            StreamReply::Roles(roles) => Ok(roles),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Returns the devices beside the one that drives, by name.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn further_devices(&self) -> Result<Vec<FurtherDevice>, Error> {
        further_devices(self.requests())
    }
}

impl StreamConnection {
    /// Adds a device, as [`Observer::add_device`] does.
    ///
    /// # Errors
    /// See there.
    pub fn add_device(&self, device: NewDevice) -> Result<(), Error> {
        add_device(self.requests(), device)
    }

    /// Removes a device that was added: its streams end.
    ///
    /// # Errors
    /// [`Error::Refused`], with the names that there are, if there is no such device;
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn remove_device(&self, name: &str) -> Result<(), Error> {
        remove_device(self.requests(), name)
    }

    /// Changes the volume of all that leaves a device (`None`: the one that drives); what is `None`
    /// of it stays as it is. Returns the volume from now on. It is heard within milliseconds, in a
    /// ramp.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such device, or the server's policy does not let the
    /// program change it; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn set_device_volume(
        &self,
        device: Option<&str>,
        gains: Option<ChannelGains>,
        muted: Option<bool>,
    ) -> Result<DeviceVolume, Error> {
        set_device_volume(self.requests(), device, gains, muted)
    }

    /// Moves a stream to another device (`None`: the one that drives). One that plays fades out on
    /// its own device and continues on the other from where the fade began; one that records what
    /// leaves a device goes on with what leaves the other. Both must have the same rate, unless its
    /// program opens it again there ([`play_reopening`](Self::play_reopening),
    /// [`record_reopening`](Self::record_reopening)). A stream that records in the graph is moved
    /// by its connections.
    ///
    /// A program may move its own streams; those of others if the server's policy lets it.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such stream or device, or they do not fit;
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn move_stream(&self, stream: u32, device: Option<&str>) -> Result<(), Error> {
        move_stream(self.requests(), stream, device)
    }
}

/// Changes the volume of a device.
fn set_device_volume(
    requests: &Requests,
    device: Option<&str>,
    gains: Option<ChannelGains>,
    muted: Option<bool>,
) -> Result<DeviceVolume, Error> {
    let device = device.map(Into::into);
    match ask(requests, StreamRequest::SetDeviceVolume { device, gains, muted })? {
        StreamReply::DeviceVolume(volume) => Ok(volume),
        _ => Err(Error::OTHER_REPLY),
    }
}

fn move_stream(requests: &Requests, stream: u32, device: Option<&str>) -> Result<(), Error> {
    match ask(requests, StreamRequest::Move { stream, device: device.map(Into::into) })? {
        StreamReply::Moved => Ok(()),
        _ => Err(Error::OTHER_REPLY),
    }
}

fn add_device(requests: &Requests, device: NewDevice) -> Result<(), Error> {
    match ask(requests, StreamRequest::Add(device))? {
        StreamReply::Added => Ok(()),
        _ => Err(Error::OTHER_REPLY),
    }
}

fn remove_device(requests: &Requests, name: &str) -> Result<(), Error> {
    match ask(requests, StreamRequest::Remove { device: name.into() })? {
        StreamReply::Removed => Ok(()),
        _ => Err(Error::OTHER_REPLY),
    }
}

fn further_devices(requests: &Requests) -> Result<Vec<FurtherDevice>, Error> {
    match ask(requests, StreamRequest::Devices)? {
        StreamReply::Devices(devices) => Ok(devices),
        _ => Err(Error::OTHER_REPLY),
    }
}

impl Observer {
    /// Returns the devices for streams beside the one that drives, by name.
    ///
    /// # Errors
    /// See [`Requester`](crate::Requester).
    pub fn further_devices(&self) -> Result<Vec<FurtherDevice>, Error> {
        further_devices(&self.requests)
    }

    /// Adds a device with a thread and a clock of its own, for streams: a card, or one without
    /// hardware.
    ///
    /// # Errors
    /// See [`Requester`](crate::Requester). [`Error::Refused`] if there is a device of that name,
    /// the card cannot be opened, or the server's policy does not let this program add one.
    pub fn add_device(&self, device: NewDevice) -> Result<(), Error> {
        add_device(&self.requests, device)
    }

    /// Changes the volume of a device, as [`StreamConnection::set_device_volume`] does.
    ///
    /// # Errors
    /// See there.
    pub fn set_device_volume(
        &self,
        device: Option<&str>,
        gains: Option<ChannelGains>,
        muted: Option<bool>,
    ) -> Result<DeviceVolume, Error> {
        set_device_volume(&self.requests, device, gains, muted)
    }

    /// Moves a stream to another device, as [`StreamConnection::move_stream`] does.
    ///
    /// # Errors
    /// See there.
    pub fn move_stream(&self, stream: u32, device: Option<&str>) -> Result<(), Error> {
        move_stream(&self.requests, stream, device)
    }

    /// Removes a device that was added: its streams end.
    ///
    /// # Errors
    /// See [`Requester`](crate::Requester). [`Error::Refused`], with the names that there are, if
    /// there is no such device.
    pub fn remove_device(&self, name: &str) -> Result<(), Error> {
        remove_device(&self.requests, name)
    }
}
