//! What each module asks of the server: a device, what passes frames on, or both.

use std::ffi::CString;
use std::path::PathBuf;

use convert::{ChannelMap, SampleFormat};
use pulseaudio::protocol::Props;

use super::arguments::{Arguments, Samples};
use super::kinds::Kind;
use super::policies::{
    always_sink, native_protocol_tcp, remembering, suspend_on_idle, switch_on_connect,
};
use super::tunnels;
use super::x11::x11_bell;
use super::zeroconf::zeroconf_discover;
use crate::front_end::sinks::{DRIVER, Face, Shown};
use crate::front_end::sources::Source;
use crate::front_end::{FrontEnd, properties};
use crate::output::{Devices, Heard, NewLink, NewListening, NewLoopback, NewPipe};

/// Milliseconds from when a frame is heard at one device until it is heard at the other: what a
/// link can have, and PulseAudio's default.
const LATENCY_MS: std::ops::RangeInclusive<u32> = 20..=400;
const DEFAULT_LATENCY_MS: u32 = 200;
/// That of a sink or a source that changes what another one has, and of which nobody can ask for
/// one.
pub(super) const FILTER_LATENCY_MS: u32 = 100;
/// Samples in a FIFO where no format is given, as in PulseAudio.
const FIFO_FORMAT: &str = "s16le";
/// What PulseAudio takes as a number of seconds, milliseconds or microseconds.
pub(super) const ANY: std::ops::RangeInclusive<u32> = 0..=u32::MAX;

/// What a module needs.
pub(super) struct Plan {
    pub device: Option<PlannedDevice>,
    /// Made of the server's name of the device.
    pub link: Option<Box<dyn FnOnce(String) -> NewLink>>,
    pub listening: Option<NewListening>,
}

/// A device that is to be added.
pub(super) struct PlannedDevice {
    /// What it would be called if nothing else had that name.
    pub name: String,
    /// `None`: that of the device that drives.
    pub rate_hz: Option<u32>,
    pub shown: Shown,
}

/// A sink or a source that a module names.
pub(super) struct Named {
    pub heard: Heard,
    pub name: String,
    pub description: String,
    pub rate_hz: u32,
    pub map: ChannelMap,
    /// Until what is played there is heard, or since what is recorded there was, beside its device.
    pub later_us: u64,
}

impl<D: Devices> FrontEnd<D> {
    /// Returns what a module needs.
    ///
    /// # Errors
    /// A reason: its arguments make no sense, or what they name is not there.
    pub(super) fn plan(&self, kind: Kind, arguments: &Arguments) -> Result<Plan, String> {
        match kind {
            Kind::NullSink => self.null_sink(arguments),
            Kind::NullSource => self.null_source(arguments),
            Kind::Loopback => self.loopback(arguments),
            Kind::CombineSink => self.combine_sink(arguments),
            Kind::RemapSink => self.remap_sink(arguments),
            Kind::RemapSource => self.remap_source(arguments),
            Kind::PipeSink => self.pipe_sink(arguments),
            Kind::PipeSource => self.pipe_source(arguments),
            Kind::NativeProtocolTcp => native_protocol_tcp(arguments),
            Kind::AlwaysSink => always_sink(arguments),
            Kind::SwitchOnConnect => switch_on_connect(arguments),
            // It is how streams behave here, or what `Modules::new_roles` makes of it.
            Kind::RescueStreams | Kind::RoleCork | Kind::RoleDucking => Ok(Plan::BUILT_IN),
            Kind::SuspendOnIdle => suspend_on_idle(arguments),
            // What `Manager::of` makes of it.
            Kind::DeviceManager => Ok(Plan::BUILT_IN),
            Kind::StreamRestore | Kind::DeviceRestore => remembering(kind, arguments),
            Kind::TunnelSink => self.tunnel(tunnels::Direction::There, arguments),
            Kind::TunnelSource => self.tunnel(tunnels::Direction::Here, arguments),
            Kind::SimpleProtocolTcp => self.simple_protocol_tcp(arguments),
            Kind::LadspaSink => self.ladspa_sink(arguments),
            Kind::EchoCancel => self.echo_cancel(arguments),
            Kind::RtpSend => self.rtp_send(arguments),
            Kind::RtpReceive => self.rtp_receive(arguments),
            Kind::ZeroconfPublish => self.zeroconf_publish(),
            Kind::ZeroconfDiscover => zeroconf_discover(arguments),
            Kind::X11Bell => x11_bell(arguments),
        }
    }

