//! Who listens on a socket of the file system, found without connecting: that would start what
//! systemd waits for.

use std::fs;
use std::path::Path;

use crate::OtherServer;

/// The mark of a listening socket in `/proc/net/unix`.
const LISTENING: &str = "00010000";

/// The processes that have the socket open which listens at `path`; `None`: there is none.
pub(crate) fn holders_at(path: &Path) -> Option<Vec<OtherServer>> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    inode_of_listener(&sockets, &path.to_string_lossy()).map(|inode| holders(&inode))
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
