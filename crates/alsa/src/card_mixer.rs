//! The volume of a card's mixer, for a program that follows it: in factors, and watched.

use std::os::fd::{AsFd, BorrowedFd, RawFd};

use alsa_rs::PollDescriptors;
use alsa_rs::Round;
use alsa_rs::mixer::{MilliBel, Mixer, Selem, SelemChannelId, SelemId};

use crate::volume::control_of;

/// The mixer's channels, in ALSA's order of a device's.
const CHANNELS: [SelemChannelId; 8] = [
    SelemChannelId::FrontLeft,
    SelemChannelId::FrontRight,
    SelemChannelId::RearLeft,
    SelemChannelId::RearRight,
    SelemChannelId::FrontCenter,
    SelemChannelId::Woofer,
    SelemChannelId::SideLeft,
    SelemChannelId::SideRight,
];
/// Nothing is softer, dB: the lowest step of some mixers is silence, which has no dB.
const SOFTEST_DB: f32 = -100.0;

/// The mixer of a card, as long as its volume is followed. Thread: not the cycle's.
pub struct CardMixer {
    mixer: Mixer,
    control: SelemId,
    /// The control's loudest, 1/100 dB.
    loudest: i64,
    descriptor: RawFd,
}

/// What a card's mixer makes of what is played.
#[derive(Debug, Clone, PartialEq)]
pub struct MixerVolume {
    /// The factor of each channel that the mixer knows, in ALSA's order, of the loudest that it
    /// can: 0 to 1.
    pub factors: Vec<f32>,
    /// Its switch is off.
    pub muted: bool,
}

impl MixerVolume {
    /// Returns whether all channels are at a step of this factor.
    #[must_use]
    pub fn is_at(&self, factor: f32) -> bool {
        // Far less than any two steps differ.
        self.factors.iter().all(|own| (own - factor).abs() < 1e-6)
    }
}

/// A step of a mixer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixerStep {
    number: i64,
    /// Its factor, of the loudest one: 0 to 1.
    pub factor: f32,
}

impl std::fmt::Debug for CardMixer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("CardMixer").field("descriptor", &self.descriptor).finish()
    }
}

impl CardMixer {
    /// Opens the mixer of card number `card`; `None` if it has no volume in dB for all that the
    /// card plays, or this user may not open it.
    #[must_use]
    pub fn open(card: u32) -> Option<Self> {
        crate::messages::report();
        let mixer = Mixer::new(&format!("hw:{card}"), true).ok()?;
        let (control, loudest) = {
            let (control, _) = control_of(&mixer)?;
            (control.get_id(), loudest(&control)?)
        };
        let descriptor = PollDescriptors::get(&mixer).ok()?.first()?.fd;
        Some(Self { mixer, control, loudest, descriptor })
    }

    /// Takes note of what has changed.
    ///
    /// # Errors
    /// The card has gone.
    pub fn take_changes(&self) -> Result<(), crate::VolumeError> {
        self.mixer.handle_events()?;
        Ok(())
    }

    /// Returns its volume; `None` if the card has gone.
    #[must_use]
    pub fn volume(&self) -> Option<MixerVolume> {
        self.mixer.handle_events().ok()?;
        let control = self.control()?;
        let of_one = |channel: &SelemChannelId| control.get_playback_vol_db(*channel).ok();
        let known = CHANNELS.iter().filter(|channel| control.has_playback_channel(**channel));
        let factors: Vec<f32> =
            known.map(|channel| Some(self.factor(of_one(channel)?))).collect::<Option<_>>()?;
        let is_off = |channel: &SelemChannelId| control.get_playback_switch(*channel) == Ok(0);
        let muted = control.has_playback_switch() && is_off(&SelemChannelId::FrontLeft);
        (!factors.is_empty()).then_some(MixerVolume { factors, muted })
    }

    /// Returns the softest step that is no softer than this factor, or else the loudest.
    #[must_use]
    pub fn step(&self, factor: f32) -> Option<MixerStep> {
        let control = self.control()?;
        let (softest, loudest) = control.get_playback_volume_range();
        let wanted = MilliBel(self.loudest + hundredths(factor));
        let number = control.ask_playback_db_vol(wanted, Round::Ceil).unwrap_or(loudest);
        let number = number.clamp(softest, loudest);
        let factor = self.factor(control.ask_playback_vol_db(number).ok()?);
        Some(MixerStep { number, factor })
    }

    /// Sets all channels to a step.
    ///
    /// # Errors
    /// The card has gone, or refuses it.
    pub fn set(&self, step: MixerStep) -> Result<(), crate::VolumeError> {
        let control = self.control().ok_or(crate::VolumeError::None)?;
        Ok(control.set_playback_volume_all(step.number)?)
    }

    /// Turns its switch on, if it has one.
    ///
    /// # Errors
    /// The card has gone, or refuses it.
    pub fn unmute(&self) -> Result<(), crate::VolumeError> {
        let control = self.control().ok_or(crate::VolumeError::None)?;
        if control.has_playback_switch() {
            control.set_playback_switch_all(1)?;
        }
        Ok(())
    }

    fn control(&self) -> Option<Selem<'_>> {
        self.mixer.find_selem(&self.control)
    }

    /// Returns the factor of a level of its control.
    fn factor(&self, level: MilliBel) -> f32 {
        10_f32.powf((level.0 - self.loudest) as f32 / 2000.0).min(1.0)
    }
}

/// What is readable once another program may have changed the volume, or the card has gone.
impl AsFd for CardMixer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the mixer has this descriptor open as long as it lives, which the borrow does not
        // outlast.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }
}

/// Returns the loudest level of a control for all that a card plays, in 1/100 dB; `None` if it is
/// no such control, or does not know its dB.
fn loudest(control: &Selem<'_>) -> Option<i64> {
    let (softest, loudest) = control.get_playback_volume_range();
    let steps = control.has_playback_volume() && softest < loudest;
    let level = |step| control.ask_playback_vol_db(step).ok();
    let (low, high) = (level(softest)?.0, level(loudest)?.0);
    (steps && low < high).then_some(high)
}

/// Returns how far a factor is from 1, in 1/100 dB, of which the next one that is no softer.
fn hundredths(factor: f32) -> i64 {
    // A factor of a whole number of these is that number, whichever way it was rounded.
    const ROUNDING: f32 = 0.01;
    let decibels = (20.0 * factor.log10()).clamp(SOFTEST_DB, 0.0);
    (100.0 * decibels - ROUNDING).ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_of_a_step_asks_for_that_step_and_no_other() {
        for level in -10_000..=0_i64 {
            let factor = 10_f32.powf(level as f32 / 2000.0);
            assert_eq!(hundredths(factor), level);
        }
        assert_eq!(hundredths(10_f32.powf(-23.456 / 20.0)), -2345, "no softer");
        assert_eq!((hundredths(0.0), hundredths(4.0)), (-10_000, 0));
    }

    #[test]
    fn a_card_that_is_not_there_has_no_mixer() {
        assert!(CardMixer::open(31).is_none());
    }
}
