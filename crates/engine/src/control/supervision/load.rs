//! The DSP load.

use std::collections::VecDeque;

use rt::record::CycleRecord;

/// The DSP load over a window of cycles, as `jack_cpu_load` returns it.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// When the last client of each cycle finished, as a part of the cycle.
    window: VecDeque<f64>,
    /// The cycle that is being added up.
    current: CurrentCycle,
    shown: f64,
}

#[derive(Debug, Default, Clone, Copy)]
struct CurrentCycle {
    number: u32,
    begin_ns: u64,
    /// Latest time at which a client finished so far, ns.
    end_ns: u64,
}

/// Cycles of the window.
const WINDOW: usize = 32;

impl Load {
    /// Notes that a client finished a cycle at `finished_ns`; returns the load whenever a window is
    /// full.
    pub(super) fn note_finished(&mut self, cycle: &CycleRecord, finished_ns: u64) -> Option<f64> {
        let is_new = self.current.number != cycle.cycle;
        let load = is_new.then(|| self.close_cycle(cycle.period_ns() as f64)).flatten();
        if is_new {
            let begin_ns = cycle.woken_ns;
            self.current = CurrentCycle { number: cycle.cycle, begin_ns, end_ns: begin_ns };
        }
        self.current.end_ns = self.current.end_ns.max(finished_ns);
        load
    }

    fn close_cycle(&mut self, period_ns: f64) -> Option<f64> {
        let CurrentCycle { number, begin_ns, end_ns } = self.current;
        if number == 0 || period_ns <= 0.0 {
            return None;
        }
        self.window.push_back(end_ns.saturating_sub(begin_ns) as f64 / period_ns);
        if self.window.len() < WINDOW {
            return None;
        }
        let highest = self.window.iter().copied().fold(0.0, f64::max);
        let average = self.window.iter().sum::<f64>() / self.window.len() as f64;
        self.window.clear();
        // A cycle that nearly failed counts more than the many that did not.
        let load = if highest >= 0.95 { highest } else { average };
        self.shown = 0.5 * self.shown + 0.5 * load.min(1.0);
        Some(self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The load of cycles of 1 ms, each finished after this part of its length.
    fn load(parts: impl IntoIterator<Item = f64>) -> Option<f64> {
        let mut load = Load::default();
        let ends = parts.into_iter().zip(1..).map(|(part, number)| {
            let woken_ns = u64::from(number) * 1_000_000;
            let cycle = CycleRecord {
                cycle: number,
                quantum: 48,
                sample_rate_hz: 48_000,
                woken_ns,
                ..CycleRecord::default()
            };
            load.note_finished(&cycle, woken_ns + (part * 1e6) as u64)
        });
        ends.fold(None, |last, shown| shown.or(last))
    }

    #[test]
    fn the_load_approaches_the_average_of_its_windows() {
        assert_eq!(load([0.5; WINDOW]), None, "the last cycle has not ended");
        let first = load([0.5; WINDOW + 1]).unwrap();
        assert!((first - 0.25).abs() < 1e-6, "{first}");
        let later = load([0.5; 20 * WINDOW]).unwrap();
        assert!((later - 0.5).abs() < 1e-3, "{later}");
    }

    #[test]
    fn a_cycle_that_nearly_failed_counts_for_its_window() {
        let parts = (0..=WINDOW).map(|cycle| if cycle == 5 { 0.96 } else { 0.1 });
        let shown = load(parts).unwrap();
        assert!((shown - 0.48).abs() < 1e-6, "{shown}");
    }
}
