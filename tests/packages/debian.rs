//! A Debian 12 in a directory, made from Debian's packages, that can be booted in namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Finished, Program, eventually, not_run};
use tempfile::TempDir;

/// What a machine has on which users log in: a system and a session manager, buses, and `pkill`.
const SYSTEM: &str = "procps,systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd";

/// The user who logs in.
const USER: &str = "musician";

/// Where the packages lie in the machine.
const PACKAGES: &str = "/opt/packages";

pub(crate) struct Debian(TempDir);

impl Debian {
    /// Makes the machine, with a user who has no rights of his own. `None` if this machine may not
    /// make it: it takes root.
    pub(crate) fn make() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            not_run("a Debian in a directory takes root");
            return None;
        }
        let directory = TempDir::with_prefix("consort-debian-").expect("a temporary directory");
        let made = Self(directory);
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=minbase", "--include", SYSTEM, "bookworm"]);
        run(command.arg(made.root())).expect_success();
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

    /// Files of this machine in a directory of that one, for `apt-get install`.
    pub(crate) fn take(&self, packages: &[PathBuf]) {
        for package in packages {
            let name = package.file_name().expect("a file");
            fs::copy(package, self.path(PACKAGES).join(name)).expect("copied");
        }
    }

    /// Runs a shell's commands as root, without booting.
    pub(crate) fn run(&self, script: &str) -> Finished {
        let mut command = self.namespaces();
        command.args(["--setenv=DEBIAN_FRONTEND=noninteractive", "/bin/sh", "-c", script]);
        run(&mut command)
    }

    fn namespaces(&self) -> Command {
        let mut command = Command::new("systemd-nspawn");
        command.args(["--quiet", "--register=no", "--keep-unit", "--directory"]).arg(self.root());
        command
    }

    /// Boots the machine. `None` if this machine's kernel does not let it.
    pub(crate) fn boot(&self) -> Option<Booted> {
        let mut command = self.namespaces();
        command.arg("--boot");
        let mut machine = Program::start(command);
        let leader = eventually("the machine has a first process, or does not boot", || {
            if !machine.is_running() {
                return Some(None);
            }
            first_process(machine.id()).map(Some)
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

/// A machine that has booted. It is switched off when it is dropped.
pub(crate) struct Booted {
    machine: Program,
    /// Process id of its first process.
    leader: u32,
}

impl Booted {
    fn inside(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--all", "--target", &self.leader.to_string()]);
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// Runs a shell's commands as root.
    pub(crate) fn run(&self, script: &str) -> Finished {
        run(self.inside().env("DEBIAN_FRONTEND", "noninteractive").args(["sh", "-c", script]))
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
    Program::start(taken).finish()
}

/// The packages of this tree, built, by the beginning of their names.
pub(crate) fn packages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests lies in the tree");
    let mut xtask = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let built = xtask.args(["xtask", "deb"]).current_dir(root).output().expect("cargo runs");
    let printed = String::from_utf8_lossy(&built.stdout);
    assert!(built.status.success(), "{printed}{}", String::from_utf8_lossy(&built.stderr));
    printed.lines().filter(|line| line.ends_with(".deb")).map(PathBuf::from).collect()
}
