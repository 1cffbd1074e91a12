//! Volumes in the server: of streams and of devices.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::gain::{ChannelGains, Gain};

/// The server's volume of a stream. What is heard of it is the product of this volume, the gains
/// that its program wishes, and the device's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Volume {
    /// The factor while it is not muted.
    pub gain: Gain,
    /// Nothing of it is heard.
    pub muted: bool,
}

impl Volume {
    /// Returns this volume after a change of what is not `None`.
    #[must_use]
    pub fn changed(self, gain: Option<Gain>, muted: Option<bool>) -> Self {
        Self { gain: gain.unwrap_or(self.gain), muted: muted.unwrap_or(self.muted) }
    }

    /// Returns the factor that is heard.
    #[must_use]
    pub fn factor(self) -> f32 {
        if self.muted { 0.0 } else { self.gain.factor() }
    }
}

/// The server's volume of all that leaves a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceVolume {
    /// The factors while it is not muted.
    pub gains: ChannelGains,
    /// Nothing of it is heard.
    pub muted: bool,
}

impl DeviceVolume {
    /// Returns this volume after a change of what is not `None`.
    #[must_use]
    pub fn changed(self, gains: Option<ChannelGains>, muted: Option<bool>) -> Self {
        Self { gains: gains.unwrap_or(self.gains), muted: muted.unwrap_or(self.muted) }
    }

    /// Returns the gains that are heard.
    #[must_use]
    pub fn heard(self) -> ChannelGains {
        if self.muted { ChannelGains::all(Gain::SILENCE) } else { self.gains }
    }
}

/// Who has changed the server's volume of a stream last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum VolumeSource {
    /// Nobody.
    #[default]
    Nobody,
    /// The state that the server keeps by names.
    State,
    /// Its own program: it asks for what it wants, and on another server or device, for what its
    /// stream had before.
    Program,
    /// Another program: a user's command, the web page, or any other.
    OtherProgram,
}

/// Who has changed each part of the server's volume of a stream last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VolumeSources {
    /// The factor.
    pub gain: VolumeSource,
    /// Whether it is muted.
    pub muted: VolumeSource,
}

impl VolumeSources {
    /// Returns these sources after a change of the volume by `source`. Who asks for what there is
    /// already changes nothing.
    #[must_use]
    pub fn changed(self, (before, after): (Volume, Volume), source: VolumeSource) -> Self {
        let of = |is_same, own| if is_same { own } else { source };
        Self {
            gain: of(before.gain == after.gain, self.gain),
            muted: of(before.muted == after.muted, self.muted),
        }
    }
}

impl fmt::Display for Volume {
    /// A percentage, decibels, and whether it is muted.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}{}", self.gain, mute(self.muted))
    }
}

impl DeviceVolume {
    /// Returns it as text for a device with this number of channels: one percentage with decibels,
    /// or if its channels differ, that of each in their order, and whether it is muted.
    #[must_use]
    pub fn as_text(self, channels: u32) -> String {
        let gains = self.gains.first(channels as usize);
        let is_one = gains.iter().all(|gain| *gain == gains[0]);
        let shown = if is_one { &gains[..1] } else { gains };
        let shown: Vec<String> = shown.iter().map(ToString::to_string).collect();
        format!("{}{}", shown.join(" / "), mute(self.muted))
    }

    /// Returns whether it changes no sample of a device with this number of channels.
    #[must_use]
    pub fn is_unity(self, channels: u32) -> bool {
        let gains = self.gains.first(channels as usize);
        !self.muted && gains.iter().all(|gain| *gain == Gain::UNITY)
    }
}

fn mute(muted: bool) -> &'static str {
    if muted { ", muted" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(factor: f32) -> Gain {
        Gain::new(factor).unwrap()
    }

    #[test]
    fn a_volume_is_shown_with_its_decibels() {
        let shown = |factor, muted| Volume { gain: gain(factor), muted }.to_string();
        assert_eq!(shown(1.0, false), "100 % (0.0 dB)");
        assert_eq!(shown(0.125, true), "12.5 % (-18.1 dB), muted");
        assert_eq!(shown(0.0, false), "0 %");
    }

    #[test]
    fn a_devices_channels_are_shown_each_if_they_differ() {
        let gains = ChannelGains::of(&[gain(1.0), gain(0.125)]).unwrap();
        let shown = |muted, channels| DeviceVolume { gains, muted }.as_text(channels);
        assert_eq!(shown(true, 2), "100 % (0.0 dB) / 12.5 % (-18.1 dB), muted");
        assert_eq!(shown(false, 1), "100 % (0.0 dB)");
        assert_eq!(DeviceVolume::default().as_text(2), "100 % (0.0 dB)");
        let is_unity = |muted, channels| DeviceVolume { gains, muted }.is_unity(channels);
        assert_eq!(
            [(false, 1), (false, 2), (true, 1)]
                .map(|(muted, channels)| { is_unity(muted, channels) }),
            [true, false, false]
        );
    }

    #[test]
    fn who_changes_a_volume_is_its_source_until_another_one_changes_it() {
        let volume = |factor, muted| Volume { gain: gain(factor), muted };
        let begun = VolumeSources::default();
        let half = (volume(1.0, false), volume(0.5, false));
        let changed = begun.changed(half, VolumeSource::OtherProgram);
        let expected = VolumeSources { gain: VolumeSource::OtherProgram, ..begun };
        assert_eq!(changed, expected);
        assert_eq!(changed.changed((half.1, half.1), VolumeSource::Program), expected);
        let muted = changed.changed((half.1, volume(0.5, true)), VolumeSource::Program);
        assert_eq!(muted, VolumeSources { muted: VolumeSource::Program, ..expected });
    }
}
