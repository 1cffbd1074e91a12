//! What a device can do, and making it do one of these things.

use alsa_sys as ffi;
use dsp::Format;

use crate::format::number;
use crate::handle::{Direction, Pcm};
use crate::parameters::{Errno, HardwareParameters, install_software_parameters};

/// How samples get in and out of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The device's own memory; `interleaved`: channels side by side, otherwise one after the other.
    Mapped {
        /// Channels lie side by side.
        interleaved: bool,
    },
    /// Copies, interleaved: devices that the library makes of others.
    Copied,
}

/// What is asked of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Hz.
    pub rate_hz: u32,
    /// `None`: as many as it has, or 2 where the library makes any number.
    pub channels: Option<u32>,
    /// Formats, best first.
    pub formats: Vec<Format>,
    /// Frames of a cycle.
    pub quantum: u32,
    /// Frames that wait in a playback device when a cycle has been written; the room that a capture device has.
    pub queue_frames: u32,
    /// Frames that the graph reads or writes at once, at most.
    pub longest_quantum: u32,
    /// The device interrupts at the end of each period, and a period is a quantum.
    pub period_wakeups: bool,
}

/// What a device was made to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// How samples are laid out.
    pub format: Format,
    /// How they get in and out.
    pub access: Access,
    /// Samples of a frame.
    pub channels: u32,
    /// Frames between two interrupts.
    pub period_frames: u32,
    /// Frames of the device's memory.
    pub buffer_frames: u32,
    /// ... and how many there could be, at this rate and in this format.
    pub most_buffer_frames: u32,
    /// Shortest and longest period, frames, at this rate and in this format.
    pub periods_frames: (u32, u32),
    /// It interrupts at the end of each period.
    pub period_wakeups: bool,
}

impl Setup {
    /// Bytes of a frame, one sample beside the other.
    pub(crate) fn frame_bytes(&self) -> usize {
        self.format.bytes_per_sample() * self.channels as usize
    }
}

/// What a device can do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Formats that we know too, in the order of [`Format::ALL`].
    pub formats: Vec<Format>,
    /// Fewest and most channels.
    pub channels: (u32, u32),
    /// Usual rates, Hz.
    pub rates_hz: Vec<u32>,
    /// Lowest and highest rate, Hz.
    pub rate_range_hz: (u32, u32),
    /// Shortest and longest period, frames, at any rate.
    pub period_frames: (u32, u32),
    /// Longest buffer, frames, at any rate.
    pub buffer_frames: u32,
}

/// What a device did not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It has no access that we know, or cannot be asked: an `errno`.
    Device(Errno),
    /// None of the formats.
    Format,
    /// The number of channels.
    Channels,
    /// The rate.
    Rate,
    /// A period of one quantum.
    Period,
    /// A buffer that is long enough; the longest it has, frames.
    Buffer(u32),
}

/// Rates that people ask for.
const USUAL_RATES_HZ: [u32; 13] = [
    8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 64_000, 88_200, 96_000, 176_400, 192_000, 384_000,
];
/// Where the library makes any number of channels.
const CHANNELS_OF_THE_LIBRARY: u32 = 2;
/// More is no hardware.
pub const CHANNELS_OF_HARDWARE: u32 = 1024;

/// The period of a device that a timer follows, frames.
#[derive(Debug, PartialEq, Eq)]
struct TimedPeriod {
    near: u32,
    /// `None`: any.
    longest: Option<u32>,
}

impl TimedPeriod {
    /// `moves_between`: where it is can be known between two interrupts.
    fn of(wish: &Wish, moves_between: bool) -> Self {
        if moves_between {
            // As few interrupts as can be.
            Self { near: wish.queue_frames, longest: None }
        } else {
            // All of a period passes at once: what is queued must outlast that, and a cycle that was just not due before.
            let longest = wish.queue_frames.saturating_sub(wish.quantum);
            Self { near: wish.quantum.min(longest), longest: Some(longest) }
        }
    }
}

const MAPPED: [(ffi::snd_pcm_access_t, bool); 3] = [
    (ffi::SND_PCM_ACCESS_MMAP_INTERLEAVED, true),
    (ffi::SND_PCM_ACCESS_MMAP_NONINTERLEAVED, false),
    (ffi::SND_PCM_ACCESS_MMAP_COMPLEX, false),
];

impl Pcm {
    /// What the device can do.
    ///
    /// # Errors
    /// An `errno`, if it cannot be asked.
    pub fn limits(&self) -> Result<Limits, i32> {
        let any = HardwareParameters::any(self)?;
        let (shortest, longest, buffer_frames) = any.lengths()?;
        Ok(Limits {
            formats: Format::ALL.into_iter().filter(|format| any.has_format(number(*format))).collect(),
            channels: any.channels()?,
            rates_hz: USUAL_RATES_HZ.into_iter().filter(|rate_hz| any.has_rate(*rate_hz)).collect(),
            rate_range_hz: any.rates()?,
            period_frames: (shortest, longest),
            buffer_frames,
        })
    }

