//! What happens to the frames of a link on their way, as arguments of its process: those of the
//! modules of PulseAudio that need one.

use anyhow::{Context, bail, ensure};
use clap::Args;
use cli::in_range;
use convert::{ChannelMap, Mixing};
use effects::{LadspaOptions, Method, Speex};

use crate::links::{EchoOptions, LinkMix, LinkOptions, LinkSource, Processing};

/// Latencies of links, ms.
const LATENCY_MS: std::ops::RangeInclusive<u32> = 20..=400;
/// dB below 0.
const SUPPRESSION_DB: std::ops::RangeInclusive<i64> = -120..=0;

/// Nobody but `consort pulse` has a use for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct ProcessingArguments {
    /// A LADSPA plug-in that all passes through: its library
    #[arg(long, hide = true, value_name = "NAME", requires = "label")]
    pub plugin: Option<String>,
    /// Its label
    #[arg(long, hide = true, value_name = "NAME", requires = "plugin")]
    pub label: Option<String>,
    /// Values of its control inputs
    #[arg(long, hide = true, value_name = "N,…", requires = "plugin")]
    pub control: Option<String>,
    /// Names of its audio inputs
    #[arg(long, hide = true, value_name = "NAME,…", requires = "plugin")]
    pub plugin_inputs: Option<String>,
    /// Names of its audio outputs
    #[arg(long, hide = true, value_name = "NAME,…", requires = "plugin")]
    pub plugin_outputs: Option<String>,
    /// A device whose sound is played on another, and comes back as an echo that is removed
    #[arg(long, hide = true, value_name = "NAME", requires = "echo_heard_on")]
    pub echo_of: Option<String>,
    /// Positions of its channels
    #[arg(long, hide = true, value_name = "POSITIONS", requires = "echo_of")]
    pub echo_of_positions: Option<ChannelMap>,
    /// The device that it is played on
    #[arg(long, hide = true, value_name = "NAME", requires = "echo_of")]
    pub echo_heard_on: Option<String>,
    /// Positions of that one's channels
    #[arg(long, hide = true, value_name = "POSITIONS", requires = "echo_of")]
    pub echo_heard_positions: Option<ChannelMap>,
    /// From when it is heard at the one until it is heard at the other, ms
    #[arg(long, hide = true, value_name = "MS", value_parser = in_range(LATENCY_MS))]
    pub echo_latency: Option<u32>,
    /// What removes the echo: speex or null
    #[arg(long, hide = true, value_name = "NAME", requires = "echo_of")]
    pub echo_method: Option<String>,
    /// How much it takes at once, ms
    #[arg(long, hide = true, value_name = "MS", value_parser = in_range(1..=200))]
    pub echo_frame: Option<u32>,
    /// The longest echo, ms
    #[arg(long, hide = true, value_name = "MS", value_parser = in_range(1..=2000))]
    pub echo_filter: Option<u32>,
    /// The voice is kept at one level
    #[arg(long, hide = true, requires = "echo_of")]
    pub echo_agc: bool,
    /// Noise is made quieter
    #[arg(long, hide = true, requires = "echo_of")]
    pub echo_denoise: bool,
    /// What is left of the echo is made quieter
    #[arg(long, hide = true, requires = "echo_of")]
    pub echo_suppress: bool,
    /// How much quieter, dB
    #[arg(long, hide = true, value_parser = clap::value_parser!(i32).range(SUPPRESSION_DB))]
    pub echo_suppress_db: Option<i32>,
    /// How much quieter while somebody speaks, dB
    #[arg(long, hide = true, value_parser = clap::value_parser!(i32).range(SUPPRESSION_DB))]
    pub echo_suppress_active_db: Option<i32>,
}

