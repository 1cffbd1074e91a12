//! Records its input sample for sample: `recorder [--from PORT] [--frames 48000] [--file
//! recording.wav]`.
//!
//! The process callback puts samples into a ring; the main thread takes them out and writes the
//! file.

mod arguments;

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use client::{Client, Control, CycleScope};
use rtrb::RingBuffer;
use soundfile::Writer;

fn main() -> Result<(), Box<dyn Error>> {
    let frames: usize = arguments::value("frames").unwrap_or(48_000);
    let file: String = arguments::value("file").unwrap_or_else(|| "recording.wav".to_owned());
    let client = Client::open("recorder")?;
    let mut input = client.input_port("in")?;
    let input_name = input.name().to_owned();
    // A second or more, since the disk may be slow.
    let (mut samples, mut recorded) =
        RingBuffer::<f32>::new((client.sample_rate_hz() as usize).max(1 << 16));
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        for sample in input.buffer(cycle).iter() {
            if samples.push(*sample).is_err() {
                // An early end is better than an unnoticed gap.
                return Control::Quit;
            }
        }
        Control::Continue
    })?;
    if let Some(port) = arguments::value::<String>("from") {
        client.connect(&port, &input_name)?;
    }
    let mut writer = Writer::create(&file, 1, client.sample_rate_hz())?;
    let mut missing = frames;
    while missing > 0 {
        let ready = recorded.slots().min(missing);
        let chunk: Vec<f32> = std::iter::from_fn(|| recorded.pop().ok()).take(ready).collect();
        writer.write(&[chunk])?;
        missing -= ready;
        if ready == 0 {
            if !client.is_running() {
                return Err(
                    "the recording ended early: the server is gone, or the disk too slow".into()
                );
            }
            sleep(Duration::from_millis(20));
        }
    }
    writer.finish()?;
    client.close();
    Ok(())
}
