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

/// A server that programs of PulseAudio look for in place of the usual socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedServer {
    /// Its address, as libpulse reads it.
    pub address: String,
    /// The file that names it; `None`: the variable `PULSE_SERVER`.
    pub file: Option<PathBuf>,
}

/// The server that the environment names, or the file of settings that libpulse reads.
pub(crate) fn named_server() -> Option<NamedServer> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(address) = variable("PULSE_SERVER") {
        return Some(NamedServer { address: address.to_string_lossy().into_owned(), file: None });
    }
    let home = variable("HOME").map(PathBuf::from);
    let configuration = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let configuration = configuration.or_else(|| Some(home.as_ref()?.join(".config")));
    // libpulse reads the first that is there, and none of the others.
    let users = [home.map(|home| home.join(".pulse")), configuration.map(|at| at.join("pulse"))];
    let users = users.into_iter().flatten().map(|directory| directory.join("client.conf"));
    let file = variable("PULSE_CLIENTCONFIG").map(PathBuf::from).unwrap_or_else(|| {
        let system = PathBuf::from("/etc/pulse/client.conf");
        users.into_iter().find(|file| file.exists()).unwrap_or(system)
    });
    let address = default_server(&std::fs::read_to_string(&file).ok()?)?;
    Some(NamedServer { address, file: Some(file) })
}

/// The server in what a file of settings says.
pub(crate) fn default_server(text: &str) -> Option<String> {
    let stated = text.lines().rev().find_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        (name.trim() == "default-server").then(|| value.trim().to_owned())
    });
    stated.filter(|address| !address.is_empty())
}

impl NamedServer {
    /// What has programs look for the usual socket again.
    pub(crate) fn forget(&self) -> String {
        match &self.file {
            None => "unset PULSE_SERVER, to have them here".into(),
            Some(file) => {
                format!("remove 'default-server' from {}, to have them here", file.display())
            }
        }
    }
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

pub(crate) fn path() -> Option<PathBuf> {
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
