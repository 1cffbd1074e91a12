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
    AuthParams, AuthReply, Command, CommandReply, MAX_VERSION, Prop, Props, ServerInfo,
    SetClientNameReply, SinkInfo, SinkInputInfo, encode_command_message, read_reply_message,
};

use crate::front_end::WHY_DEFAULT;
use crate::service::default_path;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Explain what was decided for streams of PulseAudio's programs
///
/// For each stream that plays: its sink, its volume, whether it is muted, what other streams do to
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
        let mut streams: Vec<SinkInputInfo> = server.ask(&Command::GetSinkInputInfoList)?;
        if let Some(wanted) = &self.stream {
            streams.retain(|stream| is_meant(stream, wanted));
            if streams.is_empty() {
                bail!("no stream of a program of PulseAudio is '{wanted}': see consort volume");
            }
        }
        let name = |stream: &SinkInputInfo| {
            let sink = sinks.iter().find(|sink| sink.index == stream.sink_index);
            sink.map_or_else(String::new, |sink| sink.name.to_string_lossy().into_owned())
        };
        let text: String = streams.iter().map(|stream| explained(stream, &name(stream))).collect();
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

/// Returns whether a stream has this number, or its program a name that begins like this.
fn is_meant(stream: &SinkInputInfo, wanted: &str) -> bool {
    if wanted.parse::<u32>().is_ok() {
        return property(&stream.props, c"consort.stream").as_deref() == Some(wanted);
    }
    let program = property(&stream.props, c"application.name").unwrap_or_default();
    program.to_lowercase().starts_with(&wanted.to_lowercase())
}

/// Returns the sentences about a stream.
fn explained(stream: &SinkInputInfo, sink: &str) -> String {
    let text = |key| property(&stream.props, key).unwrap_or_default();
    let (program, media) = (text(c"application.name"), text(c"media.name"));
    let mut lines = format!(
        "stream {} (sink input {}): {program}, {media}\n",
        text(c"consort.stream"),
        stream.index
    );
    let _ = writeln!(lines, "  on {sink}: {}", text(c"consort.why.device"));
    let _ = writeln!(lines, "  at {}: {}", percent(stream), text(c"consort.why.volume"));
    let muted = if stream.muted { "muted" } else { "not muted" };
    match property(&stream.props, c"consort.why.other") {
        Some(other) => {
            let _ = writeln!(lines, "  {other}");
        }
        None => {
            let _ = writeln!(lines, "  {muted}: {}", text(c"consort.why.mute"));
        }
    }
    lines
}

/// Returns the volume of each channel, or of all if they have the same.
fn percent(stream: &SinkInputInfo) -> String {
    let full = u64::from(policy::FULL_VOLUME);
    let volumes = stream.cvolume.channels().iter();
    let percent = |steps: u32| format!("{}%", (u64::from(steps) * 100 + full / 2) / full);
    let mut all: Vec<String> = volumes.map(|volume| percent(volume.as_u32())).collect();
    all.dedup();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::{ChannelVolume, Volume};

    use super::*;

    fn stream(volumes: &[u32], other: Option<&CStr>) -> SinkInputInfo {
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
        SinkInputInfo { index: 7, props, cvolume, ..SinkInputInfo::default() }
    }

    #[test]
    fn a_stream_is_explained_in_a_few_lines() {
        let text = "stream 3 (sink input 7): mpv, a[31m song\n  on consort: the default\n  \
                    at 50%: as the last time\n  not muted: the default\n";
        assert_eq!(explained(&stream(&[0x8000; 2], None), "consort"), text);
        let held = explained(&stream(&[0x8000, 0x10000], Some(c"held")), "consort");
        assert!(held.contains("  at 50% 100%: ") && held.ends_with("\n  held\n"), "{held}");
    }

    #[test]
    fn a_stream_is_meant_by_its_number_or_its_programs_name() {
        let stream = stream(&[0], None);
        let meant = ["3", "MP", "mpv"].map(|wanted| is_meant(&stream, wanted));
        assert_eq!(meant, [true; 3]);
        assert_eq!(["7", "pv"].map(|wanted| is_meant(&stream, wanted)), [false; 2]);
    }
}
