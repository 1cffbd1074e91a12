//! Who listens where programs of PulseAudio look for their server.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{OtherServer, listener};

/// The process or the unit that has the socket.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PulseSocket {
    /// Nobody listens.
    #[default]
    Nobody,
    /// consort's front end, the process of this id.
    Ours(u32),
    /// Another server.
    Other(OtherServer),
    /// systemd, which starts something when the first program connects: this unit, if it is known.
    Unit(Option<String>),
}

/// Looks for the listener.
pub(crate) fn listener() -> PulseSocket {
    let Some(path) = path() else { return PulseSocket::Nobody };
    let Some(holders) = listener::holders_at(&path) else { return PulseSocket::Nobody };
    let of_systemd = |holder: &&OtherServer| holder.program == "systemd";
    match holders.iter().find(|holder| !of_systemd(holder)) {
        Some(holder) if crate::facts::is_consort(&process_directory(holder.process)) => {
            PulseSocket::Ours(holder.process)
        }
        Some(holder) => PulseSocket::Other(holder.clone()),
        None => PulseSocket::Unit(unit(&path)),
    }
}

fn path() -> Option<PathBuf> {
    let directory = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty())?;
    Some(Path::new(&directory).join("pulse/native"))
}

fn process_directory(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// What systemd starts for a socket, as `systemctl` says it.
fn unit(path: &Path) -> Option<String> {
    let listed = Command::new("systemctl")
        .args(["--user", "list-sockets", "--all", "--no-legend", "--plain"])
        .output()
        .ok()?;
    unit_of(&String::from_utf8_lossy(&listed.stdout), &path.to_string_lossy())
}

/// The last word of the line of that socket: path, socket unit, unit that it starts.
pub(crate) fn unit_of(listed: &str, path: &str) -> Option<String> {
    let mut lines = listed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let words = lines.find(|words| words.first() == Some(&path))?;
    words.get(2).map(|unit| (*unit).to_owned())
}
