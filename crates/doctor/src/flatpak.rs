//! Which of PulseAudio's sockets the programs have that run in Flatpaks.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{output, pulse};

/// An application that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlatpakFacts {
    /// Its id, such as `org.mozilla.firefox`.
    pub application: String,
    /// The socket that it has.
    pub socket: FlatpakSocket,
}

/// The socket of PulseAudio in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlatpakSocket {
    /// The application is not to have one.
    NotAllowed,
    /// The one at which programs outside look for their server, if there is one.
    Current,
    /// Another one, or none: that of when it started, which has been replaced since.
    Other,
}

/// Where a sandbox has the socket, and what is allowed in it.
const SOCKET: &str = "run/flatpak/pulse/native";
const INFO: &str = ".flatpak-info";

/// Looks into the sandboxes of this user.
pub(crate) fn running() -> Vec<FlatpakFacts> {
    let listed = output::of("flatpak", &["ps", "--columns=child-pid,application"]);
    let current = pulse::path().and_then(|path| identity(&path));
    let look = |(process, application): (u32, &str)| {
        let root = Path::new("/proc").join(process.to_string()).join("root");
        let info = fs::read_to_string(root.join(INFO)).ok()?;
        let socket = match identity(&root.join(SOCKET)) {
            _ if !allows_pulseaudio(&info) => FlatpakSocket::NotAllowed,
            inside if inside == current => FlatpakSocket::Current,
            _ => FlatpakSocket::Other,
        };
        Some(FlatpakFacts { application: application.to_owned(), socket })
    };
    let mut found: Vec<FlatpakFacts> =
        processes(&listed.unwrap_or_default()).filter_map(look).collect();
    found.sort_unstable_by(|one, other| one.application.cmp(&other.application));
    found.dedup();
    found
}

/// Process and application in each line of what `flatpak ps` prints.
pub(crate) fn processes(listed: &str) -> impl Iterator<Item = (u32, &str)> {
    listed.lines().filter_map(|line| {
        let (process, application) = line.trim().split_once(char::is_whitespace)?;
        Some((process.parse().ok()?, application.trim()))
    })
}

/// Whether the description of a sandbox gives it the socket.
pub(crate) fn allows_pulseaudio(info: &str) -> bool {
    let section = info.lines().skip_while(|line| *line != "[Context]").skip(1);
    let mut lines = section.take_while(|line| !line.starts_with('['));
    let sockets = lines.find_map(|line| line.strip_prefix("sockets="));
    sockets.is_some_and(|sockets| sockets.split(';').any(|socket| socket == "pulseaudio"))
}

/// A file, wherever it is mounted; `None`: there is none.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}
