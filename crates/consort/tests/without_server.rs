//! The program itself, in a runtime directory where no server is.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A runtime directory of its own, removed at the end.
struct Runtime(PathBuf);

impl Runtime {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("consort-cli-{name}-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).expect("a runtime directory");
        Self(path)
    }

    fn run(&self, program: &Path, words: &str) -> Output {
        Command::new(program)
            .args(words.split_whitespace())
            .env("XDG_RUNTIME_DIR", &self.0)
            .env_remove("JACK_DEFAULT_SERVER")
            .output()
            .expect("the program runs")
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn consort() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_consort"))
}

#[track_caller]
fn assert_ends(output: &Output, code: i32, beginning: &str, what: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{what}: {stderr}");
    assert!(stderr.starts_with(beginning), "{what}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{what}: one line says it: {stderr}");
    assert!(output.stdout.is_empty(), "{what}");
}

#[test]
fn a_command_that_needs_a_server_exits_with_3_if_there_is_none() {
    let runtime = Runtime::new("none");
    for words in [
        "status",
        "status --json",
        "ls",
        "connect a:b c:d",
        "disconnect a:b c:d",
        "disconnect --all a:b",
        "stop",
    ] {
        let output = runtime.run(consort(), words);
        assert_ends(&output, 3, "consort: no server 'default'", words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("consort run -n default"), "it says what to do: {stderr}");
    }
    assert_ends(
        &runtime.run(consort(), "ls -n studio"),
        3,
        "consort: no server 'studio'",
        "another name",
    );
    let mut named = Command::new(consort());
    named.arg("ls").env("XDG_RUNTIME_DIR", &runtime.0).env("JACK_DEFAULT_SERVER", "live");
    assert_ends(
        &named.output().expect("runs"),
        3,
        "consort: no server 'live'",
        "the environment's name",
    );
}

#[test]
fn a_command_line_that_makes_no_sense_exits_with_2() {
    let runtime = Runtime::new("usage");
    for words in [
        "lst",
        "connect a:b",
        "disconnect a:b",
        "disconnect",
        "disconnect --all a:b c:d",
        "ls -n ../x",
        "run --quantum 0",
        "run --fast",
        "run --capture 1025",
        "run --playback 1000000",
        "run --client-ports 2049",
        "device add hw:nowhere --capture 99999",
        "device add hw:nowhere --playback 99999",
        "exec",
        "completions csh",
    ] {
        assert_ends(&runtime.run(consort(), words), 2, "consort: ", words);
    }
}

#[test]
fn a_refusal_names_what_the_command_line_lacks() {
    let runtime = Runtime::new("lacks");
    for (words, part) in [
        ("disconnect a", "--all"),
        ("web nonsense", "ADDRESS:PORT"),
        ("run --web localhost", "ADDRESS:PORT"),
        ("run --capture 1025", "--capture 1025"),
    ] {
        let output = runtime.run(consort(), words);
        assert_ends(&output, 2, "consort: ", words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(part), "{words}: {stderr}");
    }
}

#[test]
fn a_policy_that_cannot_be_read_exits_with_1() {
    let runtime = Runtime::new("policy");
    let output = runtime.run(consort(), "run --policy /no/such/policy");
    assert_ends(&output, 1, "consort: cannot read /no/such/policy: No such file", "a missing file");
}

#[test]
fn a_command_that_needs_no_server_exits_with_0() {
    let runtime = Runtime::new("zero");
    for words in [
        "--help",
        "--version",
        "help exec",
        "connect --help",
        "completions bash",
        "completions zsh",
        "completions fish",
    ] {
        let output = runtime.run(consort(), words);
        assert!(
            output.status.success() && !output.stdout.is_empty() && output.stderr.is_empty(),
            "{words}"
        );
    }
    let pages = runtime.0.join("man");
    let output = runtime.run(consort(), &format!("man {}", pages.display()));
    assert!(output.status.success() && pages.join("consort-run.1").exists());
}

#[test]
fn called_as_jackd_the_program_takes_jackds_options() {
    let runtime = Runtime::new("jackd");
    for name in ["jackd", "jackdmp"] {
        let jackd = runtime.0.join(name);
        symlink(consort(), &jackd).expect("a link");
        let version = runtime.run(&jackd, "-V");
        let stdout = String::from_utf8_lossy(&version.stdout);
        assert!(version.status.success() && stdout.starts_with("jackdmp version 1.9."), "{stdout}");
        let oss = runtime.run(&jackd, "-R -P70 -doss -r48000 -p1024");
        assert_ends(
            &oss,
            1,
            &format!("{name}: there is no driver 'oss' in consort: use -d alsa"),
            name,
        );
        assert_ends(&runtime.run(&jackd, "-Q"), 2, &format!("{name}: "), name);
        assert_ends(&runtime.run(&jackd, "status"), 2, &format!("{name}: "), name);
    }
}
