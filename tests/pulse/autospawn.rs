//! What libpulse starts by itself, for users that are not root and whose `client.conf` lets it: a
//! PulseAudio of its own as soon as nobody listens on the socket.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Finished, Program, Server, binary, command_in, copy_program, eventually};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::beside_server::{LONG, await_front_end, await_socket, options};

/// A user that is not root.
const NOBODY: u32 = 65_534;

/// A directory of that user, with a server that is its own, and a program in PulseAudio's place
/// that leaves a mark.
fn directory() -> TempDir {
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    let daemon = at("pulseaudio");
    let script = format!("#!/bin/sh\necho started >> {}\n", at("mark").display());
    std::fs::write(&daemon, script).expect("a file");
    let settings = format!("autospawn = yes\ndaemon-binary = {}\n", daemon.display());
    std::fs::write(at("client.conf"), settings).expect("a file");
    copy_program(binary("consort"), at("program"));
    for program in [daemon, at("program")] {
        std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).expect("ours");
    }
    if is_root() {
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("by root");
    }
    directory
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// The same command as that user.
fn as_user(command: &Command, program: PathBuf) -> Command {
    let user = NOBODY.to_string();
    let mut own = Command::new("setpriv");
    if is_root() {
        own.args(["--reuid", &user, "--regid", &user, "--clear-groups", "--"]).arg(program);
    } else {
        own = Command::new(program);
    }
    own.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    own.current_dir("/");
    own
}

/// Asks the server for its name, with settings that let libpulse start one.
fn info(directory: &Path) -> Finished {
    let mut command = command_in(directory, Path::new("pactl"));
    command.env("PULSE_CLIENTCONFIG", directory.join("client.conf")).arg("info");
    for variable in ["PULSE_SERVER", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS"] {
        command.env_remove(variable);
    }
    Program::start(as_user(&command, "pactl".into())).finish()
}

/// How often libpulse has started something.
fn started(directory: &Path) -> usize {
    let mark = std::fs::read_to_string(directory.join("mark")).unwrap_or_default();
    mark.lines().count()
}

fn server(directory: TempDir) -> Server {
    let program = directory.path().join("program");
    let server = Server::start_with(directory, &options(&LONG), |command| {
        *command = as_user(command, program);
    });
    await_socket(&server);
    server
}

#[test]
fn no_program_starts_a_pulseaudio_while_the_front_end_or_its_server_is_replaced() {
    let directory = directory();
    // Nobody listens: with these settings, it does.
    assert_eq!(info(directory.path()).code, Some(1));
    assert_eq!(started(directory.path()), 1, "what libpulse does without a front end");

    let mut server = server(directory);
    for _ in 0..3 {
        let process = await_front_end(&mut server);
        assert!(info(server.directory()).expect_success().stdout.contains("consort"));
        kill_process(Pid::from_raw(process as i32).expect("a process"), Signal::KILL)
            .expect("runs");
        // At once: it waits for the next one.
        assert!(info(server.directory()).expect_success().stdout.contains("consort"));
    }
    // While a program is connected, its front end stays for the next server.
    let front_end = await_front_end(&mut server);
    let mut listener = command_in(server.directory(), Path::new("pactl"));
    listener.arg("subscribe").env_remove("PULSE_SERVER");
    let mut listener = Program::start(as_user(&listener, "pactl".into()));
    eventually("it has subscribed", || {
        info(server.directory());
        listener.stdout().contains("client").then_some(())
    });
    server.kill();
    assert!(info(server.directory()).expect_success().stdout.contains("consort"));
    assert!(Path::new(&format!("/proc/{front_end}")).exists(), "it waits");
    assert_eq!(started(server.directory()), 1, "nothing since there is a front end");
    drop(listener);
}
