//! Raw MIDI devices, without ALSA's sequencer: each input and each output is open as long as it is there.

mod devices;

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use alsa::Rawmidi;
use alsa::poll::Descriptors;
use sys::poll::{Event, Interest, Poller};

use super::carrier::{Cables, Inbox, Lines, News, Opener, WAKER, Wish};
use super::manager::Finder;
use super::stream::Stream;
use super::{Place, Shared};
use devices::Devices;

/// Read at once.
const READ_BYTES: usize = 4096;
/// More than a device is behind with, at the speed that messages leave with, is lost.
const MOST_BACKLOG_BYTES: usize = 64 * 1024;
/// How soon a device that has no room is tried again, ns: three bytes of a cable.
const RETRY_NS: u64 = 1_000_000;

/// Makes sure that this kernel has sound, and looks for devices from then on.
pub(super) fn open(poller: &Arc<Poller>, shared: &Arc<Shared>) -> anyhow::Result<(Opener, Box<dyn Finder>)> {
    pcm::raw_midi().map_err(|error| {
        anyhow::anyhow!(
            "cannot look for raw MIDI devices in /proc/asound: {error}; is the module snd loaded?"
        )
    })?;
    let (closing, closed) = channel();
    let poller = Arc::clone(poller);
    let cables = Raw { poller, closing, inputs: HashMap::new(), outputs: HashMap::new() };
    let opener = move || -> alsa::Result<Box<dyn Cables>> { Ok(Box::new(cables)) };
    Ok((Box::new(opener), Box::new(Devices::new(Arc::clone(shared), closed))))
}

/// Whether there is nothing to read, or no room to write.
fn would_block(error: alsa::Error) -> bool {
    std::io::Error::from_raw_os_error(error.errno()).kind() == ErrorKind::WouldBlock
}

impl Place {
    fn token(self) -> u64 {
        u64::from(self.owner) << 32 | u64::from(self.end)
    }

    fn of_token(token: u64) -> Self {
        Self { owner: (token >> 32) as u32, end: token as u32 }
    }
}

/// The devices' side of the carrier.
struct Raw {
    poller: Arc<Poller>,
    /// To the thread that closes them: that may take long.
    closing: Sender<Rawmidi>,
    inputs: HashMap<Place, Input>,
    outputs: HashMap<Place, Output>,
}

struct Input {
    device: Rawmidi,
    descriptor: RawFd,
    /// The kernel says of each piece when it arrived.
    is_dated: bool,
    stream: Stream,
}

struct Output {
    device: Rawmidi,
    descriptor: RawFd,
    /// What the device had no room for.
    backlog: VecDeque<u8>,
}

impl Raw {
    fn watch(&self, place: Place, device: &Rawmidi, interest: Interest) -> Result<RawFd, String> {
        let watched = device.get().map_err(std::io::Error::other).and_then(|descriptors| {
            let descriptor = descriptors.first().ok_or(ErrorKind::NotFound)?.fd;
            self.poller.add_foreign(descriptor, place.token(), interest).map(|()| descriptor)
        });
        watched.map_err(|error| format!("hw:{} cannot be waited for: {error}", devices::number(place)))
    }

    fn leave(&mut self, place: Place) {
        let input = self.inputs.remove(&place).map(|input| (input.device, input.descriptor));
        let output = || self.outputs.remove(&place).map(|output| (output.device, output.descriptor));
        if let Some((device, descriptor)) = input.or_else(output) {
            // One that was pulled out may have been taken out by the kernel.
            let _ = self.poller.remove_foreign(descriptor);
            // Nobody is there any more when all of this ends.
            let _ = self.closing.send(device);
        }
    }
}

