//! How a device is opened, the first time and every time it comes back. Thread: not the cycle's.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use alsa::{Access, Direction, OpenError, Pcm, Refusal, SetupRequest};
use dsp::Format;
use proto::driver::{AlsaOptions, AlsaSide, WakeRule};
use proto::limits::QUANTUM_FRAMES;
use rt::rate::frames_in;

use super::device::{Device, Need, Queue, WakeSource};
use super::formats::formats;
use super::{choose, explain};

/// Default sample rate, Hz.
const SAMPLE_RATE_HZ: u32 = 48_000;
/// How far ahead of a card streams are rendered, at most: what a loop renders, and some room.
pub(super) const AHEAD_NS: u64 = 2_100_000_000;

/// What to open, and how. Opening it for the first time fixes names and channel counts, so that a
/// device that comes back is the same one.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) capture: Option<SideRecipe>,
    pub(super) playback: Option<SideRecipe>,
    pub(super) rate_hz: u32,
    periods: u32,
    formats: Vec<Format>,
    wake: WakeRule,
    /// Choices of the card's clock controls.
    clock_sources: Vec<String>,
}

/// One direction of a recipe.
#[derive(Debug, Clone)]
pub(super) struct SideRecipe {
    /// ALSA's name.
    pub(super) name: String,
    /// `None`: all that the device has.
    pub(super) channels: Option<u32>,
    required: bool,
}

impl Recipe {
    /// Returns the recipe for these options; `None` if they name no device and this machine has no
    /// card.
    pub(super) fn new(options: &AlsaOptions) -> Option<Self> {
        let named = |side: &Option<AlsaSide>| side.as_ref().and_then(|side| side.device.clone());
        let (capture_name, playback_name) = (named(&options.capture), named(&options.playback));
        let cards = alsa::cards();
        let card = choose::sensible(&cards);
        let side =
            |side: &Option<AlsaSide>, own: &Option<String>, other: &Option<String>, direction| {
                let Some(side) = side else { return Some(None) };
                let device = own.clone().or_else(|| other.clone());
                let name = match (device, card) {
                    (Some(device), _) => device,
                    // A card without this direction: opening it reports that if it is required.
                    (None, Some(card)) => choose::device_of(card, direction)
                        .unwrap_or_else(|| card.device_name(0, None)),
                    (None, None) => return None,
                };
                Some(Some(SideRecipe { name, channels: side.channels, required: side.required }))
            };
        Some(Self {
            capture: side(&options.capture, &capture_name, &playback_name, Direction::Capture)?,
            playback: side(&options.playback, &playback_name, &capture_name, Direction::Playback)?,
            rate_hz: options.sample_rate_hz.unwrap_or(SAMPLE_RATE_HZ),
            periods: options.periods,
            formats: formats(options),
            wake: options.wake,
            clock_sources: options.clock_sources.clone(),
        })
    }

