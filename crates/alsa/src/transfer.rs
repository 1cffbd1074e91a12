//! The samples of one cycle, to a device and from it. Thread: cycle.

use std::ptr::null;
use std::slice;

use alsa_sys as ffi;
use dsp::{Format, LANES};

use crate::configure::{Access, Setup};
use crate::error::Fault;
use crate::handle::{Pcm, check};

/// A contiguous part of a block in a device's memory: what lies before the end of the memory, or
/// what follows from its start.
#[derive(Debug, Clone, Copy)]
struct MappedFrames {
    /// One area for each channel.
    areas: *const ffi::snd_pcm_channel_area_t,
    offset_frames: usize,
    frames: usize,
}

/// The bytes that contain one channel's samples: channel `channel` of `channels` interleaved ones.
#[derive(Debug, Clone, Copy)]
struct ChannelBytes {
    start: *mut u8,
    bytes: usize,
    channel: usize,
    channels: usize,
}

impl MappedFrames {
    /// Returns `None` for an impossible layout.
    fn channel_bytes(&self, channel: u32, setup: &Setup) -> Option<ChannelBytes> {
        if channel >= setup.channels {
            return None;
        }
        // SAFETY: the library gives an area for each of the configured channels, and `channel` is
        // one of them; the areas stay until the device is configured again, which needs the block
        // to have ended.
        let area = unsafe { *self.areas.add(channel as usize) };
        let width = setup.format.bytes_per_sample();
        let (first, step) = ((area.first / 8) as usize, (area.step / 8) as usize);
        if area.addr.is_null() || step < width || step % width != 0 || (first % step) % width != 0 {
            return None;
        }
        // SAFETY: the area reaches over the whole buffer, and the part lies in it.
        let start =
            unsafe { area.addr.cast::<u8>().add(first - first % step + self.offset_frames * step) };
        Some(ChannelBytes {
            start,
            bytes: self.frames * step,
            channel: (first % step) / width,
            channels: step / width,
        })
    }
}

/// Returns the two parts of `frames` frames from the application's position.
fn mapped_frames(pcm: &Pcm, setup: &Setup, frames: u32) -> Result<[MappedFrames; 2], Fault> {
    let (mut areas, mut offset, mut contiguous) = (null(), 0, ffi::snd_pcm_uframes_t::from(frames));
    // SAFETY: the handle is open and configured for mapped access; the results outlive the call.
    let result =
        unsafe { ffi::snd_pcm_mmap_begin(pcm.raw(), &mut areas, &mut offset, &mut contiguous) };
    check(result.into())?;
    let (offset, buffer, frames) = (offset as usize, setup.buffer_frames as usize, frames as usize);
    if areas.is_null() || offset >= buffer || frames > buffer {
        return Err(Fault::Other(libc::EINVAL));
    }
    let first = frames.min(buffer - offset);
    Ok([
        MappedFrames { areas, offset_frames: offset, frames: first },
        MappedFrames { areas, offset_frames: 0, frames: frames - first },
    ])
}

