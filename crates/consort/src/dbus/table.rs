//! The parameters that there are, named as in jackdbus, and the options of `jackd` that they become.

use std::ops::RangeInclusive;

use proto::limits::{PORT_MAX, QUANTUM_FRAMES, REALTIME_PRIORITY, SAMPLE_RATE_HZ};

use crate::command::run::{DEFAULT_PORT_MAX, DEFAULT_QUANTUM, DEFAULT_REALTIME_PRIORITY};

/// A value as it lies in a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fixed {
    Bool(bool),
    Char(u8),
    Signed(i32),
    Unsigned(u32),
    Text(&'static str),
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Constraint {
    Any,
    /// From, to.
    Range(i64, i64),
    /// Nothing but these, each with what it means.
    OneOf(&'static [(Fixed, &'static str)]),
    /// A name that a server can have.
    ServerName,
    /// Names of drivers that can be slave drivers, with commas between them.
    Slaves,
}

/// What `jackd` is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Words {
    /// Nothing: it has no effect here, or not by jackd's options.
    None,
    /// This, if it is true.
    IfTrue(&'static str),
    /// This, if it is false.
    IfFalse(&'static str),
    /// This, and then the value.
    Valued(&'static str),
    /// What follows is the driver's.
    Driver,
}

/// A parameter.
#[derive(Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// More, if there is more to say.
    pub(super) description: &'static str,
    pub(super) default: Fixed,
    pub(super) constraint: Constraint,
    pub(super) words: Words,
}

/// A driver.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
}

use Constraint::{Any, OneOf, Range, ServerName, Slaves};
use Fixed::{Bool, Char, Signed, Text, Unsigned};
use Words::{IfFalse, IfTrue, Valued};

const fn parameter(
    name: &'static str,
    summary: &'static str,
    default: Fixed,
    constraint: Constraint,
    words: Words,
) -> Parameter {
    Parameter { name, summary, description: summary, default, constraint, words }
}

const fn between(range: RangeInclusive<u32>) -> Constraint {
    Range(*range.start() as i64, *range.end() as i64)
}

const NO_EFFECT: &str = "Accepted, and without effect here";

/// A parameter that jackdbus has and that means nothing here.
const fn ignored(name: &'static str, default: Fixed) -> Parameter {
    parameter(name, NO_EFFECT, default, Any, Words::None)
}

const PORTS: Constraint = Range(0, 1 << 19);
const RATE: Parameter =
    parameter("rate", "Sample rate in Hz", Unsigned(48_000), between(SAMPLE_RATE_HZ), Valued("-r"));
const MONITOR: Parameter =
    parameter("monitor", "A port for each playback port that hears the same", Bool(false), Any, IfTrue("-m"));
const PERIOD: Parameter =
    parameter("period", "Frames per cycle", Unsigned(DEFAULT_QUANTUM), between(QUANTUM_FRAMES), Valued("-p"));

/// Of the server.
pub(super) const ENGINE: &[Parameter] = &[
    parameter(DRIVER, "What starts cycles", Text("dummy"), OneOf(DRIVER_NAMES), Words::Driver),
    parameter(SERVER, "The server's name", Text("default"), ServerName, Valued("-n")),
    parameter("realtime", "Real-time scheduling", Bool(true), Any, IfFalse("-r")),
    parameter(
        "realtime-priority",
        "SCHED_FIFO priority of the driver",
        Signed(DEFAULT_REALTIME_PRIORITY as i32),
        between(REALTIME_PRIORITY),
        Valued("-P"),
    ),
    parameter("temporary", "End when the last client has left", Bool(false), Any, IfTrue("-T")),
    parameter("verbose", "Say more on standard error", Bool(false), Any, IfTrue("-v")),
    parameter(
        "client-timeout",
        "How long a client may be late before it is left out, in ms; 0: three quanta, and 20 at least",
        Signed(0),
        Range(0, i32::MAX as i64),
        Valued("-t"),
    ),
    ignored("clock-source", Unsigned(0)),
    parameter(
        "port-max",
        "How many ports there can be",
        Unsigned(DEFAULT_PORT_MAX),
        between(PORT_MAX),
        Valued("-p"),
    ),
    ignored("replace-registry", Bool(false)),
    parameter("sync", "Play what was computed in the same cycle", Bool(false), Any, IfTrue("-S")),
    parameter(
        "self-connect-mode",
        "What a client may do with its own ports",
        Char(b' '),
        OneOf(&[
            (Char(b' '), "Connect them"),
            (Char(b'E'), "Refuse connections to other clients' ports"),
            (Char(b'e'), "Pretend connections to other clients' ports"),
            (Char(b'A'), "Refuse all"),
            (Char(b'a'), "Pretend all"),
        ]),
        Valued("-a"),
    ),
    parameter(
        SLAVES,
        "Devices beside the driver's own, with commas between them: alsa (a card, resampled), alsarawmidi (MIDI hardware), \
         seq (MIDI through ALSA's sequencer)",
        Text(""),
        Slaves,
        Words::None,
    ),
];

