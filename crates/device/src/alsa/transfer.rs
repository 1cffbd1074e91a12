//! Moves a cycle's samples between the graph's ports and a card, whatever the layout of the card's
//! channels. Thread: cycle.

use std::array;

use alsa::{Fault, Pcm};
use dsp::{LANES, PeerSamples};

use crate::{Capture, Playback, touched};

/// Buffers for a quantum of as many channels as are converted at once.
#[derive(Debug)]
pub(super) struct Transfer {
    planes: Box<[f32]>,
    quantum: u32,
}

const TOGETHER: u32 = LANES as u32;

impl Transfer {
    /// Returns buffers for cycles of this length. Thread: not the cycle's.
    pub(super) fn new(quantum: u32) -> Self {
        Self { planes: touched(quantum as usize * LANES).into_boxed_slice(), quantum }
    }

    /// Reads a quantum of the channels that have a connection.
    pub(super) fn read(&mut self, capture: &mut Pcm, into: &mut dyn Capture) -> Result<(), Fault> {
        let channels = channels(capture);
        let block = capture.read(self.quantum)?;
        let mut channel = 0;
        while channel < channels {
            if block.is_interleaved() && all_of(channel, channels, |channel| into.is_heard(channel))
            {
                let mut planes = self.planes.chunks_exact_mut(self.quantum as usize);
                block.deinterleave(channel, array::from_fn(|_| planes.next().unwrap_or_default()));
                for (channel, plane) in
                    (channel..).zip(self.planes.chunks_exact(self.quantum as usize))
                {
                    if let Some(samples) = into.channel(channel) {
                        dsp::copy(PeerSamples::from_slice(plane), samples);
                    }
                }
                channel += TOGETHER;
                continue;
            }
            if into.is_heard(channel)
                && let Some(samples) = into.channel(channel)
            {
                block.decode(channel, samples);
            }
            channel += 1;
        }
        block.commit()
    }

    /// Writes a quantum. `finish` may change the mixed samples of each channel before they are
    /// converted.
    pub(super) fn write(
        &mut self,
        playback: &mut Pcm,
        from: &mut dyn Playback,
        mut finish: impl FnMut(u32, &mut [f32]),
    ) -> Result<(), Fault> {
        let channels = channels(playback);
        let mut block = playback.write(self.quantum)?;
        let mut channel = 0;
        while channel < channels {
            let together = block.is_interleaved()
                && all_of(channel, channels, |channel| from.is_played_into(channel));
            if !together && !from.is_played_into(channel) {
                block.silence(channel);
                channel += 1;
                continue;
            }
            let count = if together { LANES } else { 1 };
            let mut planes = self.planes.chunks_exact_mut(self.quantum as usize);
            for (channel, plane) in (channel..).zip(planes.by_ref().take(count)) {
                from.mix_into(channel, plane);
                finish(channel, plane);
            }
            let mut planes = self.planes.chunks_exact(self.quantum as usize);
            let mut plane = || planes.next().unwrap_or_default();
            if together {
                block.interleave(channel, array::from_fn(|_| plane()));
                channel += TOGETHER;
            } else {
                block.encode(channel, plane());
                channel += 1;
            }
        }
        block.commit()
    }
}

/// Writes `frames` frames of silence.
pub(super) fn write_silence(playback: &mut Pcm, frames: u32) -> Result<(), Fault> {
    let channels = channels(playback);
    let mut block = playback.write(frames)?;
    (0..channels).for_each(|channel| block.silence(channel));
    block.commit()
}

fn channels(pcm: &Pcm) -> u32 {
    pcm.setup().map_or(0, |setup| setup.channels)
}

/// Returns whether `first` begins a full group of channels that are converted at once, and `is_so`
/// holds for all of them.
fn all_of(first: u32, channels: u32, is_so: impl FnMut(u32) -> bool) -> bool {
    first + TOGETHER <= channels && (first..first + TOGETHER).all(is_so)
}
