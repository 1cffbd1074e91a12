//! `module-echo-cancel`: a sink that is heard on another, and a source that has what another
//! captures, without what comes back of the sink.

use convert::{ChannelMap, Standard};

use super::arguments::{Arguments, Samples};
use super::kinds::Kind;
use super::plans::{ANY, FILTER_LATENCY_MS, Named, Plan, PlannedDevice, described};
use crate::front_end::FrontEnd;
use crate::front_end::properties;
use crate::front_end::sinks::{Face, Shown};
use crate::output::{Devices, NewLink, NewLoopback};
use crate::processing::{NewEcho, NewSpeex, Processing};

/// Rate and channels of both devices by default, as in PulseAudio.
const RATE_HZ: u32 = 32_000;
const CHANNELS: usize = 1;
/// What PulseAudio 16.1 takes and has without arguments, ms.
const FRAME_MS: std::ops::RangeInclusive<u32> = 1..=200;
const DEFAULT_FRAME_MS: u32 = 20;
const FILTER_MS: std::ops::RangeInclusive<u32> = 1..=2000;
const DEFAULT_FILTER_MS: u32 = 200;
/// The most that something can be made quieter, dB.
const QUIETEST_DB: i32 = -120;

/// What a module asks for.
struct Asked {
    source: Named,
    sink: Named,
    /// Rate of both new devices.
    rate_hz: u32,
    map: ChannelMap,
    speex: Option<NewSpeex>,
    frame_ms: u32,
    /// The name of the new sink.
    sink_name: String,
}

impl<D: Devices> FrontEnd<D> {
    /// Plans the source, and what passes frames on for it and for the
    /// [sink](Self::second_device).
    pub(super) fn echo_cancel(&self, arguments: &Arguments) -> Result<Plan, String> {
        let asked = self.asked_without_echo(arguments)?;
        let Asked { source, sink, rate_hz, map, speex, frame_ms, sink_name } = asked;
        let name = arguments.name("source_name")?;
        let name = name.unwrap_or_else(|| format!("{}.echo-cancel", source.name));
        let mut props = cancelled(&source, &sink);
        arguments.add_properties("source_properties", &mut props)?;
        // A block has to be there as a whole.
        let latency_ms = FILTER_LATENCY_MS + frame_ms;
        let later_us = u64::from(latency_ms) * 1000 + source.later_us;
        let shown = Shown { props, map, face: Face::Source, later_us };
        // The sink is added first, and nothing else has its name until then.
        let of = self.sinks.free_name(&sink_name).to_string_lossy().into_owned();
        let has_its_name = self.sinks.free_name(&name).to_bytes() == of.as_bytes();
        let name = if has_its_name { format!("{of}.2") } else { name };
        let link = move |device| {
            let captured = NewLoopback {
                from: source.heard,
                from_map: source.map,
                via: None,
                to: vec![(Some(device), map)],
                mixed: true,
                latency_ms,
            };
            let echo = NewEcho {
                of,
                of_map: map,
                heard_on: (sink.heard.device, sink.map),
                latency_ms: FILTER_LATENCY_MS,
                speex,
                frame_ms,
            };
            NewLink::Processed(captured, Box::new(Processing::Echo(echo)))
        };
        let device = PlannedDevice { name, rate_hz: Some(rate_hz), shown };
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }

    /// Returns the second device of a module that has two. It is added before the first one.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan).
    pub(super) fn second_device(
        &self,
        kind: Kind,
        arguments: &Arguments,
    ) -> Result<Option<PlannedDevice>, String> {
        if kind != Kind::EchoCancel {
            return Ok(None);
        }
        let Asked { source, sink, rate_hz, map, sink_name, .. } =
            self.asked_without_echo(arguments)?;
        let mut props = cancelled(&sink, &source);
        arguments.add_properties("sink_properties", &mut props)?;
        let later_us = u64::from(FILTER_LATENCY_MS) * 1000 + sink.later_us;
        let shown = Shown { props, map, face: Face::Sink, later_us };
        Ok(Some(PlannedDevice { name: sink_name, rate_hz: Some(rate_hz), shown }))
    }