/// Name of the parameter that says which driver it is.
pub(super) const DRIVER: &str = "driver";
/// Name of the parameter that says which devices there are beside the driver's own.
pub(super) const SLAVES: &str = "slave-drivers";
/// Name of the parameter that says which server it is.
pub(super) const SERVER: &str = "name";

const DRIVER_NAMES: &[(Fixed, &str)] = &[(Text("dummy"), "dummy"), (Text("alsa"), "alsa")];

/// Of the drivers.
pub(super) const DRIVERS: &[Driver] = &[
    Driver {
        name: "dummy",
        parameters: &[
            parameter("capture", "Capture ports", Unsigned(2), PORTS, Valued("-C")),
            parameter("playback", "Playback ports", Unsigned(2), PORTS, Valued("-P")),
            RATE,
            MONITOR,
            PERIOD,
            ignored("wait", Unsigned(21_333)),
        ],
    },
    Driver {
        name: "alsa",
        parameters: &[
            parameter("device", "The sound card, as ALSA calls it", Text("hw:0"), Any, Valued("-d")),
            parameter("capture", "Capture only, or from another card", Text("none"), Any, Valued("-C")),
            parameter("playback", "Play only, or on another card", Text("none"), Any, Valued("-P")),
            RATE,
            PERIOD,
            parameter("nperiods", "Cycles that wait in the card", Unsigned(2), Range(2, 1024), Valued("-n")),
            parameter(
                "hwmon",
                "Monitor capture ports through the card's own paths, if it has them",
                Bool(false),
                Any,
                IfTrue("-H"),
            ),
            ignored("hwmeter", Bool(false)),
            parameter("duplex", "Capture and play", Bool(true), Any, IfTrue("-D")),
            parameter(
                "softmode",
                "Recover from xruns without reporting them",
                Bool(false),
                Any,
                IfTrue("-s"),
            ),
            MONITOR,
            parameter(
                "dither",
                "Rounding of 16 bits",
                Char(b'n'),
                OneOf(&[
                    (Char(b'n'), "none"),
                    (Char(b'r'), "rectangular"),
                    (Char(b's'), "shaped"),
                    (Char(b't'), "triangular"),
                ]),
                Valued("-z"),
            ),
            parameter(
                "inchannels",
                "Capture ports; 0: as many as the card has",
                Unsigned(0),
                PORTS,
                Valued("-i"),
            ),
            parameter(
                "outchannels",
                "Playback ports; 0: as many as the card has",
                Unsigned(0),
                PORTS,
                Valued("-o"),
            ),
            parameter("shorts", "Prefer 16 bits", Bool(false), Any, IfTrue("-S")),
            parameter(
                "input-latency",
                "Frames that capturing takes and the card does not tell of",
                Unsigned(0),
                Range(0, 1 << 20),
                Valued("-I"),
            ),
            parameter(
                "output-latency",
                "Frames that playing takes and the card does not tell of",
                Unsigned(0),
                Range(0, 1 << 20),
                Valued("-O"),
            ),
            ignored("midi-driver", Text("none")),
        ],
    },
    // Only as a slave driver.
    Driver { name: "alsarawmidi", parameters: &[] },
];
