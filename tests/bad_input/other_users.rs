//! Programs of another user: a server serves its own user's.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use harness::{Finished, Program, Server, copy_program, library_directory};
use tempfile::TempDir;

use crate::wire::{assert_says, server, socket_path};

const NOBODY: &str = "65534";

/// Runs a program as another user, which looks for the server where it is.
fn as_another_user(server: &Server, open: &Path, program: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]);
    command.arg(program).args(arguments);
    command
        .env("XDG_RUNTIME_DIR", server.directory())
        .env("JACK_DEFAULT_SERVER", "under-test")
        .env("JACK_NO_START_SERVER", "1")
        .env("LD_LIBRARY_PATH", open)
        .current_dir("/");
    Program::start(command).finish()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
}

#[test]
fn another_user_cannot_connect() {
    if !rustix::process::getuid().is_root() {
        return harness::not_run("only root can be two users");
    }
    let server = server();
    let open = TempDir::with_prefix("consort-other-").expect("room");
    set_mode(open.path(), 0o755);
    let copy = |file: &Path, name: &str| {
        let copy = open.path().join(name);
        copy_program(file, &copy);
        set_mode(&copy, 0o755);
        copy
    };
    copy(&library_directory().join("libjack.so.0"), "libjack.so.0");
    let probe = copy(Path::new(server.probe_command(&[]).get_program()), "probe");
    let control = socket_path(&server);
    let probe_fails = |case: &str| {
        let refused = as_another_user(&server, open.path(), &probe, &["source", "stranger"]);
        assert_ne!(refused.code, Some(0), "{case}: {refused:?}");
        assert!(server.client("stranger").is_none(), "{case}");
    };
    probe_fails("by the modes that the server has set");
    // Wider modes do not open the server.
    for path in [&control, control.parent().expect("a file"), server.directory()] {
        set_mode(path, 0o777);
    }
    set_mode(&server.directory().join("consort"), 0o777);
    probe_fails("by the modes of a careless user");
    // A program that sends nothing, and that no library keeps from it.
    let script = "import socket, sys\n\
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n\
        s.connect(sys.argv[1])\n\
        print(s.recv(4096).decode('latin-1'))\n";
    let arguments = ["-c", script, &control.to_string_lossy()];
    let python = Path::new("/usr/bin/python3");
    let finished = as_another_user(&server, open.path(), python, &arguments).expect_success();
    assert_says("another user", &finished.stdout, &["serves another user"]);
}
