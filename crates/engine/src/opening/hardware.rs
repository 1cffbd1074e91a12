//! What devices beside the one that drives play on: a card, or nothing. Not on a thread of theirs:
//! opening takes as long as a card does.

use std::sync::Arc;

use device::{AlsaDriver, CardReservation, Channels, Driver, RestCall, Timer, WhyAway};
use proto::driver::AlsaOptions;

use crate::device_cycles::Captured;

/// A driver that is started and paused: its card plays streams.
pub struct Hardware {
    /// The driver.
    pub driver: Box<dyn Driver>,
    /// Frames of the cycles in which it is recorded.
    pub quantum: u32,
    /// About its card; `None`: it has no hardware.
    pub card: Option<CardFacts>,
}

/// What the control thread knows of the card of a further device.
#[derive(Debug)]
pub struct CardFacts {
    /// Description for the user.
    pub description: String,
    /// ALSA's names of the devices that it keeps other drivers from opening.
    pub devices: Vec<String>,
    /// Why it cannot be opened.
    pub why_away: Arc<WhyAway>,
    rest_call: Arc<RestCall>,
}

impl Hardware {
    /// Returns what plays into nothing.
    pub fn nothing(channels: u32, sample_rate_hz: u32) -> Self {
        let channels = Channels { playback: channels, ..Channels::default() };
        Self { driver: Box::new(Timer::new(channels, sample_rate_hz)), quantum: 0, card: None }
    }

    /// Opens a card, after `cards` has made other sound servers release it.
    ///
    /// # Errors
    /// A sentence that says what was refused.
    pub fn open(
        options: AlsaOptions,
        quantum: u32,
        cards: &dyn CardReservation,
    ) -> Result<Self, String> {
        let opened = AlsaDriver::open(options, quantum, cards)?;
        let mut driver = opened.ok_or("no card was named: name one, such as hw:USB")?;
        let card = CardFacts {
            description: driver.description(),
            devices: driver.devices(),
            why_away: driver.why_away(),
            rest_call: driver.rest_call(),
        };
        if driver.channels().playback == 0 {
            driver = driver.recorded_by_streams();
        }
        if driver.card().is_none() {
            return Err(format!("{}: streams need a hw: device", card.description));
        }
        driver.start(quantum)?;
        driver.pause();
        Ok(Self { driver: Box::new(driver), quantum, card: Some(card) })
    }

    /// Has `call` called when the device's thread is to look at the card.
    pub fn is_called_by(&self, call: impl Fn() + Send + Sync + 'static) {
        if let Some(card) = &self.card {
            card.rest_call.set(call);
        }
    }

    /// Returns room for what it captures in a cycle.
    pub fn captured(&self) -> Captured {
        Captured::new(&self.driver.channels(), self.quantum)
    }
}
