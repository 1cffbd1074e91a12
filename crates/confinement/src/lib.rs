//! Which programs are confined: those that see less of the system than the process does to which
//! they have connected.
//!
//! A confined program that could have a server open files and devices, or run plug-ins, would
//! reach through it what its sandbox keeps from it.
#![forbid(unsafe_code)]

mod peer;

pub use peer::{cgroup_of, confinement_of, own_surroundings, surroundings_of, while_it_lives};

use std::fmt::{self, Display};
use std::io::BufRead;

/// What the kernel reports about where a process runs, from sources that any process may read:
/// files that need the right to trace (`/proc/PID/ns`) are closed to a server that root started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Number of the mount at its root directory, unique among the mounts of all namespaces.
    /// `None`: its root is no mount, so it is in a chroot.
    pub root_mount: Option<u64>,
    /// How its user namespace maps ids, as the reader sees it.
    pub user_mapping: String,
    /// Pid namespaces between it and the one that /proc shows, both included.
    pub pid_namespaces: usize,
    /// Seccomp filters that its system calls pass.
    pub call_filters: u32,
    /// Its security label; `None`: no security module gives labels.
    pub label: Option<String>,
}

/// Why a program is taken for a confined one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// It has ended, or is in a pid namespace that is not visible from here.
    Unknown,
    /// It has other mounts or another root directory.
    Mounts,
    /// It is in another user namespace.
    Users,
    /// It is in another pid namespace.
    Processes,
    /// More of its system calls are filtered.
    CallFilters,
    /// A security module gives it another label.
    Label,
}

impl Surroundings {
    /// Reads the process's files of these names in /proc, the first one up to the mount at its
    /// root; `label` comes from its socket or from the file `attr/current`.
    pub fn of(mountinfo: impl BufRead, uid_map: &str, status: &str, label: Option<&[u8]>) -> Self {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let number = |name| field(name).and_then(|text| text.trim().parse::<u32>().ok());
        // Kernels before 5.9 report that there are filters (mode 2), and not how many.
        let is_filtered = u32::from(number("Seccomp:").is_some_and(|mode| mode > 0));
        Self {
            root_mount: root_mount(mountinfo),
            user_mapping: uid_map.split_whitespace().collect::<Vec<_>>().join(" "),
            pid_namespaces: field("NSpid:").map_or(1, |ids| ids.split_whitespace().count()),
            call_filters: number("Seccomp_filters:").unwrap_or(0).max(is_filtered),
            label: label.map(text_of_label),
        }
    }

    /// Whether a process with these surroundings sees the same files as one with `server`.
    pub fn shares_files_with(&self, server: &Self) -> bool {
        self.root_mount.is_some() && self.root_mount == server.root_mount
    }

    /// Returns why a program with these surroundings is confined, compared with the server.
    pub fn confinement(&self, server: &Self) -> Option<Confinement> {
        let is_confined_by = [
            // MUTATION: confinement.other_mounts
            (!self.shares_files_with(server), Confinement::Mounts),
            (self.user_mapping != server.user_mapping, Confinement::Users),
            (self.pid_namespaces != server.pid_namespaces, Confinement::Processes),
            (self.call_filters > server.call_filters, Confinement::CallFilters),
            (has_other_label(self.label.as_deref(), server.label.as_deref()), Confinement::Label),
        ];
        is_confined_by.into_iter().find_map(|(is_so, confinement)| is_so.then_some(confinement))
    }
}

fn text_of_label(label: &[u8]) -> String {
    String::from_utf8_lossy(label).trim_end_matches(['\n', '\0']).to_owned()
}

/// Returns the number of the mount at `/`, from lines such as
/// `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw`.
fn root_mount(mountinfo: impl BufRead) -> Option<u64> {
    mountinfo.split(b'\n').map_while(Result::ok).find_map(|line| {
        let line = String::from_utf8_lossy(&line);
        let mut fields = line.split(' ');
        let number = fields.next()?.parse().ok()?;
        (fields.nth(3)? == "/").then_some(number)
    })
}

