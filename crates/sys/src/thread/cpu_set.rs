//! A set of CPUs, in the kernel's notation: `0-3,5`.

use std::fmt;
use std::str::FromStr;

/// CPUs by number, below [`CpuSet::MAX_CPUS`].
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuSet {
    set: rustix::thread::CpuSet,
}

/// Why a list of CPUs cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CpuSetParseError {
    /// Neither a number nor a range.
    #[error("`{0}` is not a CPU number or a range such as 0-3")]
    NotARange(String),
    /// A range that ends before it starts.
    #[error("the range `{0}` ends before it starts")]
    Backwards(String),
    /// A number that the kernel's CPU sets cannot hold.
    #[error("CPU {0} is too high, the last is {last}", last = CpuSet::MAX_CPUS - 1)]
    TooHigh(usize),
}

impl CpuSet {
    /// Number of CPUs that a set can hold.
    pub const MAX_CPUS: usize = rustix::thread::CpuSet::MAX_CPU;

    /// Returns the empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `cpu`; returns false if its number is too high.
    pub fn insert(&mut self, cpu: usize) -> bool {
        if cpu < Self::MAX_CPUS {
            self.set.set(cpu);
        }
        cpu < Self::MAX_CPUS
    }

    /// Removes `cpu`.
    pub fn remove(&mut self, cpu: usize) {
        if cpu < Self::MAX_CPUS {
            self.set.unset(cpu);
        }
    }

    /// Returns whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        cpu < Self::MAX_CPUS && self.set.is_set(cpu)
    }

    /// Returns the number of CPUs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.set.count() as usize
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the CPUs that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.iter().filter(|&cpu| other.contains(cpu)).collect()
    }

    /// Returns the CPUs in rising order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..Self::MAX_CPUS).filter(|&cpu| self.contains(cpu))
    }

    pub(super) fn from_rustix(set: rustix::thread::CpuSet) -> Self {
        Self { set }
    }

    pub(super) fn as_rustix(&self) -> &rustix::thread::CpuSet {
        &self.set
    }

    pub(super) fn to_libc(self) -> libc::cpu_set_t {
        // SAFETY: a C struct of integers, for which zero is valid.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        for cpu in self.iter() {
            // SAFETY: writes one bit of a set that has as many as this one, and looks whether it
            // does.
            unsafe { libc::CPU_SET(cpu, &mut set) };
        }
        set
    }
}

/// CPUs whose number is too high are ignored.
impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::new();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

/// Parses `0-3,5`; blanks around numbers are ignored, and an empty text is the empty set.
impl FromStr for CpuSet {
    type Err = CpuSetParseError;

    fn from_str(list: &str) -> Result<Self, CpuSetParseError> {
        let mut set = Self::new();
        if list.trim().is_empty() {
            return Ok(set);
        }
        for range in list.split(',') {
            let not_a_range = || CpuSetParseError::NotARange(range.to_owned());
            let number = |text: &str| text.trim().parse::<usize>().map_err(|_| not_a_range());
            let (first, last) = match range.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(range)?, number(range)?),
            };
            if first > last {
                return Err(CpuSetParseError::Backwards(range.to_owned()));
            }
            if last >= Self::MAX_CPUS {
                return Err(CpuSetParseError::TooHigh(last));
            }
            for cpu in first..=last {
                set.insert(cpu);
            }
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for first in self.iter().filter(|&cpu| cpu == 0 || !self.contains(cpu - 1)) {
            let last = (first..).take_while(|&cpu| self.contains(cpu)).last().unwrap_or(first);
            if first == last {
                write!(formatter, "{separator}{first}")?;
            } else {
                write!(formatter, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_as_the_cpus_they_name() {
        for (list, cpus, written) in [
            ("", &[][..], ""),
            ("\n", &[], ""),
            ("0", &[0], "0"),
            ("0-3,5", &[0, 1, 2, 3, 5], "0-3,5"),
            (" 5 , 0 - 1 \n", &[0, 1, 5], "0-1,5"),
            ("1,2,3", &[1, 2, 3], "1-3"),
            ("1023", &[1023], "1023"),
            ("2-2,2", &[2], "2"),
        ] {
            let set: CpuSet = list.parse().unwrap();
            assert_eq!(set.iter().collect::<Vec<_>>(), cpus, "{list:?}");
            assert_eq!(set.len(), cpus.len(), "{list:?}");
            assert_eq!(set.to_string(), written, "{list:?}");
        }
    }

    #[test]
    fn an_invalid_cpu_list_is_refused() {
        let not_a_range = |text: &str| CpuSetParseError::NotARange(text.to_owned());
        for (list, error) in [
            ("x", not_a_range("x")),
            (",", not_a_range("")),
            ("1,", not_a_range("")),
            ("-1", not_a_range("-1")),
            ("1-", not_a_range("1-")),
            ("1-2-3", not_a_range("1-2-3")),
            ("3-1", CpuSetParseError::Backwards("3-1".to_owned())),
            ("1024", CpuSetParseError::TooHigh(1024)),
            ("0-18446744073709551615", CpuSetParseError::TooHigh(usize::MAX)),
        ] {
            assert_eq!(list.parse::<CpuSet>(), Err(error), "{list:?}");
        }
    }

    #[test]
    fn every_set_is_read_back_as_it_was_written() {
        // A linear congruential sequence (Knuth's constants): many sets, the same at every run.
        let mut state = 1_u64;
        for _ in 0..200 {
            let mut set = CpuSet::new();
            for _ in 0..state >> 58 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let (first, count) =
                    ((state >> 33) as usize % CpuSet::MAX_CPUS, (state >> 60) as usize);
                set = set.iter().chain(first..first + count).collect();
            }
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            assert_eq!(set.to_string().parse(), Ok(set));
        }
    }

    #[test]
    fn numbers_out_of_range_are_never_members() {
        let mut set = CpuSet::new();
        assert!(!set.insert(CpuSet::MAX_CPUS));
        assert!(!set.contains(CpuSet::MAX_CPUS));
        set.remove(CpuSet::MAX_CPUS);
        assert!(set.is_empty());
    }

    #[test]
    fn the_intersection_holds_what_both_hold() {
        let (one, other): (CpuSet, CpuSet) = ("0-3,8".parse().unwrap(), "2-8".parse().unwrap());
        assert_eq!(one.intersection(&other).to_string(), "2-3,8");
    }
}
