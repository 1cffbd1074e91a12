//! Passes MIDI on with all notes higher or lower:
//! `transpose [--semitones 12] [--seconds 10] [--from PORT] [--to PORT]`.

mod arguments;

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use client::{Client, Control, CycleScope};

/// Note off, note on and polyphonic pressure: their second byte is a key.
const OF_A_KEY: std::ops::RangeInclusive<u8> = 0x80..=0xaf;

/// Longer messages are dropped.
const LONGEST_MESSAGE_BYTES: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let semitones: i8 = arguments::value("semitones").unwrap_or(12);
    let client = Client::open("transpose")?;
    let mut input = client.midi_input_port("in")?;
    let mut output = client.midi_output_port("out")?;
    let (heard, said) = (input.name().to_owned(), output.name().to_owned());
    let mut room = [0; LONGEST_MESSAGE_BYTES];
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        let mut out = output.buffer(cycle);
        for event in input.buffer(cycle).events() {
            let length = event.copy_to(&mut room).map_or(0, <[u8]>::len);
            if let [status, key, ..] = &mut room[..length]
                && OF_A_KEY.contains(status)
            {
                *key = key.saturating_add_signed(semitones).min(127);
            }
            // What does not fit, the port counts as lost.
            let _ = out.write(event.time(), &room[..length]);
        }
        Control::Continue
    })?;
    if let Some(port) = arguments::value::<String>("from") {
        client.connect(&port, &heard)?;
    }
    if let Some(port) = arguments::value::<String>("to") {
        client.connect(&said, &port)?;
    }
    sleep(Duration::from_secs(arguments::value("seconds").unwrap_or(10)));
    client.close();
    Ok(())
}