    fn null_sink(&self, arguments: &Arguments) -> Result<Plan, String> {
        let name = arguments.name("sink_name")?.unwrap_or_else(|| "null".into());
        let samples = arguments.samples()?;
        let mut props = described("Null Output", "abstract");
        arguments.add_properties("sink_properties", &mut props)?;
        let map = samples.map.map_or_else(|| self.default_map(), Ok)?;
        let shown = Shown { props, map, face: Face::Sink, later_us: 0 };
        let device = PlannedDevice { name, rate_hz: samples.rate_hz, shown };
        Ok(Plan { device: Some(device), link: None, listening: None })
    }

    fn null_source(&self, arguments: &Arguments) -> Result<Plan, String> {
        let name = arguments.name("source_name")?.unwrap_or_else(|| "source.null".into());
        let samples = arguments.samples()?;
        arguments.number("max_latency_msec", ANY)?;
        let description = arguments.text("description");
        let props = described(description.as_deref().unwrap_or("Null Input"), "abstract");
        let map = samples.map.map_or_else(|| self.default_map(), Ok)?;
        let shown = Shown { props, map, face: Face::Source, later_us: 0 };
        let device = PlannedDevice { name, rate_hz: samples.rate_hz, shown };
        Ok(Plan { device: Some(device), link: None, listening: None })
    }

    fn loopback(&self, arguments: &Arguments) -> Result<Plan, String> {
        let source = self.named_source(arguments.text("source"))?;
        let sink = self.named_sink(arguments.text("sink"))?;
        let Samples { map: via, .. } = arguments.samples()?;
        let mixed = arguments.boolean("remix")?.unwrap_or(true);
        for key in ["source_dont_move", "sink_dont_move"] {
            arguments.boolean(key)?;
        }
        for key in ["adjust_time", "max_latency_msec", "log_interval", "adjust_threshold_usec"] {
            arguments.number(key, ANY)?;
        }
        for key in ["sink_input_properties", "source_output_properties"] {
            arguments.add_properties(key, &mut Props::new())?;
        }
        let latency_ms = arguments.number("latency_msec", 1..=30_000)?;
        let latency_ms = latency_ms.unwrap_or(DEFAULT_LATENCY_MS).max(*LATENCY_MS.start());
        if latency_ms > *LATENCY_MS.end() {
            let most = LATENCY_MS.end();
            return Err(format!("latency_msec is {latency_ms}, and {most} is the most"));
        }
        let loopback = NewLoopback {
            from: source.heard,
            from_map: source.map,
            via: via.filter(|via| *via != source.map),
            to: vec![(sink.heard.device, sink.map)],
            mixed,
            latency_ms,
        };
        if loopback.is_into_itself() {
            return Err(format!("{} would be played into itself", sink.name));
        }
        Ok(Plan {
            device: None,
            link: Some(Box::new(|_| NewLink::Loopback(loopback))),
            listening: None,
        })
    }

    fn combine_sink(&self, arguments: &Arguments) -> Result<Plan, String> {
        let slaves = match arguments.text("slaves") {
            Some(names) => {
                let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                let mut slaves: Vec<Named> = Vec::new();
                for name in names {
                    let slave = self.named_sink(Some(name.to_owned()))?;
                    // One that is named twice is heard once.
                    if !slaves.iter().any(|known| known.heard == slave.heard) {
                        slaves.push(slave);
                    }
                }
                slaves
            }
            // PulseAudio takes those with hardware, and only the device that drives may have some.
            None => vec![self.driving_sink()?],
        };
        let first = slaves.first().ok_or("slaves names no sink")?;
        let name = arguments.name("sink_name")?.unwrap_or_else(|| "combined".into());
        let Samples { rate_hz, map, .. } = arguments.samples()?;
        let mixed = arguments.boolean("remix")?.unwrap_or(true);
        arguments.number("adjust_time", ANY)?;
        let descriptions: Vec<&str> =
            slaves.iter().map(|slave| slave.description.as_str()).collect();
        let description = match arguments.text("slaves") {
            Some(_) => format!("Simultaneous output to {}", descriptions.join(", ")),
            None => "Simultaneous Output".into(),
        };
        let mut props = described(&description, "filter");
        arguments.add_properties("sink_properties", &mut props)?;
        let map = map.unwrap_or(first.map);
        let furthest = slaves.iter().map(|slave| slave.later_us).max().unwrap_or(0);
        let later_us = u64::from(DEFAULT_LATENCY_MS) * 1000 + furthest;
        let rate_hz = Some(rate_hz.unwrap_or(first.rate_hz));
        let shown = Shown { props, map, face: Face::Sink, later_us };
        let to = slaves.into_iter().map(|slave| (slave.heard.device, slave.map)).collect();
        let link = move |device| {
            NewLink::Loopback(NewLoopback {
                from: Heard { device: Some(device), captures: false },
                from_map: map,
                via: None,
                to,
                mixed,
                latency_ms: DEFAULT_LATENCY_MS,
            })
        };
        let device = PlannedDevice { name, rate_hz, shown };
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }

