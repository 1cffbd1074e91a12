//! The result of an analysis, as text and as JSON.

use std::fmt::Write as _;

use crate::analysis::{Analysis, Continuity, Dropout, Method};
use serde_json::{Value, json};

/// Maximum number of steps and breaks listed one by one; JSON has all.
const LISTED: usize = 8;

/// Returns the essentials in about ten lines.
pub(crate) fn as_text(found: &Analysis) -> String {
    let rate_hz = found.sample_rate_hz;
    let in_ms =
        |frames: f64| format!("{} frames ({:.3} ms)", number(frames), found.milliseconds(frames));
    let figures = found.distribution;
    let what = match found.method {
        Method::Onsets => "onsets",
        Method::Correlation => "correlated stretches",
    };
    let (gain_db, inverted) = found.gain();
    let mut text = format!(
        "\
latency   {}
range     {} to {} frames, p99 {}, of {} {what}
recorded  {} frames at {rate_hz} Hz
gain      {gain_db:+.1} dB{}
",
        in_ms(found.frames()),
        number(figures.minimum),
        number(figures.maximum),
        number(figures.p99),
        figures.count,
        found.recorded_frames,
        if inverted { ", inverted" } else { "" },
    );
    if let Some(drift) = found.drift {
        let _ = writeln!(
            text,
            "drift     {:+.2} ppm; the latency is that at frame {}",
            drift.ppm, drift.at_frame
        );
    }
    for step in found.steps.iter().take(LISTED) {
        let (after, before) = (step.after_frame, step.before_frame);
        let _ = writeln!(
            text,
            "step      {:+} frames between frames {after} and {before}",
            rounded(step.frames)
        );
    }
    if found.steps.len() > LISTED {
        let _ = writeln!(text, "step      and {} more", found.steps.len() - LISTED);
    }
    if !found.lost.is_empty() {
        let _ = writeln!(text, "lost      {} of {what} did not come back", found.lost.len());
    }
    if found.damaged() > 0 {
        let _ = writeln!(
            text,
            "damaged   {} of {} {what} are not copies",
            found.damaged(),
            figures.count
        );
    }
    text.push_str(&continuity_text(&found.continuity));
    text
}

fn continuity_text(continuity: &Continuity) -> String {
    let (frames, dropouts) = match continuity {
        Continuity::Compared { frames, dropouts } => (frames, dropouts),
        Continuity::Sparse => {
            return "dropouts  cannot be seen in a sound that is mostly silence\n".into();
        }
        Continuity::NotACopy => {
            return "dropouts  cannot be seen: right is not a sample-exact copy of left\n".into();
        }
    };
    let mut text = format!("dropouts  {} in {frames} frames compared\n", dropouts.len());
    for dropout in dropouts.iter().take(LISTED) {
        let Dropout { fault, at_frame, frames, shift_frames } = dropout;
        let shift =
            if *shift_frames == 0 { String::new() } else { format!(", delay {shift_frames:+}") };
        let _ = writeln!(text, "          {frames} frames {fault} from frame {at_frame} on{shift}");
    }
    if dropouts.len() > LISTED {
        let _ = writeln!(text, "          and {} more", dropouts.len() - LISTED);
    }
    text
}

/// Formats whole numbers without a fraction, and others with three decimals.
pub(crate) fn number(frames: f64) -> String {
    if frames == frames.round() { format!("{frames:.0}") } else { format!("{frames:.3}") }
}

fn rounded(frames: f64) -> f64 {
    (frames * 1000.0).round() / 1000.0
}

/// Returns the whole result.
pub(crate) fn as_json(found: &Analysis) -> Value {
    let (gain_db, inverted) = found.gain();
    let figures = found.distribution;
    let (compared, dropouts) = match &found.continuity {
        Continuity::Compared { frames, dropouts } => (Some(frames), Some(dropouts)),
        Continuity::Sparse | Continuity::NotACopy => (None, None),
    };
    json!({
        "sample_rate_hz": found.sample_rate_hz,
        "recorded_frames": found.recorded_frames,
        "method": match found.method { Method::Onsets => "onsets", Method::Correlation => "correlation" },
        "latency": {
            "frames": found.frames(),
            "ms": found.milliseconds(found.frames()),
            "minimum_frames": figures.minimum,
            "median_frames": figures.median,
            "p99_frames": figures.p99,
            "maximum_frames": figures.maximum,
            "measurements": figures.count,
        },
        "copied": found.copied,
        "gain_db": gain_db,
        "inverted": inverted,
        "drift": found.drift.map(|drift| json!({
            "ppm": drift.ppm,
            "at_frame": drift.at_frame,
            "frames": drift.frames,
        })),
        "steps": found.steps.iter().map(|step| json!({
            "after_frame": step.after_frame,
            "before_frame": step.before_frame,
            "frames": step.frames,
        })).collect::<Value>(),
        "lost_at_frames": found.lost,
        "damaged": found.damaged(),
        "compared_frames": compared,
        "dropouts": dropouts.map(|dropouts| dropouts.iter().map(|dropout| json!({
            "fault": dropout.fault.to_string(),
            "at_frame": dropout.at_frame,
            "frames": dropout.frames,
            "shift_frames": dropout.shift_frames,
        })).collect::<Value>()),
        "delays": found.delays.iter().map(|delay| json!({
            "at_frame": delay.at_frame,
            "frames": delay.frames,
            "copied": delay.copied,
        })).collect::<Value>(),
    })
}

#[cfg(test)]
mod tests {
    use crate::analysis::{Recording, Signal};

    use super::*;

    fn found(delay: usize, broken_at: Option<usize>) -> Analysis {
        let mut left = vec![0.0; 100];
        left.extend(Signal::Marked.samples(48_000, 48_000));
        left.resize(50_000, 0.0);
        let mut right = vec![0.0; delay];
        right.extend(left[..left.len() - delay].iter().map(|sample| sample * -0.5));
        if let Some(at) = broken_at {
            right[at..at + 64].fill(0.0);
        }
        crate::analysis::analyse(&Recording::new(&[left, right], 48_000).unwrap()).unwrap()
    }

    #[test]
    fn a_clean_recording_takes_five_lines() {
        assert_eq!(
            as_text(&found(960, None)),
            "\
latency   960 frames (20.000 ms)
range     960 to 960 frames, p99 960, of 4 onsets
recorded  50000 frames at 48000 Hz
gain      -6.0 dB, inverted
dropouts  0 in 48000 frames compared
"
        );
    }

    #[test]
    fn a_break_is_listed_with_its_position() {
        let text = as_text(&found(960, Some(30_000)));
        assert!(
            text.ends_with(
                "dropouts  1 in 48000 frames compared\n          64 frames silent from frame 30000 on\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn json_has_every_delay_and_every_break() {
        let json = as_json(&found(960, Some(30_000)));
        assert_eq!(json["latency"]["median_frames"], 960.0);
        assert_eq!(json["latency"]["ms"], 20.0);
        assert_eq!(json["delays"].as_array().map(Vec::len), Some(4));
        assert_eq!(json["dropouts"][0]["at_frame"], 30_000);
        assert_eq!((&json["drift"], &json["inverted"]), (&Value::Null, &json!(true)));
    }
}
