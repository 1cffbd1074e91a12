//! `consort setup` in a home of its own: what it writes is what a server reads, and undone exactly.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::{Finished, Program, binary};
use tempfile::TempDir;

/// A user's home.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::with_prefix("consort-setup-").expect("a temporary directory"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary("consort"));
        command.arg("setup").args(arguments).env("HOME", self.0.path());
        for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "SUDO_USER"] {
            command.env_remove(variable);
        }
        command
    }

    fn setup(&self, arguments: &[&str]) -> Finished {
        Program::start(self.command(arguments)).finish()
    }

    fn service(&self) -> PathBuf {
        self.0.path().join(".config/consort/service")
    }

    /// Every file and directory, with what is in it and its permissions.
    fn content(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let (mut found, mut open) = (BTreeMap::new(), vec![self.0.path().to_owned()]);
        while let Some(path) = open.pop() {
            let mode = fs::metadata(&path).expect("there").permissions().mode();
            if path.is_dir() {
                let entries = fs::read_dir(&path).expect("a directory");
                open.extend(entries.map(|entry| entry.expect("an entry").path()));
                found.insert(path, (mode, Vec::new()));
            } else {
                let bytes = fs::read(&path).expect("a file");
                found.insert(path, (mode, bytes));
            }
        }
        found
    }
}

fn options(service: &Path) -> String {
    fs::read_to_string(service).expect("the options").lines().last().expect("a line").to_owned()
}

#[test]
fn a_setup_is_undone_byte_for_byte() {
    for own in [None, Some("OPTIONS=\"--quantum 64\"  # mine\r\n\n")] {
        let home = Home::new();
        if let Some(text) = own {
            fs::create_dir_all(home.service().parent().expect("a directory")).expect("made");
            fs::write(home.service(), text).expect("written");
            fs::set_permissions(home.service(), fs::Permissions::from_mode(0o640)).expect("set");
        }
        let before = home.content();
        home.setup(&["--card", "none", "--for", "studio", "--yes", "--dry-run"]).expect_success();
        assert_eq!(home.content(), before, "a dry run changes nothing");
        home.setup(&["--card", "none", "--for", "studio", "--yes"]).expect_success();
        let studio = "OPTIONS=\"--driver timer --quantum 128 --suspend 0\"";
        assert_eq!(options(&home.service()), studio);
        home.setup(&["--yes"]).expect_success();
        assert_eq!(options(&home.service()), "OPTIONS=\"--driver auto --stream-card all\"");
        home.setup(&["--undo"]).expect_success();
        assert_eq!(home.content(), before);
        let again = home.setup(&["--undo"]).expect_success().stdout;
        assert!(again.starts_with("nothing has to be undone"), "{again}");
    }
}

#[test]
fn what_a_user_has_changed_since_is_not_overwritten() {
    let home = Home::new();
    home.setup(&["--yes"]).expect_success();
    let edited = "OPTIONS=\"--driver auto --quantum 32\"\n";
    fs::write(home.service(), edited).expect("written");
    for arguments in [&["--undo"][..], &["--card", "none", "--yes"]] {
        let refused = home.setup(arguments);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("consort/service has been changed"), "{refused:?}");
        assert_eq!(fs::read_to_string(home.service()).expect("there"), edited);
    }
}

#[test]
fn answers_are_asked_for_and_at_most_three() {
    let home = Home::new();
    let mut asking = home.command(&[]);
    let mut asking = asking
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("consort runs");
    let is_root = rustix::process::geteuid().is_root();
    let answers =
        if is_root { "\nno-such-card\nnone\nstudio\n" } else { "no-such-card\nnone\nstudio\n" };
    asking.stdin.take().expect("piped").write_all(answers.as_bytes()).expect("read");
    let asked = asking.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&asked.stderr);
    assert!(asked.status.success(), "{said}");
    assert!(said.contains("there is no card 'no-such-card'"), "{said}");
    assert!(options(&home.service()).contains("--driver timer --quantum 128"));
    assert_eq!(said.matches("? [").count(), answers.lines().count(), "one of them twice: {said}");
}

#[test]
fn a_setup_without_answers_and_without_questions_changes_nothing() {
    let home = Home::new();
    let refused = home.setup(&[]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("was not answered: see --help"), "{refused:?}");
    assert!(!home.service().exists());
    let refused = home.setup(&["--user", "no-such-user", "--yes"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("no user 'no-such-user'"), "{refused:?}");
}
