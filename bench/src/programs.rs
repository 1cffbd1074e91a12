//! The C programs that the benchmark runs, compiled when it starts.
//!
//! They are plain JACK: linked once, against whichever `libjack.so.0` is there, the same binaries
//! load each server's library through `LD_LIBRARY_PATH`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workplace::Workplace;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
/// Used where libjack's development files are not installed.
const HEADERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/jack/include");

/// Where the compiled programs are.
pub struct Programs {
    /// A client of the graph.
    pub node: PathBuf,
    /// A client that connects and watches.
    pub patcher: PathBuf,
    /// Keeps a server no longer than the benchmark lives.
    pub leash: PathBuf,
    /// Processes chained by futexes.
    pub floor: PathBuf,
    /// What else a machine does.
    pub load: PathBuf,
    /// A program of PulseAudio; only where it was asked for.
    pub player: Option<PathBuf>,
}

impl Programs {
    /// Compiles all of them with `$CC` (or `cc`), the clients against the library in
    /// `library_directory`, or the system's; the player only if it is wanted.
    pub fn compile(
        workplace: &Workplace,
        library_directory: Option<&Path>,
        with_player: bool,
    ) -> Result<Self> {
        let jack = |command: &mut Command| {
            command.args(["-idirafter", HEADERS]);
            if let Some(directory) = library_directory {
                command.arg("-L").arg(directory);
            }
            // The library's own dependencies are for the loader; and the one linked here is not the
            // one that runs.
            command.args(["-l:libjack.so.0", "-Wl,--allow-shlib-undefined"]);
        };
        let pulse = |command: &mut Command| {
            command.args(["-l:libpulse.so.0", "-Wl,--allow-shlib-undefined", "-lm"]);
        };
        let compile = |name: &str, more: &dyn Fn(&mut Command)| -> Result<PathBuf> {
            let output = workplace.file(name);
            let compiler = std::env::var("CC").unwrap_or_else(|_| String::from("cc"));
            let mut command = Command::new(&compiler);
            command.args(["-O2", "-pthread", "-o"]).arg(&output).arg(format!("{SOURCES}/{name}.c"));
            more(&mut command);
            let result = command
                .output()
                .with_context(|| format!("cannot run the C compiler '{compiler}'"))?;
            ensure!(
                result.status.success(),
                "cannot compile {name}.c:\n{}",
                String::from_utf8_lossy(&result.stderr)
            );
            Ok(output)
        };
        Ok(Self {
            node: compile("node", &jack)?,
            patcher: compile("patcher", &jack)?,
            leash: compile("leash", &|_| ())?,
            floor: compile("floor", &|_| ())?,
            load: compile("load", &|_| ())?,
            player: with_player.then(|| compile("player", &pulse)).transpose()?,
        })
    }
}
