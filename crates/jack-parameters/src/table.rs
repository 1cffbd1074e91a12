//! The table.

use std::ops::RangeInclusive;

use proto::defaults;
use proto::limits::{
    CHANNELS, EXTRA_LATENCY_FRAMES, PERIODS, PORT_MAX, QUANTUM_FRAMES, REALTIME_PRIORITY,
    SAMPLE_RATE_HZ,
};

use crate::parameter::Constraint::{self, Any, OneOf, Range};
use crate::parameter::Effect::{IfFalse, IfTrue, Ignored, OptionallyValued, Valued};
use crate::parameter::Parameter;
use crate::value::Value::{self, Bool, Char, Int, UInt};

/// Name of the parameter that is the server's name. Its default depends on the environment.
pub const SERVER_NAME: &str = "name";

type Values = [(Value, &'static str)];

static SELF_CONNECT_MODES: &Values = &[
    (Char(' '), "Allow a client to connect its own ports"),
    (Char('E'), "Refuse connections of its own ports to other clients' ports"),
    (Char('e'), "Ignore connections of its own ports to other clients' ports"),
    (Char('A'), "Refuse all connections of its own ports"),
    (Char('a'), "Ignore all connections of its own ports"),
];

static DITHERS: &Values = &[
    (Char('n'), "none"),
    (Char('r'), "rectangular"),
    (Char('s'), "shaped"),
    (Char('t'), "triangular"),
];

static MIDI_DRIVERS: &Values =
    &[(Value::fixed("none"), "none"), (Value::fixed("seq"), "seq"), (Value::fixed("raw"), "raw")];

const NO_METERS: &str = "JACK has no function that reads meters in the card";
const NO_WAIT: &str = "a cycle is due when its samples have passed";
const ONE_CLOCK: &str = "the clock is always CLOCK_MONOTONIC";
const NO_REGISTRY: &str = "there is no registry of servers to replace";

const fn between(range: RangeInclusive<u32>) -> Constraint {
    Range(*range.start() as i64, *range.end() as i64)
}

/// A parameter whose long option has its name.
macro_rules! parameter {
    ($letter:literal, $name:literal, $value_name:literal, $default:expr, $constraint:expr,
     $effect:expr, $text:expr) => {
        Parameter {
            letter: Some($letter),
            name: $name,
            long: &[$name],
            value_name: $value_name,
            default: $default,
            is_derived: false,
            constraint: $constraint,
            effect: $effect,
            text: $text,
        }
    };
}

/// Parameters of the server.
pub static SERVER: &[Parameter] = &[
    parameter!(
        'n',
        "name",
        "NAME",
        Value::fixed(""),
        Any,
        Valued,
        "Name of the server; without one, $JACK_DEFAULT_SERVER or 'default'"
    ),
    parameter!('R', "realtime", "", Bool(true), Any, IfFalse, "Use real-time scheduling"),
    parameter!(
        'P',
        "realtime-priority",
        "N",
        Int(defaults::REALTIME_PRIORITY as i32),
        between(REALTIME_PRIORITY),
        Valued,
        "SCHED_FIFO priority of the driver"
    ),
    parameter!('T', "temporary", "", Bool(false), Any, IfTrue, "End when the last client has left"),
    parameter!('v', "verbose", "", Bool(false), Any, IfTrue, "Print more on standard error"),
    Parameter {
        letter: Some('t'),
        name: "client-timeout",
        long: &["timeout"],
        value_name: "MS",
        default: Int(0),
        is_derived: false,
        constraint: Range(0, i32::MAX as i64),
        effect: Valued,
        text: "How long a client may be late before it is left out, in ms; 0: 3 quanta, at least 20 ms",
    },
    Parameter {
        letter: Some('c'),
        name: "clock-source",
        long: &["clocksource", "clock-source"],
        value_name: "X",
        default: UInt(0),
        is_derived: false,
        constraint: Any,
        effect: Ignored(true, ONE_CLOCK),
        text: "No effect: the clock is always CLOCK_MONOTONIC",
    },
    parameter!(
        'p',
        "port-max",
        "N",
        UInt(defaults::PORT_MAX),
        between(PORT_MAX),
        Valued,
        "Number of ports that the server has room for"
    ),
    Parameter {
        letter: None,
        name: "replace-registry",
        long: &["replace-registry"],
        value_name: "",
        default: Bool(false),
        is_derived: false,
        constraint: Any,
        effect: Ignored(false, NO_REGISTRY),
        text: "No effect: there is no registry of servers to replace",
    },
    parameter!(
        'S',
        "sync",
        "",
        Bool(false),
        Any,
        IfTrue,
        "Play the result of each cycle in the same cycle: one quantum less latency"
    ),
    Parameter {
        letter: Some('a'),
        name: "self-connect-mode",
        long: &["autoconnect"],
        value_name: "MODE",
        default: Char(' '),
        is_derived: false,
        constraint: OneOf(SELF_CONNECT_MODES),
        effect: Valued,
        text: "Connections that a client makes to its own ports: ' ' allow, E refuse or e ignore them \
               with other clients' ports, A refuse or a ignore all",
    },
];

const fn rate(text: &'static str, is_derived: bool) -> Parameter {
    Parameter {
        letter: Some('r'),
        name: "rate",
        long: &["rate"],
        value_name: "HZ",
        default: UInt(defaults::SAMPLE_RATE_HZ),
        is_derived,
        constraint: between(SAMPLE_RATE_HZ),
        effect: Valued,
        text,
    }
}

const RATE: Parameter = rate("Sample rate in Hz", false);

const PERIOD: Parameter = parameter!(
    'p',
    "period",
    "N",
    UInt(defaults::QUANTUM_FRAMES),
    between(QUANTUM_FRAMES),
    Valued,
    "Frames per cycle"
);

const MONITOR: Parameter = parameter!(
    'm',
    "monitor",
    "",
    Bool(false),
    Any,
    IfTrue,
    "Add a capture port monitor_N for each playback port, with the same samples"
);

/// Returns a number of ports or frames.
const fn number(
    letter: char,
    name: &'static str,
    long: &'static [&'static str],
    default: u32,
    range: RangeInclusive<u32>,
    text: &'static str,
) -> Parameter {
    Parameter {
        letter: Some(letter),
        name,
        long,
        value_name: "N",
        default: UInt(default),
        is_derived: false,
        constraint: between(range),
        effect: Valued,
        text,
    }
}

/// Parameters of the driver `dummy`, also called `timer`.
pub static DUMMY: &[Parameter] = &[
    number('C', "capture", &["capture"], defaults::CHANNELS, CHANNELS, "Capture ports"),
    number('P', "playback", &["playback"], defaults::CHANNELS, CHANNELS, "Playback ports"),
    RATE,
    MONITOR,
    PERIOD,
    parameter!(
        'w',
        "wait",
        "USECS",
        UInt(21_333),
        Any,
        Ignored(true, NO_WAIT),
        "No effect: a cycle is due when its samples have passed"
    ),
];

/// Parameters of the driver `alsa`.
pub static ALSA: &[Parameter] = &[
    parameter!(
        'd',
        "device",
        "NAME",
        Value::fixed(""),
        Any,
        Valued,
        "Name of the sound card in ALSA; without one, the most suitable card"
    ),
    parameter!(
        'C',
        "capture",
        "[NAME]",
        Value::fixed("none"),
        Any,
        OptionallyValued,
        "Capture only, or capture from this card"
    ),
    parameter!(
        'P',
        "playback",
        "[NAME]",
        Value::fixed("none"),
        Any,
        OptionallyValued,
        "Play only, or play on this card"
    ),
    RATE,
    PERIOD,
    number(
        'n',
        "nperiods",
        &["nperiods"],
        defaults::PERIODS,
        PERIODS,
        "Quanta buffered in the card",
    ),
    parameter!(
        'H',
        "hwmon",
        "",
        Bool(false),
        Any,
        IfTrue,
        "While a client monitors a capture port, route it through the card to the output of the same \
         number, if the card can"
    ),
    parameter!(
        'M',
        "hwmeter",
        "",
        Bool(false),
        Any,
        Ignored(false, NO_METERS),
        "No effect: JACK has no function that reads meters in the card"
    ),
    parameter!('D', "duplex", "", Bool(true), Any, IfTrue, "Capture and play"),
    parameter!(
        's',
        "softmode",
        "",
        Bool(false),
        Any,
        IfTrue,
        "Recover from xruns without reporting them"
    ),
    MONITOR,
    parameter!(
        'z',
        "dither",
        "KIND",
        Char('n'),
        OneOf(DITHERS),
        Valued,
        "Dither of 16-bit samples: none, rectangular, shaped, triangular (or n, r, s, t)"
    ),
    number(
        'i',
        "inchannels",
        &["inchannels"],
        0,
        CHANNELS,
        "Capture ports; 0: one for each channel of the card",
    ),
    number(
        'o',
        "outchannels",
        &["outchannels"],
        0,
        CHANNELS,
        "Playback ports; 0: one for each channel of the card",
    ),
    parameter!('S', "shorts", "", Bool(false), Any, IfTrue, "Prefer 16-bit samples"),
    number(
        'I',
        "input-latency",
        &["input-latency"],
        0,
        EXTRA_LATENCY_FRAMES,
        "Capture latency in frames that the card does not report",
    ),
    number(
        'O',
        "output-latency",
        &["output-latency"],
        0,
        EXTRA_LATENCY_FRAMES,
        "Playback latency in frames that the card does not report",
    ),
    parameter!(
        'X',
        "midi-driver",
        "KIND",
        Value::fixed("none"),
        OneOf(MIDI_DRIVERS),
        Valued,
        "MIDI ports: seq (ALSA's sequencer: hardware and programs), raw (the hardware itself, which no \
         other program can then use), or none"
    ),
];

/// Parameters of the driver `file`.
pub static FILE: &[Parameter] = &[
    parameter!(
        'i',
        "input",
        "FILE",
        Value::fixed(""),
        Any,
        Valued,
        "Sound file that the capture ports play"
    ),
    parameter!(
        'o',
        "output",
        "FILE",
        Value::fixed(""),
        Any,
        Valued,
        "Sound file into which the playback ports are recorded"
    ),
    Parameter {
        letter: Some('P'),
        name: "playback",
        long: &["playback"],
        value_name: "N",
        default: UInt(defaults::CHANNELS),
        is_derived: true,
        constraint: between(CHANNELS),
        effect: Valued,
        text: "Playback ports; unless it is set, one for each channel of the input",
    },
    rate("Sample rate in Hz; unless it is set, the input's", true),
    PERIOD,
    parameter!(
        'f',
        "fast",
        "",
        Bool(false),
        Any,
        IfTrue,
        "Run as fast as the clients can, not in real time"
    ),
    MONITOR,
];

/// Parameters of the plug-in `profiler`.
pub static PROFILER: &[Parameter] = &[
    parameter!('c', "cpu-load", "", Bool(false), Any, IfTrue, "Send the DSP load"),
    parameter!(
        'p',
        "driver-period",
        "",
        Bool(false),
        Any,
        IfTrue,
        "Send by how much each cycle is longer or shorter than its nominal length"
    ),
    parameter!(
        'e',
        "driver-end-time",
        "",
        Bool(false),
        Any,
        IfTrue,
        "Send when the driver finished its part of the cycle"
    ),
];

/// JACK2's driver of raw MIDI devices. It starts no cycles and has no parameters.
pub const RAW_MIDI: &str = "alsarawmidi";

/// Kinds of access to MIDI hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MidiHardware {
    /// All ports of ALSA's sequencer.
    Sequencer,
    /// All raw devices.
    Raw,
}

