//! How a new stream begins, and why.

use std::fmt;

use crate::identity::Identity;
use crate::known::Role;
use crate::memory::{Memory, Volumes};
use crate::rules::Rules;

/// What the program of a new stream has asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// It has named a device.
    pub names_device: bool,
    /// It has stated a volume.
    pub states_volume: bool,
    /// It has stated whether it is muted.
    pub states_mute: bool,
}

/// A value, and why it is that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided<T, R> {
    /// `None`: what the program has asked for, or the default.
    pub value: Option<T>,
    /// Why.
    pub reason: R,
}

/// Why a stream is on its device. The sentences begin with what they are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceReason {
    /// A rule says so.
    Rule {
        /// The number of its line.
        line: usize,
    },
    /// A rule names a device that is not there.
    RuleInVain {
        /// The number of its line.
        line: usize,
        /// The device.
        device: String,
    },
    /// Its program has named it.
    Program,
    /// A user has moved a stream of the same name to it before.
    Remembered,
    /// The same, and that device is not there.
    RememberedInVain {
        /// The device.
        device: String,
    },
    /// Nobody has chosen another, and it comes first of those that are there.
    Routed {
        /// For this role.
        role: Role,
    },
    /// It came first when the stream was routed, which it is not any more, or cannot be.
    WasRouted,
    /// Nobody has chosen another.
    Default,
    /// Somebody has moved it.
    Moved,
    /// Its device has gone.
    DeviceGone {
        /// The device.
        device: String,
    },
    /// Its device has come back.
    DeviceCame,
}

impl DeviceReason {
    /// Returns whether the stream may go to the device that comes first for its role: nobody has
    /// chosen the one where it is.
    #[must_use]
    pub fn lets_route(&self) -> bool {
        match self {
            Self::Rule { .. }
            | Self::Program
            | Self::Remembered
            | Self::Moved
            | Self::DeviceCame => false,
            Self::RuleInVain { .. }
            | Self::RememberedInVain { .. }
            | Self::Routed { .. }
            | Self::WasRouted
            | Self::Default
            | Self::DeviceGone { .. } => true,
        }
    }
}

/// Why a stream has its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeReason {
    /// A rule says so.
    Rule {
        /// The number of its line.
        line: usize,
    },
    /// Its program has stated it at the beginning.
    Program,
    /// A stream of the same name had it.
    Remembered,
    /// Nobody has stated another.
    Default,
    /// Somebody has changed it while it played: a mixer, or its program.
    Changed,
    /// It was changed for all streams of its name.
    ChangedForAll,
}

/// Why a stream is muted, or not: for the same reasons.
pub type MuteReason = VolumeReason;

/// How a stream begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The name of its device.
    pub device: Decided<String, DeviceReason>,
    /// Its volume.
    pub volume: Decided<Volumes, VolumeReason>,
    /// Whether it is muted.
    pub muted: Decided<bool, MuteReason>,
    /// Whether it may be moved, if a rule says so: else its program decides.
    pub may_move: Option<bool>,
}

/// Decides how a stream begins; `is_there` says whether there is a device of a name.
///
/// A rule comes first, then what the program has asked for, then what was remembered, and then the
/// device that comes first for a role, `routed`, as with PulseAudio. A device that is not there
/// does not keep a stream from being heard.
#[must_use]
pub fn start(
    stream: &Identity,
    asked: Asked,
    rules: &Rules,
    memory: &Memory,
    routed: Option<(&str, Role)>,
    is_there: impl Fn(&str) -> bool,
) -> Start {
    let entry = memory.stream(&stream.key()).cloned().unwrap_or_default();
    let level = |line: Option<usize>, is_stated: bool, is_remembered: bool| match line {
        Some(line) => VolumeReason::Rule { line },
        None if is_stated => VolumeReason::Program,
        None if is_remembered => VolumeReason::Remembered,
        None => VolumeReason::Default,
    };
    let rule = rules.volume(stream);
    let reason = level(rule.map(|(_, line)| line), asked.states_volume, entry.volume.is_some());
    let volume = match reason {
        // Of every position the same.
        VolumeReason::Rule { .. } => rule.map(|(volume, _)| Volumes::of([("mono", volume)])),
        VolumeReason::Remembered => entry.volume,
        _ => None,
    };
    let volume = Decided { value: volume, reason };
    let rule = rules.muted(stream);
    let reason = level(rule.map(|(_, line)| line), asked.states_mute, entry.muted.is_some());
    let muted = match reason {
        VolumeReason::Rule { .. } => rule.map(|(muted, _)| muted),
        VolumeReason::Remembered => entry.muted,
        _ => None,
    };
    let muted = Decided { value: muted, reason };
    let device = device(rules.device(stream), asked, entry.device, is_there);
    let routed = routed.filter(|_| device.value.is_none() && device.reason.lets_route());
    let device = routed.map_or(device, |(name, role)| Decided {
        value: Some(name.to_owned()),
        reason: DeviceReason::Routed { role },
    });
    let may_move = rules.moves(stream).map(|(moves, _)| moves);
    Start { device, volume, muted, may_move }
}

fn device(
    rule: Option<(&str, usize)>,
    asked: Asked,
    remembered: Option<String>,
    is_there: impl Fn(&str) -> bool,
) -> Decided<String, DeviceReason> {
    if let Some((device, line)) = rule.filter(|(device, _)| is_there(device)) {
        return Decided { value: Some(device.to_owned()), reason: DeviceReason::Rule { line } };
    }
    let reason = match remembered {
        _ if asked.names_device => DeviceReason::Program,
        Some(device) if is_there(&device) => {
            return Decided { value: Some(device), reason: DeviceReason::Remembered };
        }
        _ if rule.is_some() => {
            let (device, line) = rule.unwrap_or_default();
            DeviceReason::RuleInVain { line, device: device.to_owned() }
        }
        Some(device) => DeviceReason::RememberedInVain { device },
        None => DeviceReason::Default,
    };
    Decided { value: None, reason }
}

impl fmt::Display for DeviceReason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { line } => write!(to, "line {line} of the rules says so"),
            Self::RuleInVain { line, device } => {
                write!(to, "the default: '{device}', of line {line} of the rules, is not there")
            }
            Self::Program => to.write_str("its program has named it"),
            Self::Remembered => to.write_str("it was moved there the last time"),
            Self::RememberedInVain { device } => {
                write!(to, "the default: '{device}', where it was the last time, is not there")
            }
            Self::Routed { role } => {
                write!(to, "of the devices that are there, it comes first for {role}")
            }
            Self::WasRouted => to.write_str("it came first for its role when it was routed"),
            Self::Default => to.write_str("the default"),
            Self::Moved => to.write_str("it was moved there"),
            Self::DeviceGone { device } => write!(to, "the default: '{device}' has gone"),
            Self::DeviceCame => to.write_str("its device has come back"),
        }
    }
}

impl fmt::Display for VolumeReason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { line } => write!(to, "line {line} of the rules says so"),
            Self::Program => to.write_str("its program began with it"),
            Self::Remembered => to.write_str("as the last time"),
            Self::Default => to.write_str("the default"),
            Self::Changed => to.write_str("it was changed while the stream played"),
            Self::ChangedForAll => to.write_str("it was changed for all streams of its name"),
        }
    }
}
