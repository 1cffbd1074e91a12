//! The mixers of cards: what programs see as the volume of a device is what its card's mixer and
//! the server make of it together.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use alsa::{CardMixer, MixerVolume};
use client::stream::{ChannelGains, DeviceVolume, Gain};
use sys::poll::{Interest, Poller};

use crate::output::HeardVolume;

/// The mixers of the devices that are listed. Thread: the front end's only one.
#[derive(Debug)]
pub(super) struct Mixers {
    poller: Poller,
    /// By the device's name and number; `None`: its card has no volume of its own.
    all: BTreeMap<Device, Option<CardMixer>>,
}

/// The name of a device at the server, its number there, and ALSA's name of its card. A card that
/// was plugged in again has another number.
type Device = (Option<String>, u32, String);

impl Mixers {
    /// Begins without mixers.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self { poller: Poller::new()?, all: BTreeMap::new() })
    }

    /// Returns the mixer of a device's card, if it has one.
    pub fn of(&mut self, device: &Device) -> Option<&CardMixer> {
        if !self.all.contains_key(device) {
            // A card's mixer is that of its first device: HDMI, say, is not heard through it.
            let located = alsa::locate(card_that_plays(&device.2)).filter(|(_, pcm)| *pcm == 0);
            let mixer = located.and_then(|(card, _)| CardMixer::open(card));
            if let Some(mixer) = &mixer {
                self.poller.add(mixer, 0, Interest::Readable).ok()?;
            }
            self.all.insert(device.clone(), mixer);
        }
        self.all.get(device)?.as_ref()
    }

    /// Returns the mixer of the card of a device that was listed, if it has one.
    pub fn of_device(&self, name: Option<&str>) -> Option<&CardMixer> {
        let found = self.all.iter().find(|((device, _, _), _)| device.as_deref() == name);
        found.and_then(|(_, mixer)| mixer.as_ref())
    }

    /// Forgets all but these.
    pub fn retain(&mut self, is_there: impl Fn(&Device) -> bool) {
        let gone = |device: &Device| !is_there(device);
        let gone: Vec<Device> = self.all.keys().filter(|device| gone(device)).cloned().collect();
        gone.iter().for_each(|device| self.forget(device));
    }

    /// Takes note of what other programs have changed, and forgets mixers whose card has gone.
    pub fn take_changes(&mut self) {
        let has_gone = |mixer: &CardMixer| mixer.take_changes().is_err();
        let all = self.all.iter();
        let gone = all.filter(|(_, mixer)| mixer.as_ref().is_some_and(has_gone));
        let gone: Vec<Device> = gone.map(|(device, _)| device.clone()).collect();
        gone.iter().for_each(|device| self.forget(device));
    }

    /// Forgets what the mixer of a device says; it is asked again when devices are listed.
    pub fn open_again(&mut self, name: Option<&str>) {
        self.retain(|(device, _, _)| device.as_deref() != name);
    }

    fn forget(&mut self, device: &Device) {
        if let Some(Some(mixer)) = self.all.remove(device) {
            let _ = self.poller.remove(&mixer);
        }
    }
}

/// What is readable once another program may have changed a mixer, or its card has gone.
impl AsFd for Mixers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// Returns what is heard of a device: what the server plays, through the mixer.
pub(super) fn together(server: DeviceVolume, mixer: &MixerVolume) -> HeardVolume {
    let gains = scaled(&server.gains, |channel| factor_of(mixer, channel));
    HeardVolume { gains, muted: server.muted, is_switched_off: mixer.muted }
}

/// What the server has of a volume while a mixer takes a step, which is one of all its channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    /// Before the step, so that no channel is louder meanwhile than both before and afterwards;
    /// `None`: as it is.
    pub meanwhile: Option<ChannelGains>,
    /// After the step.
    pub left: ChannelGains,
    /// If the mixer has refused the step. It may have taken it for one of its channels: this makes
    /// nothing louder than it is in the samples, unless that was wanted.
    pub without_step: ChannelGains,
}