    fn remap_sink(&self, arguments: &Arguments) -> Result<Plan, String> {
        let master = self.named_sink(arguments.text("master"))?;
        let Remapped { map, of_master, rate_hz, mixed } = remapped(arguments, &master)?;
        let name = arguments.name("sink_name")?;
        let name = name.unwrap_or_else(|| format!("{}.remapped", master.name));
        let mut props = described(&format!("Remapped {}", master.description), "filter");
        properties::set(&mut props, c"device.master_device", &master.name);
        arguments.add_properties("sink_properties", &mut props)?;
        let later_us = u64::from(FILTER_LATENCY_MS) * 1000 + master.later_us;
        let shown = Shown { props, map, face: Face::Sink, later_us };
        let link = move |device| {
            NewLink::Loopback(NewLoopback {
                from: Heard { device: Some(device), captures: false },
                // Each channel is what the other map calls it.
                from_map: of_master,
                via: None,
                to: vec![(master.heard.device, master.map)],
                mixed,
                latency_ms: FILTER_LATENCY_MS,
            })
        };
        let device = PlannedDevice { name, rate_hz, shown };
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }

    fn remap_source(&self, arguments: &Arguments) -> Result<Plan, String> {
        let master = self.named_source(arguments.text("master"))?;
        let Remapped { map, of_master, rate_hz, mixed } = remapped(arguments, &master)?;
        let name = arguments.name("source_name")?;
        let name = name.unwrap_or_else(|| format!("{}.remapped", master.name));
        let mut props = described(&format!("Remapped {}", master.description), "filter");
        properties::set(&mut props, c"device.master_device", &master.name);
        arguments.add_properties("source_properties", &mut props)?;
        let later_us = u64::from(FILTER_LATENCY_MS) * 1000 + master.later_us;
        let shown = Shown { props, map, face: Face::Source, later_us };
        let link = move |device| {
            NewLink::Loopback(NewLoopback {
                from: master.heard,
                from_map: master.map,
                via: None,
                to: vec![(Some(device), of_master)],
                mixed,
                latency_ms: FILTER_LATENCY_MS,
            })
        };
        let device = PlannedDevice { name, rate_hz, shown };
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }

    fn pipe_sink(&self, arguments: &Arguments) -> Result<Plan, String> {
        arguments.boolean("use_system_clock_for_timing")?;
        let pipe = self.pipe(arguments, "fifo_output")?;
        let mut props = pipe.props("sink");
        arguments.add_properties("sink_properties", &mut props)?;
        let name = arguments.name("sink_name")?.unwrap_or_else(|| "fifo_output".into());
        let shown = Shown { props, map: pipe.map, face: Face::Sink, later_us: 0 };
        let device = PlannedDevice { name, rate_hz: Some(pipe.rate_hz), shown };
        let link = move |device| NewLink::PipeSink(pipe.of(device));
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }

    fn pipe_source(&self, arguments: &Arguments) -> Result<Plan, String> {
        let pipe = self.pipe(arguments, "fifo_input")?;
        let mut props = pipe.props("source");
        arguments.add_properties("source_properties", &mut props)?;
        let name = arguments.name("source_name")?.unwrap_or_else(|| "fifo_input".into());
        let shown = Shown { props, map: pipe.map, face: Face::Source, later_us: 0 };
        let device = PlannedDevice { name, rate_hz: Some(pipe.rate_hz), shown };
        let link = move |device| NewLink::PipeSource(pipe.of(device));
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }

    fn pipe(&self, arguments: &Arguments, default_file: &str) -> Result<Pipe, String> {
        let samples = arguments.samples()?;
        let file = arguments.name("file")?.unwrap_or_else(|| default_file.into());
        let driver = self.sinks.get(DRIVER);
        let rate_hz = samples.rate_hz.or_else(|| driver.map(|sink| sink.format.rate_hz));
        let format = samples.format.or_else(|| FIFO_FORMAT.parse().ok());
        Ok(Pipe {
            // Where PulseAudio has those that are named without a directory.
            file: self.machine.runtime_directory.join(file),
            format: format.ok_or("there is no format")?,
            rate_hz: rate_hz.ok_or("rate is needed without a device that drives")?,
            map: samples.map.map_or_else(|| self.default_map(), Ok)?,
        })
    }

