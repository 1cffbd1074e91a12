//! Hardware monitoring: the control thread requests which inputs of a card are played at its
//! outputs, and the recovery thread, which may wait for the card, sets them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use alsa::{MonitoringError, Pcm};
use sys::poll::Waker;

use super::device::Device;

/// The requested inputs, from the control thread to the recovery thread.
#[derive(Debug)]
pub(super) struct RequestedInputs {
    /// Numbers of the inputs, from 0. Never locked by the cycle thread.
    inputs: Mutex<BTreeSet<u32>>,
    waker: Waker,
}

impl RequestedInputs {
    /// Requests these inputs and no others, without waiting for the card. Thread: not the cycle's.
    pub(super) fn ask(&self, inputs: BTreeSet<u32>) {
        *self.inputs.lock().unwrap_or_else(PoisonError::into_inner) = inputs;
        self.waker.wake();
    }

    /// Returns the waker that becomes readable with each request.
    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    fn taken(&self) -> BTreeSet<u32> {
        self.waker.reset();
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The monitoring of a device's card. On drop, the card's settings are restored.
#[derive(Debug)]
pub(super) struct HardwareMonitoring {
    /// ALSA's name of the card, which stays the same when it is plugged in again.
    card: String,
    rate_hz: u32,
    inputs: u32,
    requested: Arc<RequestedInputs>,
    /// `None`: the card is not there.
    paths: Option<alsa::HardwareMonitoring>,
    /// The last refusal, which is not printed again.
    complaint: Option<MonitoringError>,
}

impl HardwareMonitoring {
    /// Opens the monitoring of an open device's card.
    ///
    /// # Errors
    /// A sentence that says why the card cannot do it.
    pub(super) fn open(device: &Device, rate_hz: u32) -> Result<Self, String> {
        let number = |pcm: &Pcm| pcm.card_and_device().map(|(card, _)| card);
        let capture = device.capture.as_ref().ok_or("nothing is captured")?;
        let card = number(capture).ok_or("the capture device is not a sound card")?;
        if device.playback.as_ref().is_some_and(|playback| number(playback) != Some(card)) {
            return Err("the capture and playback devices are two cards".into());
        }
        let known = alsa::cards().into_iter().find(|known| known.index == card);
        let name = known.map_or_else(|| card.to_string(), |known| known.id);
        let refused = |error: MonitoringError| format!("sound card '{name}': {error}");
        let paths = alsa::HardwareMonitoring::open(card, rate_hz).map_err(refused)?;
        let inputs = paths.inputs(capture.setup().map_or(0, |setup| setup.channels));
        if inputs == 0 {
            return Err(refused(MonitoringError::None));
        }
        let waker = Waker::new().map_err(|error| format!("no descriptor is left: {error}"))?;
        let requested = Arc::new(RequestedInputs { inputs: Mutex::default(), waker });
        Ok(Self { card: name, rate_hz, inputs, requested, paths: Some(paths), complaint: None })
    }

    /// Returns how many inputs can be monitored.
    pub(super) fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Returns where inputs are requested.
    pub(super) fn requested(&self) -> &Arc<RequestedInputs> {
        &self.requested
    }

    /// Sets the requested inputs if the card is there.
    pub(super) fn carry(&mut self) {
        let requested = self.requested.taken();
        if let Some(paths) = &mut self.paths {
            let outcome = paths.set(&requested);
            self.note(outcome);
        }
    }

    /// Closes a card that was unplugged: the kernel's driver waits for that.
    pub(super) fn let_go_if_gone(&mut self) {
        self.paths = self.paths.take().filter(alsa::HardwareMonitoring::is_there);
    }

    /// Sets the requested inputs again after the device was reopened, and the card too if it was
    /// unplugged.
    pub(super) fn device_is_open(&mut self) {
        self.let_go_if_gone();
        match &mut self.paths {
            Some(paths) => {
                let outcome = paths.renew();
                self.note(outcome);
            }
            None => {
                let number = alsa::locate(&format!("hw:{}", self.card)).map(|(card, _)| card);
                let opened = number.ok_or(MonitoringError::Gone);
                let opened =
                    opened.and_then(|card| alsa::HardwareMonitoring::open(card, self.rate_hz));
                self.note(opened.as_ref().map(|_| ()).map_err(|error| *error));
                self.paths = opened.ok();
            }
        }
    }

    /// Prints a refusal of the card once. A missing card is reported for its device.
    fn note(&mut self, outcome: Result<(), MonitoringError>) {
        let complaint = outcome.err().filter(|error| *error != MonitoringError::Gone);
        if let Some(error) = complaint.filter(|_| complaint != self.complaint) {
            sys::report!("consort: no hardware monitoring: sound card '{}': {error}", self.card);
        }
        self.complaint = complaint;
    }
}
