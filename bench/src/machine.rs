//! The machine a run was made on.

use std::fs;

use anyhow::Result;
use serde::Serialize;

/// What influences the figures in addition to the servers.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The CPU's model.
    pub cpu: String,
    /// CPUs this process may use.
    pub cpus: usize,
    /// The kernel's release and version.
    pub kernel: String,
    /// Whether it runs on a hypervisor.
    pub virtual_machine: bool,
    /// CPU time that SCHED_FIFO threads may take of each period, in microseconds (-1: all).
    pub rt_runtime_us: String,
    /// The load average over a minute when the run began: what else was running.
    pub load: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let cpuinfo = read("/proc/cpuinfo");
        let line = |key: &str| {
            let found = cpuinfo.lines().find(|line| line.starts_with(key));
            found.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned())
        };
        Ok(Self {
            cpu: line("model name")
                .or_else(|| line("Model"))
                .unwrap_or_else(|| String::from("unknown")),
            cpus: std::thread::available_parallelism()?.get(),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/osrelease"),
                read("/proc/sys/kernel/version")
            ),
            virtual_machine: line("flags").is_some_and(|flags| flags.contains("hypervisor")),
            rt_runtime_us: read("/proc/sys/kernel/sched_rt_runtime_us"),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        })
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        let kind = if self.virtual_machine { "virtual machine" } else { "metal" };
        write!(
            formatter,
            "{} × {} ({kind}), Linux {}, sched_rt_runtime_us {}, load {} at the start",
            self.cpus, self.cpu, self.kernel, self.rt_runtime_us, self.load
        )
    }
}
