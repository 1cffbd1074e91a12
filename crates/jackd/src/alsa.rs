//! The options of `-d alsa`.

use cli::UsageError;
use jack_parameters::options::OptionReader;
use jack_parameters::{ALSA, Value};
use proto::driver::{AlsaOptions, AlsaSide, Dither, DriverChoice};

use crate::driver_request::{DriverRequest, midi_device};
use crate::settings::{self, Setting, SettingReader};

/// Returns the help of the driver.
pub(crate) fn help() -> String {
    settings::help("Options of the driver 'alsa'", ALSA)
}

/// The two directions as the options ask for them.
#[derive(Debug, Default)]
struct Sides<'a> {
    device: Option<&'a str>,
    /// `-C`, and the name after it.
    capture: Option<Option<&'a str>>,
    /// `-P`, and the name after it.
    playback: Option<Option<&'a str>>,
    duplex: bool,
    capture_channels: u32,
    playback_channels: u32,
    input_latency: u32,
    output_latency: u32,
}

/// Reads the driver's options.
pub(crate) fn read(words: OptionReader<'_>) -> Result<DriverRequest, UsageError> {
    let (mut options, mut sides) = (AlsaOptions::default(), Sides::default());
    let (mut quantum, mut notices, mut devices) = (None, Vec::new(), Vec::new());
    let mut settings = SettingReader::new(words, ALSA);
    while let Some(setting) = settings.next_setting()? {
        let (name, value, word) = match setting {
            Setting::Help => return Ok(DriverRequest::Help(help())),
            Setting::Notice(notice) => {
                notices.push(notice);
                continue;
            }
            Setting::Set { name, value, word } => (name, value, word),
        };
        match (name, value) {
            ("device", _) => sides.device = word,
            ("capture", _) => sides.capture = Some(named(word)),
            ("playback", _) => sides.playback = Some(named(word)),
            ("duplex", _) => sides.duplex = true,
            ("inchannels", Value::UInt(channels)) => sides.capture_channels = channels,
            ("outchannels", Value::UInt(channels)) => sides.playback_channels = channels,
            ("input-latency", Value::UInt(frames)) => sides.input_latency = frames,
            ("output-latency", Value::UInt(frames)) => sides.output_latency = frames,
            ("rate", Value::UInt(hz)) => options.sample_rate_hz = Some(hz),
            ("period", Value::UInt(frames)) => quantum = Some(frames),
            ("nperiods", Value::UInt(periods)) => options.periods = periods,
            ("shorts", _) => options.prefer_16_bits = true,
            ("dither", Value::Char(letter)) => options.dither = dither(letter),
            ("softmode", _) => options.soft = true,
            ("midi-driver", Value::Text(name)) => {
                devices = midi_device(&name).into_iter().collect();
            }
            ("monitor", _) => options.monitors = true,
            ("hwmon", _) => options.hardware_monitoring = true,
            (name, value) => unreachable!("the table has no parameter {name} = {value}"),
        }
    }
    sides.apply(&mut options);
    let driver = DriverChoice::Alsa(Box::new(options));
    Ok(DriverRequest::Run { driver, quantum, notices, devices })
}

/// Returns the name after `-C` or `-P`. Some front ends write "none" for no name.
fn named(word: Option<&str>) -> Option<&str> {
    word.filter(|name| !name.is_empty() && *name != "none")
}

impl Sides<'_> {
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

/// Returns the dither of a letter of the table.
fn dither(letter: char) -> Dither {
    match letter {
        'r' => Dither::Rectangular,
        's' => Dither::Shaped,
        't' => Dither::Triangular,
        _ => Dither::None,
    }
}
