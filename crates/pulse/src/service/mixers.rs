//! The mixers of cards: what programs see as the volume of a device is what its card's mixer and
//! the server make of it together.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use alsa::{CardMixer, MixerStep, MixerVolume};
use client::stream::{ChannelGains, DeviceVolume, Gain};
use sys::poll::{Interest, Poller};

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
            let (card, _) = alsa::locate(card_that_plays(&device.2))?;
            let mixer = CardMixer::open(card);
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
pub(super) fn together(server: DeviceVolume, mixer: &MixerVolume) -> DeviceVolume {
    let muted = server.muted || mixer.muted;
    let gains = scaled(&server.gains, |channel| {
        let loudest = || mixer.factors.iter().copied().fold(0.0, f32::max);
        mixer.factors.get(channel).copied().unwrap_or_else(loudest)
    });
    DeviceVolume { gains, muted }
}

/// Returns what is left for the server of a volume, beside a step of the mixer.
pub(super) fn remainder(wanted: &ChannelGains, step: &MixerStep) -> ChannelGains {
    scaled(wanted, |_| if step.factor > 0.0 { 1.0 / step.factor } else { 1.0 })
}

fn scaled(gains: &ChannelGains, by: impl Fn(usize) -> f32) -> ChannelGains {
    let factors = gains.factors().into_iter().enumerate();
    let each = factors.map(|(channel, factor)| factor * by(channel));
    let each = each.map(|factor| Gain::new(factor.min(Gain::MAX.factor())).unwrap_or_default());
    ChannelGains::of(&each.collect::<Vec<_>>()).unwrap_or_default()
}

/// Of two cards, the second one plays.
fn card_that_plays(name: &str) -> &str {
    name.split_whitespace().next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
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
        assert!(!both.muted && together(server, &heard(&[1.0], true)).muted);
    }

    #[test]
    fn a_mixer_at_its_loudest_leaves_everything_to_the_server() {
        let wanted = gains(&[0.25, 3.0]);
        let server = DeviceVolume { gains: wanted, muted: true };
        assert_eq!(together(server, &heard(&[1.0, 1.0], false)), server);
    }
}
