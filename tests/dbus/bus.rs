//! A private bus, the service on it, and tools that speak to it.

use std::path::Path;
use std::process::Command;

use harness::{Finished, Program, binary, command_in, eventually};
use tempfile::TempDir;

/// A bus with `consort dbus` on it, which has not started a server.
pub(crate) struct Bus {
    // In the order in which they end.
    service: Option<Program>,
    _daemon: Program,
    directory: TempDir,
}

const OBJECT: [&str; 4] =
    ["--dest", "org.jackaudio.service", "--object-path", "/org/jackaudio/Controller"];

impl Bus {
    pub(crate) fn start() -> Self {
        Self::with(own)
    }

    /// Ends the service and starts another one in its place.
    pub(crate) fn start_again(&mut self) {
        self.run("jack_control", &["exit"]).expect_success();
        self.service.take().expect("it runs").finish().expect_success();
        self.service = Some(Program::start(own(self.directory.path())));
        self.await_service();
    }

    /// A bus that starts the service by itself, as soon as a program calls it.
    pub(crate) fn that_starts_it() -> Self {
        let directory = TempDir::with_prefix("consort-bus-").expect("a temporary directory");
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/dbus/org.jackaudio.service");
        for made in ["services", "bin"] {
            std::fs::create_dir(directory.path().join(made)).expect("a directory");
        }
        std::fs::copy(source, directory.path().join("services/org.jackaudio.service"))
            .expect("a copy");
        std::os::unix::fs::symlink(binary("consort"), directory.path().join("bin/consort"))
            .expect("a link");
        let daemon = start_daemon(directory.path());
        Self { service: None, _daemon: daemon, directory }
    }

    /// A bus without services.
    pub(crate) fn alone() -> Self {
        let directory = TempDir::with_prefix("consort-bus-").expect("a temporary directory");
        let daemon = start_daemon(directory.path());
        Self { service: None, _daemon: daemon, directory }
    }

    /// A bus with another program as the service.
    pub(crate) fn with(service: impl FnOnce(&Path) -> Command) -> Self {
        let directory = TempDir::with_prefix("consort-bus-").expect("a temporary directory");
        let daemon = start_daemon(directory.path());
        let service = Some(Program::start(service(directory.path())));
        let mut bus = Self { service, _daemon: daemon, directory };
        bus.await_service();
        bus
    }

    fn await_service(&mut self) {
        eventually("the service is on the bus", || {
            let service = self.service.as_mut().expect("started");
            assert!(service.is_running(), "{}", service.stderr());
            (self.call("org.freedesktop.DBus.Introspectable.Introspect", &[]).code == Some(0))
                .then_some(())
        });
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A program that finds the bus, the service's server, and the library under test.
    pub(crate) fn command(&self, program: &str) -> Command {
        on_bus(self.directory.path(), Path::new(program))
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Finished {
        let mut command = self.command(program);
        command.args(arguments);
        Program::start(command).finish()
    }

    /// Calls a method of the service; arguments as GVariant text.
    pub(crate) fn call(&self, method: &str, arguments: &[&str]) -> Finished {
        self.run(
            "gdbus",
            &[&["call", "--session"], &OBJECT[..], &["--method", method], arguments].concat(),
        )
    }

    /// What a method answers.
    pub(crate) fn answer(&self, method: &str, arguments: &[&str]) -> String {
        self.call(method, arguments).expect_success().stdout.trim_end().to_owned()
    }

    /// Prints signals as they come.
    pub(crate) fn monitor(&self) -> Program {
        let mut command = self.command("stdbuf");
        command.args(["-o0", "gdbus", "monitor", "--session"]).args(OBJECT);
        let mut monitor = Program::start(command);
        eventually("the monitor listens", || {
            monitor.stdout().contains("is owned by").then_some(())
        });
        monitor
    }

    /// Waits until the service has ended.
    pub(crate) fn ended(mut self) -> Finished {
        self.service.take().expect("it has not ended").finish()
    }

    pub(crate) fn service(&mut self) -> &mut Program {
        self.service.as_mut().expect("it has not ended")
    }
}

/// A bus that starts nothing but what the services of the directory name: Debian's own jackdbus is
/// installed, too.
fn start_daemon(directory: &Path) -> Program {
    let configuration = directory.join("bus.conf");
    let text = format!(
        "<busconfig><type>session</type><listen>{}</listen><servicedir>{}</servicedir><policy context='default'>\
         <allow user='*'/><allow send_destination='*' eavesdrop='true'/><allow eavesdrop='true'/>\
         <allow own='*'/></policy></busconfig>",
        address(directory),
        directory.join("services").display(),
    );
    std::fs::write(&configuration, text).expect("a file");
    // The processes that it starts inherit its environment.
    let mut daemon = on_bus(directory, Path::new("dbus-daemon"));
    daemon
        .args(["--nofork", "--nopidfile"])
        .arg(format!("--config-file={}", configuration.display()));
    daemon.env("PATH", format!("{}:/usr/bin:/bin", directory.join("bin").display()));
    let daemon = Program::start(daemon);
    eventually("the bus is there", || directory.join("bus").exists().then_some(()));
    daemon
}

/// The service of this project, on the bus of that directory.
fn own(directory: &Path) -> Command {
    let mut service = on_bus(directory, &binary("consort"));
    service.arg("dbus");
    service
}

fn address(directory: &Path) -> String {
    format!("unix:path={}", directory.join("bus").display())
}

/// A program that finds the bus of that directory.
pub(crate) fn on_bus(directory: &Path, program: &Path) -> Command {
    let mut command = command_in(directory, program);
    command.env("DBUS_SESSION_BUS_ADDRESS", address(directory)).env("XDG_CONFIG_HOME", directory);
    command.env("DBUS_SYSTEM_BUS_ADDRESS", address(directory));
    command
}
