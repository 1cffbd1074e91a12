//! The command line, and the servers it selects.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use crate::measure::{Part, System};
use crate::server::{Candidate, QUANTUM_FRAMES, period_ns};
use crate::workplace::Workplace;

/// Measure servers behind libjack.so.0 side by side, with bare-futex floors in the same run
#[derive(Debug, Parser)]
#[command(name = "bench", after_help = "Example: bench --rounds 2 --json figures.json")]
pub struct Arguments {
    /// A server: NAME=BINARY,LIBRARY-DIRECTORY (NAME consort, trusting, jack2 or pipewire, or
    /// KIND:NAME; trusting is consort with --trust-programs; an empty directory means the system's
    /// library) [default: consort next to this program, /usr/bin/jackd and /usr/bin/pipewire]
    #[arg(long = "server", value_name = "NAME=BINARY,DIRECTORY")]
    servers: Vec<ServerArgument>,
    /// Only these parts
    #[arg(long = "part", value_enum, value_name = "PART")]
    parts: Vec<Part>,
    /// How often every server is measured, in turn
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Connections measured per server, over all rounds
    #[arg(long, default_value_t = 500)]
    connections: u32,
    /// Clients opened for the measurement of opening, per server, over all rounds
    #[arg(long, default_value_t = 100)]
    opens: u32,
    /// Clients of the large graph
    #[arg(long, default_value_t = 250)]
    pub many_clients: u32,
    /// Ports of each of them, half inputs, half outputs
    #[arg(long, default_value_t = 16)]
    pub many_ports: u32,
    /// Seconds for which each graph and each floor runs, and each row of the desktop is counted,
    /// per round
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=30))]
    pub seconds: u64,
    /// Desktop: how often a sound begins beside another in each round
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub beginnings: u32,
    /// Graphs: with a thread of the lowest priority on each CPU that evicts its caches, as on a
    /// machine in use
    #[arg(long)]
    pub cold_caches: bool,
    /// Graphs: frames per cycle
    #[arg(long, default_value_t = QUANTUM_FRAMES, value_parser = clap::value_parser!(u32).range(16..=8192))]
    pub frames: u32,
    /// Desktop: only this system; may be repeated [default: all]
    #[arg(long = "system", value_enum, value_name = "SYSTEM")]
    systems: Vec<System>,
    /// Graphs, placement and desktop: only what has TEXT in its name; may be repeated
    #[arg(long = "only", value_name = "TEXT")]
    only: Vec<String>,
    /// Graphs: without the futex floors, to compare builds of one server
    #[arg(long)]
    pub no_floors: bool,
    /// Run the servers in synchronous mode
    #[arg(long)]
    pub sync: bool,
    /// Also write everything to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also draw all times to this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// Which command line a server understands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `consort run …`
    Consort,
    /// `consort run --trust-programs …`
    Trusting,
    /// `jackd …`
    Jack2,
    /// `pipewire`, with a configuration of the benchmark's own
    PipeWire,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct ServerArgument {
    kind: Kind,
    name: String,
    binary: PathBuf,
    library_directory: Option<PathBuf>,
}

impl FromStr for ServerArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, paths) = text.split_once('=').ok_or("NAME=BINARY,DIRECTORY is wanted")?;
        let (kind, name) = name.split_once(':').unwrap_or((name, name));
        let kind = match kind {
            "consort" => Kind::Consort,
            "trusting" => Kind::Trusting,
            "jack2" => Kind::Jack2,
            "pipewire" => Kind::PipeWire,
            other => {
                return Err(format!("'{other}' is none of consort, trusting, jack2 and pipewire"));
            }
        };
        let (binary, directory) = paths.split_once(',').unwrap_or((paths, ""));
        let library_directory = (!directory.is_empty()).then(|| PathBuf::from(directory));
        Ok(Self { kind, name: name.into(), binary: binary.into(), library_directory })
    }
}

impl Arguments {
    /// What to measure, in order.
    pub fn parts(&self) -> Vec<Part> {
        if self.parts.is_empty() { Part::ALL.to_vec() } else { self.parts.clone() }
    }

    /// Which systems of a desktop to measure.
    pub fn systems(&self) -> Vec<System> {
        if self.systems.is_empty() { System::ALL.to_vec() } else { self.systems.clone() }
    }