fn commit(pcm: &Pcm, parts: &[MappedFrames; 2]) -> Result<(), Fault> {
    for part in parts.iter().filter(|part| part.frames > 0) {
        let (offset, frames) = (part.offset_frames as _, part.frames as ffi::snd_pcm_uframes_t);
        // SAFETY: the handle is open; the frames were given out by `snd_pcm_mmap_begin`, or follow
        // them.
        let done = check(unsafe { ffi::snd_pcm_mmap_commit(pcm.raw(), offset, frames) })?;
        if done != part.frames as i64 {
            return Err(Fault::Xrun);
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Memory {
    Mapped([MappedFrames; 2]),
    /// This many bytes at the start of `Pcm::staging`.
    Copied(usize),
}

impl Memory {
    fn of(pcm: &Pcm, setup: &Setup, frames: u32) -> Result<Self, Fault> {
        if let Access::Mapped { .. } = setup.access {
            return mapped_frames(pcm, setup, frames).map(Self::Mapped);
        }
        let bytes = setup.frame_bytes() * frames as usize;
        if bytes > pcm.staging.len() {
            Err(Fault::Other(libc::EINVAL))
        } else {
            Ok(Self::Copied(bytes))
        }
    }
}

fn is_interleaved(setup: &Setup) -> bool {
    setup.access != Access::Mapped { interleaved: false }
}

/// Writes silence for channel `channel` of `channels`: zeros in each of the formats.
fn silence(format: Format, into: &mut [u8], channel: usize, channels: usize) {
    let width = format.bytes_per_sample();
    for frame in into.chunks_exact_mut((width * channels).max(1)) {
        frame.iter_mut().skip(channel * width).take(width).for_each(|byte| *byte = 0);
    }
}

/// One cycle's frames for a device.
#[derive(Debug)]
pub struct WriteBlock<'a> {
    pcm: &'a mut Pcm,
    setup: Setup,
    memory: Memory,
    frames: u32,
}

/// One cycle's frames from a device.
#[derive(Debug)]
pub struct ReadBlock<'a> {
    pcm: &'a mut Pcm,
    setup: Setup,
    memory: Memory,
    frames: u32,
}

impl Pcm {
    /// Returns the next `frames` frames of a playback device, which must have room for them
    /// ([`Pcm::position`]).
    ///
    /// # Errors
    /// [`Fault`].
    pub fn write(&mut self, frames: u32) -> Result<WriteBlock<'_>, Fault> {
        let setup = self.setup.ok_or(Fault::Stalled)?;
        let memory = Memory::of(self, &setup, frames)?;
        Ok(WriteBlock { pcm: self, setup, memory, frames })
    }

    /// Returns the next `frames` frames of a capture device, which must have them
    /// ([`Pcm::position`]).
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(&mut self, frames: u32) -> Result<ReadBlock<'_>, Fault> {
        let setup = self.setup.ok_or(Fault::Stalled)?;
        let memory = Memory::of(self, &setup, frames)?;
        if let Memory::Copied(_) = memory {
            let into = self.staging.as_mut_ptr().cast();
            // SAFETY: the handle is open and configured for copies; `staging` has room for the
            // frames, as `Memory::of` has checked.
            let done = check(unsafe { ffi::snd_pcm_readi(self.raw(), into, frames.into()) })?;
            if done != i64::from(frames) {
                return Err(Fault::Xrun);
            }
        }
        Ok(ReadBlock { pcm: self, setup, memory, frames })
    }
}

