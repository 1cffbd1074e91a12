//! `consort transport`: the transport's state and position.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use cli::output;
use client::{Position, Transport, TransportState, valid};
use serde_json::{Value, json};

use crate::attach;
use crate::server::{Server, TransportView};

/// Show, start, stop or move the transport that all clients share
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort transport
  consort transport start
  consort transport locate 48000
  consort transport show --json | jq .frame")]
pub(crate) struct ShowTransport {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show its state and position [default]
    Show {
        /// Print everything as JSON
        #[arg(long)]
        json: bool,
    },
    /// Start it, once all slow-sync clients are ready
    Start,
    /// Stop it
    Stop,
    /// Move it to a position; if it is rolling, it starts again from there
    Locate {
        /// Frames from the start of the piece
        frame: u32,
    },
}

impl ShowTransport {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let server = attach::to(server)?;
        match self.action.unwrap_or(Action::Show { json: false }) {
            Action::Show { json: false } => output::print(&as_text(&server.transport()?))?,
            Action::Show { json: true } => output::print_json(&as_json(&server.transport()?))?,
            Action::Start => server.roll(true)?,
            Action::Stop => server.roll(false)?,
            Action::Locate { frame } => server.locate(frame)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn state(state: TransportState) -> &'static str {
    match state {
        TransportState::Stopped => "stopped",
        TransportState::Rolling => "rolling",
        TransportState::Looping => "looping",
        TransportState::Starting => "starting",
    }
}

/// Hours, minutes, seconds and thousandths of `frame`.
fn clock(frame: u32, sample_rate_hz: u32) -> String {
    let ms = u64::from(frame) * 1000 / u64::from(sample_rate_hz.max(1));
    let (seconds, minutes) = (ms / 1000, ms / 60_000);
    format!("{}:{:02}:{:02}.{:03}", minutes / 60, minutes % 60, seconds % 60, ms % 1000)
}

fn as_text(view: &TransportView) -> String {
    let Transport { position, state: of, .. } = view.transport;
    let time = clock(position.frame, view.sample_rate_hz);
    let mut text = format!("state     {}\nframe     {} ({time})\n", state(of), position.frame);
    if position.valid & valid::BBT != 0 {
        let Position { bar, beat, tick, beats_per_bar, beat_type, beats_per_minute, .. } = position;
        text += &format!(
            "bar       {bar}, beat {beat}, tick {tick}; {beats_per_bar}/{beat_type}, {beats_per_minute:.2} beats per minute\n"
        );
    }
    if let Some(timebase) = &view.timebase {
        text += &format!("timebase  {timebase}\n");
    }
    text
}

fn as_json(view: &TransportView) -> Value {
    let place = &view.transport.position;
    let given = |bit: u32, value: Value| if place.valid & bit != 0 { value } else { Value::Null };
    json!({
        "state": state(view.transport.state),
        "frame": place.frame,
        "sample_rate_hz": view.sample_rate_hz,
        "timebase": view.timebase,
        "bbt": given(valid::BBT, json!({
            "bar": place.bar,
            "beat": place.beat,
            "tick": place.tick,
            "bar_start_tick": place.bar_start_tick,
            "beats_per_bar": place.beats_per_bar,
            "beat_type": place.beat_type,
            "ticks_per_beat": place.ticks_per_beat,
            "beats_per_minute": place.beats_per_minute,
        })),
        "bbt_offset": given(valid::BBT_OFFSET, json!(place.bbt_offset)),
        "tick_double": given(valid::TICK_DOUBLE, json!(place.tick_double)),
        "timecode": given(valid::TIMECODE, json!({"frame_time": place.frame_time, "next_time": place.next_time})),
        "audio_frames_per_video_frame": given(valid::VIDEO_RATIO, json!(place.audio_frames_per_video_frame)),
        "video_offset": given(valid::VIDEO_OFFSET, json!(place.video_offset)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(position: Position, timebase: Option<&str>) -> TransportView {
        let transport =
            Transport { state: TransportState::Rolling, position, ..Transport::default() };
        TransportView { transport, sample_rate_hz: 48_000, timebase: timebase.map(str::to_owned) }
    }

    #[test]
    fn only_known_values_are_shown() {
        let plain = view(Position::at(48_000 * 3_661 + 48), None);
        assert_eq!(as_text(&plain), "state     rolling\nframe     175728048 (1:01:01.001)\n");
        assert_eq!(as_json(&plain)["bbt"], Value::Null);
        let place = Position {
            valid: valid::BBT,
            bar: 3,
            beat: 2,
            tick: 120,
            beats_per_bar: 6.0,
            beat_type: 8.0,
            beats_per_minute: 121.5,
            ..Position::at(0)
        };
        let led = view(place, Some("seq"));
        let bars = "bar       3, beat 2, tick 120; 6/8, 121.50 beats per minute\ntimebase  seq\n";
        assert!(as_text(&led).ends_with(bars), "{}", as_text(&led));
        assert_eq!(
            (&as_json(&led)["bbt"]["bar"], &as_json(&led)["timebase"]),
            (&json!(3), &json!("seq"))
        );
    }
}
