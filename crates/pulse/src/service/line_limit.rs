//! How many lines programs can have printed: one that loads what is refused, over and over, must
//! not fill a log. Pure.

/// Lines that are printed in a period, at most.
const LINES: u32 = 64;
/// The period, ns.
const PERIOD_NS: u64 = 60_000_000_000;

/// What was printed in the current period.
#[derive(Debug, Default)]
pub(super) struct LineLimit {
    began_ns: u64,
    lines: u32,
    left_out: u32,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Printed {
        /// Lines before it that were not.
        left_out: u32,
    },
    LeftOut,
}

impl LineLimit {
    /// Decides about another line.
    pub fn decide(&mut self, now_ns: u64) -> Line {
        if now_ns.saturating_sub(self.began_ns) >= PERIOD_NS {
            (self.began_ns, self.lines) = (now_ns, 0);
        }
        // MUTATION: line_limit.without_limit
        if self.lines >= LINES {
            self.left_out = self.left_out.saturating_add(1);
            return Line::LeftOut;
        }
        self.lines += 1;
        Line::Printed { left_out: std::mem::take(&mut self.left_out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_limit_are_counted_and_not_printed() {
        let mut limit = LineLimit::default();
        let all: Vec<Line> = (0..200).map(|ns| limit.decide(ns)).collect();
        let (printed, rest) = all.split_at(LINES as usize);
        assert!(printed.iter().all(|line| *line == Line::Printed { left_out: 0 }));
        assert!(rest.iter().all(|line| *line == Line::LeftOut));
        assert_eq!(limit.decide(PERIOD_NS - 1), Line::LeftOut);
        assert_eq!(limit.decide(PERIOD_NS), Line::Printed { left_out: 137 });
        assert_eq!(limit.decide(PERIOD_NS), Line::Printed { left_out: 0 });
    }
}
