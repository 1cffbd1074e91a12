//! What the user sees while a file plays.

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

/// How often a line on a terminal changes, ns.
const INTERVAL_NS: u64 = 250_000_000;
/// Characters of a bar.
const BAR: usize = 30;

/// A line that changes on a terminal, and one line elsewhere.
#[derive(Debug)]
pub(crate) struct Progress {
    is_terminal: bool,
    sample_rate_hz: u32,
    frames: Option<u64>,
}

impl Progress {
    /// Names the file, which has `frames` frames at this rate.
    pub(crate) fn begin(
        file: &Path,
        about: &str,
        frames: Option<u64>,
        sample_rate_hz: u32,
    ) -> Self {
        let is_terminal = stdout().is_terminal();
        let length =
            frames.map_or_else(String::new, |frames| format!(", {}", time(frames, sample_rate_hz)));
        // A reader of standard output that has gone changes nothing about what is heard.
        let _ = writeln!(stdout(), "playing {}: {about}{length}", file.display());
        Self { is_terminal, sample_rate_hz, frames }
    }

    /// Returns when to show the next change: `None` if nothing shows it.
    pub(crate) fn due_ns(&self, now_ns: u64) -> Option<u64> {
        self.is_terminal.then_some(now_ns + INTERVAL_NS)
    }

    /// Shows that frame `heard` is heard.
    pub(crate) fn show(&self, heard: u64) {
        if self.is_terminal {
            let line = self.line(heard);
            let _ = write!(stdout(), "\r{line}\x1b[K").and_then(|()| stdout().flush());
        }
    }

    /// Leaves the line as it is.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            let _ = writeln!(stdout());
        }
    }

    fn line(&self, heard: u64) -> String {
        let now = time(heard, self.sample_rate_hz);
        let Some(frames) = self.frames.filter(|frames| *frames > 0) else { return now };
        let done = (heard.min(frames) as usize * BAR) / frames as usize;
        let (full, empty) = ("█".repeat(done), "─".repeat(BAR - done));
        format!("{now} {full}{empty} {}", time(frames, self.sample_rate_hz))
    }
}

/// How loud a recording is: a line that changes on a terminal, and one line elsewhere.
#[derive(Debug)]
pub(crate) struct Level {
    is_terminal: bool,
    sample_rate_hz: u32,
    peak: f32,
}

/// The softest level that is shown, dB below full scale.
const LEAST_DB: f32 = -60.0;

impl Level {
    /// Names the file, which gets `frames` frames, or as many as come.
    pub(crate) fn begin(
        file: &Path,
        sample_rate_hz: u32,
        channels: u32,
        frames: Option<u64>,
    ) -> Self {
        let s = if channels == 1 { "" } else { "s" };
        let length =
            frames.map_or_else(String::new, |frames| format!(", {}", time(frames, sample_rate_hz)));
        let file = file.display();
        // A reader of standard output that has gone changes nothing about what is recorded.
        let _ = writeln!(
            stdout(),
            "recording {file}: {sample_rate_hz} Hz, {channels} channel{s}{length}"
        );
        Self { is_terminal: stdout().is_terminal(), sample_rate_hz, peak: 0.0 }
    }

    /// Shows the level of these frames, the last of `recorded`.
    pub(crate) fn show(&mut self, planes: &[&[f32]], recorded: u64) {
        let peaks = planes.iter().flat_map(|plane| plane.iter()).map(|sample| sample.abs());
        self.peak = peaks.fold(0.0, f32::max);
        if self.is_terminal {
            let line = self.line(recorded);
            let _ = write!(stdout(), "\r{line}\x1b[K").and_then(|()| stdout().flush());
        }
    }

    /// Leaves the line as it is.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            let _ = writeln!(stdout());
        }
    }

    fn line(&self, recorded: u64) -> String {
        let decibels = 20.0 * self.peak.max(f32::MIN_POSITIVE).log10();
        let part = (1.0 - decibels / LEAST_DB).clamp(0.0, 1.0);
        let done = (part * BAR as f32).round() as usize;
        let (full, empty) = ("█".repeat(done), "─".repeat(BAR - done));
        let shown =
            if decibels < LEAST_DB { "silence".into() } else { format!("{decibels:.1} dB") };
        format!("{} {full}{empty} {shown}", time(recorded, self.sample_rate_hz))
    }
}

/// Minutes, seconds and tenths.
fn time(frames: u64, sample_rate_hz: u32) -> String {
    let tenths = frames * 10 / u64::from(sample_rate_hz.max(1));
    format!("{}:{:02}.{}", tenths / 600, tenths / 10 % 60, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_time_and_length() {
        let progress =
            Progress { is_terminal: true, sample_rate_hz: 48_000, frames: Some(48_000 * 125) };
        let half = format!("1:02.5 {}{} 2:05.0", "█".repeat(15), "─".repeat(15));
        assert_eq!(progress.line(48_000 * 125 / 2), half);
        assert!(progress.line(u64::from(u32::MAX)).contains(&"█".repeat(BAR)));
        assert_eq!(Progress { frames: None, ..progress }.line(4800), "0:00.1");
    }

    #[test]
    fn a_level_is_shown_from_silence_to_full_scale() {
        let level = |peak| Level { is_terminal: true, sample_rate_hz: 48_000, peak };
        assert_eq!(level(1.0).line(48_000), format!("0:01.0 {} 0.0 dB", "█".repeat(BAR)));
        assert_eq!(level(0.0).line(0), format!("0:00.0 {} silence", "─".repeat(BAR)));
        assert!(level(0.5).line(0).ends_with("─ -6.0 dB"));
        assert!(level(4.0).line(0).ends_with("█ 12.0 dB"), "beyond full scale");
    }
}