    /// Returns the channels of what names none.
    pub(super) fn default_map(&self) -> Result<ChannelMap, String> {
        let driver = self.sinks.get(DRIVER).map(|sink| sink.map);
        let map = driver.or_else(|| crate::front_end::format::device_map(2));
        map.ok_or_else(|| "channels are needed".into())
    }

    fn driving_sink(&self) -> Result<Named, String> {
        self.named(DRIVER).ok_or_else(|| "there is no sink with hardware".into())
    }

    fn named(&self, index: u32) -> Option<Named> {
        let sink = self.sinks.get(index)?;
        Some(Named {
            heard: Heard { device: sink.device.clone(), captures: false },
            name: sink.name.to_string_lossy().into_owned(),
            description: self.sink_description(index).to_string_lossy().into_owned(),
            rate_hz: sink.format.rate_hz,
            map: sink.map,
            later_us: sink.later_us(),
        })
    }

    /// Returns the sink of this name, or the default one.
    pub(super) fn named_sink(&self, name: Option<String>) -> Result<Named, String> {
        let text = name.clone().and_then(|name| CString::new(name).ok());
        let index = self.find_sink(None, text.as_deref()).ok();
        let sink = index.and_then(|index| self.named(index));
        sink.ok_or_else(|| format!("there is no sink '{}'", name.unwrap_or_default()))
    }

    /// Returns the source of this name, or the default one.
    pub(super) fn named_source(&self, name: Option<String>) -> Result<Named, String> {
        let text = name.clone().and_then(|name| CString::new(name).ok());
        let missing = || format!("there is no source '{}'", name.clone().unwrap_or_default());
        let source = self.find_source(None, text.as_deref()).map_err(|_| missing())?;
        let samples = self.samples_of(source).ok_or_else(missing)?;
        let heard = self.heard_at(source).ok_or_else(missing)?;
        let name = self.source_name(source).unwrap_or_default();
        Ok(Named {
            heard,
            name: name.to_string_lossy().into_owned(),
            description: self.source_description(source).to_string_lossy().into_owned(),
            rate_hz: samples.rate_hz,
            map: samples.map,
            later_us: self.source_later_us(source),
        })
    }

    /// Returns what a source has.
    pub(super) fn heard_at(&self, source: Source) -> Option<Heard> {
        Some(match source {
            Source::Monitor(sink) => {
                Heard { device: self.sinks.get(sink)?.device.clone(), captures: false }
            }
            Source::Capture(sink) => {
                Heard { device: self.sinks.get(sink)?.device.clone(), captures: true }
            }
        })
    }
}

/// A FIFO, and what is in it.
struct Pipe {
    file: PathBuf,
    format: SampleFormat,
    rate_hz: u32,
    map: ChannelMap,
}

impl Pipe {
    fn props(&self, what: &str) -> Props {
        let file = self.file.to_string_lossy();
        let mut props = described(&format!("Unix FIFO {what} {file}"), "abstract");
        properties::set(&mut props, c"device.string", &file);
        props
    }

    fn of(self, device: String) -> NewPipe {
        let channels = self.map.channels() as u32;
        NewPipe { device, file: self.file, format: self.format, rate_hz: self.rate_hz, channels }
    }
}

/// What a remapped sink or source is like.
struct Remapped {
    map: ChannelMap,
    /// What the master calls these channels.
    of_master: ChannelMap,
    rate_hz: Option<u32>,
    mixed: bool,
}

fn remapped(arguments: &Arguments, master: &Named) -> Result<Remapped, String> {
    let Samples { rate_hz, map, .. } = arguments.samples()?;
    let map = map.unwrap_or(master.map);
    let of_master = arguments.map("master_channel_map")?.unwrap_or(map);
    if of_master.channels() != map.channels() {
        let (of_master, own) = (of_master.channels(), map.channels());
        return Err(format!("master_channel_map has {of_master} channels, and it has {own}"));
    }
    let mixed = arguments.boolean("remix")?.unwrap_or(true);
    Ok(Remapped { map, of_master, rate_hz: Some(rate_hz.unwrap_or(master.rate_hz)), mixed })
}

/// Returns the properties of a device.
pub(super) fn described(description: &str, class: &str) -> Props {
    let mut props = Props::new();
    properties::set(&mut props, c"device.description", description);
    properties::set(&mut props, c"device.class", class);
    props
}
