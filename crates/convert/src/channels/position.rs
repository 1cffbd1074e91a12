//! The places of channels around a listener.

use std::fmt;

/// Where one channel belongs: the positions of PulseAudio's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the positions have no more to them than their names")]
pub enum ChannelPosition {
    /// The only channel, or all channels at once.
    Mono,
    FrontLeft,
    FrontRight,
    FrontCenter,
    RearCenter,
    RearLeft,
    RearRight,
    /// Low-frequency effects.
    Lfe,
    FrontLeftOfCenter,
    FrontRightOfCenter,
    SideLeft,
    SideRight,
    /// A channel without a place, by its number from 0 to 31.
    Aux(u8),
    TopCenter,
    TopFrontLeft,
    TopFrontRight,
    TopFrontCenter,
    TopRearLeft,
    TopRearRight,
    TopRearCenter,
}

use ChannelPosition as P;

/// Auxiliary positions, `aux0` to `aux31`.
pub(super) const AUX_POSITIONS: u8 = 32;

/// All positions but the auxiliary ones, and PulseAudio's names for them.
const NAMES: [(P, &str); 19] = [
    (P::Mono, "mono"),
    (P::FrontLeft, "front-left"),
    (P::FrontRight, "front-right"),
    (P::FrontCenter, "front-center"),
    (P::RearCenter, "rear-center"),
    (P::RearLeft, "rear-left"),
    (P::RearRight, "rear-right"),
    (P::Lfe, "lfe"),
    (P::FrontLeftOfCenter, "front-left-of-center"),
    (P::FrontRightOfCenter, "front-right-of-center"),
    (P::SideLeft, "side-left"),
    (P::SideRight, "side-right"),
    (P::TopCenter, "top-center"),
    (P::TopFrontLeft, "top-front-left"),
    (P::TopFrontRight, "top-front-right"),
    (P::TopFrontCenter, "top-front-center"),
    (P::TopRearLeft, "top-rear-left"),
    (P::TopRearRight, "top-rear-right"),
    (P::TopRearCenter, "top-rear-center"),
];

/// Other names that PulseAudio takes.
const ALIASES: [(P, &str); 4] = [
    (P::FrontLeft, "left"),
    (P::FrontRight, "right"),
    (P::FrontCenter, "center"),
    (P::Lfe, "subwoofer"),
];

/// Left, right, or between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
    Center,
}

impl ChannelPosition {
    /// Returns the position of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let plain = NAMES.iter().chain(&ALIASES).find(|(_, known)| *known == name);
        plain.map(|(position, _)| *position).or_else(|| {
            (0..AUX_POSITIONS).map(Self::Aux).find(|position| position.to_string() == name)
        })
    }

    /// Returns the side that a position is on; `None` for those that are on none.
    pub(super) fn side(self) -> Option<Side> {
        match self {
            P::FrontLeft
            | P::RearLeft
            | P::FrontLeftOfCenter
            | P::SideLeft
            | P::TopFrontLeft
            | P::TopRearLeft => Some(Side::Left),
            P::FrontRight
            | P::RearRight
            | P::FrontRightOfCenter
            | P::SideRight
            | P::TopFrontRight
            | P::TopRearRight => Some(Side::Right),
            P::FrontCenter
            | P::RearCenter
            | P::TopCenter
            | P::TopFrontCenter
            | P::TopRearCenter => Some(Side::Center),
            P::Mono | P::Lfe | P::Aux(_) => None,
        }
    }
}

impl fmt::Display for ChannelPosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Aux(number) = self {
            return write!(formatter, "aux{number}");
        }
        let name = NAMES.iter().find(|(position, _)| position == self);
        formatter.write_str(name.map_or("", |(_, name)| name))
    }
}
