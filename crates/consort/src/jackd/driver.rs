//! What follows `-d NAME`: the driver's options.

use std::ops::RangeInclusive;

use engine::DriverChoice;
use proto::limits::{QUANTUM_FRAMES, SAMPLE_RATE_HZ};

use super::alsa;
use super::options::number;
use super::words::{Found, Spec, Value, Words};
use crate::command::device::DeviceOptions;
use crate::command::run::DEFAULT_CHANNELS;
use crate::exit::UsageError;

/// What an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Capture,
    Fast,
    Help,
    Input,
    Monitor,
    Output,
    Period,
    Playback,
    Rate,
    /// Accepted, with no effect here, for this reason.
    Ignored(&'static str),
}

const fn spec(short: char, long: &'static [&'static str], value: Value, id: Id) -> Spec<Id> {
    Spec { id, short: Some(short), long, value }
}

const HELP: Spec<Id> = spec('h', &["help"], Value::None, Id::Help);
const RATE: Spec<Id> = spec('r', &["rate"], Value::Required, Id::Rate);
const PERIOD: Spec<Id> = spec('p', &["period"], Value::Required, Id::Period);
const PLAYBACK: Spec<Id> = spec('P', &["playback"], Value::Required, Id::Playback);
const MONITOR: Spec<Id> = spec('m', &["monitor"], Value::None, Id::Monitor);

pub(super) const TIMER: &[Spec<Id>] = &[
    HELP,
    RATE,
    PERIOD,
    PLAYBACK,
    MONITOR,
    spec('C', &["capture"], Value::Required, Id::Capture),
    spec('w', &["wait"], Value::Required, Id::Ignored("a cycle is due when its samples have passed")),
];

pub(super) const FILE: &[Spec<Id>] = &[
    HELP,
    RATE,
    PERIOD,
    PLAYBACK,
    spec('i', &["input"], Value::Required, Id::Input),
    spec('o', &["output"], Value::Required, Id::Output),
    spec('f', &["fast"], Value::None, Id::Fast),
    MONITOR,
];

pub(super) const TIMER_HELP: &str = "\
Options of the driver 'dummy' (also called 'timer'):
    -C, --capture N    capture ports (default: 2)
    -P, --playback N   playback ports (default: 2)
    -r, --rate HZ      sample rate (default: 48000)
    -p, --period N     frames per cycle (default: 1024)
    -m, --monitor      a port for each playback port that hears the same: monitor_1 and on
    -w, --wait USECS   no effect: a cycle is due when its samples have passed
";

pub(super) const FILE_HELP: &str = "\
Options of the driver 'file':
    -i, --input FILE   what the capture ports play
    -o, --output FILE  where the playback ports are recorded
    -P, --playback N   playback ports (default: as many as the input has channels)
    -r, --rate HZ      sample rate (default: the input's)
    -p, --period N     frames per cycle (default: 1024)
    -f, --fast         as fast as the clients can, not in real time
    -m, --monitor      a port for each playback port that hears the same: monitor_1 and on
";

/// Drivers that jackd has elsewhere.
const NOT_BUILT: [&str; 9] =
    ["coreaudio", "firewire", "freebob", "net", "netone", "oss", "portaudio", "proxy", "sun"];

/// What the driver's options ask for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// To show the options.
    Help(&'static str),
    /// To run.
    Run {
        driver: DriverChoice,
        /// Frames of a cycle.
        quantum: Option<u32>,
        /// Options without effect, one line each.
        notices: Vec<String>,
        /// Devices beside the driver's own.
        devices: Vec<DeviceOptions>,
    },
    /// A driver that exists in jackd and not here.
    NotBuilt,
}

/// Reads the options of driver `name`.
pub(super) fn read(name: &str, words: Words<'_>) -> Result<Asked, UsageError> {
    match name {
        "dummy" | "timer" => timer(words),
        "file" => file(words),
        "alsa" => alsa::read(words),
        _ if NOT_BUILT.contains(&name) => Ok(Asked::NotBuilt),
        _ => Err(UsageError(format!("there is no driver '{name}': use -d alsa, -d dummy or -d file"))),
    }
}

fn timer(mut words: Words<'_>) -> Result<Asked, UsageError> {
    let (mut capture, mut playback) = (DEFAULT_CHANNELS, DEFAULT_CHANNELS);
    let (mut sample_rate_hz, mut quantum, mut monitors) = (None, None, false);
    let mut notices = Vec::new();
    while let Some(found) = words.next(TIMER)? {
        match found.id {
            Id::Help => return Ok(Asked::Help(TIMER_HELP)),
            Id::Capture => capture = number(&found.written, value(&found), 0)?,
            Id::Playback => playback = number(&found.written, value(&found), 0)?,
            Id::Monitor => monitors = true,
            Id::Rate => sample_rate_hz = Some(number_in(&found.written, value(&found), SAMPLE_RATE_HZ)?),
            Id::Period => quantum = Some(number_in(&found.written, value(&found), QUANTUM_FRAMES)?),
            id => notices.extend(notice(id, &found.written)),
        }
    }
    let driver = DriverChoice::Timer { capture, playback, sample_rate_hz, looped: false, monitors };
    Ok(Asked::Run { driver, quantum, notices, devices: Vec::new() })
}

fn file(mut words: Words<'_>) -> Result<Asked, UsageError> {
    let (mut input, mut output, mut sample_rate_hz, mut playback) = (None, None, None, None);
    let (mut quantum, mut fast, mut monitors) = (None, false, false);
    let mut notices = Vec::new();
    while let Some(found) = words.next(FILE)? {
        match found.id {
            Id::Help => return Ok(Asked::Help(FILE_HELP)),
            Id::Input => input = Some(value(&found).into()),
            Id::Output => output = Some(value(&found).into()),
            Id::Playback => playback = Some(number(&found.written, value(&found), 0)?),
            Id::Rate => sample_rate_hz = Some(number_in(&found.written, value(&found), SAMPLE_RATE_HZ)?),
            Id::Period => quantum = Some(number_in(&found.written, value(&found), QUANTUM_FRAMES)?),
            Id::Fast => fast = true,
            Id::Monitor => monitors = true,
            id => notices.extend(notice(id, &found.written)),
        }
    }
    if input.is_none() && output.is_none() {
        return Err(UsageError("-d file needs -i FILE, -o FILE or both".into()));
    }
    let driver = DriverChoice::File { input, output, sample_rate_hz, playback, fast, monitors };
    Ok(Asked::Run { driver, quantum, notices, devices: Vec::new() })
}

fn value<'a>(found: &Found<'a, Id>) -> &'a str {
    found.value.unwrap_or_default()
}

fn notice(id: Id, written: &str) -> Option<String> {
    match id {
        Id::Ignored(reason) => Some(format!("{written} has no effect: {reason}")),
        _ => None,
    }
}

pub(super) fn number_in(written: &str, value: &str, range: RangeInclusive<u32>) -> Result<u32, UsageError> {
    match value.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(UsageError(format!(
            "{written} {value} is no number from {} to {}",
            range.start(),
            range.end()
        ))),
    }
}
