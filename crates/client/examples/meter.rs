//! Prints the peak of its input ten times a second: `meter [--from PORT] [--seconds 10]`.

mod arguments;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use client::{Client, Control, CycleScope};

fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::open("meter")?;
    let mut input = client.input_port("in")?;
    let input_name = input.name().to_owned();
    // The bit patterns of non-negative floats are ordered like their values.
    let peak = Arc::new(AtomicU32::new(0));
    let measured = Arc::clone(&peak);
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        measured.fetch_max(dsp::peak(&input.buffer(cycle)).to_bits(), Ordering::Relaxed);
        Control::Continue
    })?;
    if let Some(port) = arguments::value::<String>("from") {
        client.connect(&port, &input_name)?;
    }
    for _ in 0..arguments::value::<u32>("seconds").unwrap_or(10) * 10 {
        sleep(Duration::from_millis(100));
        println!("{}", f32::from_bits(peak.swap(0, Ordering::Relaxed)));
    }
    client.close();
    Ok(())
}
