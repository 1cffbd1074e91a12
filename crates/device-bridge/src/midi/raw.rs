//! Raw MIDI devices, without ALSA's sequencer: each input and output stays open while it exists.

mod devices;

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use alsa_rs::Rawmidi;
use alsa_rs::poll::Descriptors;
use sys::poll::{Event, Interest, Poller};

use super::carrier::{Cables, HardwareEvent, Inbox, Lines, Opener, PendingJoin, WAKER};
use super::hotplug::EndpointFinder;
use super::stream::Stream;
use super::{Endpoint, Shared};
use devices::Devices;

/// Bytes read at once.
const READ_BYTES: usize = 4096;
/// Bytes waiting for one device at most, at the rate at which messages are sent; more are lost.
const MOST_BACKLOG_BYTES: usize = 64 * 1024;
/// Interval at which a device without room is tried again, ns: three bytes of a cable.
const RETRY_NS: u64 = 1_000_000;

/// Checks that this kernel has sound, and returns what opens the devices and finds further ones.
pub(super) fn open(
    poller: &Arc<Poller>,
    shared: &Arc<Shared>,
) -> anyhow::Result<(Opener, Box<dyn EndpointFinder>)> {
    alsa::raw_midi().map_err(|error| {
        anyhow::anyhow!(
            "cannot look for raw MIDI devices in /proc/asound: {error}; is the module snd loaded?"
        )
    })?;
    let (closing, closed) = channel();
    let poller = Arc::clone(poller);
    let cables = Raw { poller, closing, inputs: HashMap::new(), outputs: HashMap::new() };
    let opener = move || -> alsa_rs::Result<Box<dyn Cables>> { Ok(Box::new(cables)) };
    Ok((Box::new(opener), Box::new(Devices::new(Arc::clone(shared), closed))))
}

/// Returns whether nothing can be read, or there is no room to write.
fn would_block(error: alsa_rs::Error) -> bool {
    std::io::Error::from_raw_os_error(error.errno()).kind() == ErrorKind::WouldBlock
}

impl Endpoint {
    fn token(self) -> u64 {
        u64::from(self.owner) << 32 | u64::from(self.end)
    }

    fn of_token(token: u64) -> Self {
        Self { owner: (token >> 32) as u32, end: token as u32 }
    }
}

/// The raw devices.
struct Raw {
    poller: Arc<Poller>,
    /// To the thread that closes devices, which may take long.
    closing: Sender<Rawmidi>,
    inputs: HashMap<Endpoint, Input>,
    outputs: HashMap<Endpoint, Output>,
}

struct Input {
    device: Rawmidi,
    descriptor: RawFd,
    /// The kernel timestamps each piece.
    has_kernel_timestamps: bool,
    stream: Stream,
}

struct Output {
    device: Rawmidi,
    descriptor: RawFd,
    /// Bytes for which the device had no room.
    backlog: VecDeque<u8>,
}

impl Raw {
    fn watch(
        &self,
        endpoint: Endpoint,
        device: &Rawmidi,
        interest: Interest,
    ) -> Result<RawFd, String> {
        let watched = device.get().map_err(std::io::Error::other).and_then(|descriptors| {
            let descriptor = descriptors.first().ok_or(ErrorKind::NotFound)?.fd;
            self.poller.add_foreign(descriptor, endpoint.token(), interest).map(|()| descriptor)
        });
        watched.map_err(|error| {
            format!("hw:{} cannot be waited for: {error}", devices::number(endpoint))
        })
    }

    fn leave(&mut self, endpoint: Endpoint) {
        let input = self.inputs.remove(&endpoint).map(|input| (input.device, input.descriptor));
        let output =
            || self.outputs.remove(&endpoint).map(|output| (output.device, output.descriptor));
        if let Some((device, descriptor)) = input.or_else(output) {
            // The kernel may have removed the descriptor of an unplugged device.
            let _ = self.poller.remove_foreign(descriptor);
            // At the end, the receiver may be gone.
            let _ = self.closing.send(device);
        }
    }
}