    /// Returns ALSA's names of the devices.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [&self.capture, &self.playback].into_iter().flatten().map(|side| side.name.as_str())
    }

    /// Returns the current numbers of the cards.
    pub(super) fn cards(&self) -> Vec<u32> {
        let mut cards: Vec<u32> =
            self.names().filter_map(alsa::locate).map(|(card, _)| card).collect();
        cards.sort_unstable();
        cards.dedup();
        cards
    }

    /// Opens the devices for the first time, and fixes the recipe to them.
    pub(super) fn open_first(&mut self, quantum: u32) -> Result<Device, String> {
        let mut names: Vec<String> = self.names().map(|name| format!("'{name}'")).collect();
        names.dedup();
        let playback = open_or_leave(&mut self.playback, Direction::Playback)?;
        let capture = open_or_leave(&mut self.capture, Direction::Capture)?;
        if playback.is_none() && capture.is_none() {
            return Err(format!(
                "{} neither plays nor records: `consort device list` shows this machine's cards, \
                 and `aplay -L` and `arecord -L` all of ALSA's devices",
                names.join(" with ")
            ));
        }
        let device = self.configure(capture, playback, quantum, Need::Cycles)?;
        let sides = [(&mut self.capture, &device.capture), (&mut self.playback, &device.playback)];
        for (side, pcm) in sides {
            if let (Some(side), Some(pcm)) = (side, pcm) {
                side.name = choose::lasting_name(pcm, &side.name);
                side.channels = pcm.setup().map(|setup| setup.channels);
            }
        }
        Ok(device)
    }

    /// Returns whether all devices are plugged in. The library prints an error when one that is not
    /// is opened.
    pub(super) fn is_there(&self) -> bool {
        self.names().all(choose::may_exist)
    }

    /// Opens the devices again, for what the driver needs.
    pub(super) fn open_again(&self, quantum: u32, need: Need) -> Result<Device, String> {
        let open = |side: &Option<SideRecipe>, direction| {
            let Some(side) = side else { return Ok(None) };
            let opened = Pcm::open(&side.name, direction);
            opened.map(Some).map_err(|error| explain::not_opened(&side.name, direction, error))
        };
        let playback = open(&self.playback, Direction::Playback)?;
        let capture = open(&self.capture, Direction::Capture)?;
        self.configure(capture, playback, quantum, need)
    }

    fn configure(
        &self,
        mut capture: Option<Pcm>,
        mut playback: Option<Pcm>,
        quantum: u32,
        need: Need,
    ) -> Result<Device, String> {
        self.choose_clock(&capture, &playback)?;
        if need == Need::Streams {
            let ahead_frames = frames_in(AHEAD_NS, self.rate_hz);
            let ahead_frames = u32::try_from(ahead_frames).unwrap_or(u32::MAX);
            self.configure_both(&mut capture, &mut playback, quantum, false, ahead_frames)
                .map_err(|(_, text)| text)?;
            return Ok(self.device(capture, playback, quantum, WakeSource::Timer, need));
        }
        let hardware = capture.iter().chain(&playback).all(Pcm::is_hardware);
        let interrupts = match self.wake {
            WakeRule::Interrupt if !hardware => {
                return Err("only hw: devices wake by their interrupts; leave out --wake".into());
            }
            WakeRule::Interrupt => true,
            WakeRule::Best => hardware,
            WakeRule::Timer => false,
        };
        if interrupts {
            match self.configure_both(&mut capture, &mut playback, quantum, true, 0) {
                Ok(()) => {
                    let wake_source = WakeSource::Interrupt;
                    return Ok(self.device(capture, playback, quantum, wake_source, need));
                }
                Err((Refusal::Period, _)) if self.wake == WakeRule::Best => {}
                Err((_, text)) => return Err(text),
            }
        }
        self.configure_both(&mut capture, &mut playback, quantum, false, 0)
            .map_err(|(_, text)| text)?;
        Ok(self.device(capture, playback, quantum, WakeSource::Timer, need))
    }

    /// Sets the clock of the device's card before the device is configured: its rate depends on it,
    /// and a card that was unplugged has forgotten it.
    fn choose_clock(&self, capture: &Option<Pcm>, playback: &Option<Pcm>) -> Result<(), String> {
        if self.clock_sources.is_empty() {
            return Ok(());
        }
        let cards = capture.iter().chain(playback).map(|pcm| pcm.card_and_device());
        let cards: BTreeSet<Option<u32>> =
            cards.map(|location| location.map(|(card, _)| card)).collect();
        let name = self.names().next().unwrap_or_default();
        match Vec::from_iter(cards)[..] {
            [Some(card)] => alsa::choose_clock(card, &self.clock_sources)
                .map_err(|error| format!("sound card of '{name}': {error}")),
            [None] => Err(format!("'{name}' is on no sound card, so leave out --clock-source")),
            _ => Err("the capture and playback devices are two cards, so leave out \
                      --clock-source and set their clocks with alsamixer"
                .into()),
        }
    }

    /// Returns the clock that the device's card was asked to follow, for users.
    pub(super) fn clock(&self, device: &Device) -> Option<String> {
        let pcm = device.capture.as_ref().or(device.playback.as_ref())?;
        let (card, _) = pcm.card_and_device().filter(|_| !self.clock_sources.is_empty())?;
        let chosen = |control: alsa::ClockControl| {
            let choice = control.choices.get(control.chosen?)?;
            Some(format!("{} {choice}", control.name))
        };
        let chosen: Vec<String> =
            alsa::clock_controls(card).into_iter().filter_map(chosen).collect();
        Some(chosen.join(", "))
    }

    fn device(
        &self,
        capture: Option<Pcm>,
        playback: Option<Pcm>,
        quantum: u32,
        wake_source: WakeSource,
        need: Need,
    ) -> Device {
        let queue = Queue { quantum, queue_frames: self.queue_frames(quantum) };
        Device::new(capture, playback, queue, self.rate_hz, wake_source, need)
    }

    fn queue_frames(&self, quantum: u32) -> u32 {
        self.periods.max(2).saturating_mul(quantum)
    }

    /// Returns the range of quanta that a device of this recipe supports. The length of its buffer
    /// bounds it, and the lengths of its periods do if only interrupts may wake the driver. The
    /// device may still refuse a quantum inside the range.
    pub(super) fn quanta(&self, device: &Device) -> RangeInclusive<u32> {
        let setups = device.capture.iter().chain(&device.playback).filter_map(Pcm::setup);
        setups.fold(QUANTUM_FRAMES, |quanta, setup| {
            let fits = setup.most_buffer_frames / self.queue_frames(1);
            let (shortest, longest) = match self.wake {
                WakeRule::Interrupt => setup.periods_frames,
                WakeRule::Best | WakeRule::Timer => (1, fits),
            };
            shortest.max(*quanta.start())..=longest.min(fits).min(*quanta.end())
        })
    }

    fn configure_both(
        &self,
        capture: &mut Option<Pcm>,
        playback: &mut Option<Pcm>,
        quantum: u32,
        period_wakeups: bool,
        ahead_frames: u32,
    ) -> Result<(), (Refusal, String)> {
        let sides = [(capture, &self.capture), (playback, &self.playback)];
        for (pcm, side) in sides {
            let (Some(pcm), Some(side)) = (pcm, side) else { continue };
            let request = SetupRequest {
                rate_hz: self.rate_hz,
                channels: side.channels,
                formats: self.formats.clone(),
                quantum,
                queue_frames: self.queue_frames(quantum),
                longest_quantum: *QUANTUM_FRAMES.end(),
                period_wakeups,
                ahead_frames: match pcm.direction() {
                    Direction::Playback => ahead_frames,
                    Direction::Capture => 0,
                },
            };
            pcm.configure(&request).map_err(|refusal| {
                (refusal, explain::not_configured(&side.name, pcm, &request, refusal))
            })?;
        }
        Ok(())
    }
}

