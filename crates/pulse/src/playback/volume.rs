//! Volumes of the protocol as gains of a stream.

use client::stream::{ChannelGains, Gain, Gains};
use convert::ChannelMap;
use pulseaudio::protocol::{ChannelVolume, Volume};

/// The largest gain that a stream can have: 24 dB.
const MAX_GAIN: f32 = 16.0;
/// Channels of a stream, at most.
const CHANNELS: usize = convert::MAX_CHANNELS;

/// Returns the gains of a device's channels for a program's volumes: those of the same position, or
/// their mean where the program lacks the position.
pub(crate) fn gains(
    volumes: &ChannelVolume,
    muted: bool,
    program: &ChannelMap,
    device: &ChannelMap,
) -> Gains {
    let volumes = volumes.channels();
    let mean = |of: &mut dyn Iterator<Item = &Volume>| {
        let (sum, count) =
            of.fold((0, 0), |(sum, count), volume| (sum + u64::from(volume.as_u32()), count + 1));
        u64::checked_div(sum, count)
    };
    let at = |position| {
        let same = program.positions().iter().zip(volumes);
        let same = same.filter(|(own, _)| **own == position).map(|(_, volume)| volume);
        mean(&mut same.into_iter()).or_else(|| mean(&mut volumes.iter())).unwrap_or(0)
    };
    let mut gains = [0.0; CHANNELS];
    if !muted {
        for (gain, position) in gains.iter_mut().zip(device.positions()) {
            *gain = linear(at(*position)).min(MAX_GAIN);
        }
    }
    Gains::new(gains).unwrap_or_default()
}

/// Returns the gains of a device whose channels have these volumes; `None` without channels.
pub(crate) fn device_gains(volumes: &ChannelVolume) -> Option<ChannelGains> {
    let gain = |volume: &Volume| Gain::new(linear(volume.as_u32().into()).min(MAX_GAIN)).ok();
    let gains: Option<Vec<Gain>> = volumes.channels().iter().map(gain).collect();
    ChannelGains::of(&gains?)
}

/// Returns the gain of the loudest channel; `None` without channels.
pub(crate) fn gain_of(volumes: &ChannelVolume) -> Option<Gain> {
    let loudest = volumes.channels().iter().map(Volume::as_u32).max()?;
    Gain::new(linear(loudest.into()).min(MAX_GAIN)).ok()
}

/// Returns the volumes of the channels of a device with these gains.
pub(crate) fn device_volumes(gains: &ChannelGains, channels: usize) -> ChannelVolume {
    let mut volumes = ChannelVolume::empty();
    (0..channels).for_each(|channel| volumes.push(volume_of(gains.channel(channel))));
    volumes
}

/// Returns the volume of a gain.
pub(crate) fn volume_of(gain: Gain) -> Volume {
    let volume = f64::from(gain.factor()).cbrt() * f64::from(Volume::NORM.as_u32());
    Volume::from_u32_clamped(volume.round() as u32)
}

/// Returns the factor of a volume: its cube.
fn linear(volume: u64) -> f32 {
    let linear = volume as f64 / f64::from(Volume::NORM.as_u32());
    (linear * linear * linear) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volumes(of: &[u32]) -> ChannelVolume {
        let mut volumes = ChannelVolume::empty();
        of.iter().for_each(|volume| volumes.push(Volume::from_u32_clamped(*volume)));
        volumes
    }

    fn gains_of(of: &[u32], muted: bool, program: &str, device: &str) -> [f32; 2] {
        let [program, device] = [program, device].map(|map| map.parse().expect("a map"));
        let gains = gains(&volumes(of), muted, &program, &device);
        [gains.of(0), gains.of(1)]
    }

    #[test]
    fn a_volume_is_the_cube_root_of_its_gain() {
        assert_eq!(gains_of(&[0x10000, 0x8000], false, "stereo", "stereo"), [1.0, 0.125]);
        assert_eq!(gains_of(&[0, 0x20000], false, "stereo", "stereo"), [0.0, 8.0]);
        assert_eq!(gains_of(&[u32::MAX; 2], false, "stereo", "stereo"), [MAX_GAIN; 2]);
        assert_eq!(gains_of(&[0x10000; 2], true, "stereo", "stereo"), [0.0; 2]);
    }

    #[test]
    fn every_volume_of_a_sinks_channels_is_reported_as_it_was_set() {
        for volume in 0..=0x20000 {
            let asked = volumes(&[volume, 0x20000 - volume, 0]);
            let set = device_gains(&asked).expect("gains");
            assert_eq!(device_volumes(&set, 3), asked);
        }
        assert_eq!(device_gains(&volumes(&[])), None);
    }

    #[test]
    fn volumes_go_by_position_and_else_by_their_mean() {
        let reversed = "front-right,front-left";
        assert_eq!(gains_of(&[0x10000, 0x8000], false, reversed, "stereo"), [0.125, 1.0]);
        assert_eq!(gains_of(&[0x8000], false, "mono", "stereo"), [0.125; 2]);
        assert_eq!(gains_of(&[0, 0x10000], false, "aux0,aux1", "stereo"), [0.125; 2]);
    }
}
