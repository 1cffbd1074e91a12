//! How drivers are opened, when the server starts and while it runs. Not on the driver thread:
//! opening takes as long as a device or a disk does.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use proto::driver::{AlsaOptions, AlsaSide, DriverChoice};
use proto::limits::{QUANTUM_FRAMES, SAMPLE_RATE_HZ};

use crate::error::{ServerError, within};

pub mod hardware;

use device::{
    AlsaDriver, CardReservation, Channels, DeviceLatency, Driver, FileDriver, FileOptions,
    Monitored, Pacing, RestCall, Timer, WhyAway, is_same_file, may_share,
};

/// Starts a driver that waits until it has listeners. `None`: the driver does not wait.
pub type StartTrigger = Option<Box<dyn FnMut() + Send>>;

/// Sets which of a card's inputs, numbered from 0, it plays at its outputs by itself (hardware
/// monitoring). `None`: the card cannot.
pub type HardwareMonitor = Option<Box<dyn Fn(BTreeSet<u32>) + Send>>;

/// What the control thread knows of the driver.
#[derive(Debug)]
pub struct DriverFacts {
    /// Description for the user.
    pub description: String,
    /// Its channels.
    pub channels: Channels,
    /// Hz.
    pub sample_rate_hz: u32,
    /// Latency of the device beyond the quantum that it was opened with.
    pub latency: DeviceLatency,
    /// What clients play comes back at the capture ports.
    pub loops: bool,
    /// Cycles wait for the graph, so no client is late.
    pub when_done: bool,
    /// It plays streams.
    pub plays_streams: bool,
    /// What comes from its capture ports is more than silence.
    pub captures: bool,
    /// Quanta that it supports, frames, as far as is known.
    pub quanta: RangeInclusive<u32>,
    /// ALSA's names of the devices that it may keep other programs from opening.
    pub devices: Vec<String>,
    /// Why its device does not come back, while it is away.
    pub why_away: Arc<WhyAway>,
    /// Calls the driver thread while the driver rests.
    pub rest_call: Arc<RestCall>,
}

/// A driver that has not been started.
pub struct NewDriver {
    /// The driver.
    pub driver: Box<dyn Driver>,
    /// About it.
    pub facts: DriverFacts,
    /// Starts its cycles, if it waits for listeners.
    pub start_trigger: StartTrigger,
    /// Controls the monitoring of its card.
    pub hardware_monitor: HardwareMonitor,
}

impl NewDriver {
    fn new(
        mut driver: impl Driver + 'static,
        start_trigger: StartTrigger,
        devices: Vec<String>,
    ) -> Self {
        let facts = DriverFacts {
            description: driver.description(),
            channels: driver.channels(),
            sample_rate_hz: driver.sample_rate_hz(),
            latency: driver.latency(),
            loops: false,
            when_done: driver.pacing() == Pacing::WhenDone,
            plays_streams: driver.card().is_some(),
            captures: driver.channels().capture > 0,
            quanta: QUANTUM_FRAMES,
            devices,
            why_away: Arc::default(),
            rest_call: Arc::default(),
        };
        Self { driver: Box::new(driver), facts, start_trigger, hardware_monitor: None }
    }

    /// Adds monitor ports.
    fn monitored(mut self) -> Self {
        let mut driver = Monitored::new(self.driver);
        self.facts.channels = driver.channels();
        self.facts.plays_streams = driver.card().is_some();
        Self { driver: Box::new(driver), ..self }
    }
}

/// The variable that makes a timer record what it plays into this file, from its first stream on,
/// for tests: nothing else hears a null device.
const RECORD_NULL_DEVICE: &str = "CONSORT_RECORD_NULL_DEVICE";
/// Default sample rate, Hz.
const SAMPLE_RATE: u32 = 48_000;
/// Channels in each direction of a timer that stands in for a card.
const CHANNELS_WITHOUT_CARD: u32 = 2;
/// The most quanta that a card's buffer may hold.
const MOST_PERIODS: u32 = 1024;

