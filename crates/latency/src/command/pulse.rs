//! `consort latency pulse`: PulseAudio, or another server with its protocol.

use std::process::Command;

use crate::library::LibraryError;
use crate::library::{PulsePair, PulseSettings};
use clap::Args;

use super::pair::{self, Buffers, Pair};
use super::probe::ProbeSender;
use super::subject::{Planner, Recorded, Subject};
use super::systems::{self, System};

/// PulseAudio, through its own library.
#[derive(Debug, Clone, Args)]
pub(crate) struct Pulse {
    /// Sink that plays the signal [default: the default sink]
    #[arg(long, value_name = "SINK")]
    sink: Option<String>,
    /// Source that records it
    #[arg(long, value_name = "SOURCE", default_value = "@DEFAULT_MONITOR@")]
    source: String,
    #[command(flatten)]
    buffers: Buffers,
    /// SCHED_FIFO priority of the thread; 0: not real-time
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=98))]
    realtime_priority: u32,
}

impl Pair for PulsePair {
    fn read(&mut self, samples: &mut [f32]) -> Result<(), LibraryError> {
        Self::read(self, samples)
    }
    fn write(&mut self, samples: &[f32]) -> Result<(), LibraryError> {
        Self::write(self, samples)
    }
}

impl Subject for Pulse {
    fn record(
        &self,
        _server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded> {
        let buffers = self.buffers.of(frames);
        let address = address(|name| std::env::var(name).ok());
        let (mut sender, recorder) = ProbeSender::new(&plan(buffers.rate));
        let (this, server) = (self.clone(), address.clone());
        let measure = move |scheduling| {
            let mut pair = PulsePair::open(&PulseSettings {
                server: &server,
                sink: this.sink.as_deref(),
                source: Some(&this.source),
                sample_rate_hz: buffers.rate,
                frames: buffers.buffer,
                fragments: buffers.buffers,
            })?;
            pair::run_streams(&mut pair, buffers, &mut sender)?;
            Ok(scheduling)
        };
        let (scheduling, channels) =
            systems::recorded_in_thread(self.realtime_priority, recorder, measure)?;
        let system = System {
            interface: format!("PulseAudio's library, {}", server_name(&address)),
            device: format!(
                "{} to {}",
                self.sink.as_deref().unwrap_or("default sink"),
                self.source
            ),
            buffer: buffers.text(),
            sample_rate_hz: buffers.rate,
            format: "32-bit float",
            kernel: systems::kernel(),
            scheduling,
            stated_frames: None,
            xruns: None,
        };
        Ok((system, channels))
    }
}

/// The address that the library would use. Passing it explicitly keeps the library from starting a
/// server.
fn address(variable: impl Fn(&str) -> Option<String>) -> String {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let directory =
        || set("PULSE_RUNTIME_PATH").or_else(|| Some(set("XDG_RUNTIME_DIR")? + "/pulse"));
    let user = || format!("/run/user/{}/pulse", sys::process::real_user_id());
    set("PULSE_SERVER")
        .unwrap_or_else(|| format!("unix:{}/native", directory().unwrap_or_else(user)))
}

/// The server's name for itself, if `pactl` is installed.
fn server_name(address: &str) -> String {
    let asked =
        Command::new("pactl").args(["--server", address, "info"]).env("LC_ALL", "C").output();
    let info = asked
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match (field("Server Name:"), field("Server Version:")) {
        (Some(name), _) if name.contains('(') => name.to_owned(),
        (Some(name), Some(version)) => format!("{name} {version}"),
        _ => "server unnamed".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_address_is_found_as_its_own_programs_find_it() {
        let with = |pairs: &[(&str, &str)]| {
            address(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(with(&[("PULSE_SERVER", "tcp:x"), ("XDG_RUNTIME_DIR", "/r")]), "tcp:x");
        assert_eq!(
            with(&[("PULSE_SERVER", ""), ("XDG_RUNTIME_DIR", "/r")]),
            "unix:/r/pulse/native"
        );
        assert_eq!(
            with(&[("PULSE_RUNTIME_PATH", "/p"), ("XDG_RUNTIME_DIR", "/r")]),
            "unix:/p/native"
        );
        assert!(with(&[]).starts_with("unix:/run/user/"));
    }
}