impl Shares {
    /// Returns those of a wanted volume, where the server has `now`, the mixer `before`, and takes
    /// a step of factor `step`.
    pub fn of(wanted: &ChannelGains, now: ChannelGains, before: &MixerVolume, step: f32) -> Self {
        let divided = |by: f32| if by > 0.0 { 1.0 / by } else { 1.0 };
        let left = scaled(wanted, |_| divided(step));
        let most = |channel: usize| wanted.factors()[channel].max(1.0);
        let refused = scaled(wanted, |channel| divided(factor_of(before, channel)));
        let refused = refused.factors().into_iter().enumerate();
        let without_step = gains_of(refused.map(|(channel, factor)| factor.min(most(channel))));
        let both = now.factors().into_iter().zip(left.factors());
        let softer = gains_of(both.map(|(now, left)| now.min(left)));
        Self { meanwhile: (softer != now).then_some(softer), left, without_step }
    }
}

/// Returns the factor of a channel; what the mixer does not know is as its loudest.
fn factor_of(mixer: &MixerVolume, channel: usize) -> f32 {
    let loudest = || mixer.factors.iter().copied().fold(0.0, f32::max);
    mixer.factors.get(channel).copied().unwrap_or_else(loudest)
}

fn scaled(gains: &ChannelGains, by: impl Fn(usize) -> f32) -> ChannelGains {
    let factors = gains.factors().into_iter().enumerate();
    gains_of(factors.map(|(channel, factor)| factor * by(channel)))
}

fn gains_of(factors: impl Iterator<Item = f32>) -> ChannelGains {
    let each = factors.map(|factor| Gain::new(factor.min(Gain::MAX.factor())).unwrap_or_default());
    ChannelGains::of(&each.collect::<Vec<_>>()).unwrap_or_default()
}

/// Of two cards, the second one plays.
fn card_that_plays(name: &str) -> &str {
    name.split_whitespace().next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gains(factors: &[f32]) -> ChannelGains {
        let all = factors.iter().map(|factor| Gain::new(*factor).expect("a gain"));
        ChannelGains::of(&all.collect::<Vec<_>>()).expect("gains")
    }

    fn heard(factors: &[f32], muted: bool) -> MixerVolume {
        MixerVolume { factors: factors.to_vec(), muted }
    }

    #[test]
    fn each_channel_is_heard_through_the_mixers_own() {
        let server = DeviceVolume { gains: gains(&[1.0, 0.5, 1.0]), muted: false };
        let both = together(server, &heard(&[0.5, 0.25], false));
        // The third one is not known to the mixer.
        assert_eq!(both.gains.first(3), gains(&[0.5, 0.125, 0.5]).first(3));
        assert!(!both.is_muted());
        let both = together(server, &heard(&[1.0], true));
        assert!(both.is_muted() && !both.muted, "which is the mixer's");
    }

    proptest! {
        #[test]
        fn no_channel_is_louder_while_the_mixer_takes_a_step(
            now in prop::array::uniform2(0.0..2.0_f32),
            before in prop::array::uniform2(0.0..=1.0_f32),
            wanted in prop::array::uniform2(0.0..=1.0_f32),
            finer in 1.0..1.2_f32,
        ) {
            let step = (wanted[0].max(wanted[1]) * finer).min(1.0);
            let mixer = heard(&before, false);
            let shares = Shares::of(&gains(&wanted), gains(&now), &mixer, step);
            let meanwhile = shares.meanwhile.unwrap_or_else(|| gains(&now));
            for channel in 0..2 {
                let of = |gains: ChannelGains| gains.factors()[channel];
                let most = (now[channel] * before[channel]).max(wanted[channel]) * 1.0001;
                for heard in [of(meanwhile) * before[channel], of(meanwhile) * step] {
                    prop_assert!(heard <= most, "{} of {}", heard, most);
                }
                let heard = of(shares.left) * step;
                prop_assert!((heard - wanted[channel]).abs() < 1e-4, "{}", heard);
                let refused = of(shares.without_step) * before[channel];
                prop_assert!(refused <= wanted[channel] * 1.0001, "{}", refused);
                prop_assert!(of(shares.without_step) <= wanted[channel].max(1.0));
            }
        }
    }

    #[test]
    fn a_mixer_at_its_loudest_leaves_everything_to_the_server() {
        let wanted = gains(&[0.25, 3.0]);
        let server = DeviceVolume { gains: wanted, muted: true };
        assert_eq!(together(server, &heard(&[1.0, 1.0], false)), server.into());
    }
}
