//! Runtime directories that are not the user's own, or not a place for sockets.

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Finished, Program, binary};
use tempfile::TempDir;

use crate::wire::assert_says;

/// Starts a server that must not run: without `XDG_RUNTIME_DIR`, with this temporary folder.
fn start(xdg: Option<&Path>, temporary: &Path, name: &str) -> Finished {
    let mut command = Command::new(binary("consort"));
    command.args(["run", "-n", name]).env_remove("XDG_RUNTIME_DIR").env("TMPDIR", temporary);
    if let Some(xdg) = xdg {
        command.env("XDG_RUNTIME_DIR", xdg);
    }
    Program::start(command).finish()
}

fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Whether the last resort in the temporary folder is reached at all: /run/user/UID comes before
/// it.
fn has_run_user() -> bool {
    Path::new(&format!("/run/user/{}", user())).exists()
}

fn refused(finished: &Finished, words: &[&str]) {
    assert_eq!((finished.code, finished.signal), (Some(1), None), "{finished:?}");
    assert_says("a directory", &finished.stderr, words);
}

fn last_resort(temporary: &TempDir) -> PathBuf {
    temporary.path().join(format!("consort-{}", user()))
}

#[test]
fn a_directory_that_others_could_have_made_is_refused() {
    if has_run_user() {
        harness::not_run(&format!("not reached here: /run/user/{} exists", user()));
        return;
    }
    type Make = fn(&Path, &Path);
    let cases: [(&str, Make); 3] = [
        ("a symbolic link", |path, elsewhere| symlink(elsewhere, path).expect("a link")),
        ("open to others", |path, _| {
            std::fs::create_dir(path).expect("a directory");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("ours");
        }),
        ("a file", |path, _| std::fs::write(path, "").expect("a file")),
    ];
    for (case, make) in cases {
        let (temporary, elsewhere) = (TempDir::new().expect("room"), TempDir::new().expect("room"));
        make(&last_resort(&temporary), elsewhere.path());
        let finished = start(None, temporary.path(), "nowhere");
        refused(&finished, &["is not a directory that only user", "set XDG_RUNTIME_DIR"]);
        assert_eq!(
            elsewhere.path().read_dir().expect("ours").count(),
            0,
            "{case}: nothing was put there"
        );
    }
}

#[test]
fn a_runtime_directory_of_another_user_is_not_used() {
    if user() != 0 {
        harness::not_run("only root can make another user's directory");
        return;
    }
    let (foreign, temporary) = (TempDir::new().expect("room"), TempDir::new().expect("room"));
    chown(foreign.path(), Some(12345), None).expect("root");
    std::fs::write(last_resort(&temporary), "").expect("a file");
    if !has_run_user() {
        refused(
            &start(Some(foreign.path()), temporary.path(), "nowhere"),
            &["set XDG_RUNTIME_DIR"],
        );
    }
    assert_eq!(foreign.path().read_dir().expect("root").count(), 0, "nothing was put there");
}

#[test]
fn foreign_files_in_the_place_of_the_servers_are_left_alone() {
    type Make = fn(&Path, &Path);
    let cases: [(&str, Make, &str); 4] = [
        (
            "a file in place of the directory",
            |runtime, _| std::fs::write(runtime.join("consort"), "x").expect("a file"),
            "consort/odd",
        ),
        (
            "a file in place of the socket",
            |runtime, _| {
                std::fs::create_dir_all(runtime.join("consort/odd")).expect("a directory");
                std::fs::write(runtime.join("consort/odd/control"), "precious").expect("a file");
            },
            "consort/odd/control",
        ),
        (
            "a link in place of the socket",
            |runtime, elsewhere| {
                std::fs::create_dir_all(runtime.join("consort/odd")).expect("a directory");
                symlink(elsewhere, runtime.join("consort/odd/control")).expect("a link");
            },
            "consort/odd/control",
        ),
        (
            "a link in place of the lock",
            |runtime, elsewhere| {
                std::fs::create_dir_all(runtime.join("consort/odd")).expect("a directory");
                symlink(elsewhere.join("target"), runtime.join("consort/odd/lock"))
                    .expect("a link");
            },
            "consort/odd/lock",
        ),
    ];
    for (case, make, path) in cases {
        let (runtime, elsewhere) = (TempDir::new().expect("room"), TempDir::new().expect("room"));
        make(runtime.path(), elsewhere.path());
        let finished = start(Some(runtime.path()), runtime.path(), "odd");
        assert_eq!((finished.code, finished.signal), (Some(1), None), "{case}: {finished:?}");
        assert_says(case, &finished.stderr, &["cannot use", path]);
        assert_eq!(
            elsewhere.path().read_dir().expect("ours").count(),
            0,
            "{case}: nothing was put there"
        );
        let precious = std::fs::read_to_string(runtime.path().join("consort/odd/control"));
        assert!(
            precious.is_err() || precious.is_ok_and(|text| text == "precious"),
            "{case}: left alone"
        );
    }
}

#[test]
fn a_runtime_directory_that_cannot_be_written_to_is_named() {
    if user() == 0 {
        // Root may write anywhere but into a file system that is read-only by nature.
        let temporary = TempDir::new().expect("room");
        let finished = start(Some(Path::new("/proc/self")), temporary.path(), "nowhere");
        refused(&finished, &["cannot use /proc/self/consort/nowhere"]);
        return;
    }
    let runtime = TempDir::new().expect("room");
    std::fs::set_permissions(runtime.path(), std::fs::Permissions::from_mode(0o500)).expect("ours");
    let finished = start(Some(runtime.path()), runtime.path(), "nowhere");
    refused(&finished, &["cannot use", "consort/nowhere"]);
}
