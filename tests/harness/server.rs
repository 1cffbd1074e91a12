//! A server of a test's own.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Finished, Program, Sound, binary, eventually, library_directory};

/// A running server in a private runtime directory.
#[derive(Debug)]
pub struct Server {
    // Before the directory: the server ends, then its directory goes.
    program: Program,
    directory: TempDir,
    options: Vec<String>,
}

/// Its name, which is never the default name of a user's own server.
pub(crate) const NAME: &str = "under-test";
/// The file that a server records into.
const RECORDED: &str = "recorded.wav";

impl Server {
    /// Starts `consort run` with these options and waits until programs can connect.
    pub fn start(options: &[&str]) -> Self {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        Self::start_in(directory, options)
    }

    /// Starts it in a directory in which programs may already wait for it (see [`command_in`]).
    pub fn start_in(directory: TempDir, options: &[&str]) -> Self {
        Self::start_with(directory, options, |_| {})
    }

    /// Starts it in a directory, with a command that `prepare` has changed.
    pub fn start_with(
        directory: TempDir,
        options: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = run_command(directory.path(), options);
        prepare(&mut command);
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Self { program: Program::start(command), directory, options };
        server.await_start();
        server
    }

    /// Starts it with the kernel's tracefs, mounted for this server alone if it is not mounted yet.
    /// `None` where that is not possible.
    pub fn tracing(options: &[&str]) -> Option<Self> {
        const MOUNT: &str = "at=/sys/kernel/tracing; test -w $at/instances || \
                             mount -t tracefs tracefs $at && test -w $at/instances";
        let unshared = |script: &str| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "sh", "-c", script]);
            command
        };
        if !unshared(MOUNT).output().is_ok_and(|output| output.status.success()) {
            return None;
        }
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let within = |command: &mut Command| {
            let mut outer = unshared(&format!("{MOUNT} && exec \"$0\" \"$@\""));
            outer.arg(command.get_program()).args(command.get_args());
            outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            outer.current_dir(command.get_current_dir().expect("set"));
            *command = outer;
        };
        Some(Self::start_with(directory, options, within))
    }

    fn await_start(&mut self) {
        eventually("the server runs", || {
            assert!(self.program.is_running(), "the server ended: {}", self.program.stderr());
            self.program.stderr().contains("runs:").then_some(())
        });
    }

    /// Kills the server, so that it sends nothing to its clients, and waits until it has ended.
    pub fn kill(&mut self) {
        self.program.signal(rustix::process::Signal::KILL);
        eventually("the server has ended", || (!self.program.is_running()).then_some(()));
    }

    /// Starts a server again in place of one that has ended, with the same options.
    pub fn start_again(&mut self) {
        let options = self.options.clone();
        self.start_another(&options.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Starts a server in place of one that has ended, with other options.
    pub fn start_another(&mut self, options: &[&str]) {
        self.start_another_with(options, |_| {});
    }

    /// The same, with a command that `prepare` has changed.
    pub fn start_another_with(&mut self, options: &[&str], prepare: impl FnOnce(&mut Command)) {
        assert!(!self.program.is_running(), "one server at a time");
        let mut command = run_command(self.directory.path(), options);
        prepare(&mut command);
        self.program = Program::start(command);
        self.await_start();
    }

    /// A timer server with 2 capture and 2 playback ports at 48 kHz.
    pub fn timer(quantum: u32) -> Self {
        Self::start(&["--quantum", &quantum.to_string()])
    }

    /// A server that plays these channels at its capture ports and records its playback ports,
    /// frame for frame. It begins with the first client that hears a capture port and ends with the
    /// sound.
    pub fn playing(sound: &Sound, options: &[&str]) -> Self {
        Self::playing_with(sound, options, |_| {})
    }

    /// The same, started by a command that `prepare` has changed.
    pub fn playing_with(
        sound: &Sound,
        options: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let (input, output) =
            (directory.path().join("played.wav"), directory.path().join(RECORDED));
        sound.write(&input);
        let paths = [input.to_string_lossy().into_owned(), output.to_string_lossy().into_owned()];
        let mut all = vec!["--driver", "file", "--input", &paths[0], "--output", &paths[1]];
        all.extend(options);
        Self::start_with(directory, &all, prepare)
    }

    /// A server without capture ports, in real time at 48 kHz or the `--rate` of `options`, that
    /// records its 2 playback ports from the first connection to one of them until it is stopped.
    pub fn recording(options: &[&str]) -> Self {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let output = directory.path().join(RECORDED).to_string_lossy().into_owned();
        let mut all = vec!["--driver", "file", "--output", &output];
        all.extend(options);
        Self::start_in(directory, &all)
    }

    /// Waits until a [playing](Self::playing) server has ended; returns what it recorded.
    pub fn played(self) -> Sound {
        let Self { program, directory, .. } = self;
        program.finish().expect_success();
        Sound::read(&directory.path().join(RECORDED))
    }

    /// Stops a server; returns what it recorded.
    pub fn recorded(self) -> Sound {
        self.program.signal(rustix::process::Signal::TERM);
        self.played()
    }

    /// The server's own process.
    pub fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    /// The server's own process, without the server's directory.
    pub fn into_program(self) -> Program {
        self.program
    }

    /// A directory for a test's files.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A command that finds this server and the library under test.
    pub fn command(&self, program: &str) -> Command {
        command_in(self.directory(), Path::new(program))
    }

    /// Starts a program of another project, with its output unbuffered where it goes through stdio.
    pub fn spawn(&self, program: &str, arguments: &[&str]) -> Program {
        let mut command = self.command("stdbuf");
        command.args(["-o0", program]).args(arguments);
        Program::start(command)
    }

    /// Runs a program to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Finished {
        self.spawn(program, arguments).finish()
    }

    /// Runs `consort` with these arguments.
    pub fn consort(&self, arguments: &[&str]) -> Finished {
        self.spawn_consort(arguments).finish()
    }

    /// What `consort` prints with these arguments and `--json`.
    pub fn consort_json(&self, arguments: &[&str]) -> Value {
        let printed = self.consort(&[arguments, &["--json"]].concat()).expect_success().stdout;
        serde_json::from_str(&printed).expect("JSON")
    }

    /// Frames that streams were to play and that were not there in time: those that no program had
    /// sent, and those that a device had not rendered.
    pub fn late_frames(&self) -> u64 {
        let status = self.consort_json(&["status"]);
        sum(&status["streams"], "missed_frames") + lost_frames(&status)
    }

    /// Refuses to judge what was heard if [frames were late](Self::late_frames).
    ///
    /// # Errors
    /// If some were; the text has how many.
    pub fn check_in_time(&self) -> Result<(), String> {
        in_time(self.late_frames())
    }

    /// Refuses to judge what was heard if a device did not render in time: it plays silence then,
    /// which no program notices. What streams miss does not matter to this.
    ///
    /// # Errors
    /// If a device did not; the text has how many frames.
    pub fn check_rendered(&self) -> Result<(), String> {
        in_time(lost_frames(&self.consort_json(&["status"])))
    }

    /// Starts `consort` with these arguments.
    pub fn spawn_consort(&self, arguments: &[&str]) -> Program {
        Program::start(self.consort_command(arguments))
    }

    /// The command that runs `consort` with these arguments.
    pub fn consort_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&binary("consort").to_string_lossy());
        command.args(arguments);
        command
    }

    /// What Debian's `jack_lsp` prints.
    pub fn lsp(&self, arguments: &[&str]) -> String {
        self.run("jack_lsp", arguments).expect_success().stdout
    }

    /// Stops the server as a service manager would.
    pub fn stop(self) -> Finished {
        self.program.terminate()
    }
}

