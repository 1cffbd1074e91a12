//! Clicks on every beat while the transport rolls, and provides bar and beat as the timebase
//! master: `clicks [--bpm 120] [--seconds 10] [--to PORT]`.

mod arguments;

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use client::{Client, Control, CycleScope, Position, valid};

const BEATS_PER_BAR: u32 = 4;
const TICKS_PER_BEAT: f64 = 960.0;

/// Fills in bar, beat and tick of a frame.
fn complete(position: &mut Position, frames_per_beat: u32, beats_per_minute: f64) {
    let (beats, rest) = (position.frame / frames_per_beat, position.frame % frames_per_beat);
    let bar = beats / BEATS_PER_BAR;
    *position = Position {
        valid: valid::BBT,
        bar: (bar + 1).cast_signed(),
        beat: (beats % BEATS_PER_BAR + 1).cast_signed(),
        tick: (f64::from(rest) * TICKS_PER_BEAT / f64::from(frames_per_beat)) as i32,
        bar_start_tick: f64::from(bar * BEATS_PER_BAR) * TICKS_PER_BEAT,
        beats_per_bar: BEATS_PER_BAR as f32,
        beat_type: 4.0,
        ticks_per_beat: TICKS_PER_BEAT,
        beats_per_minute,
        ..Position::at(position.frame)
    };
}

fn main() -> Result<(), Box<dyn Error>> {
    let bpm: f64 = arguments::value("bpm").unwrap_or(120.0);
    let client = Client::open("clicks")?;
    let mut output = client.output_port("out")?;
    let output_name = output.name().to_owned();
    let frames_per_beat = ((f64::from(client.sample_rate_hz()) * 60.0 / bpm) as u32).max(1);
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        let transport = cycle.transport();
        let mut out = output.buffer(cycle);
        for (offset, sample) in (0..).zip(out.iter_mut()) {
            let is_beat =
                transport.position.frame.wrapping_add(offset).is_multiple_of(frames_per_beat);
            *sample = if transport.state.passes() && is_beat { 1.0 } else { 0.0 };
        }
        Control::Continue
    })?;
    // An existing master stays, and bar and beat are then not this program's.
    if client
        .become_timebase_master(true, move |_, position, _| {
            complete(position, frames_per_beat, bpm)
        })
        .is_err()
    {
        eprintln!("clicks: another client leads");
    }
    if let Some(port) = arguments::value::<String>("to") {
        client.connect(&output_name, &port)?;
    }
    sleep(Duration::from_secs(arguments::value("seconds").unwrap_or(10)));
    client.close();
    Ok(())
}