/// Opens a direction. One that the device does not have and that is not required is removed from
/// the recipe.
fn open_or_leave(
    side: &mut Option<SideRecipe>,
    direction: Direction,
) -> Result<Option<Pcm>, String> {
    let Some(wanted) = side else { return Ok(None) };
    let may_exist = choose::may_exist(&wanted.name);
    let opened =
        if may_exist { Pcm::open(&wanted.name, direction) } else { Err(OpenError::Missing) };
    match opened {
        // The library reports a card that this user may not open as missing.
        Err(OpenError::Missing) if alsa::is_forbidden(&wanted.name) => {
            Err(explain::not_opened(&wanted.name, direction, OpenError::Denied))
        }
        Ok(pcm) => Ok(Some(pcm)),
        Err(OpenError::Missing) if !wanted.required && may_exist => {
            *side = None;
            Ok(None)
        }
        Err(error) => Err(explain::not_opened(&wanted.name, direction, error)),
    }
}

/// Returns the layout of a configured device: "2 S16_LE".
pub(super) fn layout(pcm: &Pcm) -> String {
    let Some(setup) = pcm.setup() else { return String::new() };
    let copied = if setup.access == Access::Copied { ", copied" } else { "" };
    format!("{} {}{copied}", setup.channels, alsa::format_name(setup.format))
}
