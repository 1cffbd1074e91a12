//! A Debian in a directory, made from Debian's packages, that can be booted in namespaces.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use harness::{Finished, Program, eventually, not_run};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tempfile::TempDir;

/// What a machine has on which users log in and packages are installed: a system and a session
/// manager, buses, and `pkill`. Ubuntu counts apt as no part of its smallest system.
const SYSTEM: &str = "apt,procps,systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd";

/// The user who logs in.
const USER: &str = "musician";

/// Where the packages lie in the machine.
const PACKAGES: &str = "/opt/packages";

/// How long one step may take, with what it downloads.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// A machine in which root runs a shell's commands: a directory, or one that has booted.
pub(crate) trait Machine {
    /// Runs them, and waits for their end.
    fn run(&self, script: &str) -> Finished;
}

pub(crate) struct Debian(TempDir);

impl Debian {
    /// Makes a machine of Debian 12, with a user who has no rights of his own. `None` if this
    /// machine may not make it: it takes root.
    pub(crate) fn make() -> Option<Self> {
        Self::make_of("bookworm")
    }

    /// The same, of the release of Debian with this name.
    pub(crate) fn make_of(release: &str) -> Option<Self> {
        Self::make_with(&[], release)
    }

    /// The same, of a release of Ubuntu, with its component `universe`, which has programs of JACK.
    pub(crate) fn make_of_ubuntu(release: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let place = TempDir::with_prefix("consort-keys-").expect("a temporary directory");
        let unpacked = place.path().join("root");
        // Debian 13 has a package of the keys of Ubuntu's archive, and Debian 12 has none.
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=extract", "--include=ubuntu-archive-keyring"]);
        run(command.arg("trixie").arg(&unpacked)).expect_success();
        let keys = unpacked.join("usr/share/keyrings/ubuntu-archive-keyring.gpg");
        let keyring = format!("--keyring={}", keys.display());
        Self::make_with(&["--components=main,universe", &keyring], release)
    }

    fn make_with(options: &[&str], release: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let directory = TempDir::with_prefix("consort-debian-").expect("a temporary directory");
        let made = Self(directory);
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=minbase", "--include", SYSTEM]).args(options);
        run(command.arg(release).arg(made.root())).expect_success();
        made.run("apt-get update --quiet=2").expect_success();
        made.run("useradd --create-home --shell /bin/bash musician").expect_success();
        fs::create_dir(made.path(PACKAGES)).expect("a directory");
        Some(made)
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }

    /// A file of the machine, by its name there.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name.trim_start_matches('/'))
    }

    /// Files of this machine in a directory of that one, for `apt-get install`: these alone.
    pub(crate) fn take(&self, packages: &[PathBuf]) {
        fs::remove_dir_all(self.path(PACKAGES)).expect("removed");
        fs::create_dir(self.path(PACKAGES)).expect("a directory");
        for package in packages {
            let name = package.file_name().expect("a file");
            fs::copy(package, self.path(PACKAGES).join(name)).expect("copied");
        }
    }

    fn namespaces(&self) -> Command {
        let mut command = Command::new("systemd-nspawn");
        command.args(["--quiet", "--register=no", "--keep-unit"]);
        // Else the machine's `/etc/localtime` is ours, which Ubuntu's tzdata cannot replace.
        command.arg("--timezone=off").arg("--directory").arg(self.root());
        command
    }

    /// Boots the machine. `None` if this machine's kernel does not let it.
    pub(crate) fn boot(&self) -> Option<Booted> {
        let mut command = self.namespaces();
        // Also where this machine has the older hierarchies: systemd 258 and later refuse those.
        command.arg("--boot").env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1");
        let mut machine = Program::start(command);
        let leader = eventually("the machine has a first process, or does not boot", || {
            if !machine.is_running() {
                return Some(None);
            }
            first_process(machine.id()).and_then(Leader::of).map(Some)
        });
        let Some(leader) = leader else {
            not_run(&format!("no machine boots in namespaces here: {}", machine.stderr()));
            return None;
        };
        let booted = Booted { machine, leader };
        eventually("users may log in", || {
            let reached = booted.run("systemctl is-active multi-user.target");
            (reached.code == Some(0)).then_some(())
        });
        Some(booted)
    }
}

impl Machine for Debian {
    fn run(&self, script: &str) -> Finished {
        let mut command = self.namespaces();
        command.args(["--setenv=DEBIAN_FRONTEND=noninteractive", "/bin/sh", "-c", script]);
        run(&mut command)
    }
}

/// A machine that has booted. It is switched off when it is dropped.
pub(crate) struct Booted {
    machine: Program,
    leader: Leader,
}

/// The first process of a machine, with which all others end. It outlives `nspawn` if that is
/// killed.
struct Leader {
    id: u32,
    handle: OwnedFd,
}

impl Leader {
    /// `None` if there is no such process.
    fn of(id: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(id).ok()?)?;
        Some(Self { id, handle: pidfd_open(pid, PidfdFlags::empty()).ok()? })
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // It may have ended in an orderly way.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl Booted {
    fn inside(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--all", "--target", &self.leader.id.to_string()]);
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// Commands for the shell of the user who logs in, with the environment that the login makes.
    fn login(&self, script: &str) -> Command {
        let mut command = self.inside();
        command.args(["su", "--login", USER, "--command", script]);
        command
    }

    /// The user logs in, runs the commands, and logs out.
    pub(crate) fn user(&self, script: &str) -> Finished {
        run(&mut self.login(script))
    }

    /// As [`Self::user`], without waiting for the end.
    pub(crate) fn user_starts(&self, script: &str) -> Program {
        Program::start(self.login(script))
    }

    /// Switches it off in an orderly way.
    pub(crate) fn power_off(self) {
        self.run("systemctl poweroff").expect_success();
        self.machine.finish();
    }
}

impl Machine for Booted {
    fn run(&self, script: &str) -> Finished {
        run(self.inside().env("DEBIAN_FRONTEND", "noninteractive").args(["sh", "-c", script]))
    }
}

/// Whether machines can be made here. Says so if not.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        not_run("a Debian in a directory takes root");
    }
    is_root
}

/// The first process of the machine that `nspawn` runs. Its first child is another, which prepares
/// the namespaces.
fn first_process(nspawn: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children")).ok()?;
    let mut children = children.split_whitespace();
    let is_systemd = |child: &&str| {
        fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|name| name == "systemd\n")
    };
    children.find(is_systemd)?.parse().ok()
}

fn run(command: &mut Command) -> Finished {
    let mut taken = Command::new(command.get_program());
    taken.args(command.get_args());
    taken.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Program::start(taken).finish_within(PATIENCE)
}