impl WriteBlock<'_> {
    /// Converts one channel's samples. A channel that gets neither samples nor silence keeps what
    /// the memory held before.
    pub fn encode(&mut self, channel: u32, samples: &[f32]) {
        let format = self.setup.format;
        if let Some(silent_frames) = self.pcm.silent_frames.get_mut(channel as usize) {
            *silent_frames = 0;
        }
        let mut rest = samples;
        self.fill(channel, |frames, into, channel, channels| {
            let (part, after) = rest.split_at(rest.len().min(frames));
            rest = after;
            dsp::encode(format, part, into, channel, channels);
        });
    }

    /// Returns whether channels are interleaved, so that [`interleave`](Self::interleave) can be
    /// used.
    #[must_use]
    pub fn is_interleaved(&self) -> bool {
        is_interleaved(&self.setup)
    }

    /// Same as [`encode`](Self::encode) for channels `first` and on, together, of interleaved
    /// frames.
    pub fn interleave(&mut self, first: u32, samples: [&[f32]; LANES]) {
        let format = self.setup.format;
        self.pcm
            .silent_frames
            .iter_mut()
            .skip(first as usize)
            .take(LANES)
            .for_each(|frames| *frames = 0);
        let mut rest = samples;
        self.fill(first, |frames, into, first, channels| {
            let part = rest.map(|samples| samples.get(..frames).unwrap_or(samples));
            rest = rest.map(|samples| samples.get(frames..).unwrap_or_default());
            dsp::interleave(format, part, into, first, channels);
        });
    }

    /// Silences one channel; without cost once all of the device's memory is silent.
    pub fn silence(&mut self, channel: u32) {
        let Setup { format, buffer_frames, .. } = self.setup;
        if let Memory::Mapped(_) = self.memory
            && let Some(silent_frames) = self.pcm.silent_frames.get_mut(channel as usize)
        {
            if *silent_frames >= buffer_frames {
                return;
            }
            *silent_frames += self.frames;
        }
        self.fill(channel, |_, into, channel, channels| silence(format, into, channel, channels));
    }

    /// Calls `write` for each part of the block, with its number of frames, its bytes, the
    /// channel's index and the number of interleaved channels.
    fn fill(&mut self, channel: u32, mut write: impl FnMut(usize, &mut [u8], usize, usize)) {
        match self.memory {
            Memory::Mapped(parts) => {
                for part in parts {
                    let Some(found) = part.channel_bytes(channel, &self.setup) else { continue };
                    // SAFETY: the bytes lie in the mapped memory, in the frames that the
                    // application may write until it commits them; `found` lives for this call
                    // only, and no other reference to them exists. The device does not write to
                    // memory that it plays from.
                    let into = unsafe { slice::from_raw_parts_mut(found.start, found.bytes) };
                    write(part.frames, into, found.channel, found.channels);
                }
            }
            Memory::Copied(bytes) => {
                let into = self.pcm.staging.get_mut(..bytes).unwrap_or_default();
                write(self.frames as usize, into, channel as usize, self.setup.channels as usize);
            }
        }
    }

    /// Passes the frames to the device.
    ///
    /// # Errors
    /// [`Fault`]: the device did not take all of them.
    pub fn commit(self) -> Result<(), Fault> {
        match self.memory {
            Memory::Mapped(parts) => commit(self.pcm, &parts),
            Memory::Copied(_) => {
                let from = self.pcm.staging.as_ptr().cast();
                // SAFETY: the handle is open and configured for copies; `staging` holds the frames,
                // as `Memory::of` has checked.
                let done = check(unsafe {
                    ffi::snd_pcm_writei(self.pcm.raw(), from, self.frames.into())
                })?;
                if done == i64::from(self.frames) { Ok(()) } else { Err(Fault::Xrun) }
            }
        }
    }
}

