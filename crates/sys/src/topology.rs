//! This machine's CPUs as the kernel describes them, as far as it matters for placement.
//!
//! Source: the kernel's `Documentation/ABI/testing/sysfs-devices-system-cpu`,
//! `Documentation/admin-guide/cputopology.rst`.

use std::fs;
use std::path::Path;

use crate::thread::CpuSet;

const DEVICES: &str = "/sys/devices";

/// A core with less than this fraction of the strongest core's capacity is of another kind.
const SAME_KIND: f64 = 0.8;
/// Capacity of a core if the kernel does not report it.
const CAPACITY: u32 = 1024;

/// Returns the isolated CPUs (`isolcpus=`), which are in no thread's mask unless it is set
/// explicitly.
#[must_use]
pub fn isolated() -> CpuSet {
    set_in(&Path::new(DEVICES).join("system/cpu/isolated")).unwrap_or_default()
}

/// Returns those of the allowed CPUs on which the duration of work does not depend on the other
/// CPUs: of the strongest kind of core, and one thread of each core. Returns all if less than two
/// would be left. In rising order.
#[must_use]
pub fn undisturbed(allowed: &CpuSet) -> Vec<u32> {
    undisturbed_of(allowed, Path::new(DEVICES))
}

fn undisturbed_of(allowed: &CpuSet, devices: &Path) -> Vec<u32> {
    let cpus: Vec<Cpu> = allowed.iter().map(|number| Cpu::read(number, devices)).collect();
    let most = cpus.iter().map(|cpu| cpu.capacity).max().unwrap_or(CAPACITY);
    let strong = |cpu: &Cpu| f64::from(cpu.capacity) >= f64::from(most) * SAME_KIND;
    let cpus = unless_too_few(cpus, strong);
    let present: CpuSet = cpus.iter().map(|cpu| cpu.number).collect();
    let first_of_its_core = |cpu: &Cpu| {
        let before = cpu.siblings.iter().take_while(|sibling| *sibling < cpu.number);
        before.filter(|sibling| present.contains(*sibling)).count() == 0
    };
    let cpus = unless_too_few(cpus, first_of_its_core);
    cpus.into_iter().filter_map(|cpu| u32::try_from(cpu.number).ok()).collect()
}

/// Returns the CPUs for which `stays` holds, or all if these are less than two.
fn unless_too_few(cpus: Vec<Cpu>, stays: impl Fn(&Cpu) -> bool) -> Vec<Cpu> {
    if cpus.iter().filter(|cpu| stays(cpu)).count() < 2 {
        return cpus;
    }
    cpus.into_iter().filter(stays).collect()
}

struct Cpu {
    number: usize,
    /// The threads of its core, including itself.
    siblings: CpuSet,
    /// Its capacity at its highest clock, relative to 1024.
    capacity: u32,
}

impl Cpu {
    fn read(number: usize, devices: &Path) -> Self {
        let directory = devices.join(format!("system/cpu/cpu{number}"));
        let siblings = set_in(&directory.join("topology/thread_siblings_list")).unwrap_or_default();
        let said = fs::read_to_string(directory.join("cpu_capacity")).ok();
        let said = said.and_then(|text| text.trim().parse().ok());
        // Older kernels do not report it for Intel's cores, but distinguish the two kinds of core
        // for event counters.
        let kinds = || set_in(&devices.join("cpu_core/cpus"));
        let by_kind =
            || kinds().map(|strong| if strong.contains(number) { CAPACITY } else { CAPACITY / 2 });
        Self { number, siblings, capacity: said.or_else(by_kind).unwrap_or(CAPACITY) }
    }
}

fn set_in(path: &Path) -> Option<CpuSet> {
    fs::read_to_string(path).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine as the kernel describes it: the threads of each CPU's core, and its capacity.
    fn machine(
        name: &str,
        cpus: &[(&str, Option<u32>)],
        performance: Option<&str>,
    ) -> std::path::PathBuf {
        let devices =
            std::env::temp_dir().join(format!("consort-topology-{name}-{}", std::process::id()));
        for (number, (siblings, capacity)) in cpus.iter().enumerate() {
            let cpu = devices.join(format!("system/cpu/cpu{number}"));
            fs::create_dir_all(cpu.join("topology")).unwrap();
            fs::write(cpu.join("topology/thread_siblings_list"), format!("{siblings}\n")).unwrap();
            if let Some(capacity) = capacity {
                fs::write(cpu.join("cpu_capacity"), format!("{capacity}\n")).unwrap();
            }
        }
        if let Some(performance) = performance {
            fs::create_dir_all(devices.join("cpu_core")).unwrap();
            fs::write(devices.join("cpu_core/cpus"), format!("{performance}\n")).unwrap();
        }
        devices
    }

    fn chosen(devices: &Path, allowed: &str) -> Vec<u32> {
        undisturbed_of(&allowed.parse().unwrap(), devices)
    }

    #[test]
    fn cores_of_one_kind_with_one_thread_each_are_all_taken() {
        let devices = machine("plain", &[("0", Some(1024)), ("1", Some(1024))], None);
        assert_eq!(chosen(&devices, "0-1"), [0, 1]);
        fs::remove_dir_all(devices).unwrap();
    }

    #[test]
    fn of_two_threads_of_a_core_one_is_taken_if_two_cores_are_left() {
        let cpus = [("0,4", None), ("1,5", None), ("2,6", None), ("3,7", None)];
        let devices = machine("threads", &[cpus, cpus].concat(), None);
        assert_eq!(chosen(&devices, "0-7"), [0, 1, 2, 3]);
        assert_eq!(chosen(&devices, "1,4-7"), [1, 4, 6, 7], "the first that may be used");
        assert_eq!(chosen(&devices, "2,6"), [2, 6], "one core alone");
        fs::remove_dir_all(devices).unwrap();
    }

    #[test]
    fn weaker_cores_are_left_to_others_if_two_stronger_ones_are_there() {
        let cpus =
            [("0-1", Some(1024)), ("0-1", Some(1024)), ("2-3", Some(1000)), ("2-3", Some(1000))];
        let weak = [("4", Some(620)), ("5", Some(620))];
        let devices = machine("hybrid", &[&cpus[..], &weak].concat(), None);
        assert_eq!(chosen(&devices, "0-5"), [0, 2]);
        assert_eq!(chosen(&devices, "4-5"), [4, 5]);
        assert_eq!(chosen(&devices, "3-5"), [3, 4, 5], "one strong core is too few");
        fs::remove_dir_all(devices).unwrap();
        let cpus = [("0", None), ("1", None), ("2", None), ("3", None)];
        let devices = machine("intel", &cpus, Some("0-1"));
        assert_eq!(chosen(&devices, "0-3"), [0, 1]);
        fs::remove_dir_all(devices).unwrap();
    }

    #[test]
    fn a_kernel_that_says_nothing_has_equal_cores() {
        assert_eq!(chosen(Path::new("/nowhere"), "0,3"), [0, 3]);
        assert_eq!(chosen(Path::new("/nowhere"), ""), [0_u32; 0]);
    }
}
