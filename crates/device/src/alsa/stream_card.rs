//! A card as the loop of streams plays on it. Thread: cycle.

use alsa::Fault;
use mix::{Card, CardCycle, CardPosition, Planes};

use super::AlsaDriver;
use super::device::Device;

const PS_PER_SECOND: u64 = 1_000_000_000_000;

impl AlsaDriver {
    /// Returns the device if it plays streams.
    fn streaming(&mut self) -> Option<&mut Device> {
        self.device.as_deref_mut().filter(|device| device.streams.is_some())
    }

    /// Makes the device, which has stopped by itself, ready to start with what is written next, or
    /// gives it up.
    fn restart_streams(&mut self, fault: Fault) {
        let ready = self.streaming().map_or(Ok(()), |device| device.make_ready(fault));
        let now_ns = sys::clock::now_ns();
        if fault == Fault::Gone || ready.is_err() {
            self.give_up(now_ns);
        } else if self.runs_cycles {
            self.timer.take_over(now_ns + self.quantum_ns(), self.quantum);
        }
    }

    fn start_streams(&mut self) {
        match self.streaming().map(Device::start_streams) {
            // Capture has nothing for this cycle.
            Some(Ok(is_new)) => self.is_fresh |= is_new,
            Some(Err(fault)) => self.restart_streams(fault),
            None => {}
        }
    }
}

impl Card for AlsaDriver {
    fn buffer_frames(&self) -> u32 {
        let playback = self.device.as_ref().and_then(|device| device.playback.as_ref());
        playback.and_then(alsa::Pcm::setup).map_or(0, |setup| setup.buffer_frames)
    }

    fn safety_frames(&self) -> u32 {
        self.device.as_ref().map_or(0, |device| device.safety())
    }

    fn is_open(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.streams.is_some())
    }

    fn open(&mut self) -> bool {
        self.is_open() || self.take_or_request() && self.is_open()
    }

    fn position(&mut self, now_ns: u64) -> CardPosition {
        let followed = self.streaming().map_or(Ok(()), |device| device.follow(now_ns));
        if let Err(fault) = followed {
            if self.runs_cycles {
                self.note_lost(now_ns);
            }
            self.restart_streams(fault);
        }
        let streams = self.device.as_ref().and_then(|device| device.streams);
        let frame_ps = PS_PER_SECOND / u64::from(self.recipe.rate_hz.max(1));
        streams.map_or(CardPosition { played: self.frames, at_ns: now_ns, frame_ps }, |streams| {
            CardPosition {
                played: streams.played(),
                at_ns: if streams.runs() { streams.at_ns().min(now_ns) } else { now_ns },
                frame_ps: streams.frame_ps(),
            }
        })
    }

    fn cycle(&self) -> Option<CardCycle> {
        let device = self.device.as_deref().filter(|device| device.runs_cycles)?;
        let streams = device.streams.as_ref()?;
        // Stopped, it starts with the first frame that is written.
        let first = if device.clock.is_some() { streams.due() } else { streams.played() };
        Some(CardCycle { first, latency_frames: device.first_queue_frames.into() })
    }

    fn written(&self) -> u64 {
        let streams = self.device.as_ref().and_then(|device| device.streams);
        streams.map_or(self.frames, |streams| streams.written())
    }

    fn rewind(&mut self, frames: u64) -> u64 {
        self.streaming().map_or(0, |device| device.rewind(frames))
    }

    fn write(&mut self, first: u64, planes: &Planes) {
        let Self { device, dither, scratch, .. } = self;
        let Some(device) = device.as_deref_mut().filter(|device| device.streams.is_some()) else {
            return;
        };
        // A fault shows when the position is read again.
        let is_written = device.write_streams(first, planes, dither, scratch).is_ok();
        if is_written && device.starts_with_next {
            self.start_streams();
        }
    }

    fn start(&mut self, _now_ns: u64) {
        self.start_streams();
    }

    fn end_in_silence(&mut self) {
        if let Some(device) = self.streaming() {
            device.silence_after_streams();
        }
    }

    fn stop(&mut self) {
        let stopped = self.streaming().map_or(Ok(()), Device::stop_streams);
        if stopped.is_err() {
            self.give_up(sys::clock::now_ns());
        } else if self.device.as_ref().is_some_and(|device| device.is_interim) {
            // Nothing plays: the time to configure it for streams.
            self.change(sys::clock::now_ns());
        }
    }

    fn is_makeshift(&self) -> bool {
        !self.runs_cycles && self.device.as_ref().is_some_and(|device| device.is_interim)
    }

    fn reopen(&mut self) {
        self.stop();
    }

    fn leave(&mut self) {
        if !self.runs_cycles {
            self.stop();
        }
    }
}
