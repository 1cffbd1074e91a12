//! Copies its input to its output, with the `jack` crate of crates.io. Prints each quantum that it
//! is notified of.
#![forbid(unsafe_code)]

use jack::{
    AudioIn, AudioOut, Client, ClientOptions, Control, Frames, Port, ProcessHandler, ProcessScope,
};

struct Through {
    input: Port<AudioIn>,
    output: Port<AudioOut>,
}

impl ProcessHandler for Through {
    fn process(&mut self, _: &Client, scope: &ProcessScope) -> Control {
        self.output.as_mut_slice(scope).copy_from_slice(self.input.as_slice(scope));
        Control::Continue
    }

    fn buffer_size(&mut self, _: &Client, frames: Frames) -> Control {
        println!("quantum {frames}");
        Control::Continue
    }
}

fn main() -> Result<(), jack::Error> {
    let (client, _) = Client::new("through", ClientOptions::NO_START_SERVER)?;
    let input = client.register_port("in", AudioIn::default())?;
    let output = client.register_port("out", AudioOut::default())?;
    let _active = client.activate_async((), Through { input, output })?;
    loop {
        std::thread::park();
    }
}