impl ProcessingArguments {
    /// The command-line arguments that stand for these.
    pub(super) fn words(&self) -> Vec<String> {
        let text = |number: Option<u32>| number.map(|number| number.to_string());
        let signed = |number: Option<i32>| number.map(|number| number.to_string());
        let positions = |map: Option<ChannelMap>| map.map(|map| map.to_string());
        let pairs = [
            ("--plugin", self.plugin.clone()),
            ("--label", self.label.clone()),
            ("--control", self.control.clone()),
            ("--plugin-inputs", self.plugin_inputs.clone()),
            ("--plugin-outputs", self.plugin_outputs.clone()),
            ("--echo-of", self.echo_of.clone()),
            ("--echo-of-positions", positions(self.echo_of_positions)),
            ("--echo-heard-on", self.echo_heard_on.clone()),
            ("--echo-heard-positions", positions(self.echo_heard_positions)),
            ("--echo-latency", text(self.echo_latency)),
            ("--echo-method", self.echo_method.clone()),
            ("--echo-frame", text(self.echo_frame)),
            ("--echo-filter", text(self.echo_filter)),
            ("--echo-suppress-db", signed(self.echo_suppress_db)),
            ("--echo-suppress-active-db", signed(self.echo_suppress_active_db)),
        ];
        let flags = [
            ("--echo-agc", self.echo_agc),
            ("--echo-denoise", self.echo_denoise),
            ("--echo-suppress", self.echo_suppress),
        ];
        let pairs = pairs.into_iter().filter_map(|(option, value)| Some((option, value?)));
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
        pairs
            .map(|(option, value)| format!("{option}={value}"))
            .chain(flags.map(|(option, _)| option.to_owned()))
            .collect()
    }

    /// Has links of devices process what they pass on. A device whose sound comes back as an echo
    /// is linked as well.
    ///
    /// # Errors
    /// They make no sense together.
    pub(super) fn apply(&self, mut links: Vec<LinkOptions>) -> anyhow::Result<Vec<LinkOptions>> {
        let ladspa = self.plugin.as_ref().zip(self.label.as_ref()).map(|(plugin, label)| {
            Processing::Ladspa(LadspaOptions {
                plugin: plugin.clone(),
                label: label.clone(),
                control: self.control.clone(),
                inputs: self.plugin_inputs.clone(),
                outputs: self.plugin_outputs.clone(),
            })
        });
        let Some(of) = &self.echo_of else {
            links.iter_mut().for_each(|link| link.processing.clone_from(&ladspa));
            return Ok(links);
        };
        ensure!(ladspa.is_none(), "a link has a plug-in, or an echo that is removed");
        let [captured] = &mut links[..] else { bail!("an echo is removed for one device") };
        let (played, heard_on) = self.played(of, captured)?;
        captured.processing = Some(Processing::Echo(heard_on));
        links.push(played);
        Ok(links)
    }

    /// Returns the link that plays what comes back, and what is removed of it.
    fn played(
        &self,
        of: &str,
        captured: &LinkOptions,
    ) -> anyhow::Result<(LinkOptions, EchoOptions)> {
        let latency_ms = self.echo_latency.context("an echo needs --echo-latency")?;
        let from = self.echo_of_positions.context("an echo needs --echo-of-positions")?;
        let to = self.echo_heard_positions.context("an echo needs --echo-heard-positions")?;
        let own = captured.mix.context("an echo needs --from-positions")?.to;
        let mixing = Mixing::Mixed;
        let mix = |to| LinkMix { from, via: None, to, mixing };
        let link = LinkOptions {
            program: captured.program.clone(),
            from: LinkSource { device: of.to_owned(), captures: false },
            to: self.echo_heard_on.clone().context("an echo needs --echo-heard-on")?,
            map: None,
            mix: Some(mix(to)),
            latency_ms,
            processing: None,
        };
        let echo = EchoOptions {
            of: of.to_owned(),
            mix: mix(own),
            heard_later_ms: latency_ms,
            method: self.method()?,
            frame_ms: self.echo_frame.context("an echo needs --echo-frame")?,
        };
        Ok((link, echo))
    }

    fn method(&self) -> anyhow::Result<Method> {
        Ok(match self.echo_method.as_deref() {
            Some("null") => Method::Null,
            Some("speex") => Method::Speex(Speex {
                filter_ms: self.echo_filter.context("speex needs --echo-filter")?,
                gain_control: self.echo_agc,
                denoise: self.echo_denoise,
                suppress: self.echo_suppress,
                suppress_db: self.echo_suppress_db,
                suppress_active_db: self.echo_suppress_active_db,
            }),
            other => bail!("'{}' removes no echo: use speex or null", other.unwrap_or_default()),
        })
    }
}
