//! The driver `alsa`: the options of a sound card.

use clap::{Args, ValueEnum};
use proto::driver::{AlsaOptions, AlsaSide, Dither, WakeRule};
use proto::limits::{EXTRA_LATENCY_FRAMES, PERIODS};

/// Options of the driver `alsa` besides channels and rate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[command(next_help_heading = "Options of the driver alsa")]
pub(super) struct AlsaArguments {
    /// The sound card, as ALSA calls it, such as hw:USB [default: the most sensible card]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Another card to capture from
    #[arg(long, value_name = "NAME")]
    capture_device: Option<String>,
    /// Another card to play on
    #[arg(long, value_name = "NAME")]
    playback_device: Option<String>,
    /// Quanta buffered in the card once a cycle has been written [default: 2]
    #[arg(long, value_name = "N", value_parser = cli::in_range(PERIODS))]
    periods: Option<u32>,
    /// Use only this format, such as S24_3LE [default: the best that the card has]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<String>,
    /// What starts a cycle [default: interrupt if the card can raise one each quantum, else timer]
    #[arg(long, value_enum, value_name = "RULE")]
    wake: Option<WakeName>,
    /// Noise added before rounding to 16 bits
    #[arg(long, value_enum, value_name = "KIND")]
    dither: Option<DitherName>,
    /// Recover from xruns without reporting them
    #[arg(long)]
    soft: bool,
    /// While a program monitors a capture port, route that input to the output of the same number
    /// inside the card, if the card can
    #[arg(long)]
    hardware_monitoring: bool,
    /// Clock that the card follows, by the name that its control has for it (consort device list):
    /// "Master", "AutoSync", "Word Clock"; repeatable, for a card with two such controls
    #[arg(long, value_name = "NAME")]
    clock_source: Vec<String>,
    /// Priority of the card's reservation on the session bus: a program that asks with a higher one
    /// gets the card until it releases it, and cycles go on by a timer [default: 2147483647, the
    /// highest: none gets it]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    reserve_priority: Option<i32>,
    /// Additional capture latency that the card does not report
    #[arg(long, value_name = "FRAMES", value_parser = cli::in_range(EXTRA_LATENCY_FRAMES))]
    input_latency: Option<u32>,
    /// Additional playback latency that the card does not report
    #[arg(long, value_name = "FRAMES", value_parser = cli::in_range(EXTRA_LATENCY_FRAMES))]
    output_latency: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WakeName {
    /// The card's interrupts
    Interrupt,
    /// A timer that follows the card's position
    Timer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DitherName {
    /// One step wide
    Rectangular,
    /// Two steps wide, rarer at the ends
    Triangular,
    /// Triangular, with its spectrum shaped to be least audible
    Shaped,
}

/// The name by which ALSA itself calls the format.
fn format(name: &str) -> Result<String, String> {
    let names = || dsp::Format::ALL.map(alsa::format_name).join(", ");
    let format = alsa::parse_format(name).ok_or_else(|| format!("write one of {}", names()))?;
    Ok(alsa::format_name(format).into())
}

impl AlsaArguments {
    /// Whether an option was given that only this driver understands.
    pub(super) fn is_used(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the driver's options, with port counts (0: that direction is not used) and rate.
    pub(super) fn options(
        &self,
        capture: Option<u32>,
        playback: Option<u32>,
        sample_rate_hz: Option<u32>,
    ) -> AlsaOptions {
        let side = |channels: Option<u32>, device: &Option<String>, latency: Option<u32>| {
            (channels != Some(0)).then(|| AlsaSide {
                device: device.clone().or_else(|| self.device.clone()),
                channels,
                extra_latency_frames: latency.unwrap_or(0),
                required: channels.is_some() || device.is_some(),
            })
        };
        let defaults = AlsaOptions::default();
        AlsaOptions {
            capture: side(capture, &self.capture_device, self.input_latency),
            playback: side(playback, &self.playback_device, self.output_latency),
            sample_rate_hz,
            periods: self.periods.unwrap_or(defaults.periods),
            format: self.format.clone(),
            prefer_16_bits: false,
            wake: match self.wake {
                None => WakeRule::Best,
                Some(WakeName::Interrupt) => WakeRule::Interrupt,
                Some(WakeName::Timer) => WakeRule::Timer,
            },
            dither: match self.dither {
                None => Dither::None,
                Some(DitherName::Rectangular) => Dither::Rectangular,
                Some(DitherName::Triangular) => Dither::Triangular,
                Some(DitherName::Shaped) => Dither::Shaped,
            },
            soft: self.soft,
            hardware_monitoring: self.hardware_monitoring,
            clock_sources: self.clock_source.clone(),
            reserve_priority: self.reserve_priority.unwrap_or(defaults.reserve_priority),
            ..AlsaOptions::default()
        }
    }
}
