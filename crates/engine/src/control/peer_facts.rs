//! What the kernel reports about a program that has connected.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use confinement::{cgroup_of, own_surroundings, surroundings_of, while_it_lives};
use sys::socket::Connection;

use crate::policy::{Executable, Facts};

/// Returns what a policy's rules can match; `None`: the kernel does not report who connected.
/// `looks_at_process`: a rule needs more than the socket reveals.
pub(super) fn facts_of(socket: &Connection, looks_at_process: bool) -> Option<Facts> {
    let peer = socket.peer().ok()?;
    let mut group_ids = socket.peer_groups().ok()?;
    group_ids.push(peer.group_id);
    let mut facts = Facts { user_id: peer.user_id, group_ids, ..Facts::default() };
    let process = |process: &str| (executable(socket, process), cgroup_of(process));
    if looks_at_process && let Some(seen) = while_it_lives(socket, process) {
        (facts.executable, facts.cgroup) = seen;
    }
    Some(facts)
}

fn executable(socket: &Connection, process: &str) -> Executable {
    let shares_files = surroundings_of(socket, process)
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

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
