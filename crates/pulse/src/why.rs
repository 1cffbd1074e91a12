//! The command line of `consort why`: it asks the front end as any mixer would, and the server as
//! any program would.

mod server;

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io::{BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use client::stream::StreamStatus;
use pulseaudio::protocol::{
    AuthParams, AuthReply, ChannelVolume, Command, CommandReply, MAX_VERSION, Prop, Props,
    ServerInfo, SetClientNameReply, SinkInfo, SinkInputInfo, SourceInfo, SourceOutputInfo,
    encode_command_message, read_reply_message,
};

use self::server::OnServer;
use crate::front_end::WHY_DEFAULT;
use crate::service::default_path;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Explain where streams are heard and how loud, and why
///
/// For each stream of PulseAudio's programs: its sink or source, its volume, whether it is muted,
/// what other streams do to it, and why; and which sink is the default. For all streams: what the
/// server makes of them (consort volume, consort mute), and who has changed that last.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort why
  consort why 3
  consort why firefox")]
pub struct Why {
    /// Number of a stream (see consort volume), or name of a program or how it begins [default: all
    /// streams]
    stream: Option<String>,
    /// The socket of the server's consort pulse [default: $XDG_RUNTIME_DIR/pulse/native]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Why {
    /// Prints what was decided, and why, on the server `server` and by its front end.
    ///
    /// # Errors
    /// A sentence: there is no such stream, or neither the server nor the front end answers.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let path = self.socket.map_or_else(default_path, Ok)?;
        let on_server = OnServer::read(server);
        let (mut said, failure) = match Said::by_front_end(&path) {
            Ok(said) => (said, None),
            Err(error) => (Said::default(), Some(error)),
        };
        let is_meant = |number, program: &str| {
            self.stream.as_ref().is_none_or(|wanted| is_meant(wanted, number, program))
        };
        let on_server = match on_server {
            Ok(on_server) => Some(on_server),
            // The front end says what it knows without a server.
            Err(_) if failure.is_none() => None,
            Err(error) => return Err(error.into()),
        };
        let all = on_server.as_ref().map_or(&[][..], |server| &server.streams);
        // A number is the server's: the front end may have a stream of the same on another one.
        let is_by_number = self.stream.as_ref().is_some_and(|wanted| wanted.parse::<u32>().is_ok());
        let is_there = |stream: &Stream| all.iter().any(|status| stream.is(status));
        let is_of_another =
            |stream: &Stream| is_by_number && on_server.is_some() && !is_there(stream);
        said.streams
            .retain(|stream| is_meant(stream.number, &stream.program()) && !is_of_another(stream));
        let mut text = String::new();
        for stream in &said.streams {
            text += &stream.explained();
            let status = all.iter().find(|status| stream.is(status));
            if let Some((server, status)) = on_server.as_ref().zip(status) {
                text += &server.besides(status);
            }
        }
        let is_said = |status| said.streams.iter().any(|stream| stream.is(status));
        let others = all
            .iter()
            .filter(|status| is_meant(Some(status.stream), &status.program) && !is_said(status));
        text.extend(
            on_server
                .iter()
                .flat_map(|server| others.clone().map(|status| server.explained(status))),
        );
        match &self.stream {
            Some(wanted) if text.is_empty() => {
                let unknown = format!("there is no stream '{wanted}': see consort volume");
                return Err(failure.map_or_else(
                    || anyhow::anyhow!(unknown.clone()),
                    |failure| failure.context(unknown.clone()),
                ));
            }
            Some(_) => {}
            None => text.extend(said.default),
        }
        if let Some(failure) = failure.filter(|_| text.is_empty()) {
            return Err(failure);
        }
        cli::output::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns whether a stream has this number, or its program a name that begins like this.
fn is_meant(wanted: &str, number: Option<u32>, program: &str) -> bool {
    match wanted.parse::<u32>() {
        Ok(wanted) => number == Some(wanted),
        Err(_) => program.to_lowercase().starts_with(&wanted.to_lowercase()),
    }
}

/// What the front end says.
#[derive(Debug, Default)]
struct Said {
    streams: Vec<Stream>,
    /// A line about the default sink.
    default: Option<String>,
}

impl Said {
    fn by_front_end(path: &Path) -> anyhow::Result<Self> {
        let mut server = Asking::connect(path)?;
        let sinks: Vec<SinkInfo> = server.ask(&Command::GetSinkInfoList)?;
        let sources: Vec<SourceInfo> = server.ask(&Command::GetSourceInfoList)?;
        let plays: Vec<SinkInputInfo> = server.ask(&Command::GetSinkInputInfoList)?;
        let records: Vec<SourceOutputInfo> = server.ask(&Command::GetSourceOutputInfoList)?;
        // Those of modules are where their modules have them.
        let plays = plays.into_iter().filter(|stream| stream.owner_module_index.is_none());
        let records = records.into_iter().filter(|stream| stream.owner_module_index.is_none());
        let plays = plays.map(|stream| Stream::of_input(stream, &sinks));
        let records = records.map(|stream| Stream::of_output(stream, &sources));
        let default = sinks.iter().find_map(|sink| {
            let reason = property(&sink.props, WHY_DEFAULT)?;
            Some(format!("default sink {}: {reason}\n", sink.name.to_string_lossy()))
        });
        Ok(Self { streams: plays.chain(records).collect(), default })
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
            format!(
                "no server for programs of PulseAudio listens at {shown}: start consort run --pulse"
            )
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

fn number(props: &Props, key: &CStr) -> Option<u32> {
    property(props, key)?.parse().ok()
}

/// A stream that plays or records.
#[derive(Debug)]
struct Stream {
    /// What it is in PulseAudio's words.
    name: String,
    /// Its number on the server of the front end.
    number: Option<u32>,
    /// The process of the front end, if that says so.
    process: Option<u32>,
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
            number: number(&props, c"consort.stream"),
            process: number(&props, c"consort.process"),
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
            number: number(&props, c"consort.stream"),
            process: number(&props, c"consort.process"),
            device: device.unwrap_or_default(),
            is_muted,
            volume: cvolume,
            props,
        }
    }

    fn program(&self) -> String {
        property(&self.props, c"application.name").unwrap_or_default()
    }

    /// Returns whether the server means this stream. Another server than that of the front end has
    /// streams of the same numbers.
    fn is(&self, status: &StreamStatus) -> bool {
        let is_of_front_end = match self.process {
            // A server that does not see its programs' processes has 0.
            Some(process) if status.process != 0 => status.process == process,
            _ => status.program == self.program(),
        };
        self.number == Some(status.stream) && is_of_front_end
    }

    /// Returns the sentences about it.
    fn explained(&self) -> String {
        let text = |key| property(&self.props, key).unwrap_or_default();
        let (program, media) = (self.program(), text(c"media.name"));
        let name = match self.number {
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
            (c"consort.process", c"70"),
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
        let is_meant = |wanted| is_meant(wanted, stream.number, &stream.program());
        assert_eq!(["3", "MP", "mpv"].map(is_meant), [true; 3]);
        assert_eq!(["7", "pv"].map(is_meant), [false; 2]);
    }
    #[test]
    fn a_stream_of_the_same_number_on_another_server_is_not_the_front_ends() {
        let of = |stream, process, program: &str| StreamStatus {
            program: program.into(),
            process,
            stream,
            ..server::tests::stream(1.0, Default::default())
        };
        let mut stream = stream(&[0], None);
        assert!(stream.is(&of(3, 70, "mpv")) && stream.is(&of(3, 0, "mpv")));
        for other in [of(3, 71, "mpv"), of(3, 0, "firefox"), of(4, 70, "mpv")] {
            assert!(!stream.is(&other), "{other:?}");
        }
        // A front end of a release that does not say which process it is.
        stream.process = None;
        assert!(stream.is(&of(3, 70, "mpv")) && !stream.is(&of(3, 70, "firefox")));
    }
}
