//! What the kernel reports about a program that has connected.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sys::process::PidFd;
use sys::socket::Connection;

use crate::confinement::{Confinement, Surroundings};
use crate::policy::{Executable, Facts};

/// Returns what a policy's rules can match; `None`: the kernel does not report who connected.
/// `looks_at_process`: a rule needs more than the socket reveals.
pub(super) fn facts_of(socket: &Connection, looks_at_process: bool) -> Option<Facts> {
    let peer = socket.peer().ok()?;
    let mut group_ids = socket.peer_groups().ok()?;
    group_ids.push(peer.group_id);
    let mut facts = Facts { user_id: peer.user_id, group_ids, ..Facts::default() };
    let process = |process: &str| (executable(socket, process), cgroup(process));
    if looks_at_process && let Some(seen) = while_it_lives(socket, process) {
        (facts.executable, facts.cgroup) = seen;
    }
    Some(facts)
}

/// Returns why the program is taken for a confined one.
pub(super) fn confinement_of(socket: &Connection) -> Option<Confinement> {
    let seen = while_it_lives(socket, |process| surroundings(socket, process)).flatten();
    let (Some(program), Some(server)) = (seen, own_surroundings()) else {
        return Some(Confinement::Unknown);
    };
    program.confinement(&server)
}

/// Reads the directory of the connecting process in /proc. The process is held meanwhile: another
/// one that gets its id is not taken for it. `None`: it has ended, or is not visible from here.
fn while_it_lives<T>(socket: &Connection, read: impl FnOnce(&str) -> T) -> Option<T> {
    let pidfd: PidFd = socket.peer_pidfd().ok()?;
    let seen = read(&format!("/proc/{}", pidfd.process_id().ok()??));
    pidfd.has_ended().is_ok_and(|has_ended| !has_ended).then_some(seen)
}

fn executable(socket: &Connection, process: &str) -> Executable {
    let shares_files = surroundings(socket, process)
        .zip(own_surroundings())
        .map(|(program, server)| program.shares_files_with(&server));
    match shares_files {
        None => Executable::Unknown,
        // Its path is what it likes: it can mount any file there.
        // MUTATION: executable.path_in_other_mounts
        Some(false) => Executable::Elsewhere,
        Some(true) => path_of_executable(&format!("{process}/exe"))
            .map_or(Executable::Unknown, Executable::Path),
    }
}

/// Returns the path that the file `link` points to has, or had until it was deleted: a program
/// that was upgraded, or that has deleted its own file, is the same program.
fn path_of_executable(link: &str) -> Option<String> {
    let path = std::fs::read_link(link).ok()?.into_os_string().into_string().ok()?;
    let Some(before) = path.strip_suffix(" (deleted)") else { return Some(path) };
    let file = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let is_its_name =
        file(Path::new(&path)).is_some_and(|found| file(link.as_ref()) == Some(found));
    // MUTATION: path_of_executable.says_deleted
    Some(if is_its_name { path } else { before.to_owned() })
}

/// Returns the path in the single hierarchy of cgroup version 2.
fn cgroup(process: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("{process}/cgroup")).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned())
}

fn surroundings(socket: &Connection, process: &str) -> Option<Surroundings> {
    surroundings_in(process, socket.peer_security_label().ok()?.as_deref())
}

fn own_surroundings() -> Option<Surroundings> {
    let label = std::fs::read("/proc/self/attr/current").ok();
    surroundings_in("/proc/self", label.as_deref())
}

fn surroundings_in(directory: &str, label: Option<&[u8]>) -> Option<Surroundings> {
    let read = |name: &str| {
        let mut bytes = Vec::new();
        let file = File::open(format!("{directory}/{name}")).ok()?;
        file.take(LONGEST_FILE).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (mounts, users) = (read("mountinfo")?, read("uid_map")?);
    Some(Surroundings::of(&mounts, &users, &read("status")?, label))
}

/// Bytes that are read of a file. A program may have a hundred thousand mounts in a namespace of
/// its own; the root's is among the first.
const LONGEST_FILE: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn this_process_is_in_its_own_surroundings() {
        let (one, _other) = Connection::pair().unwrap();
        assert_eq!(confinement_of(&one), None);
    }

    #[test]
    fn a_deleted_executable_has_its_former_path() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("cat");
        for is_deleted in [false, true] {
            // By another process, so that no child of another test has it open for writing.
            let copied = Command::new("cp").arg("/bin/cat").arg(&program).status().unwrap();
            assert!(copied.success());
            let mut running = Command::new(&program)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            // It has begun when it answers.
            running.stdin.as_mut().unwrap().write_all(b"x").unwrap();
            running.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            if is_deleted {
                std::fs::remove_file(&program).unwrap();
            }
            let found = path_of_executable(&format!("/proc/{}/exe", running.id()));
            assert_eq!(found.as_deref(), program.to_str(), "deleted: {is_deleted}");
            running.kill().unwrap();
            running.wait().unwrap();
        }
    }

    #[test]
    fn a_name_that_says_deleted_is_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("x (deleted)"), directory.path().join("exe"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(path_of_executable(link.to_str().unwrap()).as_deref(), file.to_str());
    }
}