/// AppArmor's label of a program without a profile, and the end of the label of one whose profile
/// forbids nothing, confine less than any other.
fn has_other_label(label: Option<&str>, server: Option<&str>) -> bool {
    let is_unconfined = |label: &str| label == "unconfined" || label.ends_with(" (unconfined)");
    // Without a label of the socket there is nothing to compare.
    label.is_some_and(|label| !is_unconfined(label) && Some(label) != server)
}

impl Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "its process cannot be seen from the server's",
            Self::Mounts => "it has other mounts or another root directory than the server",
            Self::Users => "it is in another user namespace than the server",
            Self::Processes => "it is in another pid namespace than the server",
            Self::CallFilters => "its system calls are filtered (seccomp)",
            Self::Label => "it has another security label than the server",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
                          27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
    const STATUS: &str =
        "Name:\tx\nNSpid:\t1907\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n";
    const ALL_USERS: &str = "         0          0 4294967295\n";

    fn surroundings(mounts: &str, users: &str, status: &str, label: Option<&str>) -> Surroundings {
        Surroundings::of(mounts.as_bytes(), users, status, label.map(str::as_bytes))
    }

    fn judged(mounts: &str, users: &str, status: &str, label: Option<&str>) -> Option<Confinement> {
        let server = surroundings(MOUNTS, ALL_USERS, STATUS, Some("unconfined_t\n"));
        surroundings(mounts, users, status, label).confinement(&server)
    }

    #[test]
    fn a_program_in_the_servers_surroundings_is_not_confined() {
        assert_eq!(judged(MOUNTS, ALL_USERS, STATUS, Some("unconfined_t\0")), None);
        assert_eq!(judged(MOUNTS, ALL_USERS, STATUS, None), None, "no label");
    }

    #[test]
    fn each_kind_of_confinement_is_recognized() {
        let elsewhere = MOUNTS.replace("27 1", "44 43");
        assert_eq!(judged(&elsewhere, ALL_USERS, STATUS, None), Some(Confinement::Mounts));
        let in_chroot = "22 27 0:21 / /proc rw,relatime - proc proc rw\n";
        assert_eq!(judged(in_chroot, ALL_USERS, STATUS, None), Some(Confinement::Mounts));
        assert_eq!(judged(MOUNTS, " 0 1000 1\n", STATUS, None), Some(Confinement::Users));
        let nested = STATUS.replace("NSpid:\t1907", "NSpid:\t1907\t1");
        assert_eq!(judged(MOUNTS, ALL_USERS, &nested, None), Some(Confinement::Processes));
        let filtered = STATUS.replace("Seccomp:\t0", "Seccomp:\t2");
        assert_eq!(judged(MOUNTS, ALL_USERS, &filtered, None), Some(Confinement::CallFilters));
        let label = Some("snap.box (enforce)\n");
        assert_eq!(judged(MOUNTS, ALL_USERS, STATUS, label), Some(Confinement::Label));
    }

    #[test]
    fn a_server_without_a_root_mount_takes_every_program_for_a_confined_one() {
        let server = surroundings("", ALL_USERS, STATUS, None);
        let program = surroundings("", ALL_USERS, STATUS, None);
        assert_eq!(program.confinement(&server), Some(Confinement::Mounts));
    }

    #[test]
    fn what_confines_the_server_as_well_does_not_count() {
        let filtered = STATUS.replace("Seccomp_filters:\t0", "Seccomp_filters:\t1");
        let server = surroundings(MOUNTS, ALL_USERS, &filtered, Some("box (enforce)"));
        let same = surroundings(MOUNTS, ALL_USERS, &filtered, Some("box (enforce)\n"));
        assert_eq!(same.confinement(&server), None);
        let free = surroundings(MOUNTS, ALL_USERS, STATUS, Some("unconfined"));
        assert_eq!(free.confinement(&server), None);
        let nearly = surroundings(MOUNTS, ALL_USERS, STATUS, Some("browser (unconfined)"));
        assert_eq!(nearly.confinement(&server), None);
    }
}
