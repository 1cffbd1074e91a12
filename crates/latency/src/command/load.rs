//! Load during a measurement, from a generator that never outlives this process.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use sys::process::PidFd;
use sys::signals::Signal;

/// Load on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Load {
    /// No additional load
    Idle,
    /// Computes on every processor
    Cpu,
    /// Writes and reads files
    Disk,
    /// Maps, writes and checks a quarter of the memory
    Memory,
    /// Sends through the loopback interface
    Network,
    /// Timers that interrupt as often as they can
    Interrupt,
}

const GENERATOR: &str = "stress-ng";
/// Time that the generator needs until all its processes are working.
const WARM_UP: Duration = Duration::from_millis(500);
/// Time limit for the generator to clean up. After that it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);

impl Load {
    /// Returns the name for a table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Cpu => "cpu",
            Self::Disk => "disk",
            Self::Memory => "memory",
            Self::Network => "network",
            Self::Interrupt => "interrupt",
        }
    }

    /// Returns the generator's arguments, empty if none is needed. 0 workers stand for one per
    /// processor.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Idle => &[],
            Self::Cpu => &["--cpu", "0"],
            Self::Disk => &["--hdd", "2", "--hdd-bytes", "256M"],
            Self::Memory => &["--vm", "2", "--vm-bytes", "25%"],
            Self::Network => &["--sock", "2", "--udp", "2"],
            Self::Interrupt => &["--timer", "2", "--timerfd", "2"],
        }
    }

    /// Returns the description for a report: what runs, and how it is scheduled.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Idle => "idle: no additional load".into(),
            _ => format!(
                "{}: {GENERATOR} {}, SCHED_OTHER, nice 0",
                self.name(),
                self.arguments().join(" ")
            ),
        }
    }
}

/// A load that runs until this value is dropped or this process ends. In the latter case the kernel
/// signals the generator, which ends its workers. The main thread must own it.
#[derive(Debug)]
pub(crate) struct Running {
    generator: Option<Child>,
}

impl Running {
    /// Starts `load`, with its files in `directory`.
    ///
    /// # Errors
    /// The generator is not installed, or ends at once.
    pub(crate) fn start(load: Load, directory: &Path) -> anyhow::Result<Self> {
        if load.arguments().is_empty() {
            return Ok(Self { generator: None });
        }
        let mut command = Command::new(GENERATOR);
        command.args(load.arguments()).arg("--temp-path").arg(directory).args([
            "--timeout",
            "0",
            "--quiet",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A terminal's SIGINT ends only this process, and then the kernel ends the generator.
        command.process_group(0);
        sys::process::end_with_this_thread(&mut command);
        let generator = command
            .spawn()
            .with_context(|| format!("no load without {GENERATOR}: install Debian's package"))?;
        let mut running = Self { generator: Some(generator) };
        std::thread::sleep(WARM_UP);
        running.check()?;
        Ok(running)
    }

    /// Checks that the load still runs: without it, a measurement is not one under load.
    ///
    /// # Errors
    /// The generator has ended.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let Some(generator) = &mut self.generator else { return Ok(()) };
        if let Some(status) = generator.try_wait()? {
            bail!("the load has ended: {GENERATOR}, {status}");
        }
        Ok(())
    }

    fn end(generator: &mut Child) -> anyhow::Result<()> {
        let leader = generator.id();
        PidFd::open(leader)?.kill(Signal::Terminate)?;
        let since = Instant::now();
        while generator.try_wait()?.is_none() {
            ensure!(since.elapsed() < END_TIMEOUT, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(generator) = &mut self.generator else { return };
        // Its workers are in its own process group or in groups of their own; the generator ends
        // the latter when it is asked to end.
        let _ = Self::end(generator);
        let _ = sys::process::kill_group(generator.id());
        let _ = generator.kill();
        let _ = generator.wait();
    }
}
