//! On which CPUs the kernel handles interrupts (`/proc/irq/*/smp_affinity_list`), for root; and
//! whether threads do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::thread::CpuSet;

const INTERRUPTS: &str = "/proc/irq";
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Only root may open the list.
const NOT_ROOT: i32 = rustix::io::Errno::ACCESS.raw_os_error();
const LIST: &str = "smp_affinity_list";

/// Returns whether the kernel has `PREEMPT_RT`, where threads handle interrupts.
#[must_use]
pub fn kernel_is_preempt_rt() -> bool {
    fs::read_to_string("/sys/kernel/realtime").is_ok_and(|text| text.trim() == "1")
}

/// Interrupts that are kept away from some CPUs while this value lives. On drop, each returns to
/// its CPUs, unless another program has moved it meanwhile.
#[derive(Debug)]
pub struct MovedInterrupts {
    moved: Vec<Moved>,
    /// Interrupts that the kernel would not move, such as those of a CPU's own timer or of a
    /// network card's queue.
    pub unmovable: usize,
    /// The CPUs that now handle the others.
    pub others: CpuSet,
}

#[derive(Debug)]
struct Moved {
    list: PathBuf,
    before: CpuSet,
    now: CpuSet,
}

impl MovedInterrupts {
    /// Moves all interrupts that can be moved away from `cpus`.
    ///
    /// # Errors
    /// `InvalidInput` if no CPU is left for them, `PermissionDenied` if this process may not move
    /// any.
    pub fn away_from(cpus: &CpuSet) -> io::Result<Self> {
        let online = read_list(Path::new(ONLINE))?;
        Self::within(Path::new(INTERRUPTS), cpus, &online)
    }

    fn within(directory: &Path, cpus: &CpuSet, online: &CpuSet) -> io::Result<Self> {
        let others = without(online, cpus);
        if others.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut all = Self { moved: Vec::new(), unmovable: 0, others };
        for entry in fs::read_dir(directory)? {
            let list = entry?.path().join(LIST);
            // Not an interrupt, or one that has just disappeared.
            let Ok(before) = read_list(&list) else { continue };
            if before.intersection(cpus).is_empty() {
                continue;
            }
            let remaining = without(&before.intersection(online), cpus);
            let now = if remaining.is_empty() { others } else { remaining };
            match fs::write(&list, now.to_string()) {
                Ok(()) => all.moved.push(Moved { list, before, now }),
                Err(error) if error.raw_os_error() == Some(NOT_ROOT) => return Err(error),
                // The kernel answers EPERM or EIO for an interrupt that stays.
                Err(_) => all.unmovable += 1,
            }
        }
        Ok(all)
    }

    /// Returns how many were moved.
    pub fn moved(&self) -> usize {
        self.moved.len()
    }
}

impl Drop for MovedInterrupts {
    fn drop(&mut self) {
        for Moved { list, before, now } in &self.moved {
            if read_list(list).is_ok_and(|found| found == *now) {
                // An interrupt that has disappeared needs no CPU.
                let _ = fs::write(list, before.to_string());
            }
        }
    }
}

fn read_list(path: &Path) -> io::Result<CpuSet> {
    fs::read_to_string(path)?.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

fn without(set: &CpuSet, cpus: &CpuSet) -> CpuSet {
    set.iter().filter(|cpu| !cpus.contains(*cpu)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_come_back_unless_another_program_moved_them() {
        let directory = std::env::temp_dir()
            .join(format!("consort-interrupts-{}", crate::process::process_id()));
        let list = |number: &str| directory.join(number).join(LIST);
        let read = |number: &str| fs::read_to_string(list(number)).unwrap().trim().to_owned();
        for (number, cpus) in [("1", "0-3"), ("2", "2"), ("3", "0"), ("4", "1-3")] {
            fs::create_dir_all(directory.join(number)).unwrap();
            fs::write(list(number), format!("{cpus}\n")).unwrap();
        }
        fs::write(directory.join("default_smp_affinity"), "f\n").unwrap();
        let (cpus, online) = ("2-3".parse().unwrap(), "0-3".parse().unwrap());
        let moved = MovedInterrupts::within(&directory, &cpus, &online).unwrap();
        assert_eq!(["1", "2", "3", "4"].map(read), ["0-1", "0-1", "0", "1"]);
        assert_eq!((moved.moved(), moved.unmovable, moved.others), (3, 0, "0-1".parse().unwrap()));
        fs::write(list("4"), "0\n").unwrap();
        drop(moved);
        assert_eq!(["1", "2", "3", "4"].map(read), ["0-3", "2", "0", "0"]);
        let refused = MovedInterrupts::within(&directory, &online, &online).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "no CPU is left");
        fs::remove_dir_all(directory).unwrap();
    }
}