impl ReadBlock<'_> {
    /// Returns whether channels are interleaved, so that [`deinterleave`](Self::deinterleave) can
    /// be used.
    #[must_use]
    pub fn is_interleaved(&self) -> bool {
        is_interleaved(&self.setup)
    }

    /// Same as [`decode`](Self::decode) for channels `first` and on, together, of interleaved
    /// frames.
    pub fn deinterleave(&self, first: u32, into: [&mut [f32]; LANES]) {
        let format = self.setup.format;
        let mut rest = into;
        self.visit(first, |frames, from, first, channels| {
            let mut part = [(); LANES].map(|()| Default::default());
            for (part, rest) in part.iter_mut().zip(&mut rest) {
                let samples: &mut [f32] = std::mem::take(rest);
                (*part, *rest) = samples.split_at_mut(samples.len().min(frames));
            }
            dsp::deinterleave(format, from, part, first, channels);
        });
    }

    /// Converts one channel's samples.
    pub fn decode(&self, channel: u32, into: &mut [f32]) {
        let format = self.setup.format;
        let mut rest = into;
        self.visit(channel, |frames, from, channel, channels| {
            let samples = std::mem::take(&mut rest);
            let (part, after) = samples.split_at_mut(samples.len().min(frames));
            rest = after;
            dsp::decode(format, from, part, channel, channels);
        });
    }

    /// Calls `read` for each part of the block, with its number of frames, its bytes, the channel's
    /// index and the number of interleaved channels.
    fn visit(&self, channel: u32, mut read: impl FnMut(usize, &[u8], usize, usize)) {
        match self.memory {
            Memory::Mapped(parts) => {
                for part in parts {
                    let Some(found) = part.channel_bytes(channel, &self.setup) else { continue };
                    // SAFETY: the bytes lie in the mapped memory, in frames that the device has
                    // filled and does not touch again before they are committed. (A device that
                    // overruns stops; what it overwrote until then is heard as noise in that one
                    // cycle, which is an xrun.)
                    let from = unsafe { slice::from_raw_parts(found.start, found.bytes) };
                    read(part.frames, from, found.channel, found.channels);
                }
            }
            Memory::Copied(bytes) => {
                let from = self.pcm.staging.get(..bytes).unwrap_or_default();
                read(self.frames as usize, from, channel as usize, self.setup.channels as usize);
            }
        }
    }

    /// Returns the frames to the device.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn commit(self) -> Result<(), Fault> {
        match self.memory {
            Memory::Mapped(parts) => commit(self.pcm, &parts),
            Memory::Copied(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: usize = 8;
    const CHANNELS: u32 = 3;

    fn setup(format: Format) -> Setup {
        Setup {
            format,
            access: Access::Mapped { interleaved: false },
            channels: CHANNELS,
            period_frames: 4,
            buffer_frames: 8,
            most_buffer_frames: 8,
            periods_frames: (4, 4),
            period_wakeups: true,
            can_be_silent: true,
        }
    }

    /// Areas over `memory`, as a device describes them: interleaved, or one after the other.
    fn areas(
        memory: &mut [u8],
        width: usize,
        interleaved: bool,
    ) -> Vec<ffi::snd_pcm_channel_area_t> {
        let addr = memory.as_mut_ptr().cast();
        let bits = |bytes: usize| u32::try_from(8 * bytes).unwrap();
        let channels = CHANNELS as usize;
        (0..channels)
            .map(|channel| {
                let (first, step) = if interleaved {
                    (channel * width, channels * width)
                } else {
                    (channel * FRAMES * width, width)
                };
                ffi::snd_pcm_channel_area_t { addr, first: bits(first), step: bits(step) }
            })
            .collect()
    }

    #[test]
    fn every_channel_is_found_in_memory_of_either_layout() {
        for format in Format::ALL {
            let (setup, width) = (setup(format), format.bytes_per_sample());
            for interleaved in [true, false] {
                let mut memory = vec![0_u8; FRAMES * CHANNELS as usize * width];
                let base = memory.as_mut_ptr() as usize;
                let areas = areas(&mut memory, width, interleaved);
                let part = MappedFrames { areas: areas.as_ptr(), offset_frames: 5, frames: 2 };
                for channel in 0..CHANNELS {
                    let found = part.channel_bytes(channel, &setup).unwrap();
                    let sample = found.start as usize - base + found.channel * width;
                    let channel = channel as usize;
                    let expected = if interleaved {
                        (5 * CHANNELS as usize + channel) * width
                    } else {
                        (channel * FRAMES + 5) * width
                    };
                    assert_eq!(sample, expected, "{format:?}, channel {channel}, {interleaved}");
                    assert!(found.start as usize - base + found.bytes <= memory.len());
                    assert_eq!(found.bytes, 2 * found.channels * width);
                }
                assert!(part.channel_bytes(CHANNELS, &setup).is_none());
            }
        }
    }

    #[test]
    fn silence_equals_converted_zeros_in_its_channel() {
        for format in Format::ALL {
            let (channels, width) = (CHANNELS as usize, format.bytes_per_sample());
            for channel in 0..channels {
                let mut expected = vec![0xa5_u8; FRAMES * channels * width];
                let mut found = expected.clone();
                dsp::encode(format, &[0.0; FRAMES], &mut expected, channel, channels);
                silence(format, &mut found, channel, channels);
                assert_eq!(found, expected, "{format:?}, channel {channel}");
            }
        }
    }

    #[test]
    fn memory_that_is_laid_out_in_no_known_way_is_left_alone() {
        let mut memory = vec![0_u8; 1024];
        let setup = setup(Format::S32Le);
        let mut areas = areas(&mut memory, 4, true);
        areas[0].step = 8;
        areas[1].first = 8;
        areas[2].addr = std::ptr::null_mut();
        let part = MappedFrames { areas: areas.as_ptr(), offset_frames: 0, frames: 2 };
        assert!((0..3).all(|channel| part.channel_bytes(channel, &setup).is_none()));
    }
}