/// Returns the MIDI hardware that a driver of JACK2 or JACK1 stands for.
#[must_use]
pub fn midi_hardware(driver: &str) -> Option<MidiHardware> {
    match driver {
        "seq" | "alsa_midi" => Some(MidiHardware::Sequencer),
        "raw" | RAW_MIDI => Some(MidiHardware::Raw),
        _ => None,
    }
}

/// Returns whether a driver can be a slave driver: a device in addition to the server's own.
#[must_use]
pub fn is_slave(driver: &str) -> bool {
    driver == "alsa" || midi_hardware(driver).is_some()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::parameter::Effect;

    const ALL: [&[Parameter]; 5] = [SERVER, DUMMY, ALSA, FILE, PROFILER];

    #[test]
    fn every_default_is_an_allowed_value() {
        for parameter in ALL.into_iter().flatten() {
            assert_eq!(parameter.constraint.check(&parameter.default), Ok(()), "{parameter:?}");
        }
    }

    #[test]
    fn letters_and_names_are_unique_within_a_part() {
        for part in ALL {
            let names: HashSet<_> = part.iter().map(|parameter| parameter.name).collect();
            let letters: HashSet<_> = part.iter().map(|parameter| parameter.letter).collect();
            assert_eq!((names.len(), letters.len()), (part.len(), part.len()));
        }
    }

    #[test]
    fn every_parameter_that_takes_a_value_names_it_in_the_help() {
        for parameter in ALL.into_iter().flatten() {
            let takes_value = matches!(
                parameter.effect,
                Effect::Valued | Effect::OptionallyValued | Effect::Ignored(true, _)
            );
            assert_eq!(takes_value, !parameter.value_name.is_empty(), "{parameter:?}");
        }
    }
}
