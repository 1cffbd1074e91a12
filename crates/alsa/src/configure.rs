//! Queries what a device supports, and configures it.

use alsa_sys as ffi;
use dsp::Format;

use crate::format::number;
use crate::handle::{Direction, Pcm};
use crate::parameters::{Errno, HardwareParameters, install_software_parameters};

/// How samples are transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The device's own memory, mapped.
    Mapped {
        /// Interleaved channels; otherwise one channel after the other.
        interleaved: bool,
    },
    /// Interleaved copies: devices that the library builds from others.
    Copied,
}

/// The requested configuration of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupRequest {
    /// Sample rate, Hz.
    pub rate_hz: u32,
    /// `None`: all that the device has, or 2 if the library accepts any number.
    pub channels: Option<u32>,
    /// Formats, best first.
    pub formats: Vec<Format>,
    /// Frames of a cycle.
    pub quantum: u32,
    /// Frames in the playback queue after a cycle has been written; the room of a capture device.
    pub queue_frames: u32,
    /// Most frames that the graph reads or writes at once.
    pub longest_quantum: u32,
    /// The device interrupts at the end of each period, and a period is a quantum.
    pub period_wakeups: bool,
    /// Frames that are to fit into the device's buffer, or else as many as do; 0: no more than
    /// cycles need. Only without `period_wakeups`.
    pub ahead_frames: u32,
}

/// The configuration of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Sample format.
    pub format: Format,
    /// How samples are transferred.
    pub access: Access,
    /// Samples per frame.
    pub channels: u32,
    /// Frames between two interrupts.
    pub period_frames: u32,
    /// Length of the device's buffer, frames.
    pub buffer_frames: u32,
    /// Longest buffer at this rate and in this format, frames.
    pub most_buffer_frames: u32,
    /// Shortest and longest period, frames, at this rate and in this format.
    pub periods_frames: (u32, u32),
    /// The device interrupts at the end of each period.
    pub period_wakeups: bool,
    /// The device can do without these interrupts.
    pub can_be_silent: bool,
}

impl Setup {
    /// Returns the bytes of an interleaved frame.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.format.bytes_per_sample() * self.channels as usize
    }
}

/// What a device supports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Supported formats of those in [`Format::ALL`], in that order.
    pub formats: Vec<Format>,
    /// Fewest and most channels.
    pub channels: (u32, u32),
    /// Supported usual rates, Hz.
    pub rates_hz: Vec<u32>,
    /// Lowest and highest rate, Hz.
    pub rate_range_hz: (u32, u32),
    /// Shortest and longest period, frames, at any rate.
    pub period_frames: (u32, u32),
    /// Longest buffer, frames, at any rate.
    pub buffer_frames: u32,
}

/// What a device refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// All known kinds of access, or the query itself: an `errno`.
    Device(Errno),
    /// All requested formats.
    Format,
    /// The number of channels.
    Channels,
    /// The rate.
    Rate,
    /// A period of one quantum.
    Period,
    /// A buffer that is long enough; the longest that it supports, frames.
    Buffer(u32),
}

/// Usual rates.
const USUAL_RATES_HZ: [u32; 13] = [
    8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000, 176_400,
    192_000, 384_000,
];
/// Channels of a device for which the library accepts any number.
const CHANNELS_OF_THE_LIBRARY: u32 = 2;
/// No hardware has more channels.
pub const CHANNELS_OF_HARDWARE: u32 = 1024;

/// The period of a device that a timer follows, frames.
#[derive(Debug, PartialEq, Eq)]
struct TimedPeriod {
    near: u32,
    /// `None`: any.
    longest: Option<u32>,
}

impl TimedPeriod {
    /// `moves_between`: the position is known between two interrupts.
    fn of(request: &SetupRequest, moves_between: bool) -> Self {
        if moves_between && request.ahead_frames > 0 {
            Self { near: request.ahead_frames / 4, longest: None }
        } else if moves_between {
            // As few interrupts as possible.
            Self { near: request.queue_frames, longest: None }
        } else {
            // The position advances by a whole period at once: the queue must outlast a period and
            // a cycle that was just not due before.
            let longest = request.queue_frames.saturating_sub(request.quantum);
            Self { near: request.quantum.min(longest), longest: Some(longest) }
        }
    }
}

const MAPPED: [(ffi::snd_pcm_access_t, bool); 3] = [
    (ffi::SND_PCM_ACCESS_MMAP_INTERLEAVED, true),
    (ffi::SND_PCM_ACCESS_MMAP_NONINTERLEAVED, false),
    (ffi::SND_PCM_ACCESS_MMAP_COMPLEX, false),
];

impl Pcm {
    /// Returns what the device supports.
    ///
    /// # Errors
    /// An `errno` if the device cannot be queried.
    pub fn limits(&self) -> Result<Limits, i32> {
        let any = HardwareParameters::any(self)?;
        let (shortest, longest, buffer_frames) = any.lengths()?;
        Ok(Limits {
            formats: Format::ALL
                .into_iter()
                .filter(|format| any.has_format(number(*format)))
                .collect(),
            channels: any.channels()?,
            rates_hz: USUAL_RATES_HZ.into_iter().filter(|rate_hz| any.has_rate(*rate_hz)).collect(),
            rate_range_hz: any.rates()?,
            period_frames: (shortest, longest),
            buffer_frames,
        })
    }

