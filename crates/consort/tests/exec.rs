//! `consort exec`, with the server that it starts.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// An installation with a library that nothing loads, and a runtime directory of its own.
struct Installation(PathBuf);

impl Installation {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("consort-exec-{name}-{}", std::process::id()));
        for directory in ["", "bin", "lib"] {
            fs::DirBuilder::new().mode(0o700).create(root.join(directory)).expect("a directory");
        }
        // Copied by another process: programs that other tests start meanwhile would inherit a
        // descriptor that is open for writing here, and a program file that is open for writing
        // cannot be executed.
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_consort"))
            .arg(root.join("bin/consort"))
            .status();
        assert!(copied.is_ok_and(|status| status.success()), "the program");
        fs::write(root.join("lib/libjack.so.0"), "").expect("the library");
        Self(root)
    }

    fn command(&self, words: &[&str]) -> Command {
        // The process that runs the tests may ignore some of these, and children inherit that.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=HUP,INT,TERM")
            .arg(self.0.join("bin/consort"))
            .args(words)
            .env("XDG_RUNTIME_DIR", &self.0)
            .env("CONSORT", self.0.join("bin/consort"))
            .env_remove("JACK_DEFAULT_SERVER")
            .env_remove("LD_LIBRARY_PATH");
        command
    }

    fn exec(&self, server: &str, script: &str) -> Output {
        self.command(&["exec", "-n", server, "--", "/bin/sh", "-c", script]).output().expect("runs")
    }

    fn server_is_running(&self, server: &str) -> bool {
        self.command(&["status", "-n", server]).output().expect("runs").status.success()
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_program_finds_our_library_on_a_temporary_server() {
    let installation = Installation::new("finds");
    let output = installation.exec(
        "studio",
        r#"echo "$LD_LIBRARY_PATH"; echo "$JACK_DEFAULT_SERVER"; "$CONSORT" ls; exit 7"#,
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[..2], [installation.0.join("lib").to_str().expect("text"), "studio"]);
    assert!(lines.contains(&"system:playback_1"), "{stdout}");
    assert_eq!(output.status.code(), Some(7), "the program's own exit code");
    assert!(!installation.server_is_running("studio"));
}

#[test]
fn a_server_that_is_already_running_outlives_the_program() {
    let installation = Installation::new("uses");
    let script = r#"
        before=$("$CONSORT" status | head -1)
        inside=$("$CONSORT" exec -- "$CONSORT" status | head -1)
        after=$("$CONSORT" status | head -1)
        test -n "$before" && test "$before" = "$inside" && test "$before" = "$after""#;
    assert!(installation.exec("default", script).status.success());
}

#[test]
fn the_signal_that_ends_the_program_ends_consort() {
    let installation = Installation::new("signal");
    for (signal, number) in [("KILL", 9), ("ABRT", 6), ("USR1", 10), ("SEGV", 11)] {
        let output = installation.exec("default", &format!("kill -{signal} $$"));
        assert_eq!(output.status.signal(), Some(number), "{signal}: {:?}", output.status);
        assert!(!installation.server_is_running("default"), "{signal}");
    }
}

#[test]
fn a_signal_that_asks_to_end_is_passed_on_as_shells_report_it() {
    let installation = Installation::new("asked");
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let output = installation.exec("default", &format!("kill -{signal} $$"));
        assert_eq!(output.status.code(), Some(code), "{signal}: {:?}", output.status);
    }
}

#[test]
fn a_program_that_cannot_run_gives_the_exit_codes_of_a_shell() {
    let installation = Installation::new("cannot");
    for (program, code) in [("/nonexistent", 127), ("/etc/passwd", 126)] {
        let output = installation.command(&["exec", "--", program]).output().expect("runs");
        assert_eq!(output.status.code(), Some(code), "{program}");
        assert!(!installation.server_is_running("default"), "{program}");
    }
}

#[test]
fn the_server_does_not_outlive_a_killed_exec() {
    let installation = Installation::new("killed");
    // The program runs until its input ends, which is when this test drops it.
    let mut exec = installation
        .command(&["exec", "--", "/bin/sh", "-c", r#""$CONSORT" ls; exec cat"#])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let _input = exec.stdin.take();
    let mut stdout = BufReader::new(exec.stdout.take().expect("piped")).lines();
    assert_eq!(stdout.next().expect("a line").expect("text"), "system:capture_1");
    exec.kill().expect("killed");
    exec.wait().expect("reaped");
    let ended = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !installation.server_is_running("default")
    });
    assert!(ended, "the server still runs a minute later");
}

#[test]
fn a_request_to_end_goes_on_to_the_program() {
    let installation = Installation::new("forward");
    // The exit code shows that the shell received the signal.
    let script = r#"trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done"#;
    let mut exec = installation
        .command(&["exec", "--", "/bin/sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut stdout = BufReader::new(exec.stdout.take().expect("piped")).lines();
    assert_eq!(stdout.next().expect("a line").expect("text"), "ready");
    let pidfd = sys::process::PidFd::open(exec.id()).expect("it runs");
    pidfd.kill(sys::signals::Signal::Terminate).expect("signalled");
    assert_eq!(exec.wait().expect("reaped").code(), Some(5));
    assert!(!installation.server_is_running("default"));
}
