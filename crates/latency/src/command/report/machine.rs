//! The machine, described well enough to repeat a measurement on it.

use std::fs;
use std::path::Path;

/// Names and values, for people.
pub(super) fn description() -> Vec<(&'static str, String)> {
    let cpu = read("/proc/cpuinfo");
    let processors = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let virtual_machine = if field(&cpu, "flags").is_some_and(|flags| flags.contains("hypervisor"))
    {
        ", in a virtual machine"
    } else {
        ""
    };
    let model = field(&cpu, "model name").unwrap_or("unknown");
    let memory = read("/proc/meminfo");
    let kib =
        field(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    let version = read("/proc/version");
    let release = read("/etc/os-release");
    let name =
        release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown");
    let load = read("/proc/loadavg");
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    vec![
        ("processor", format!("{processors} x {model}{virtual_machine}")),
        ("frequency", or_unknown(&governor)),
        ("memory", kib.map_or_else(|| "unknown".into(), |kib| format!("{} MiB", kib / 1024))),
        ("kernel", version.trim().to_owned()),
        ("preemption", preemption(&version)),
        (
            "clock",
            or_unknown(&read("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ),
        ("system", name.trim_matches('"').to_owned()),
        ("sound cards", cards(Path::new("/proc/asound/cards"))),
        ("ulimit -r", sys::process::rtprio_limit().to_string()),
        (
            "consort",
            env!("CARGO_PKG_VERSION").to_owned()
                + if cfg!(debug_assertions) { ", debug build" } else { "" },
        ),
        ("load average", load),
    ]
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn or_unknown(text: &str) -> String {
    if text.trim().is_empty() { "unknown".into() } else { text.trim().into() }
}

/// The value after the first `name` and a colon.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// The kernel's preemption model, as its version line names it.
fn preemption(version: &str) -> String {
    let known = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"];
    known.into_iter().find(|name| version.contains(name)).unwrap_or("voluntary or none").into()
}

fn cards(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("]: ").map(|(_, name)| name.trim()))
        .collect();
    if names.is_empty() { "none".into() } else { names.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        assert_eq!(field("a: 1\nmodel name\t: EPYC 9\n", "model name"), Some("EPYC 9"));
        assert_eq!(
            preemption("Linux version 6.1 #1 SMP PREEMPT_DYNAMIC Debian"),
            "PREEMPT_DYNAMIC"
        );
        assert_eq!(preemption("Linux version 6.1 #1 SMP Debian"), "voluntary or none");
        assert_eq!(cards(Path::new("/nowhere")), "none");
        assert!(description().iter().all(|(_, value)| !value.is_empty()), "{:?}", description());
    }
}
