//! Transposes the notes of a MIDI stream: `transpose [--semitones 12] [--seconds 10] [--from PORT]
//! [--to PORT]`.

mod arguments;

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use client::{Client, Control, CycleScope};

/// Note off, note on and polyphonic pressure, whose second byte is a key.
const KEY_MESSAGES: std::ops::RangeInclusive<u8> = 0x80..=0xaf;

/// Longer messages are dropped.
const LONGEST_MESSAGE_BYTES: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let semitones: i8 = arguments::value("semitones").unwrap_or(12);
    let client = Client::open("transpose")?;
    let mut input = client.midi_input_port("in")?;
    let mut output = client.midi_output_port("out")?;
    let (input_name, output_name) = (input.name().to_owned(), output.name().to_owned());
    let mut room = [0; LONGEST_MESSAGE_BYTES];
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        let mut out = output.buffer(cycle);
        for event in input.buffer(cycle).events() {
            let length = event.copy_to(&mut room).map_or(0, <[u8]>::len);
            if let [status, key, ..] = &mut room[..length]
                && KEY_MESSAGES.contains(status)
            {
                *key = key.saturating_add_signed(semitones).min(127);
            }
            // The port counts events that do not fit as lost.
            let _ = out.write(event.time(), &room[..length]);
        }
        Control::Continue
    })?;
    if let Some(port) = arguments::value::<String>("from") {
        client.connect(&port, &input_name)?;
    }
    if let Some(port) = arguments::value::<String>("to") {
        client.connect(&output_name, &port)?;
    }
    sleep(Duration::from_secs(arguments::value("seconds").unwrap_or(10)));
    client.close();
    Ok(())
}
