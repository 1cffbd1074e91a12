//! The driver and its options, for `consort run` and `consort driver`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cli::{UsageError, in_range};
use proto::defaults;
use proto::driver::{AlsaOptions, DriverChoice};
use proto::limits::{CHANNELS, SAMPLE_RATE_HZ};

use super::alsa::AlsaArguments;

/// What can start cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriverName {
    /// A sound card if this machine has one, otherwise the timer
    Auto,
    /// A sound card
    Alsa,
    /// A timer; its ports lead nowhere
    Timer,
    /// Sound files
    File,
}

/// Options of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub(crate) struct DriverArguments {
    /// Capture ports; 0: none [default: 2; of a card: as many as it has]
    #[arg(long, value_name = "N", value_parser = in_range(CHANNELS))]
    capture: Option<u32>,
    /// Playback ports; 0: none [default: 2; of a card: as many as it has; with files: as many as
    /// the input has]
    #[arg(long, value_name = "N", value_parser = in_range(CHANNELS))]
    playback: Option<u32>,
    /// Capture what is played, on the same channel of the timer, as a cable would, for measurements
    #[arg(long = "loop")]
    looped: bool,
    /// Add a port monitor_N for each playback port, with the same signal a cycle later
    #[arg(long)]
    monitors: bool,
    /// Sample rate in Hz [default: 48000; with files: the input's; of a server that runs: its own]
    #[arg(long, value_name = "HZ", value_parser = in_range(SAMPLE_RATE_HZ))]
    rate: Option<u32>,
    /// The sound file that the capture ports play
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The sound file into which the playback ports are recorded
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Process the files as fast as the clients can, not in real time
    #[arg(long)]
    fast: bool,
    #[command(flatten)]
    alsa: AlsaArguments,
}

impl DriverArguments {
    /// Whether any option was given.
    pub(crate) fn is_used(&self) -> bool {
        *self != Self::default()
    }

    /// Numbers of capture and playback ports, where given.
    pub(super) fn channels(&self) -> (Option<u32>, Option<u32>) {
        (self.capture, self.playback)
    }

    /// Returns the driver of this name with these options.
    pub(crate) fn choice(&self, driver: DriverName) -> Result<DriverChoice, UsageError> {
        self.choice_of(driver, device::has_card)
    }

    fn choice_of(
        &self,
        driver: DriverName,
        has_card: impl FnOnce() -> bool,
    ) -> Result<DriverChoice, UsageError> {
        let usage = |message: &str| Err(UsageError(message.into()));
        if self.alsa.is_used() && driver != DriverName::Alsa {
            return usage("options of a sound card need the driver alsa");
        }
        if driver != DriverName::File
            && (self.input.is_some() || self.output.is_some() || self.fast)
        {
            return usage("--input, --output and --fast need the driver file");
        }
        match driver {
            DriverName::Auto if has_card() => self.choice(DriverName::Alsa),
            DriverName::Auto => self.choice(DriverName::Timer),
            DriverName::Alsa if (self.capture, self.playback) == (Some(0), Some(0)) => {
                usage("--capture 0 and --playback 0 leave the card nothing to do")
            }
            DriverName::Alsa => {
                let options = self.alsa.options(self.capture, self.playback, self.rate);
                let options = AlsaOptions { monitors: self.monitors, ..options };
                Ok(DriverChoice::Alsa(Box::new(options)))
            }
            DriverName::Timer => Ok(DriverChoice::Timer {
                capture: self.capture.unwrap_or(defaults::CHANNELS),
                playback: self.playback.unwrap_or(defaults::CHANNELS),
                sample_rate_hz: self.rate,
                looped: self.looped,
                monitors: self.monitors,
            }),
            DriverName::File if self.looped => usage("--loop needs the driver timer"),
            DriverName::File if self.capture.is_some() => {
                usage("--capture does not apply to the driver file: the input file sets the number")
            }
            DriverName::File if self.input.is_none() && self.output.is_none() => {
                usage("the driver file needs --input FILE, --output FILE or both")
            }
            DriverName::File => Ok(DriverChoice::File {
                input: self.input.clone(),
                output: self.output.clone(),
                sample_rate_hz: self.rate,
                playback: self.playback,
                fast: self.fast,
                monitors: self.monitors,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_starts_cycles_where_there_is_no_card() {
        let arguments = DriverArguments::default();
        let choice = |driver, has_card| arguments.choice_of(driver, || has_card).expect("valid");
        assert_eq!(choice(DriverName::Auto, true), choice(DriverName::Alsa, false));
        assert_eq!(choice(DriverName::Auto, false), choice(DriverName::Timer, true));
    }
}
