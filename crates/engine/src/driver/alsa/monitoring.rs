//! Monitoring in the card: what the control thread asks for, and the card that does it. The keeper thread has it, since a
//! card may take its time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use pcm::{MonitoringError, Pcm};
use sys::poll::Waker;

use super::device::Device;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Inputs that are to be heard, from 0. Never locked by the cycle thread.
    inputs: Mutex<BTreeSet<u32>>,
    waker: Waker,
}

impl Wanted {
    /// Asks for these inputs, and no others. Does not wait for the card. Thread: not the cycle's.
    pub(super) fn ask(&self, inputs: BTreeSet<u32>) {
        *self.inputs.lock().unwrap_or_else(PoisonError::into_inner) = inputs;
        self.waker.wake();
    }

    /// Becomes readable when something was asked for.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    fn taken(&self) -> BTreeSet<u32> {
        self.waker.reset();
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The card of a device, which is to monitor. On drop, it does what it did before.
#[derive(Debug)]
pub(super) struct Monitoring {
    /// ALSA's name of the card, under which it is found again.
    card: String,
    rate_hz: u32,
    inputs: u32,
    wanted: Arc<Wanted>,
    /// `None`: it is not there.
    paths: Option<pcm::Monitoring>,
    /// What it refused last.
    complaint: Option<MonitoringError>,
}

impl Monitoring {
    /// Finds out whether the card of an open device can do it.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn open(device: &Device, rate_hz: u32) -> Result<Self, String> {
        let number = |pcm: &Pcm| pcm.card_and_device().map(|(card, _)| card);
        let capture = device.capture.as_ref().ok_or("nothing is captured")?;
        let card = number(capture).ok_or("what captures is no sound card")?;
        if device.playback.as_ref().is_some_and(|playback| number(playback) != Some(card)) {
            return Err("what captures and what plays are two cards".into());
        }
        let known = pcm::cards().into_iter().find(|known| known.index == card);
        let name = known.map_or_else(|| card.to_string(), |known| known.id);
        let refused = |error: MonitoringError| format!("sound card '{name}': {error}");
        let paths = pcm::Monitoring::open(card, rate_hz).map_err(refused)?;
        let inputs = paths.inputs(capture.setup().map_or(0, |setup| setup.channels));
        if inputs == 0 {
            return Err(refused(MonitoringError::None));
        }
        let waker = Waker::new().map_err(|error| format!("no descriptor is left: {error}"))?;
        let wanted = Arc::new(Wanted { inputs: Mutex::default(), waker });
        Ok(Self { card: name, rate_hz, inputs, wanted, paths: Some(paths), complaint: None })
    }

    /// How many inputs can be heard.
    pub(super) fn inputs(&self) -> u32 {
        self.inputs
    }

    /// For whoever asks.
    pub(super) fn wanted(&self) -> &Arc<Wanted> {
        &self.wanted
    }

    /// Does what was asked for, if the card is there.
    pub(super) fn carry(&mut self) {
        let wanted = self.wanted.taken();
        if let Some(paths) = &mut self.paths {
            let outcome = paths.set(&wanted);
            self.note(outcome);
        }
    }

    /// Closes a card that is not there any more: its driver waits for that.
    pub(super) fn let_go_if_gone(&mut self) {
        self.paths = self.paths.take().filter(pcm::Monitoring::is_there);
    }

    /// The card's device has been opened again, maybe after the card was away.
    pub(super) fn device_is_open(&mut self) {
        self.let_go_if_gone();
        match &mut self.paths {
            Some(paths) => {
                let outcome = paths.renew();
                self.note(outcome);
            }
            None => {
                let number = pcm::locate(&format!("hw:{}", self.card)).map(|(card, _)| card);
                let opened = number.ok_or(MonitoringError::Gone);
                let opened = opened.and_then(|card| pcm::Monitoring::open(card, self.rate_hz));
                self.note(opened.as_ref().map(|_| ()).map_err(|error| *error));
                self.paths = opened.ok();
            }
        }
    }

    /// Says what the card refused, once. That it is gone is said of its device.
    fn note(&mut self, outcome: Result<(), MonitoringError>) {
        let complaint = outcome.err().filter(|error| *error != MonitoringError::Gone);
        if let Some(error) = complaint.filter(|_| complaint != self.complaint) {
            eprintln!("consort: no hardware monitoring: sound card '{}': {error}", self.card);
        }
        self.complaint = complaint;
    }
}