impl Cables for Raw {
    fn join(&mut self, wish: Wish) -> Result<(), String> {
        match wish {
            Wish::Hear(place, Some(device)) => {
                let descriptor = self.watch(place, &device, Interest::Readable)?;
                let is_dated = devices::is_dated(&device);
                let input = Input { device, descriptor, is_dated, stream: Stream::default() };
                self.inputs.insert(place, input);
            }
            Wish::Say(place, Some(device)) => {
                let descriptor = self.watch(place, &device, Interest::Closed)?;
                self.outputs.insert(place, Output { device, descriptor, backlog: VecDeque::new() });
            }
            // What is found has a device, each for one direction.
            Wish::Hear(_, None) | Wish::Say(_, None) => {}
        }
        Ok(())
    }

    fn keep(&mut self, lines: &Lines) {
        let inputs = self.inputs.keys().filter(|place| !lines.sources.contains_key(place));
        let outputs = self.outputs.keys().filter(|place| !lines.sinks.contains_key(place));
        let gone: Vec<Place> = inputs.chain(outputs).copied().collect();
        gone.into_iter().for_each(|place| self.leave(place));
    }

    fn receive(&mut self, ready: &[Event], inbox: &mut Inbox<'_>) {
        for event in ready.iter().filter(|event| event.token != WAKER) {
            let place = Place::of_token(event.token);
            let is_there = self.inputs.get_mut(&place).is_none_or(|input| input.read(place, inbox).is_ok());
            if event.closed || !is_there {
                self.leave(place);
                inbox.tell(News::Went(place));
            }
        }
    }

    fn send(&mut self, place: Place, bytes: &[u8]) -> bool {
        let Some(output) = self.outputs.get_mut(&place) else { return false };
        if output.backlog.len() + bytes.len() > MOST_BACKLOG_BYTES {
            return false;
        }
        output.backlog.extend(bytes);
        output.write().is_ok()
    }

    fn go_on(&mut self) -> Option<u64> {
        let mut is_behind = false;
        for output in self.outputs.values_mut().filter(|output| !output.backlog.is_empty()) {
            // One that is not there any more is told of by the poller.
            let _ = output.write();
            is_behind |= !output.backlog.is_empty();
        }
        is_behind.then(|| sys::clock::now_ns() + RETRY_NS)
    }
}

impl Input {
    /// Takes in all that is there, also what the library has read ahead. An error: the device is not there any more.
    fn read(&mut self, place: Place, inbox: &mut Inbox<'_>) -> alsa::Result<()> {
        let mut bytes = [0; READ_BYTES];
        loop {
            let (kernels_ns, length) = match self.take(&mut bytes) {
                Ok((_, 0)) => break,
                Ok(taken) => taken,
                Err(error) if would_block(error) => break,
                Err(error) => return Err(error),
            };
            let date_ns = inbox.date_ns(kernels_ns);
            let bytes = bytes.get(..length).unwrap_or_default();
            self.stream.add(bytes, |message| inbox.message(place, date_ns, message));
        }
        if self.device.status()?.get_xruns() > 0 {
            // The kernel had no room for some bytes, and nobody knows where they are missing.
            self.stream = Stream::default();
            inbox.lost();
        }
        Ok(())
    }

    /// Some bytes that arrived together, and when.
    fn take(&self, bytes: &mut [u8]) -> alsa::Result<(Option<u64>, usize)> {
        if !self.is_dated {
            return self.device.read(bytes).map(|length| (None, length));
        }
        let (time, length) = self.device.tread(bytes)?;
        // `CLOCK_MONOTONIC` counts up from zero.
        let date_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        Ok((Some(date_ns), length))
    }
}

impl Output {
    /// Writes as much as there is room for. An error: the device takes nothing any more, and it is lost.
    fn write(&mut self) -> alsa::Result<()> {
        while !self.backlog.is_empty() {
            let (first, _) = self.backlog.as_slices();
            match self.device.write(first) {
                Ok(0) => break,
                Ok(taken) => drop(self.backlog.drain(..taken)),
                Err(error) if would_block(error) => break,
                Err(error) => {
                    self.backlog.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_which_place_it_is_and_is_none_of_the_wakers() {
        for place in [Place { owner: 31, end: u32::MAX }, Place { owner: 0, end: 0 }] {
            assert_eq!(Place::of_token(place.token()), place);
            assert_ne!(place.token(), WAKER);
        }
    }
}
