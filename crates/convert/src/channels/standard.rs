//! The maps that file formats and interfaces imply by a number of channels.

use std::array;

use super::ChannelMap;
use super::ChannelPosition as P;
use super::position::AUX_POSITIONS;
use crate::MAX_CHANNELS;

/// Who defines which channel is which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standard {
    /// AIFF files, and RTP (RFC 3551). PulseAudio's default for programs without a map.
    Aiff,
    /// ALSA's devices of 1, 2, 4, 5, 6 and 8 channels.
    Alsa,
    /// No positions: `aux0`, `aux1` and so on.
    Aux,
    /// WAVE files (`WAVEFORMATEXTENSIBLE`).
    WaveEx,
    /// The Open Sound System.
    Oss,
}

impl Standard {
    /// Every standard, in PulseAudio's order.
    pub const ALL: [Self; 5] = [Self::Aiff, Self::Alsa, Self::Aux, Self::WaveEx, Self::Oss];
}

const ALSA: [P; 8] = [
    P::FrontLeft,
    P::FrontRight,
    P::RearLeft,
    P::RearRight,
    P::FrontCenter,
    P::Lfe,
    P::SideLeft,
    P::SideRight,
];

const WAVE_EX: [P; 18] = [
    P::FrontLeft,
    P::FrontRight,
    P::FrontCenter,
    P::Lfe,
    P::RearLeft,
    P::RearRight,
    P::FrontLeftOfCenter,
    P::FrontRightOfCenter,
    P::RearCenter,
    P::SideLeft,
    P::SideRight,
    P::TopCenter,
    P::TopFrontLeft,
    P::TopFrontCenter,
    P::TopFrontRight,
    P::TopRearLeft,
    P::TopRearCenter,
    P::TopRearRight,
];

const OSS: [P; 8] = [
    P::FrontLeft,
    P::FrontRight,
    P::FrontCenter,
    P::Lfe,
    P::SideLeft,
    P::SideRight,
    P::RearLeft,
    P::RearRight,
];

const AIFF_4: [P; 4] = [P::FrontLeft, P::FrontCenter, P::FrontRight, P::RearCenter];
const AIFF_5: [P; 5] = [P::FrontLeft, P::FrontRight, P::FrontCenter, P::RearLeft, P::RearRight];
const AIFF_6: [P; 6] = [
    P::FrontLeft,
    P::FrontLeftOfCenter,
    P::FrontCenter,
    P::FrontRight,
    P::FrontRightOfCenter,
    P::RearCenter,
];

impl ChannelMap {
    /// Returns the map that a standard has for a number of channels.
    #[must_use]
    pub fn standard(standard: Standard, channels: usize) -> Option<Self> {
        let auxiliary: [P; MAX_CHANNELS] = array::from_fn(|number| P::Aux(number as u8));
        let positions: &[P] = match (standard, channels) {
            (Standard::Aux, _) => auxiliary.get(..channels)?,
            (_, 1) => &[P::Mono],
            (Standard::Alsa, 2 | 4 | 5 | 6 | 8) => &ALSA[..channels],
            (Standard::WaveEx, 2 | 3 | 4 | 6 | 8 | 9 | 11 | 12 | 15 | 18) => &WAVE_EX[..channels],
            (Standard::Oss, 2 | 3 | 4 | 6 | 8) => &OSS[..channels],
            (Standard::Aiff, 2 | 3) => &AIFF_5[..channels],
            (Standard::Aiff, 4) => &AIFF_4,
            (Standard::Aiff, 5) => &AIFF_5,
            (Standard::Aiff, 6) => &AIFF_6,
            _ => return None,
        };
        Self::new(positions).ok()
    }

    /// Returns the map that a standard has for the largest number of channels up to `channels`,
    /// with auxiliary positions after it; `None` if that is no possible number of channels.
    #[must_use]
    pub fn extended(standard: Standard, channels: usize) -> Option<Self> {
        let largest = (1..=channels.min(MAX_CHANNELS))
            .rev()
            .find_map(|count| Self::standard(standard, count))?;
        let mut positions = largest.positions().to_vec();
        positions.extend((0..AUX_POSITIONS).map(P::Aux));
        Self::new(positions.get(..channels)?).ok()
    }
}