    /// Configures the device and prepares it for cycles: nothing is allocated afterwards.
    ///
    /// # Errors
    /// [`Refusal`]: the first thing that the device refuses. It can be configured again.
    pub fn configure(&mut self, request: &SetupRequest) -> Result<Setup, Refusal> {
        self.setup = None;
        let setup = self.choose(request)?;
        let avail_min = match self.direction {
            Direction::Capture => request.quantum,
            Direction::Playback => setup.buffer_frames - request.queue_frames + request.quantum,
        };
        install_software_parameters(self, avail_min, setup.buffer_frames)
            .map_err(Refusal::Device)?;
        if setup.access == Access::Copied {
            self.staging = vec![
                0;
                setup.frame_bytes()
                    * request.longest_quantum.max(request.queue_frames) as usize
            ];
        }
        self.silent_frames = vec![0; setup.channels as usize];
        self.note_poll_fd();
        self.setup = Some(setup);
        Ok(setup)
    }

    fn choose(&self, request: &SetupRequest) -> Result<Setup, Refusal> {
        let mut parameters = HardwareParameters::any(self).map_err(Refusal::Device)?;
        let access = self.choose_access(&mut parameters)?;
        let format =
            request.formats.iter().copied().find(|format| parameters.has_format(number(*format)));
        let format = format.ok_or(Refusal::Format)?;
        parameters.set_format(number(format)).map_err(|_| Refusal::Format)?;
        let (_, most) = parameters.channels().map_err(|_| Refusal::Channels)?;
        let all = if most > CHANNELS_OF_HARDWARE { CHANNELS_OF_THE_LIBRARY } else { most };
        let channels = request.channels.unwrap_or(all);
        parameters.set_channels(channels).map_err(|_| Refusal::Channels)?;
        parameters.set_rate(request.rate_hz).map_err(|_| Refusal::Rate)?;
        let (shortest, longest, most_buffer_frames) =
            parameters.lengths().map_err(Refusal::Device)?;
        let periods_frames = (shortest, longest);
        let can_be_silent = parameters.can_disable_period_wakeups();
        let room = if request.period_wakeups {
            parameters.set_period(request.quantum).map_err(|_| Refusal::Period)?;
            request.queue_frames
        } else {
            let is_silent = can_be_silent && parameters.disable_period_wakeups();
            let period = TimedPeriod::of(request, is_silent || !self.is_hardware());
            if is_silent && request.ahead_frames > 0 {
                // Before the period, whose length limits it: no interrupt depends on that.
                let _ = parameters.set_buffer_at_least(request.ahead_frames);
            }
            if let Some(longest) = period.longest {
                parameters.set_period_at_most(longest).map_err(|_| Refusal::Period)?;
            }
            let longest = parameters.lengths().map_or(period.near, |(_, longest, _)| longest);
            parameters
                .set_period_near(period.near.min(longest).max(1))
                .map_err(|_| Refusal::Period)?;
            // Room for a late cycle.
            request.queue_frames.saturating_mul(2).max(request.ahead_frames)
        };
        let longest = parameters.lengths().map_or(0, |(_, _, longest)| longest);
        parameters.set_buffer_at_least(room).map_err(|_| Refusal::Buffer(longest))?;
        let (period_frames, buffer_frames) =
            parameters.chosen_lengths().map_err(Refusal::Device)?;
        if buffer_frames < request.queue_frames {
            return Err(Refusal::Buffer(longest));
        }
        parameters.install().map_err(Refusal::Device)?;
        Ok(Setup {
            format,
            access,
            channels,
            period_frames,
            buffer_frames,
            most_buffer_frames,
            periods_frames,
            period_wakeups: request.period_wakeups,
            can_be_silent,
        })
    }

    fn choose_access(&self, parameters: &mut HardwareParameters<'_>) -> Result<Access, Refusal> {
        if self.is_hardware() {
            for (access, interleaved) in MAPPED {
                if parameters.set_access(access).is_ok() {
                    return Ok(Access::Mapped { interleaved });
                }
            }
        }
        parameters.set_access(ffi::SND_PCM_ACCESS_RW_INTERLEAVED).map_err(Refusal::Device)?;
        Ok(Access::Copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(quantum: u32, queue_frames: u32) -> SetupRequest {
        SetupRequest {
            rate_hz: 48_000,
            channels: None,
            formats: Format::ALL.to_vec(),
            quantum,
            queue_frames,
            longest_quantum: 8192,
            period_wakeups: false,
            ahead_frames: 0,
        }
    }

    #[test]
    fn interrupt_driven_cards_have_periods_shorter_than_the_queue() {
        for (quantum, periods) in [(64, 2), (64, 3), (480, 2), (1024, 8)] {
            let request = request(quantum, quantum * periods);
            let TimedPeriod { near, longest } = TimedPeriod::of(&request, false);
            assert_eq!(near, quantum);
            assert_eq!(longest, Some(request.queue_frames - quantum));
        }
    }

    #[test]
    fn a_card_that_need_not_interrupt_does_so_as_rarely_as_can_be() {
        let period = TimedPeriod::of(&request(64, 192), true);
        assert_eq!(period, TimedPeriod { near: 192, longest: None });
    }

    #[test]
    fn a_card_that_plays_ahead_has_long_periods_only_if_it_need_not_interrupt() {
        let request = SetupRequest { ahead_frames: 96_000, ..request(64, 192) };
        assert_eq!(TimedPeriod::of(&request, true), TimedPeriod { near: 24_000, longest: None });
        assert_eq!(TimedPeriod::of(&request, false), TimedPeriod { near: 64, longest: Some(128) });
    }

    #[test]
    fn a_software_device_is_configured_with_room_for_a_late_cycle() {
        let mut device = Pcm::open("null", Direction::Playback).unwrap();
        let setup = device.configure(&request(64, 192)).unwrap();
        assert!(!setup.period_wakeups && setup.buffer_frames >= 384, "{setup:?}");
        assert_eq!(setup.period_frames, 192);
    }
}
