//! The command line of `consort why`: it asks the front end as any mixer would.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use pulseaudio::protocol::{
    AuthParams, AuthReply, ChannelVolume, Command, CommandReply, MAX_VERSION, Prop, Props,
    ServerInfo, SetClientNameReply, SinkInfo, SinkInputInfo, SourceInfo, SourceOutputInfo,
    encode_command_message, read_reply_message,
};

use crate::front_end::WHY_DEFAULT;
use crate::service::default_path;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Explain what was decided for streams of PulseAudio's programs
///
/// For each stream: its sink or source, its volume, whether it is muted, what other streams do to
/// it, and why; and which sink is the default.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort why
  consort why 3
  consort why firefox")]
pub struct Why {
    /// Number of a stream (see consort volume), or name of a program or how it begins [default: all
    /// streams]
    stream: Option<String>,
    /// The socket of consort pulse [default: $XDG_RUNTIME_DIR/pulse/native]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Why {
    /// Prints what was decided, and why.
    ///
    /// # Errors
    /// A sentence: the front end is not there, or there is no such stream.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let path = self.socket.map_or_else(default_path, Ok)?;
        let mut server = Asking::connect(&path)?;
        let sinks: Vec<SinkInfo> = server.ask(&Command::GetSinkInfoList)?;
        let sources: Vec<SourceInfo> = server.ask(&Command::GetSourceInfoList)?;
        let plays: Vec<SinkInputInfo> = server.ask(&Command::GetSinkInputInfoList)?;
        let records: Vec<SourceOutputInfo> = server.ask(&Command::GetSourceOutputInfoList)?;
        // Those of modules are where their modules have them.
        let plays = plays.into_iter().filter(|stream| stream.owner_module_index.is_none());
        let records = records.into_iter().filter(|stream| stream.owner_module_index.is_none());
        let plays = plays.map(|stream| Stream::of_input(stream, &sinks));
        let records = records.map(|stream| Stream::of_output(stream, &sources));
        let mut streams: Vec<Stream> = plays.chain(records).collect();
        if let Some(wanted) = &self.stream {
            streams.retain(|stream| stream.is_meant(wanted));
            if streams.is_empty() {
                bail!("no stream of a program of PulseAudio is '{wanted}': see consort volume");
            }
        }
        let text: String = streams.iter().map(Stream::explained).collect();
        let default = sinks.iter().find_map(|sink| {
            let reason = property(&sink.props, WHY_DEFAULT)?;
            Some(format!("default sink {}: {reason}\n", sink.name.to_string_lossy()))
        });
        let default = default.filter(|_| self.stream.is_none()).unwrap_or_default();
        cli::output::print(&format!("{text}{default}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A connection to the front end.
struct Asking {
    socket: BufReader<UnixStream>,
}

impl Asking {
    fn connect(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let socket = UnixStream::connect(path).with_context(|| {
            format!("nobody serves programs of PulseAudio at {shown}: start consort run --pulse")
        })?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let mut asking = Self { socket: BufReader::new(socket) };
        let auth = AuthParams { version: MAX_VERSION, ..AuthParams::default() };
        let _: AuthReply = asking.ask(&Command::Auth(auth))?;
        let mut props = Props::new();
        props.set(Prop::ApplicationName, c"consort why");
        let _: SetClientNameReply = asking.ask(&Command::SetClientName(props))?;
        let about: ServerInfo = asking.ask(&Command::GetServerInfo)?;
        if about.server_name.as_deref() != Some(c"consort") {
            bail!("another sound server listens at {shown}, and does not say why");
        }
        Ok(asking)
    }

    fn ask<R: CommandReply>(&mut self, command: &Command) -> anyhow::Result<R> {
        let mut bytes = Vec::new();
        encode_command_message(&mut bytes, 0, command, MAX_VERSION)?;
        self.socket.get_mut().write_all(&bytes).context("the front end does not answer")?;
        let (_, reply) = read_reply_message(&mut self.socket, MAX_VERSION)
            .context("the front end does not answer as it should")?;
        Ok(reply)
    }
}

fn property(props: &Props, key: &CStr) -> Option<String> {
    let value = CStr::from_bytes_with_nul(props.get_bytes(key)?).ok()?;
    // What programs say about themselves must not change the terminal.
    Some(value.to_string_lossy().chars().filter(|letter| !letter.is_control()).collect())
}

/// A stream that plays or records.
#[derive(Debug)]
struct Stream {
    /// What it is in PulseAudio's words.
    name: String,
    /// The name of its sink, or source.
    device: String,
    is_muted: bool,
    volume: ChannelVolume,
    props: Props,
}

impl Stream {
    fn of_input(stream: SinkInputInfo, sinks: &[SinkInfo]) -> Self {
        let SinkInputInfo { index, sink_index, muted: is_muted, cvolume, props, .. } = stream;
        let sink = sinks.iter().find(|sink| sink.index == sink_index);
        let device = sink.map(|sink| sink.name.to_string_lossy().into_owned());
        Self {
            name: format!("sink input {index}"),
            device: device.unwrap_or_default(),
            is_muted,
            volume: cvolume,
            props,
        }
    }

    fn of_output(stream: SourceOutputInfo, sources: &[SourceInfo]) -> Self {
        let SourceOutputInfo { index, source_index, muted: is_muted, cvolume, props, .. } = stream;
        let source = sources.iter().find(|source| source.index == source_index);
        let device = source.map(|source| source.name.to_string_lossy().into_owned());
        Self {
            name: format!("source output {index}"),
            device: device.unwrap_or_default(),
            is_muted,
            volume: cvolume,
            props,
        }
    }

    /// Returns whether it has this number, or its program a name that begins like this.
    fn is_meant(&self, wanted: &str) -> bool {
        if wanted.parse::<u32>().is_ok() {
            return property(&self.props, c"consort.stream").as_deref() == Some(wanted);
        }
        let program = property(&self.props, c"application.name").unwrap_or_default();
        program.to_lowercase().starts_with(&wanted.to_lowercase())
    }

    /// Returns the sentences about it.
    fn explained(&self) -> String {
        let text = |key| property(&self.props, key).unwrap_or_default();
        let (program, media) = (text(c"application.name"), text(c"media.name"));
        let name = match property(&self.props, c"consort.stream") {
            Some(number) => format!("stream {number} ({})", self.name),
            None => self.name.clone(),
        };
        let mut lines = format!("{name}: {program}, {media}\n");
        let _ = writeln!(lines, "  on {}: {}", self.device, text(c"consort.why.device"));
        let _ = writeln!(lines, "  at {}: {}", self.percent(), text(c"consort.why.volume"));
        let muted = if self.is_muted { "muted" } else { "not muted" };
        let _ = match property(&self.props, c"consort.why.other") {
            Some(other) => writeln!(lines, "  {other}"),
            None => writeln!(lines, "  {muted}: {}", text(c"consort.why.mute")),
        };
        lines
    }

    /// Returns the volume of each channel, or of all if they have the same.
    fn percent(&self) -> String {
        let full = u64::from(policy::FULL_VOLUME);
        let percent = |steps: u32| format!("{}%", (u64::from(steps) * 100 + full / 2) / full);
        let volumes = self.volume.channels().iter();
        let mut all: Vec<String> = volumes.map(|volume| percent(volume.as_u32())).collect();
        if all.windows(2).all(|pair| pair[0] == pair[1]) {
            all.truncate(1);
        }
        all.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::Volume;

    use super::*;

    fn stream(volumes: &[u32], other: Option<&CStr>) -> Stream {
        let mut props = Props::new();
        props.set(Prop::ApplicationName, c"mpv");
        props.set(Prop::MediaName, c"a\x1b[31m song");
        for (key, value) in [
            (c"consort.stream", c"3"),
            (c"consort.why.device", c"the default"),
            (c"consort.why.volume", c"as the last time"),
            (c"consort.why.mute", c"the default"),
        ] {
            props.set_bytes(key, value.to_bytes_with_nul());
        }
        if let Some(other) = other {
            props.set_bytes(c"consort.why.other", other.to_bytes_with_nul());
        }
        let mut cvolume = ChannelVolume::empty();
        volumes.iter().for_each(|volume| cvolume.push(Volume::from_u32_clamped(*volume)));
        let info = SinkInputInfo { index: 7, props, cvolume, ..SinkInputInfo::default() };
        Stream::of_input(info, &[SinkInfo { name: c"consort".into(), ..SinkInfo::default() }])
    }

    #[test]
    fn a_stream_is_explained_in_a_few_lines() {
        let text = "stream 3 (sink input 7): mpv, a[31m song\n  on consort: the default\n  \
                    at 50%: as the last time\n  not muted: the default\n";
        assert_eq!(stream(&[0x8000; 2], None).explained(), text);
        let held = stream(&[0x8000, 0x10000], Some(c"held")).explained();
        let three = stream(&[0x8000, 0x8000, 0x10000], None).explained();
        assert!(three.contains("  at 50% 50% 100%: "), "{three}");
        assert!(held.contains("  at 50% 100%: ") && held.ends_with("\n  held\n"), "{held}");
    }

    #[test]
    fn a_stream_is_meant_by_its_number_or_its_programs_name() {
        let stream = stream(&[0], None);
        let meant = ["3", "MP", "mpv"].map(|wanted| stream.is_meant(wanted));
        assert_eq!(meant, [true; 3]);
        assert_eq!(["7", "pv"].map(|wanted| stream.is_meant(wanted)), [false; 2]);
    }
}