/// Opens a driver for cycles of `quantum` frames, after `cards` has made other sound servers
/// release its card. `None`: no card was named, and this machine has none.
///
/// # Errors
/// A sentence that says what was refused.
pub fn open(
    choice: &DriverChoice,
    quantum: u32,
    cards: &dyn CardReservation,
) -> Result<Option<NewDriver>, String> {
    let opened = match choice {
        DriverChoice::Timer { capture, playback, sample_rate_hz, looped, .. } => {
            let channels = Channels { capture: *capture, playback: *playback, monitors: 0 };
            let timer = Timer::new(channels, sample_rate_hz.unwrap_or(SAMPLE_RATE));
            let timer = if *looped { timer.looped() } else { timer };
            let timer = match std::env::var_os(RECORD_NULL_DEVICE) {
                Some(path) => timer.recorded(path.into())?,
                None => timer,
            };
            let mut opened = NewDriver::new(timer, None, Vec::new());
            (opened.facts.loops, opened.facts.captures) = (*looped, *looped);
            opened
        }
        DriverChoice::Alsa(options) => {
            let Some(alsa) = AlsaDriver::open((**options).clone(), quantum, cards)? else {
                return Ok(None);
            };
            let (devices, quanta) = (alsa.devices(), alsa.quanta());
            let (hardware_monitor, why_away) = (alsa.monitoring(), alsa.why_away());
            let rest_call = alsa.rest_call();
            let mut opened = NewDriver::new(alsa, None, devices);
            (opened.facts.quanta, opened.facts.why_away) = (quanta, why_away);
            opened.facts.rest_call = rest_call;
            opened.hardware_monitor = hardware_monitor;
            opened
        }
        DriverChoice::File { input, output, sample_rate_hz, playback, fast, .. } => {
            let file = FileDriver::open(FileOptions {
                input: input.clone(),
                output: output.clone(),
                sample_rate_hz: *sample_rate_hz,
                playback_channels: *playback,
                pacing: if *fast { Pacing::WhenDone } else { Pacing::RealTime },
                tail_frames: 0,
            })
            .map_err(|error| error.to_string())?;
            let gate = file.gate();
            let begin = Box::new(move || gate.store(true, Ordering::Release));
            NewDriver::new(file, Some(begin), Vec::new())
        }
    };
    Ok(Some(if choice.monitors() { opened.monitored() } else { opened }))
}

/// The timer that stands in for a card where there is none.
pub fn without_card(options: &AlsaOptions) -> DriverChoice {
    let count = |side: &Option<AlsaSide>| {
        side.as_ref().map_or(0, |side| side.channels.unwrap_or(CHANNELS_WITHOUT_CARD))
    };
    DriverChoice::Timer {
        capture: count(&options.capture),
        playback: count(&options.playback),
        sample_rate_hz: options.sample_rate_hz,
        looped: false,
        monitors: options.monitors,
    }
}

/// Checks whether a server of `port_max` ports can have this driver.
///
/// # Errors
/// [`ServerError::OutOfRange`]
pub fn check(choice: &DriverChoice, port_max: u32) -> Result<(), ServerError> {
    let channels_of = |side: &Option<AlsaSide>| side.as_ref().and_then(|side| side.channels);
    let (capture, playback, sample_rate_hz) = match choice {
        DriverChoice::Timer { capture, playback, sample_rate_hz, .. } => {
            (Some(*capture), Some(*playback), *sample_rate_hz)
        }
        DriverChoice::Alsa(options) => {
            within("a number of periods", Some(options.periods), 2..=MOST_PERIODS)?;
            (channels_of(&options.capture), channels_of(&options.playback), options.sample_rate_hz)
        }
        DriverChoice::File { playback, sample_rate_hz, .. } => (None, *playback, *sample_rate_hz),
    };
    within("a number of capture ports", capture, 0..=port_max / 2)?;
    within("a number of playback ports", playback, 0..=port_max / 2)?;
    within("a sample rate", sample_rate_hz, SAMPLE_RATE_HZ)
}