    /// Whether a graph, or a row of the desktop, of this name is to be measured.
    pub fn has_graph(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| name.contains(text))
    }

    /// The nominal length of a graph's cycle.
    pub fn period_ns(&self) -> u64 {
        period_ns(self.frames)
    }

    /// How many connections one round measures.
    pub fn connections_per_round(&self) -> u32 {
        self.connections.div_ceil(self.rounds)
    }

    /// How many clients one round opens.
    pub fn opens_per_round(&self) -> u32 {
        self.opens.div_ceil(self.rounds)
    }

    /// The servers that were named, or those that are installed.
    pub fn candidates(&self, workplace: &Workplace) -> Result<Vec<Candidate>> {
        let named = if self.servers.is_empty() { found()? } else { self.servers.clone() };
        named
            .into_iter()
            .map(|server| {
                ensure!(server.binary.exists(), "there is no {}", server.binary.display());
                let directory = match server.library_directory {
                    Some(directory) => Some(with_soname(&directory, &server.name, workplace)?),
                    None if server.kind == Kind::PipeWire => Some(pipewires_library()?),
                    None => None,
                };
                Candidate::new(server.kind, server.name, server.binary, directory)
            })
            .collect()
    }
}

/// The release build of consort in the target directory of this program, and Debian's JACK2 and
/// PipeWire.
fn found() -> Result<Vec<ServerArgument>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let target = program.ancestors().nth(2).context("this program is in no target directory")?;
    let release = target.join("release");
    let consort = ServerArgument {
        kind: Kind::Consort,
        name: "consort".into(),
        binary: release.join("consort"),
        library_directory: Some(release),
    };
    let jack2 = ServerArgument {
        kind: Kind::Jack2,
        name: "jack2".into(),
        binary: "/usr/bin/jackd".into(),
        library_directory: None,
    };
    let pipewire = ServerArgument {
        kind: Kind::PipeWire,
        name: "pipewire".into(),
        binary: "/usr/bin/pipewire".into(),
        library_directory: None,
    };
    let is_there = |server: &ServerArgument| {
        server.binary.exists() && (server.kind != Kind::PipeWire || pipewires_library().is_ok())
    };
    Ok([consort, jack2, pipewire].into_iter().filter(is_there).collect())
}

/// Where Debian puts PipeWire's `libjack.so.0`, which is never the system's one.
pub fn pipewires_library() -> Result<PathBuf> {
    let architectures =
        std::fs::read_dir("/usr/lib").context("cannot look into /usr/lib")?.flatten();
    let places = architectures.map(|entry| entry.path().join("pipewire-0.3/jack"));
    let mut with_library = places.filter(|place| place.join("libjack.so.0").exists());
    with_library.next().context("PipeWire's libjack.so.0 is not installed (pipewire-jack)")
}

/// A directory with `libjack.so.0` in it: the one given, or, as Cargo names the file `libjack.so`,
/// a new one with a link.
fn with_soname(directory: &Path, server: &str, workplace: &Workplace) -> Result<PathBuf> {
    if directory.join("libjack.so.0").exists() {
        return Ok(directory.to_path_buf());
    }
    let library = directory.join("libjack.so");
    ensure!(
        library.exists(),
        "there is no libjack.so.0 and no libjack.so in {}",
        directory.display()
    );
    let linked = workplace.directory(&format!("lib-{server}"))?;
    std::os::unix::fs::symlink(library.canonicalize()?, linked.join("libjack.so.0"))?;
    Ok(linked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_server_is_named_by_its_kind_by_default() {
        let parse = |text: &str| text.parse::<ServerArgument>();
        let plain = parse("consort=/a/consort,/a/lib").unwrap();
        assert_eq!((plain.kind, plain.name.as_str()), (Kind::Consort, "consort"));
        assert_eq!(plain.library_directory.as_deref(), Some(Path::new("/a/lib")));
        let other = parse("jack2:patched=/opt/jackd,").unwrap();
        assert_eq!(
            (other.kind, other.name.as_str(), other.library_directory),
            (Kind::Jack2, "patched", None)
        );
        assert_eq!(parse("pipewire=/x,").unwrap().kind, Kind::PipeWire);
        assert!(parse("pulse=/x,").is_err() && parse("consort").is_err());
    }
}
