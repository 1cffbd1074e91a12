//! Plays a sine: `synth [--hz 440] [--level 0.1] [--seconds 10] [--to PORT]`.

mod arguments;

use std::error::Error;
use std::f64::consts::TAU;
use std::thread::sleep;
use std::time::Duration;

use client::{Client, Control, CycleScope};

fn main() -> Result<(), Box<dyn Error>> {
    let pitch_hz: f64 = arguments::value("hz").unwrap_or(440.0);
    let level: f32 = arguments::value("level").unwrap_or(0.1);
    let client = Client::open("synth")?;
    let mut output = client.output_port("out")?;
    let output_name = output.name().to_owned();
    let mut phase = 0.0_f64;
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        let step = pitch_hz / f64::from(cycle.sample_rate_hz().max(1));
        for sample in output.buffer(cycle).iter_mut() {
            *sample = level * (phase * TAU).sin() as f32;
            phase = (phase + step).fract();
        }
        Control::Continue
    })?;
    if let Some(port) = arguments::value::<String>("to") {
        client.connect(&output_name, &port)?;
    }
    sleep(Duration::from_secs(arguments::value("seconds").unwrap_or(10)));
    client.close();
    Ok(())
}
