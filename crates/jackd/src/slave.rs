//! Slave drivers: what JACK2 calls devices in addition to the server's own. Here they are the
//! devices of `consort device`.

use cli::UsageError;
use device_bridge::DeviceOptions;
use jack_parameters::options::OptionReader;
use proto::defaults;
use proto::driver::{AlsaSide, Dither, DriverChoice};

use crate::alsa;
use crate::driver_request::{DriverRequest, midi_device};

/// The driver of a further card.
const CARD: &str = "alsa";
/// The card of a slave driver that names none, as in JACK2.
const DEFAULT_CARD: &str = "hw:0";

/// A device, and the options of its driver that have no effect on it, one line each.
#[derive(Debug, PartialEq, Eq)]
pub struct Slave {
    /// The device.
    pub device: DeviceOptions,
    /// One line each.
    pub notices: Vec<String>,
}

/// Reads the options of the driver `name` as those of a further device.
pub(crate) fn read(name: &str, mut words: OptionReader<'_>) -> Result<Slave, UsageError> {
    if let Some(device) = midi_device(name) {
        // It has no options: the first word is refused.
        words.next_option::<()>(&[]).map_err(UsageError)?;
        return Ok(Slave { device, notices: Vec::new() });
    }
    if name != CARD {
        return Err(UsageError(format!(
            "the driver '{name}' adds no device to a server: alsarawmidi or raw, seq or alsa_midi (MIDI), and alsa (a card) do"
        )));
    }
    let DriverRequest::Run {
        driver: DriverChoice::Alsa(options),
        quantum,
        mut notices,
        devices: midi,
    } = alsa::read(words)?
    else {
        return Err(UsageError("a slave driver's options are shown by -d alsa --help".into()));
    };
    let sides = || [&options.capture, &options.playback].into_iter().flatten();
    let mut devices: Vec<&str> = sides().filter_map(|side| side.device.as_deref()).collect();
    devices.dedup();
    if let [capture, playback] = devices[..] {
        return Err(UsageError(format!(
            "a slave driver is one card: add one that captures ({capture}) and one that plays ({playback})"
        )));
    }
    for (is_asked, option) in [
        (sides().any(|side| side.extra_latency_frames != 0), "-I and -O have"),
        (options.prefer_16_bits, "-S has"),
        (options.dither != Dither::None, "-z has"),
        (options.soft, "-s has"),
        (options.monitors, "-m has"),
        (options.hardware_monitoring, "-H has"),
        (!midi.is_empty(), "-X has"),
    ] {
        notices
            .extend(is_asked.then(|| format!("{option} no effect: a slave driver is resampled")));
    }
    let channels = |side: &Option<AlsaSide>| side.as_ref().map_or(Some(0), |side| side.channels);
    let device = DeviceOptions {
        capture: channels(&options.capture),
        playback: channels(&options.playback),
        rate: options.sample_rate_hz,
        quantum: quantum.unwrap_or(defaults::QUANTUM_FRAMES),
        periods: options.periods,
        ..DeviceOptions::of(devices.first().copied().unwrap_or(DEFAULT_CARD))
    };
    Ok(Slave { device, notices })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(name: &str, line: &str) -> Result<Slave, UsageError> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        read(name, OptionReader::new(&words))
    }

    #[test]
    fn a_cards_driver_becomes_a_further_card_with_the_same_parameters() {
        let card =
            |device: &str| DeviceOptions { quantum: 1024, periods: 2, ..DeviceOptions::of(device) };
        for (line, expected) in [
            ("", card("hw:0")),
            (
                "-d hw:USB -r 44100 -p 128 -n 3 -i 2 -o 4",
                DeviceOptions {
                    rate: Some(44_100),
                    quantum: 128,
                    periods: 3,
                    capture: Some(2),
                    playback: Some(4),
                    ..card("hw:USB")
                },
            ),
            ("-C hw:1", DeviceOptions { playback: Some(0), ..card("hw:1") }),
            ("-d hw:1 -P", DeviceOptions { capture: Some(0), ..card("hw:1") }),
        ] {
            assert_eq!(
                read_line("alsa", line),
                Ok(Slave { device: expected, notices: vec![] }),
                "{line}"
            );
        }
        let slave = read_line("alsa", "-d hw:1 -S -I 5 -m -H").expect("a card");
        assert_eq!(slave.notices.len(), 4, "{:?}", slave.notices);
    }

    #[test]
    fn midi_drivers_are_alsas_sequencer_or_raw_devices() {
        for (name, device) in [
            ("seq", DeviceOptions::sequencer()),
            ("alsa_midi", DeviceOptions::sequencer()),
            ("raw", DeviceOptions::raw_midi()),
            ("alsarawmidi", DeviceOptions::raw_midi()),
        ] {
            assert!(jack_parameters::is_slave(name));
            assert_eq!(read_line(name, "").expect("MIDI").device, device);
        }
        for (name, line, reason) in [
            ("dummy", "", "adds no device"),
            ("loopback", "", "adds no device"),
            ("alsa", "-C hw:0 -P hw:1", "one card"),
            ("alsa", "-x", "no option -x"),
            ("seq", "-x", "no option -x"),
        ] {
            let refused = read_line(name, line).expect_err(name);
            assert!(refused.0.contains(reason), "{name} {line}: {refused}");
        }
    }
}
