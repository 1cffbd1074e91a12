//! What was decided for a stream, and why.

use std::ffi::CStr;

use client::stream::Gains;
use convert::ChannelMap;
use policy::{
    Asked, DeviceReason, Direction, Identity, Interaction, MuteReason, Player, Start, VolumeReason,
    Volumes,
};
use pulseaudio::protocol::{ChannelVolume, Props, Volume};

use super::properties;

/// The property by which PulseAudio's programs know what a stream is remembered as.
const RESTORED_AS: &CStr = c"module-stream-restore.id";

/// How a stream is treated.
#[derive(Debug, Clone)]
pub(super) struct Treatment {
    /// The name under which it is remembered, which stays as it was at the beginning.
    pub key: String,
    pub identity: Identity,
    pub device: DeviceReason,
    pub volume: VolumeReason,
    pub muted: MuteReason,
    /// What another stream, or a client of the graph, does to it.
    pub interaction: Option<Interaction>,
    /// What held it when a user wanted to hear it: it does so no more.
    pub released_from: Option<Player>,
    /// Its program was asked to hold it, and is to be asked to go on.
    pub owes_uncork: bool,
}

impl Treatment {
    pub fn new(identity: Identity, start: &Start) -> Self {
        Self {
            key: identity.key(),
            identity,
            device: start.device.reason.clone(),
            volume: start.volume.reason,
            muted: start.muted.reason,
            interaction: None,
            released_from: None,
            owes_uncork: false,
        }
    }

    /// Returns whether something else holds it.
    pub fn is_held(&self) -> bool {
        matches!(self.interaction, Some(Interaction::Held { .. }))
    }

    /// Returns its gains, with what else is done to it.
    pub fn applied(&self, gains: Gains) -> Gains {
        let Some(factor) = self.interaction.as_ref().map(Interaction::factor) else {
            return gains;
        };
        let of = |channel| gains.of(channel) * factor;
        Gains::new(std::array::from_fn(of)).unwrap_or_default()
    }

    /// Returns the properties that programs see: with the reasons, and the number that the stream
    /// has on the server, if it is one there, where it is one of this process.
    pub fn shown(&self, props: &Props, stream: Option<u32>) -> Props {
        let mut shown = props.clone();
        if let Some(stream) = stream {
            properties::set(&mut shown, c"consort.stream", &stream.to_string());
            properties::set(&mut shown, c"consort.process", &std::process::id().to_string());
        }
        properties::set(&mut shown, RESTORED_AS, &self.key);
        properties::set(&mut shown, c"consort.why.device", &self.device.to_string());
        properties::set(&mut shown, c"consort.why.volume", &self.volume.to_string());
        properties::set(&mut shown, c"consort.why.mute", &self.muted.to_string());
        if let Some(interaction) = &self.interaction {
            properties::set(&mut shown, c"consort.why.other", &interaction.to_string());
        }
        shown
    }

    /// Returns whether the stream is where it is because that comes first for its role.
    pub fn is_routed(&self) -> bool {
        matches!(self.device, DeviceReason::Routed { .. })
    }

    /// Another device comes first now, or none does: the stream went there, or cannot.
    pub fn stays_where_it_was_routed_unless(&mut self, is_there: bool) {
        if !is_there && self.is_routed() {
            self.device = DeviceReason::WasRouted;
        }
    }

    /// Another device has become the default one, and the stream is there now.
    pub fn follows_default(&mut self) {
        if self.device == DeviceReason::WasRouted {
            self.device = DeviceReason::Default;
        }
    }
}

/// Returns whether a user or an order has chosen the device, so that another default does not move
/// the stream.
pub(super) fn is_chosen(reason: &DeviceReason) -> bool {
    matches!(
        reason,
        DeviceReason::Rule { .. }
            | DeviceReason::Remembered
            | DeviceReason::DeviceCame
            | DeviceReason::Routed { .. }
    )
}

/// Returns who a stream is, as it says itself.
pub(super) fn identity(direction: Direction, props: &Props) -> Identity {
    let text = |key: &CStr| {
        let value = CStr::from_bytes_with_nul(props.get_bytes(key)?).ok()?;
        Some(value.to_string_lossy().into_owned())
    };
    Identity {
        direction,
        restored_as: text(RESTORED_AS),
        role: text(c"media.role"),
        id: text(c"application.id"),
        name: text(c"application.name"),
        media: text(c"media.name"),
        binary: text(c"application.process.binary"),
    }
}

/// Returns what a program has asked for; it may state its volume, and whether it is muted.
pub(super) fn asked(
    index: Option<u32>,
    name: Option<&CStr>,
    (states_volume, states_mute): (bool, bool),
) -> Asked {
    let is_default = |name: &CStr| name.to_bytes().starts_with(b"@DEFAULT_");
    Asked {
        names_device: index.is_some() || name.is_some_and(|name| !is_default(name)),
        states_volume,
        states_mute,
    }
}

/// Returns the volumes of a stream's channels as they are remembered.
pub(super) fn remembered(volume: &ChannelVolume, map: &ChannelMap) -> Volumes {
    let names: Vec<String> = map.positions().iter().map(ToString::to_string).collect();
    let volumes = volume.channels().iter().map(Volume::as_u32);
    Volumes::of(names.iter().map(String::as_str).zip(volumes))
}

/// Returns the volume of each channel of a stream.
pub(super) fn restored(volumes: &Volumes, map: &ChannelMap) -> ChannelVolume {
    let mut restored = ChannelVolume::empty();
    for position in map.positions() {
        restored.push(Volume::from_u32_clamped(volumes.at(&position.to_string())));
    }
    restored
}
