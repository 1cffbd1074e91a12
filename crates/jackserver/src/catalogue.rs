//! Which parameters there are: those that `jackd` of this release takes on its command line, by the names and letters of
//! JACK2's. What JACK2 has besides and a server of ours ignores is not here.

use crate::parameter::{Constraint, Parameter};
use crate::value::Value;

/// Smallest and largest.
fn range(least: u32, most: u32) -> Option<Constraint> {
    Some(Constraint::Range(Value::UInt(least), Value::UInt(most)))
}

fn letters(letters: &[(char, &str)]) -> Option<Constraint> {
    let value = |(letter, words): &(char, &str)| {
        (Value::Char(*letter), std::ffi::CString::new(*words).unwrap_or_default())
    };
    Some(Constraint::OneOf(letters.iter().map(value).collect()))
}

fn flag(id: char, name: &str, default: bool, description: &str) -> Parameter {
    Parameter::new(id, name, Value::Bool(default), description, None)
}

fn number(id: char, name: &str, default: u32, description: &str, least: u32, most: u32) -> Parameter {
    Parameter::new(id, name, Value::UInt(default), description, range(least, most))
}

fn text(id: char, name: &str, default: &str, description: &str) -> Parameter {
    Parameter::new(id, name, Value::Text(default.into()), description, None)
}

/// The server's own.
pub fn server() -> Vec<Parameter> {
    let priorities = Some(Constraint::Range(Value::Int(1), Value::Int(98)));
    let timeouts = Some(Constraint::Range(Value::Int(0), Value::Int(i32::MAX)));
    let modes = letters(&[
        (' ', "A client may connect its own ports"),
        ('E', "Refuse connections of its own ports with other clients' ports"),
        ('e', "Ignore connections of its own ports with other clients' ports"),
        ('A', "Refuse all connections of its own ports"),
        ('a', "Ignore all connections of its own ports"),
    ]);
    vec![
        text('n', "name", "", "Server name"),
        flag('R', "realtime", true, "Whether to use real-time scheduling"),
        Parameter::new(
            'P',
            "realtime-priority",
            Value::Int(10),
            "SCHED_FIFO priority of the driver",
            priorities,
        ),
        flag('T', "temporary", false, "End when the last client has left"),
        flag('v', "verbose", false, "Say more"),
        Parameter::new(
            't',
            "client-timeout",
            Value::Int(0),
            "How long a client may be late, in ms",
            timeouts,
        ),
        number('p', "port-max", 2048, "How many ports there can be", 16, 1 << 20),
        flag('S', "sync", false, "Play what was computed in the same cycle"),
        Parameter::new(
            'a',
            "self-connect-mode",
            Value::Char(' '),
            "What a client may do with its own ports",
            modes,
        ),
    ]
}

fn rate() -> Parameter {
    number('r', "rate", 48_000, "Sample rate in Hz", 1_000, 768_000)
}

fn period() -> Parameter {
    number('p', "period", 1024, "Frames per cycle", 1, 8192)
}

fn monitor() -> Parameter {
    flag('m', "monitor", false, "A port for each playback port that hears the same")
}

/// The drivers, each with its parameters.
pub fn drivers() -> [(&'static str, Vec<Parameter>); 4] {
    [("alsa", alsa()), ("dummy", dummy()), ("file", file()), (SLAVE, Vec::new())]
}

/// The only driver that starts no cycles: all raw MIDI devices, beside the ports of the one that does.
pub const SLAVE: &str = "alsarawmidi";

fn alsa() -> Vec<Parameter> {
    let channels = 1024;
    let dither = letters(&[
        ('n', "No dithering"),
        ('r', "Rectangular dithering"),
        ('s', "Shaped dithering"),
        ('t', "Triangular dithering"),
    ]);
    vec![
        text('d', "device", "", "The sound card, as ALSA calls it; empty: the most sensible one"),
        text('C', "capture", "", "Capture from this card, or from the device alone"),
        text('P', "playback", "", "Play on this card, or on the device alone"),
        rate(),
        period(),
        number('n', "nperiods", 2, "Cycles that wait in the card", 2, 1024),
        flag('H', "hwmon", false, "Monitor capture ports through the card's own paths, if it has them"),
        flag('D', "duplex", true, "Capture and play"),
        monitor(),
        flag('s', "softmode", false, "Recover from xruns without reporting them"),
        Parameter::new('z', "dither", Value::Char('n'), "Rounding of 16 bits", dither),
        number('i', "inchannels", 0, "Capture ports; 0: as many as the card has", 0, channels),
        number('o', "outchannels", 0, "Playback ports; 0: as many as the card has", 0, channels),
        flag('S', "shorts", false, "Prefer 16 bits"),
        number('I', "input-latency", 0, "Frames of capturing that the card does not tell of", 0, 1 << 20),
        number('O', "output-latency", 0, "Frames of playing that the card does not tell of", 0, 1 << 20),
    ]
}

fn dummy() -> Vec<Parameter> {
    let channels = 8192;
    vec![
        number('C', "capture", 2, "Capture ports", 0, channels),
        number('P', "playback", 2, "Playback ports", 0, channels),
        rate(),
        period(),
        monitor(),
    ]
}

fn file() -> Vec<Parameter> {
    vec![
        text('i', "input", "", "The sound file that the capture ports play"),
        text('o', "output", "", "The sound file into which the playback ports are recorded"),
        number('P', "playback", 2, "Playback ports; unless it is set, as many as the input has", 0, 8192),
        rate(),
        period(),
        flag('f', "fast", false, "As fast as the clients can, not in real time"),
        monitor(),
    ]
}

/// The plug-ins, each with its parameters.
pub fn internals() -> [(&'static str, Vec<Parameter>); 1] {
    let profiler = vec![
        flag('c', "cpu-load", false, "Send the DSP load"),
        flag(
            'p',
            "driver-period",
            false,
            "Send by how much each cycle is longer or shorter than it should be",
        ),
        flag('e', "driver-end-time", false, "Send when the driver has done its part of a cycle"),
    ];
    [("profiler", profiler)]
}
