//! `consort top` on a terminal of 80 columns and 24 lines, which tmux plays.

use std::process::Command;

use harness::{Program, Server, binary, eventually};

/// A tmux server of the test's own, with one window.
struct Terminal<'a> {
    server: &'a Server,
}

impl<'a> Terminal<'a> {
    fn running(server: &'a Server, command: &str) -> Self {
        let terminal = Self { server };
        let start = ["new-session", "-d", "-s", "top", "-x", "80", "-y", "24", command];
        terminal.tmux(&start);
        terminal
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.server.command("tmux");
        // A socket in the test's own directory, and no configuration file.
        command
            .args(["-f", "/dev/null", "-S", "tmux.socket"])
            .args(arguments)
            .env("LC_ALL", "C.UTF-8");
        command
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        Program::start(self.command(arguments)).finish().expect_success().stdout
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "top"])
    }

    fn is_there(&self) -> bool {
        Program::start(self.command(&["has-session", "-t", "top"])).finish().code == Some(0)
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

#[test]
fn top_shows_clients_load_and_xruns() {
    let server = Server::start(&["--quantum", "256"]);
    let _source = server.probe(&["source", "first"]);
    let _check = server.probe(&["check", "second", "--from", "first:out"]);
    let terminal = Terminal::running(&server, &format!("{} top", binary("consort").display()));
    let screen = eventually("both clients have bars", || {
        let screen = terminal.screen();
        let bar =
            |name: &str| screen.lines().any(|line| line.starts_with(name) && line.contains('█'));
        (bar("first ") && bar("second ")).then_some(screen)
    });
    for part in [
        "256 frames, 5.33 ms",
        "DSP load",
        "xruns in",
        "latest xruns",
        "transport stopped",
        "q quits",
    ] {
        assert!(screen.contains(part), "{part} is missing:\n{screen}");
    }
    assert!(
        screen.lines().count() <= 24 && screen.lines().all(|line| line.chars().count() <= 80),
        "{screen}"
    );
    terminal.tmux(&["send-keys", "-t", "top", "q"]);
    eventually("the window is closed", || (!terminal.is_there()).then_some(()));
}

#[test]
fn top_without_a_terminal_says_what_to_use_instead() {
    let server = Server::timer(256);
    let finished = server.consort(&["top"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
    assert!(finished.stderr.contains("terminal"), "{}", finished.stderr);
}