impl Cables for Raw {
    fn join(&mut self, join: PendingJoin) -> Result<(), String> {
        match join {
            PendingJoin::Source(endpoint, Some(device)) => {
                let descriptor = self.watch(endpoint, &device, Interest::Readable)?;
                let has_kernel_timestamps = devices::has_kernel_timestamps(&device);
                let input =
                    Input { device, descriptor, has_kernel_timestamps, stream: Stream::default() };
                self.inputs.insert(endpoint, input);
            }
            PendingJoin::Sink(endpoint, Some(device)) => {
                let descriptor = self.watch(endpoint, &device, Interest::Closed)?;
                self.outputs
                    .insert(endpoint, Output { device, descriptor, backlog: VecDeque::new() });
            }
            // Every endpoint that was found has a device for one direction.
            PendingJoin::Source(_, None) | PendingJoin::Sink(_, None) => {}
        }
        Ok(())
    }

    fn keep(&mut self, lines: &Lines) {
        let inputs = self.inputs.keys().filter(|endpoint| !lines.sources.contains_key(endpoint));
        let outputs = self.outputs.keys().filter(|endpoint| !lines.sinks.contains_key(endpoint));
        let gone: Vec<Endpoint> = inputs.chain(outputs).copied().collect();
        gone.into_iter().for_each(|endpoint| self.leave(endpoint));
    }

    fn receive(&mut self, ready: &[Event], inbox: &mut Inbox<'_>) {
        for event in ready.iter().filter(|event| event.token != WAKER) {
            let endpoint = Endpoint::of_token(event.token);
            let is_there = self
                .inputs
                .get_mut(&endpoint)
                .is_none_or(|input| input.read(endpoint, inbox).is_ok());
            if event.closed || !is_there {
                self.leave(endpoint);
                inbox.tell(HardwareEvent::Disappeared(endpoint));
            }
        }
    }

    fn send(&mut self, endpoint: Endpoint, bytes: &[u8]) -> bool {
        let Some(output) = self.outputs.get_mut(&endpoint) else { return false };
        if output.backlog.len() + bytes.len() > MOST_BACKLOG_BYTES {
            return false;
        }
        output.backlog.extend(bytes);
        output.write().is_ok()
    }

    fn go_on(&mut self) -> Option<u64> {
        let mut is_behind = false;
        for output in self.outputs.values_mut().filter(|output| !output.backlog.is_empty()) {
            // The poller reports a device that is gone.
            let _ = output.write();
            is_behind |= !output.backlog.is_empty();
        }
        is_behind.then(|| sys::clock::now_ns() + RETRY_NS)
    }
}

impl Input {
    /// Receives everything that has arrived, including what the library has buffered. An error
    /// means that the device is gone.
    fn read(&mut self, endpoint: Endpoint, inbox: &mut Inbox<'_>) -> alsa_rs::Result<()> {
        let mut bytes = [0; READ_BYTES];
        loop {
            let (kernel_ns, length) = match self.take(&mut bytes) {
                Ok((_, 0)) => break,
                Ok(taken) => taken,
                Err(error) if would_block(error) => break,
                Err(error) => return Err(error),
            };
            let timestamp_ns = inbox.timestamp_ns(kernel_ns);
            let bytes = bytes.get(..length).unwrap_or_default();
            self.stream.add(bytes, |message| inbox.message(endpoint, timestamp_ns, message));
        }
        if self.device.status()?.get_xruns() > 0 {
            // The kernel had no room for some bytes, and does not say where they are missing.
            self.stream = Stream::default();
            inbox.lost();
        }
        Ok(())
    }

    /// Returns bytes that arrived together, and when.
    fn take(&self, bytes: &mut [u8]) -> alsa_rs::Result<(Option<u64>, usize)> {
        if !self.has_kernel_timestamps {
            return self.device.read(bytes).map(|length| (None, length));
        }
        let (time, length) = self.device.tread(bytes)?;
        // `CLOCK_MONOTONIC` is never zero.
        let timestamp_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        Ok((Some(timestamp_ns), length))
    }
}

impl Output {
    /// Writes as much as there is room for. An error means that the device takes nothing and is
    /// gone.
    fn write(&mut self) -> alsa_rs::Result<()> {
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
    fn a_token_identifies_its_endpoint() {
        for endpoint in [Endpoint { owner: 31, end: u32::MAX }, Endpoint { owner: 0, end: 0 }] {
            assert_eq!(Endpoint::of_token(endpoint.token()), endpoint);
            assert_ne!(endpoint.token(), WAKER);
        }
    }
}
