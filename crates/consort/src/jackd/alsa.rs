//! What follows `-d alsa`.

use engine::DriverChoice;
use engine::driver::{AlsaOptions, AlsaSide, Dither};
use proto::limits::{QUANTUM_FRAMES, SAMPLE_RATE_HZ};

use super::driver::{Asked, number_in};
use super::options::number;
use super::slave;
use super::words::{Found, Spec, Value, Words};
use crate::command::device::DeviceOptions;
use crate::exit::UsageError;

/// What an option means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Capture,
    CaptureChannels,
    Device,
    Dither,
    Duplex,
    HardwareMonitoring,
    Help,
    InputLatency,
    Midi,
    Monitor,
    OutputLatency,
    Period,
    Periods,
    Playback,
    PlaybackChannels,
    Rate,
    Shorts,
    Soft,
    /// Accepted, with no effect here, for this reason.
    Ignored(&'static str),
}

const fn spec(short: char, long: &'static [&'static str], value: Value, id: Id) -> Spec<Id> {
    Spec { id, short: Some(short), long, value }
}

/// Why meters in the card are of no use.
const NO_METERS: &str = "JACK has no function that reads meters in the card";

pub(super) const SPECS: &[Spec<Id>] = &[
    spec('h', &["help"], Value::None, Id::Help),
    spec('d', &["device"], Value::Required, Id::Device),
    spec('C', &["capture"], Value::Optional, Id::Capture),
    spec('P', &["playback"], Value::Optional, Id::Playback),
    spec('r', &["rate"], Value::Required, Id::Rate),
    spec('p', &["period"], Value::Required, Id::Period),
    spec('n', &["nperiods"], Value::Required, Id::Periods),
    spec('H', &["hwmon"], Value::None, Id::HardwareMonitoring),
    spec('M', &["hwmeter"], Value::None, Id::Ignored(NO_METERS)),
    spec('D', &["duplex"], Value::None, Id::Duplex),
    spec('s', &["softmode"], Value::None, Id::Soft),
    spec('m', &["monitor"], Value::None, Id::Monitor),
    spec('z', &["dither"], Value::Required, Id::Dither),
    spec('i', &["inchannels"], Value::Required, Id::CaptureChannels),
    spec('o', &["outchannels"], Value::Required, Id::PlaybackChannels),
    spec('S', &["shorts"], Value::None, Id::Shorts),
    spec('I', &["input-latency"], Value::Required, Id::InputLatency),
    spec('O', &["output-latency"], Value::Required, Id::OutputLatency),
    spec('X', &["midi-driver"], Value::Required, Id::Midi),
];

pub(super) const HELP: &str = "\
Options of the driver 'alsa':
    -d, --device NAME        the sound card, as ALSA calls it (default: the most sensible card)
    -C, --capture [NAME]     capture only, or from another card
    -P, --playback [NAME]    play only, or on another card
    -D, --duplex             capture and play (default)
    -r, --rate HZ            sample rate (default: 48000)
    -p, --period N           frames per cycle (default: 1024)
    -n, --nperiods N         cycles that wait in the card (default: 2)
    -i, --inchannels N       capture ports (default, and 0: as many as the card has)
    -o, --outchannels N      playback ports (default, and 0: as many as the card has)
    -I, --input-latency N    frames that capturing takes and the card does not tell of
    -O, --output-latency N   frames that playing takes and the card does not tell of
    -S, --shorts             prefer 16 bits
    -z, --dither KIND        rounding of 16 bits: none, rectangular, shaped, triangular (or n, r, s, t)
    -s, --softmode           recover from xruns without reporting them
    -X, --midi-driver KIND   MIDI ports: seq (ALSA's sequencer: hardware and programs), raw (the hardware itself, which
                             no other program has meanwhile), or none (default)
    -m, --monitor            a port for each playback port that hears the same: monitor_1 and on
    -H, --hwmon              while a program monitors a capture port, open the card's own path from it to the output
                             of that number, if it has one
    -M, --hwmeter            no effect: JACK has no function that reads meters in the card
";

