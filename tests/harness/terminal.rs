//! A terminal of 80 columns and 24 lines, which tmux plays.

use std::process::Command;

use crate::{Program, Server};

/// A tmux server of the test's own, with one window.
#[derive(Debug)]
pub struct Terminal<'a> {
    server: &'a Server,
}

impl<'a> Terminal<'a> {
    /// Runs a command of the shell in the window.
    pub fn running(server: &'a Server, command: &str) -> Self {
        let terminal = Self { server };
        let start = ["new-session", "-d", "-s", "test", "-x", "80", "-y", "24", command];
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

    /// Presses a key, by tmux's name of it.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "test", key]);
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "test"])
    }

    /// Whether the command still runs.
    pub fn is_there(&self) -> bool {
        Program::start(self.command(&["has-session", "-t", "test"])).finish().code == Some(0)
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}