/// `choice` at the sample rate at which a server runs.
///
/// # Errors
/// If it asks for another: no program would survive that.
pub fn at_rate(mut choice: DriverChoice, running_hz: u32) -> Result<DriverChoice, String> {
    let asked = match &mut choice {
        DriverChoice::Timer { sample_rate_hz, .. } | DriverChoice::File { sample_rate_hz, .. } => {
            sample_rate_hz
        }
        DriverChoice::Alsa(options) => &mut options.sample_rate_hz,
    };
    let asked_hz = *asked.get_or_insert(running_hz);
    if asked_hz != running_hz {
        return Err(format!(
            "the server runs at {running_hz} Hz, and programs cannot go on at {asked_hz} Hz: leave the rate as it is, or start another server"
        ));
    }
    Ok(choice)
}

/// Whether the driver `before`, which holds `devices`, must be closed before `wanted` can be
/// opened.
pub fn must_close_first(devices: &[String], wanted: &DriverChoice) -> bool {
    match wanted {
        DriverChoice::Alsa(options) => may_share(options, devices),
        _ => false,
    }
}

/// Returns a file of `wanted` that the driver `before` has in use: a recording is not overwritten,
/// and a file that is being written is not played.
pub fn file_in_use<'a>(before: &DriverChoice, wanted: &'a DriverChoice) -> Option<&'a Path> {
    let DriverChoice::File { input: played, output: recorded, .. } = before else { return None };
    let DriverChoice::File { input, output, .. } = wanted else { return None };
    let is = |one: &Path, other: &Option<_>| {
        other.as_deref().is_some_and(|other| is_same_file(one, other))
    };
    let input = input.as_deref().filter(|input| is(input, recorded));
    input.or_else(|| output.as_deref().filter(|output| is(output, recorded) || is(output, played)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(sample_rate_hz: Option<u32>) -> DriverChoice {
        DriverChoice::Timer {
            capture: 2,
            playback: 2,
            sample_rate_hz,
            looped: false,
            monitors: false,
        }
    }

    #[test]
    fn a_driver_of_another_sample_rate_is_refused() {
        assert_eq!(at_rate(timer(None), 44_100), Ok(timer(Some(44_100))));
        assert_eq!(at_rate(timer(Some(44_100)), 44_100), Ok(timer(Some(44_100))));
        assert!(at_rate(timer(Some(48_000)), 44_100).unwrap_err().contains("44100"));
        let card = DriverChoice::Alsa(Box::default());
        assert!(
            matches!(at_rate(card, 96_000), Ok(DriverChoice::Alsa(options)) if options.sample_rate_hz == Some(96_000))
        );
    }

    #[test]
    fn drivers_beyond_the_port_or_period_limits_are_out_of_range() {
        assert!(check(&timer(None), 64).is_ok());
        let wide = DriverChoice::Timer {
            capture: 33,
            playback: 0,
            sample_rate_hz: None,
            looped: false,
            monitors: false,
        };
        assert!(check(&wide, 64).is_err());
        for periods in [0, 1, 1025, u32::MAX] {
            let card =
                DriverChoice::Alsa(Box::new(AlsaOptions { periods, ..AlsaOptions::default() }));
            assert!(check(&card, 64).is_err(), "{periods}");
        }
        assert!(check(&timer(Some(1)), 64).is_err());
    }

    #[test]
    fn a_file_being_recorded_is_refused_to_another_driver() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, "").unwrap();
            Some(path)
        };
        let choice = |input: Option<std::path::PathBuf>, output: Option<std::path::PathBuf>| {
            DriverChoice::File {
                input,
                output,
                sample_rate_hz: None,
                playback: None,
                fast: false,
                monitors: false,
            }
        };
        let before = choice(file("played"), file("recorded"));
        for (wanted, refused) in [
            (choice(file("recorded"), None), true),
            (choice(None, file("recorded")), true),
            (choice(None, file("played")), true),
            (choice(file("played"), file("other")), false),
            (choice(None, Some(directory.path().join("new"))), false),
            (timer(None), false),
        ] {
            assert_eq!(file_in_use(&before, &wanted).is_some(), refused, "{wanted:?}");
        }
        assert_eq!(file_in_use(&timer(None), &before), None);
    }
}