/// What the words ask for, before it is put together.
#[derive(Debug, Default)]
struct Wanted<'a> {
    device: Option<&'a str>,
    /// `-C` was there, with this name.
    capture: Option<Option<&'a str>>,
    playback: Option<Option<&'a str>>,
    duplex: bool,
    capture_channels: u32,
    playback_channels: u32,
    input_latency: u32,
    output_latency: u32,
}

/// Reads the driver's options.
pub(super) fn read(mut words: Words<'_>) -> Result<Asked, UsageError> {
    let (mut options, mut wanted) = (AlsaOptions::default(), Wanted::default());
    let (mut quantum, mut notices, mut devices) = (None, Vec::new(), Vec::new());
    while let Some(found) = words.next(SPECS)? {
        let value = found.value.unwrap_or_default();
        match found.id {
            Id::Help => return Ok(Asked::Help(HELP)),
            Id::Device => wanted.device = Some(value),
            Id::Capture => wanted.capture = Some(named(&found)),
            Id::Playback => wanted.playback = Some(named(&found)),
            Id::Duplex => wanted.duplex = true,
            Id::CaptureChannels => wanted.capture_channels = number(&found.written, value, 0)?,
            Id::PlaybackChannels => wanted.playback_channels = number(&found.written, value, 0)?,
            Id::InputLatency => wanted.input_latency = number(&found.written, value, 0)?,
            Id::OutputLatency => wanted.output_latency = number(&found.written, value, 0)?,
            Id::Rate => options.sample_rate_hz = Some(number_in(&found.written, value, SAMPLE_RATE_HZ)?),
            Id::Period => quantum = Some(number_in(&found.written, value, QUANTUM_FRAMES)?),
            Id::Periods => options.periods = number(&found.written, value, 2)?,
            Id::Shorts => options.prefer_16_bits = true,
            Id::Dither => options.dither = dither(value)?,
            Id::Soft => options.soft = true,
            Id::Midi => devices = midi(value)?,
            Id::Monitor => options.monitors = true,
            Id::HardwareMonitoring => options.hardware_monitoring = true,
            Id::Ignored(reason) => notices.push(format!("{} has no effect: {reason}", found.written)),
        }
    }
    wanted.apply(&mut options);
    Ok(Asked::Run { driver: DriverChoice::Alsa(Box::new(options)), quantum, notices, devices })
}

/// The name after `-C` or `-P`; "none" is how some front ends write that there is no name.
fn named<'a>(found: &Found<'a, Id>) -> Option<&'a str> {
    found.value.filter(|name| !name.is_empty() && *name != "none")
}

impl Wanted<'_> {
    fn apply(self, options: &mut AlsaOptions) {
        let both = self.duplex || self.capture.is_some() == self.playback.is_some();
        let side = |asked: Option<Option<&str>>, channels: u32, extra_latency_frames| {
            (both || asked.is_some()).then(|| AlsaSide {
                device: asked.flatten().or(self.device).map(str::to_owned),
                channels: (channels != 0).then_some(channels),
                extra_latency_frames,
                required: asked.is_some(),
            })
        };
        options.capture = side(self.capture, self.capture_channels, self.input_latency);
        options.playback = side(self.playback, self.playback_channels, self.output_latency);
    }
}

/// The devices that a MIDI driver of jackd's stands for.
fn midi(value: &str) -> Result<Vec<DeviceOptions>, UsageError> {
    match value {
        "none" | "" => Ok(Vec::new()),
        name => match slave::midi(name) {
            Some(device) => Ok(vec![device]),
            None => Err(UsageError(format!("-X {value} is none of none, seq, raw"))),
        },
    }
}

fn dither(value: &str) -> Result<Dither, UsageError> {
    match value.chars().next() {
        Some('n' | '-') => Ok(Dither::None),
        Some('r') => Ok(Dither::Rectangular),
        Some('s') => Ok(Dither::Shaped),
        Some('t') => Ok(Dither::Triangular),
        _ => Err(UsageError(format!("-z {value} is none of none, rectangular, shaped, triangular"))),
    }
}
