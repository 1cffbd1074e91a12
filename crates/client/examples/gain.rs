//! Makes its input louder or softer: `gain [--factor 0.5] [--seconds 10] [--from PORT] [--to
//! PORT]`.

mod arguments;

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use client::{Client, Control, CycleScope};

fn main() -> Result<(), Box<dyn Error>> {
    let factor: f32 = arguments::value("factor").unwrap_or(0.5);
    let client = Client::open("gain")?;
    let mut input = client.input_port("in")?;
    let mut output = client.output_port("out")?;
    let (input_name, output_name) = (input.name().to_owned(), output.name().to_owned());
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        let mut out = output.buffer(cycle);
        out.copy_from_slice(&input.buffer(cycle));
        dsp::gain(&mut out, factor);
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
