//! Who listens where programs of PulseAudio look for their server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::OtherServer;

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

/// The mark of a listening socket in `/proc/net/unix`.
const LISTENING: &str = "00010000";

/// Looks for the listener without connecting, which would start what systemd waits for.
pub(crate) fn listener() -> PulseSocket {
    let Some(path) = path() else { return PulseSocket::Nobody };
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let Some(inode) = inode_of_listener(&sockets, &path.to_string_lossy()) else {
        return PulseSocket::Nobody;
    };
    let holders = holders(&inode);
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

/// The number by which processes refer to the socket that listens at `path`: of several, the
/// newest, which has replaced the others in the file system.
pub(crate) fn inode_of_listener(sockets: &str, path: &str) -> Option<String> {
    let end = format!(" {path}");
    let at_path = sockets.lines().filter(|line| line.ends_with(&end)).filter_map(|line| {
        let mut words = line.split_whitespace().skip(3);
        let (flags, inode) = (words.next()?, words.nth(2)?);
        (flags == LISTENING).then(|| inode.to_owned())
    });
    at_path.max_by_key(|inode| inode.parse::<u64>().unwrap_or_default())
}

fn process_directory(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// The processes of this user that have it open.
fn holders(inode: &str) -> Vec<OtherServer> {
    let link = format!("socket:[{inode}]");
    let has_it = |process: &Path| {
        let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        descriptors
            .map(|descriptor| fs::read_link(descriptor.path()))
            .any(|found| found.is_ok_and(|found| found.as_os_str() == link.as_str()))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let named = processes.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let program = fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned();
        has_it(&entry.path()).then_some(OtherServer { program, process })
    });
    named.collect()
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
