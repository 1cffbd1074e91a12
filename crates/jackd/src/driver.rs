//! The options of `-d NAME`.

use std::path::PathBuf;

use cli::UsageError;
use jack_parameters::options::OptionReader;
use jack_parameters::{DUMMY, FILE, Value};
use proto::defaults;
use proto::driver::DriverChoice;

use crate::alsa;
use crate::driver_request::DriverRequest;
use crate::settings::{self, Setting, SettingReader};

/// Returns the help of the driver `dummy`.
pub(crate) fn timer_help() -> String {
    settings::help("Options of the driver 'dummy' (also called 'timer')", DUMMY)
}

/// Returns the help of the driver `file`.
pub(crate) fn file_help() -> String {
    settings::help("Options of the driver 'file'", FILE)
}

/// What serves instead of JACK2's audio over the network.
pub const INSTEAD_OF_NETWORK: &str = "run zita-j2n and zita-n2j (Debian's zita-njbridge) or \
    jacktrip as programs of a server on either machine";

/// Returns what serves instead of a driver of jackd that is not built here; `None`: jackd has no
/// such driver either.
fn instead_of(driver: &str) -> Option<&'static str> {
    Some(match driver {
        "net" | "netone" | "proxy" => INSTEAD_OF_NETWORK,
        "firewire" | "freebob" => "use -d alsa: the kernel has drivers for FireWire cards",
        "coreaudio" | "oss" | "portaudio" | "sun" => "use -d alsa",
        _ => return None,
    })
}

/// Reads the options of driver `name`.
pub(crate) fn read(name: &str, words: OptionReader<'_>) -> Result<DriverRequest, UsageError> {
    match name {
        "dummy" | "timer" => timer(words),
        "file" => file(words),
        "alsa" => alsa::read(words),
        _ => match instead_of(name) {
            Some(instead) => Ok(DriverRequest::NotBuilt { instead }),
            None => Err(UsageError(format!(
                "there is no driver '{name}': use -d alsa, -d dummy or -d file"
            ))),
        },
    }
}

fn timer(words: OptionReader<'_>) -> Result<DriverRequest, UsageError> {
    let (mut capture, mut playback) = (defaults::CHANNELS, defaults::CHANNELS);
    let (mut sample_rate_hz, mut quantum, mut monitors) = (None, None, false);
    let mut notices = Vec::new();
    let mut settings = SettingReader::new(words, DUMMY);
    while let Some(setting) = settings.next_setting()? {
        match setting {
            Setting::Help => return Ok(DriverRequest::Help(timer_help())),
            Setting::Notice(notice) => notices.push(notice),
            Setting::Set { name, value, .. } => match (name, value) {
                ("capture", Value::UInt(ports)) => capture = ports,
                ("playback", Value::UInt(ports)) => playback = ports,
                ("monitor", _) => monitors = true,
                ("rate", Value::UInt(hz)) => sample_rate_hz = Some(hz),
                ("period", Value::UInt(frames)) => quantum = Some(frames),
                (name, value) => unreachable!("the table has no parameter {name} = {value}"),
            },
        }
    }
    let driver = DriverChoice::Timer { capture, playback, sample_rate_hz, looped: false, monitors };
    Ok(DriverRequest::Run { driver, quantum, notices, devices: Vec::new() })
}

fn file(words: OptionReader<'_>) -> Result<DriverRequest, UsageError> {
    let (mut input, mut output, mut sample_rate_hz, mut playback) = (None, None, None, None);
    let (mut quantum, mut fast, mut monitors) = (None, false, false);
    let mut notices = Vec::new();
    let mut settings = SettingReader::new(words, FILE);
    while let Some(setting) = settings.next_setting()? {
        match setting {
            Setting::Help => return Ok(DriverRequest::Help(file_help())),
            Setting::Notice(notice) => notices.push(notice),
            Setting::Set { name, value, word } => match (name, value) {
                ("input", _) => input = word.map(PathBuf::from),
                ("output", _) => output = word.map(PathBuf::from),
                ("playback", Value::UInt(ports)) => playback = Some(ports),
                ("rate", Value::UInt(hz)) => sample_rate_hz = Some(hz),
                ("period", Value::UInt(frames)) => quantum = Some(frames),
                ("fast", _) => fast = true,
                ("monitor", _) => monitors = true,
                (name, value) => unreachable!("the table has no parameter {name} = {value}"),
            },
        }
    }
    if input.is_none() && output.is_none() {
        return Err(UsageError("-d file needs -i FILE, -o FILE or both".into()));
    }
    let driver = DriverChoice::File { input, output, sample_rate_hz, playback, fast, monitors };
    Ok(DriverRequest::Run { driver, quantum, notices, devices: Vec::new() })
}