/// Frames that devices had not rendered in time.
fn lost_frames(status: &Value) -> u64 {
    sum(&status["further_devices"], "lost_frames")
        + status["device_lost_frames"].as_u64().expect("a number")
}

fn sum(list: &Value, field: &str) -> u64 {
    let values = list.as_array().expect("a list").iter();
    values.map(|value| value[field].as_u64().expect("a number")).sum()
}

fn in_time(late: u64) -> Result<(), String> {
    match late {
        0 => Ok(()),
        _ => Err(format!("the machine took a CPU for longer than is queued: {late} frames late")),
    }
}

fn run_command(directory: &Path, options: &[&str]) -> Command {
    let mut command = command_in(directory, &binary("consort"));
    command.args(["run", "-n", NAME]).args(options);
    // A timer that plays nothing reads nothing of what clients send: then no test would see what
    // that costs.
    if !options.contains(&"--driver") && !options.contains(&"--loop") {
        command.arg("--loop");
    }
    command
}

/// A command that looks for its server in `directory`, and finds the library under test.
pub fn command_in(directory: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("XDG_RUNTIME_DIR", directory)
        .env("HOME", directory)
        .env("JACK_DEFAULT_SERVER", NAME)
        .env("JACK_NO_START_SERVER", "1")
        .env("LD_LIBRARY_PATH", library_directory())
        .env_remove("JACK_PROMISCUOUS_SERVER")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .current_dir(directory);
    command
}