    /// Makes it do what is asked, and readies it for cycles: after this nothing is allocated.
    ///
    /// # Errors
    /// [`Refusal`]: the first thing that it does not take. It can be asked again.
    pub fn configure(&mut self, wish: &Wish) -> Result<Setup, Refusal> {
        self.setup = None;
        let setup = self.choose(wish)?;
        let avail_min = match self.direction {
            Direction::Capture => wish.quantum,
            Direction::Playback => setup.buffer_frames - wish.queue_frames + wish.quantum,
        };
        install_software_parameters(self, avail_min, setup.buffer_frames).map_err(Refusal::Device)?;
        if setup.access == Access::Copied {
            self.staging =
                vec![0; setup.frame_bytes() * wish.longest_quantum.max(wish.queue_frames) as usize];
        }
        self.silent_frames = vec![0; setup.channels as usize];
        self.note_poll_fd();
        self.setup = Some(setup);
        Ok(setup)
    }

    fn choose(&self, wish: &Wish) -> Result<Setup, Refusal> {
        let mut parameters = HardwareParameters::any(self).map_err(Refusal::Device)?;
        let access = self.choose_access(&mut parameters)?;
        let format = wish.formats.iter().copied().find(|format| parameters.has_format(number(*format)));
        let format = format.ok_or(Refusal::Format)?;
        parameters.set_format(number(format)).map_err(|_| Refusal::Format)?;
        let (_, most) = parameters.channels().map_err(|_| Refusal::Channels)?;
        let all = if most > CHANNELS_OF_HARDWARE { CHANNELS_OF_THE_LIBRARY } else { most };
        let channels = wish.channels.unwrap_or(all);
        parameters.set_channels(channels).map_err(|_| Refusal::Channels)?;
        parameters.set_rate(wish.rate_hz).map_err(|_| Refusal::Rate)?;
        let (shortest, longest, most_buffer_frames) = parameters.lengths().map_err(Refusal::Device)?;
        let periods_frames = (shortest, longest);
        let room = if wish.period_wakeups {
            parameters.set_period(wish.quantum).map_err(|_| Refusal::Period)?;
            wish.queue_frames
        } else {
            let is_silent = parameters.disable_period_wakeups();
            let period = TimedPeriod::of(wish, is_silent || !self.is_hardware());
            if let Some(longest) = period.longest {
                parameters.set_period_at_most(longest).map_err(|_| Refusal::Period)?;
            }
            let longest = parameters.lengths().map_or(period.near, |(_, longest, _)| longest);
            parameters.set_period_near(period.near.min(longest).max(1)).map_err(|_| Refusal::Period)?;
            // Room for a late cycle.
            wish.queue_frames.saturating_mul(2)
        };
        let longest = parameters.lengths().map_or(0, |(_, _, longest)| longest);
        parameters.set_buffer_at_least(room).map_err(|_| Refusal::Buffer(longest))?;
        let (period_frames, buffer_frames) = parameters.chosen_lengths().map_err(Refusal::Device)?;
        if buffer_frames < wish.queue_frames {
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
            period_wakeups: wish.period_wakeups,
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

    fn wish(quantum: u32, queue_frames: u32) -> Wish {
        Wish {
            rate_hz: 48_000,
            channels: None,
            formats: Format::ALL.to_vec(),
            quantum,
            queue_frames,
            longest_quantum: 8192,
            period_wakeups: false,
        }
    }

    #[test]
    fn a_card_that_must_interrupt_has_never_a_period_as_long_as_what_is_queued() {
        for (quantum, periods) in [(64, 2), (64, 3), (480, 2), (1024, 8)] {
            let wish = wish(quantum, quantum * periods);
            let TimedPeriod { near, longest } = TimedPeriod::of(&wish, false);
            assert_eq!(near, quantum);
            assert_eq!(longest, Some(wish.queue_frames - quantum));
        }
    }

    #[test]
    fn a_card_that_need_not_interrupt_does_so_as_rarely_as_can_be() {
        let period = TimedPeriod::of(&wish(64, 192), true);
        assert_eq!(period, TimedPeriod { near: 192, longest: None });
    }

    #[test]
    fn a_device_of_the_library_is_configured_for_a_timer_with_room_for_a_late_cycle() {
        let mut device = Pcm::open("null", Direction::Playback).unwrap();
        let setup = device.configure(&wish(64, 192)).unwrap();
        assert!(!setup.period_wakeups && setup.buffer_frames >= 384, "{setup:?}");
        assert_eq!(setup.period_frames, 192);
    }
}