    fn asked_without_echo(&self, arguments: &Arguments) -> Result<Asked, String> {
        let source = self.named_source(arguments.text("source_master"))?;
        let sink = self.named_sink(arguments.text("sink_master"))?;
        if !source.heard.captures && source.heard.device == sink.heard.device {
            return Err(format!(
                "{} is the monitor of {}, which has no echo",
                source.name, sink.name
            ));
        }
        for key in ["autoloaded", "use_volume_sharing"] {
            arguments.boolean(key)?;
        }
        arguments.number("adjust_time", ANY)?;
        arguments.number("adjust_threshold", 1..=u32::MAX)?;
        if arguments.boolean("save_aec")? == Some(true) {
            return Err("save_aec: no files are written, leave it out".into());
        }
        let Samples { rate_hz, map, .. } = arguments.samples()?;
        let (usual_hz, usual_map) = match arguments.boolean("use_master_format")? {
            Some(true) => (source.rate_hz, Some(source.map)),
            _ => (RATE_HZ, ChannelMap::extended(Standard::Aiff, CHANNELS)),
        };
        let map = map.or(usual_map).ok_or("channels are needed")?;
        let (speex, frame_ms) = method(arguments)?;
        let preprocesses = speex.is_some_and(|speex| speex.agc || speex.denoise || speex.suppress);
        if preprocesses && map.channels() != 1 {
            return Err("agc, denoise and echo_suppress are for channels=1: set them to no in \
                        aec_args"
                .into());
        }
        let sink_name = arguments.name("sink_name")?;
        Ok(Asked {
            sink_name: sink_name.unwrap_or_else(|| format!("{}.echo-cancel", sink.name)),
            rate_hz: rate_hz.unwrap_or(usual_hz),
            source,
            sink,
            map,
            speex,
            frame_ms,
        })
    }
}

/// Returns what removes the echo, if something does, and how much it takes at once, ms.
fn method(arguments: &Arguments) -> Result<(Option<NewSpeex>, u32), String> {
    match arguments.text("aec_method").as_deref() {
        None | Some("speex") => {}
        Some("null") => return Ok((None, DEFAULT_FRAME_MS)),
        Some(other) => {
            return Err(format!("there is no aec_method '{other}': leave it out, or use speex"));
        }
    }
    let keys = [
        "frame_size_ms",
        "filter_size_ms",
        "agc",
        "denoise",
        "dereverb",
        "echo_suppress",
        "echo_suppress_attenuation",
        "echo_suppress_attenuation_active",
    ];
    let text = arguments.text("aec_args").unwrap_or_default();
    let given = Arguments::read(&text, &keys).map_err(|reason| format!("aec_args: {reason}"))?;
    let yes = |key: &str| Ok::<bool, String>(given.boolean(key)?.unwrap_or(true));
    // What it would do is not done by the library either.
    yes("dereverb")?;
    let speex = NewSpeex {
        filter_ms: given.number("filter_size_ms", FILTER_MS)?.unwrap_or(DEFAULT_FILTER_MS),
        agc: yes("agc")?,
        denoise: yes("denoise")?,
        suppress: yes("echo_suppress")?,
        suppress_db: quieter(&given, "echo_suppress_attenuation")?,
        suppress_active_db: quieter(&given, "echo_suppress_attenuation_active")?,
    };
    Ok((Some(speex), given.number("frame_size_ms", FRAME_MS)?.unwrap_or(DEFAULT_FRAME_MS)))
}

/// Returns by how many dB something is to be quieter; none, or 0: as the library does it.
fn quieter(arguments: &Arguments, key: &str) -> Result<Option<i32>, String> {
    let Some(text) = arguments.text(key) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| (QUIETEST_DB..=0).contains(number));
    let number =
        number.ok_or_else(|| format!("{key} is '{text}', and takes {QUIETEST_DB} to 0"))?;
    Ok((number != 0).then_some(number))
}

/// Returns the properties of what is like `own`, without the echo.
fn cancelled(own: &Named, other: &Named) -> pulseaudio::protocol::Props {
    let description = format!("{} (echo cancelled with {})", own.description, other.description);
    let mut props = described(&description, "filter");
    properties::set(&mut props, c"device.master_device", &own.name);
    properties::set(&mut props, c"device.intended_roles", "phone");
    props
}
