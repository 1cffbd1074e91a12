//! A connection to a server of PulseAudio's protocol without a stream: what programs ask that show
//! its devices, and load modules.

use std::ffi::CString;
use std::time::Duration;

use anyhow::{Context, bail};
use convert::ProgramFormat;
use pulseaudio::protocol::{
    ChannelMap, Command, LoadModuleParams, PlaySampleParams, Props, SampleSpec, SinkFlags,
    SinkInfo, SourceFlags, SourceInfo, SubscriptionMask, Volume,
};

use super::connection::{Begun, RemoteFormat};
use super::incoming::{DONE, LISTED_SINKS, LISTED_SOURCES, LOADED, Opening, PLAYED, SERVER};
use crate::front_end::own_program;

/// How long the answer to a question may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a module may take to be there: one that connects with another machine waits for that.
const LOAD_TIMEOUT: Duration = Duration::from_secs(25);

/// A connection to a server.
#[derive(Debug)]
pub struct RemoteControl {
    begun: Begun,
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteServer {
    /// Its name and version.
    pub version: String,
    /// The user that runs it.
    pub user: String,
    /// Its machine.
    pub host: String,
    /// A number that is another one for each server.
    pub cookie: u32,
}

/// What a device stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemoteDeviceKind {
    /// It plays.
    Sink,
    /// It captures.
    Source,
}

/// A sink, or a source that is not a sink's monitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDevice {
    /// Whether it plays or captures.
    pub kind: RemoteDeviceKind,
    /// By which programs name it.
    pub name: String,
    /// For users.
    pub description: String,
    /// Its samples.
    pub format: RemoteFormat,
    /// It is hardware.
    pub is_hardware: bool,
    /// It is at another server.
    pub is_far: bool,
    /// `device.icon_name`, if it has one.
    pub icon: Option<String>,
}

impl RemoteControl {
    /// Connects to a server, in PulseAudio's words, as a program of this name.
    ///
    /// # Errors
    /// A sentence: it cannot be reached, does not answer, or refuses.
    pub fn open(server: &str, program: &str) -> anyhow::Result<Self> {
        Ok(Self { begun: Begun::connect_to(server, program)? })
    }

    fn ask(&mut self, number: u32, command: &Command) -> anyhow::Result<Opening> {
        self.begun.ask_within(number, command, ANSWER_TIMEOUT)
    }

    /// Returns what is known of the server.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn server(&mut self) -> anyhow::Result<RemoteServer> {
        let answer = self.ask(SERVER, &Command::GetServerInfo)?;
        let Opening::Server(info) = answer else { bail!("it answers another question") };
        let name = text(info.server_name.as_ref());
        Ok(RemoteServer {
            version: format!("{name} {}", text(info.server_version.as_ref())),
            user: text(info.user_name.as_ref()),
            host: text(info.host_name.as_ref()),
            cookie: info.cookie,
        })
    }

    /// Returns its devices.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn devices(&mut self) -> anyhow::Result<Vec<RemoteDevice>> {
        let sinks = self.ask(LISTED_SINKS, &Command::GetSinkInfoList)?;
        let sources = self.ask(LISTED_SOURCES, &Command::GetSourceInfoList)?;
        let (Opening::Sinks(sinks), Opening::Sources(sources)) = (sinks, sources) else {
            bail!("it answers another question")
        };
        let own = |source: &&SourceInfo| source.monitor_of_sink_index.is_none();
        let sources = sources.iter().filter(own).filter_map(of_source);
        Ok(sinks.iter().filter_map(of_sink).chain(sources).collect())
    }

    /// Has the server say when its devices change.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn subscribe(&mut self) -> anyhow::Result<()> {
        let mask = SubscriptionMask::SINK | SubscriptionMask::SOURCE;
        self.ask(DONE, &Command::Subscribe(mask)).map(|_| ())
    }

    /// Waits until devices have changed since they were [asked for](Self::devices), without a
    /// bound.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn await_change(&mut self) -> anyhow::Result<()> {
        self.begun.await_change()
    }

    /// Loads a module, and returns its number.
    ///
    /// # Errors
    /// It is refused, or the connection has ended.
    pub fn load(&mut self, module: &str, arguments: &str) -> anyhow::Result<u32> {
        let name = CString::new(module).context("a name has no zero byte")?;
        let arguments = Some(CString::new(arguments).context("an argument has no zero byte")?);
        let command = Command::LoadModule(LoadModuleParams { name, arguments });
        match self.begun.ask_within(LOADED, &command, LOAD_TIMEOUT)? {
            Opening::Loaded(index) => Ok(index),
            _ => bail!("it answers another question"),
        }
    }

    /// Plays a sample on a sink, or on the default one, at a volume in percent. Returns false if
    /// it is refused: there is no such sample, or no such sink.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn play_sample(
        &mut self,
        name: &str,
        sink: Option<&str>,
        percent: u32,
    ) -> anyhow::Result<bool> {
        let params = PlaySampleParams {
            sink_index: None,
            sink_name: sink.map(CString::new).transpose().context("a name has no zero byte")?,
            volume: percent.min(100) * Volume::NORM.as_u32() / 100,
            name: CString::new(name).context("a name has no zero byte")?,
            props: Props::new(),
        };
        let played = self.begun.offer_within(PLAYED, &Command::PlaySample(params), ANSWER_TIMEOUT);
        Ok(played?.is_ok())
    }

    /// Unloads a module.
    ///
    /// # Errors
    /// There is none of this number, or the connection has ended.
    pub fn unload(&mut self, index: u32) -> anyhow::Result<()> {
        self.ask(DONE, &Command::UnloadModule(index)).map(|_| ())
    }
}

fn text(text: Option<&CString>) -> String {
    text.map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

fn of_sink(info: &SinkInfo) -> Option<RemoteDevice> {
    let SinkInfo { name, description, sample_spec, channel_map, props, flags, .. } = info;
    let format = format(sample_spec, channel_map)?;
    Some(RemoteDevice {
        kind: RemoteDeviceKind::Sink,
        name: text(Some(name)),
        description: text(description.as_ref().or(Some(name))),
        format,
        is_hardware: flags.contains(SinkFlags::HARDWARE),
        is_far: is_far(props),
        icon: icon(props),
    })
}

fn of_source(info: &SourceInfo) -> Option<RemoteDevice> {
    let SourceInfo { name, description, sample_spec, channel_map, props, flags, .. } = info;
    let format = format(sample_spec, channel_map)?;
    Some(RemoteDevice {
        kind: RemoteDeviceKind::Source,
        name: text(Some(name)),
        description: text(description.as_ref().or(Some(name))),
        format,
        is_hardware: flags.contains(SourceFlags::HARDWARE),
        is_far: is_far(props),
        icon: icon(props),
    })
}

fn format(spec: &SampleSpec, map: &ChannelMap) -> Option<RemoteFormat> {
    let ProgramFormat { format, rate_hz, map } = own_program(spec, map)?;
    Some(RemoteFormat { format, rate_hz, map })
}

/// Returns whether a tunnel leads there.
fn is_far(props: &Props) -> bool {
    props.iter().any(|(key, _)| key.to_bytes() == b"tunnel.remote.server")
}

fn icon(props: &Props) -> Option<String> {
    let (_, icon) = props.iter().find(|(key, _)| key.to_bytes() == b"device.icon_name")?;
    let icon = std::ffi::CStr::from_bytes_until_nul(icon).ok()?;
    Some(icon.to_string_lossy().into_owned())
}
