//! How long the steps of a task take.

use std::time::{Duration, Instant};

/// How many steps a summary has.
const SHOWN: usize = 20;

/// Steps that have ended.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<(String, Duration)>);

impl Times {
    /// Runs a step, and prints how long it took, also if it fails.
    pub(crate) fn step<T>(&mut self, name: &str, step: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = step();
        self.add(name, begun.elapsed());
        result
    }

    /// Notes a step that took a time, and prints it.
    pub(crate) fn add(&mut self, name: &str, took: Duration) {
        println!("xtask: {}", line(name, took));
        self.0.push((name.to_owned(), took));
    }

    /// The longest steps, the longest of all first, a line each: what to shorten.
    pub(crate) fn summary(&self) -> String {
        let mut steps = self.0.clone();
        steps.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        steps.iter().take(SHOWN).map(|(name, took)| format!("{}\n", line(name, *took))).collect()
    }
}

fn line(name: &str, took: Duration) -> String {
    format!("{:>4} s  {name}", took.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_step_is_the_first_of_the_summary() {
        let mut times = Times::default();
        for (name, seconds) in [("short", 1), ("long", 100), ("middle", 20)] {
            times.add(name, Duration::from_secs(seconds));
        }
        assert_eq!(times.summary(), " 100 s  long\n  20 s  middle\n   1 s  short\n");
        assert_eq!(times.step("returns", || 7), 7);
        assert!(times.summary().ends_with("   0 s  returns\n"), "{times:?}");
    }
}
