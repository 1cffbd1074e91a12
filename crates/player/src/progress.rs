//! What the user sees while a file plays.

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

use crate::peaks::peak;

/// How often a line on a terminal changes, ns.
const INTERVAL_NS: u64 = 250_000_000;
/// Characters of a bar.
const BAR: usize = 30;
/// And of the level beside another bar, so that both fit a terminal.
const SHORT_BAR: usize = 12;
/// The softest level that is shown, dB below full scale.
const LEAST_DB: f32 = -60.0;

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
        let _ = writeln!(stdout(), "playing {}: {about}{length}", printable(file));
        Self { is_terminal, sample_rate_hz, frames }
    }

    /// Returns whether [`show`](Self::show) shows anything.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_terminal
    }

    /// Returns when to show the next change: `None` if nothing shows it.
    pub(crate) fn due_ns(&self, now_ns: u64) -> Option<u64> {
        self.is_terminal.then_some(now_ns + INTERVAL_NS)
    }

    /// Shows that frame `heard` is heard, and the peak of what was heard since the last time.
    pub(crate) fn show(&self, heard: u64, peak: f32) {
        if self.is_terminal {
            show(&self.line(heard, peak));
        }
    }

    /// Leaves the line as it is.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            let _ = writeln!(stdout());
        }
    }

    fn line(&self, heard: u64, peak: f32) -> String {
        let now = time(heard, self.sample_rate_hz);
        let level = level(peak, SHORT_BAR);
        let Some(frames) = self.frames.filter(|frames| *frames > 0) else {
            return format!("{now} {level}");
        };
        let done = (heard.min(frames) as usize * BAR) / frames as usize;
        let length = time(frames, self.sample_rate_hz);
        format!("{now} of {length} {level}  {}", bar(done, BAR))
    }
}

/// How loud a recording is: a line that changes on a terminal, and one line elsewhere.
#[derive(Debug)]
pub(crate) struct Level {
    is_terminal: bool,
    sample_rate_hz: u32,
    /// Of what was recorded since it was shown.
    peak: f32,
    shown_ns: u64,
}

/// The shortest time between two changes of a level, ns: one that a user can read.
const LEVEL_NS: u64 = 100_000_000;

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
        let file = printable(file);
        // A reader of standard output that has gone changes nothing about what is recorded.
        let _ = writeln!(
            stdout(),
            "recording {file}: {sample_rate_hz} Hz, {channels} channel{s}{length}"
        );
        Self { is_terminal: stdout().is_terminal(), sample_rate_hz, peak: 0.0, shown_ns: 0 }
    }

    /// Notes frames that were recorded, a slice for each channel.
    pub(crate) fn note(&mut self, planes: &[&[f32]]) {
        if self.is_terminal {
            self.peak = self.peak.max(peak(planes.iter().copied()));
        }
    }

    /// Shows the level of the frames that were noted since the last time, the last of `recorded`.
    pub(crate) fn show(&mut self, recorded: u64, now_ns: u64) {
        if let Some(line) = self.next_line(recorded, now_ns) {
            show(&line);
        }
    }

    fn next_line(&mut self, recorded: u64, now_ns: u64) -> Option<String> {
        if !self.is_terminal || now_ns < self.shown_ns.saturating_add(LEVEL_NS) {
            return None;
        }
        let line = self.line(recorded);
        (self.peak, self.shown_ns) = (0.0, now_ns);
        Some(line)
    }

    /// Leaves the line as it is.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            let _ = writeln!(stdout());
        }
    }

    fn line(&self, recorded: u64) -> String {
        format!("{} {}", time(recorded, self.sample_rate_hz), level(self.peak, BAR))
    }
}

/// Writes a line over the last one. What a narrow terminal has no room for is cut off: it must not
/// go on in another line, which would stay.
fn show(line: &str) {
    let _ = write!(stdout(), "{}", over_last(line)).and_then(|()| stdout().flush());
}

fn over_last(line: &str) -> String {
    format!("\r\x1b[?7l{line}\x1b[K\x1b[?7h")
}

/// A file's name, which must not change the terminal.
fn printable(file: &Path) -> String {
    file.to_string_lossy().chars().filter(|character| !character.is_control()).collect()
}

/// A peak in words, and as a bar of this many characters.
fn level(peak: f32, characters: usize) -> String {
    let decibels = 20.0 * peak.max(f32::MIN_POSITIVE).log10();
    let part = (1.0 - decibels / LEAST_DB).clamp(0.0, 1.0);
    let bar = bar((part * characters as f32).round() as usize, characters);
    let words = if decibels < LEAST_DB { "silence".into() } else { format!("{decibels:.1} dB") };
    format!("{words:>8} {bar}")
}

fn bar(done: usize, characters: usize) -> String {
    format!("{}{}", "█".repeat(done), "─".repeat(characters - done))
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
    fn a_line_tells_time_length_and_level() {
        let progress =
            Progress { is_terminal: true, sample_rate_hz: 48_000, frames: Some(48_000 * 125) };
        let half = format!("1:02.5 of 2:05.0   0.0 dB {}  {}", bar(12, 12), bar(15, 30));
        assert_eq!(progress.line(48_000 * 125 / 2, 1.0), half);
        let end = progress.line(u64::from(u32::MAX), 0.001_01);
        assert!(end.contains(&"█".repeat(BAR)) && end.chars().count() < 80, "{end}");
        let silent = format!("0:00.1  silence {}", bar(0, 12));
        assert_eq!(Progress { frames: None, ..progress }.line(4800, 0.0), silent);
    }

    #[test]
    fn a_line_that_is_too_long_for_a_terminal_is_cut_off_and_the_terminal_is_as_before() {
        // Without automatic wrapping, a terminal leaves out what is beyond its last column.
        assert_eq!(over_last("0:00.1"), "\r\x1b[?7l0:00.1\x1b[K\x1b[?7h");
    }

    #[test]
    fn the_name_of_a_file_does_not_change_the_terminal() {
        assert_eq!(printable(Path::new("/a\x1b[2J\nsong.wav")), "/a[2Jsong.wav");
    }

    #[test]
    fn a_level_is_shown_from_silence_to_full_scale() {
        let level = |peak| Level { is_terminal: true, sample_rate_hz: 48_000, peak, shown_ns: 0 };
        assert_eq!(level(1.0).line(48_000), format!("0:01.0   0.0 dB {}", "█".repeat(BAR)));
        assert_eq!(level(0.0).line(0), format!("0:00.0  silence {}", "─".repeat(BAR)));
        assert!(level(0.5).line(0).contains(" -6.0 dB █"));
        assert!(
            level(4.0).line(0).ends_with(" 12.0 dB ██████████████████████████████"),
            "too loud"
        );
    }

    #[test]
    fn a_level_is_that_of_all_frames_since_it_was_shown() {
        let mut level = Level { is_terminal: true, sample_rate_hz: 48_000, peak: 0.0, shown_ns: 0 };
        level.note(&[&[0.0, -0.5], &[0.1, 0.2]]);
        level.note(&[&[0.0], &[0.25]]);
        assert_eq!(level.next_line(3, LEVEL_NS - 1), None, "too early to be read");
        assert!(level.next_line(3, LEVEL_NS).is_some_and(|line| line.contains(" -6.0 dB █")));
        level.note(&[&[0.0], &[0.25]]);
        assert!(level.next_line(4, 2 * LEVEL_NS).is_some_and(|line| line.contains("-12.0 dB █")));
    }
}
