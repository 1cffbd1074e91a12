//! What the kernel reports about a program that has connected.

use std::fs::File;
use std::io::{BufReader, Read};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use sys::socket::{process_of, security_label_of};

use crate::{Confinement, Surroundings, text_of_label};

/// Bytes that are read of a file. A program may have a hundred thousand mounts in a namespace of
/// its own; the root's is among the first.
const LONGEST_FILE: u64 = 1 << 16;
/// Bytes that most of these files have at most, so that they are read at once. The kernel reports
/// no size of them.
const USUAL_FILE: usize = 4096;
/// Bytes of mounts that are read at once: the kernel takes longer for a line of this file than for
/// most others.
const FEW_MOUNTS: usize = 256;

/// Returns why the program that has connected a local socket is taken for a confined one.
pub fn confinement_of(socket: impl AsFd) -> Option<Confinement> {
    let socket = socket.as_fd();
    let seen = while_it_lives(socket, |process| surroundings_of(socket, process)).flatten();
    let Some(program) = seen else { return Some(Confinement::Unknown) };
    // Without a label of the program, there is nothing to compare.
    let own = if program.label.is_some() { own_surroundings() } else { unlabelled().cloned() };
    own.map_or(Some(Confinement::Unknown), |own| program.confinement(&own))
}

/// Reads the directory of the connecting process in /proc. The process is held meanwhile: another
/// one that gets its id is not taken for it. `None`: it has ended, or is not visible from here.
pub fn while_it_lives<T>(socket: impl AsFd, read: impl FnOnce(&str) -> T) -> Option<T> {
    let process = process_of(socket).ok()?;
    let seen = read(&format!("/proc/{}", process.process_id().ok()??));
    process.has_ended().is_ok_and(|has_ended| !has_ended).then_some(seen)
}

/// Returns the path in the single hierarchy of cgroup version 2 of the process with this directory
/// in /proc; `None`: unknown.
#[must_use]
pub fn cgroup_of(process: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("{process}/cgroup")).ok()?;
    Some(text.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned())
}

/// Returns where the program runs that has connected `socket` and has this directory in /proc;
/// `None`: unknown.
pub fn surroundings_of(socket: impl AsFd, process: &str) -> Option<Surroundings> {
    surroundings_in(process, security_label_of(socket).ok()?.as_deref())
}

/// Returns where this process runs; `None`: unknown. All but its label is read once: neither the
/// server nor its front end leaves its namespaces or filters its calls.
#[must_use]
pub fn own_surroundings() -> Option<Surroundings> {
    let own = unlabelled()?.clone();
    let label = std::fs::read("/proc/self/attr/current").ok();
    Some(Surroundings { label: label.as_deref().map(text_of_label), ..own })
}

/// Returns the same without a label.
fn unlabelled() -> Option<&'static Surroundings> {
    static OWN: OnceLock<Surroundings> = OnceLock::new();
    if OWN.get().is_none() {
        let own = surroundings_in("/proc/self", None)?;
        OWN.get_or_init(|| own);
    }
    OWN.get()
}

fn surroundings_in(directory: &str, label: Option<&[u8]>) -> Option<Surroundings> {
    let open = |name: &str| {
        let file = File::open(format!("{directory}/{name}")).ok()?;
        Some(file.take(LONGEST_FILE))
    };
    let read = |name: &str| {
        let mut bytes = Vec::with_capacity(USUAL_FILE);
        open(name)?.read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mounts = BufReader::with_capacity(FEW_MOUNTS, open("mountinfo")?);
    Some(Surroundings::of(mounts, &read("uid_map")?, &read("status")?, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_in_its_own_surroundings() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(confinement_of(&one), None);
    }
}
