//! Load beside a measurement, by a well-kept generator that ends with it, whatever happens.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use sys::process::PidFd;
use sys::signals::Signal;

/// What else the machine does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Load {
    /// Nothing that we start
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
/// The generator needs a moment until all its processes work.
const WARM_UP: Duration = Duration::from_millis(500);
/// It cleans up within so long when it is asked to end, or is killed.
const PATIENCE: Duration = Duration::from_secs(10);

impl Load {
    /// As in a table.
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

    /// The generator's arguments; none: it is not needed. 0 workers are one for each processor.
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

    /// As a report says it: what runs, and how it is scheduled.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Idle => "idle: nothing beside what the machine did already".into(),
            _ => format!("{}: {GENERATOR} {}, SCHED_OTHER, nice 0", self.name(), self.arguments().join(" ")),
        }
    }
}

/// A load that runs until this value is dropped, or this process ends in any way: then the kernel tells the generator,
/// which tells its workers. To be kept by the main thread.
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
        command.args(load.arguments()).arg("--temp-path").arg(directory).args(["--timeout", "0", "--quiet"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Whoever interrupts this process leaves the rest to the kernel.
        command.process_group(0);
        sys::process::end_with_this_thread(&mut command);
        let generator = command
            .spawn()
            .with_context(|| format!("no load without {GENERATOR}: install Debian's package"))?;
        let mut running = Self { generator: Some(generator) };
        std::thread::sleep(WARM_UP);
        running.demand()?;
        Ok(running)
    }

    /// Demands that the load is still there: a measurement without it is not one under load.
    ///
    /// # Errors
    /// The generator has ended.
    pub(crate) fn demand(&mut self) -> anyhow::Result<()> {
        let Some(generator) = &mut self.generator else { return Ok(()) };
        if let Some(status) = generator.try_wait()? {
            bail!("the load has ended by itself: {GENERATOR}, {status}");
        }
        Ok(())
    }

    fn end(generator: &mut Child) -> anyhow::Result<()> {
        let leader = generator.id();
        PidFd::open(leader)?.kill(Signal::Terminate)?;
        let since = Instant::now();
        while generator.try_wait()?.is_none() {
            ensure!(since.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(generator) = &mut self.generator else { return };
        // Its workers are in groups of their own or in its group; it ends the former when it is asked to.
        let _ = Self::end(generator);
        let _ = sys::process::kill_group(generator.id());
        let _ = generator.kill();
        let _ = generator.wait();
    }
}
