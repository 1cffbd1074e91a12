//! The ALSA driver: a sound card starts the cycles, and a timer while it is gone.
//!
//! The cycle thread owns the open device. When the card is unplugged, hangs, or must be configured
//! for another quantum, the cycle thread passes the device to the recovery thread and continues
//! with the timer and silence. The recovery thread passes it back when it is ready: the cycle
//! thread never opens, configures or closes anything.

mod choose;
mod device;
mod dither;
mod explain;
mod formats;
mod hardware_monitoring;
mod period_clock;
mod recipe;
mod recovery;
mod transfer;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use alsa::{Fault, Pcm};
use proto::driver::{AlsaOptions, AlsaSide, Dither};
use rt::shm::CycleInfo;

use crate::reservation::reserve_all;
use crate::{
    Capture, CardReservation, Channels, DeviceLatency, Driver, Pacing, Playback, Reservation,
    Timer, Wake, silence,
};
use device::Device;
use dither::Ditherer;
use hardware_monitoring::{HardwareMonitoring, RequestedInputs};
use recipe::Recipe;
use recovery::DeviceRecovery;
pub use recovery::WhyAway;

/// Drives the graph from a sound card.
#[derive(Debug)]
pub struct AlsaDriver {
    options: AlsaOptions,
    recipe: Recipe,
    description: String,
    channels: Channels,
    quanta: RangeInclusive<u32>,
    quantum: u32,
    /// `None`: the card is gone, or the recovery thread has it.
    device: Option<Box<Device>>,
    /// Starts cycles while there is no device, and for devices without a clock.
    timer: Timer,
    recovery: Option<DeviceRecovery>,
    why_away: Arc<WhyAway>,
    /// `None` once the recovery thread has it.
    monitoring: Option<HardwareMonitoring>,
    requested: Option<Arc<RequestedInputs>>,
    dither: Option<Ditherer>,
    /// The device was started in this cycle: nothing can be read, and its queue is full.
    is_fresh: bool,
    /// A fault inside the cycle, handled when the next is waited for.
    fault: Option<Fault>,
    /// Faults since the last good cycle.
    faults: u32,
    /// Lost time that no cycle has reported yet, µs.
    lost_us: Option<u32>,
    /// Released after the device, which is declared before.
    _reservations: Vec<Reservation>,
}

/// Restarts without a completed cycle before the device is reopened.
const FAULTS_TO_GIVE_UP: u32 = 4;

impl AlsaDriver {
    /// Opens the device, after `reservations` has made other sound servers release its card.
    /// `None`: no device was named, and this machine has no card.
    ///
    /// # Errors
    /// A sentence that says what the device refused, what it can do, and what to do.
    pub fn open(
        options: AlsaOptions,
        quantum: u32,
        reservations: &dyn CardReservation,
    ) -> Result<Option<Self>, String> {
        let Some(mut recipe) = Recipe::new(&options) else {
            // The library does not list devices that this user may not open.
            let forbidden = alsa::first_forbidden();
            return forbidden.map_or(Ok(None), |name| {
                Err(explain::not_opened(&name, alsa::Direction::Playback, alsa::OpenError::Denied))
            });
        };
        let reservations = reserve_all(&recipe.cards(), reservations);
        let device = recipe.open_first(quantum)?;
        let channels =
            |pcm: &Option<Pcm>| pcm.as_ref().and_then(Pcm::setup).map_or(0, |setup| setup.channels);
        let channels = Channels {
            capture: channels(&device.capture),
            playback: channels(&device.playback),
            monitors: 0,
        };
        let bits_16 =
            |pcm: &Pcm| pcm.setup().is_some_and(|setup| setup.format.bytes_per_sample() == 2);
        let dithers =
            options.dither != Dither::None && device.playback.as_ref().is_some_and(bits_16);
        let monitoring = if options.hardware_monitoring {
            open_monitoring(&device, recipe.rate_hz)
        } else {
            None
        };
        Ok(Some(Self {
            description: describe(&recipe, &device, monitoring.as_ref()),
            quanta: recipe.quanta(&device),
            timer: Timer::new(channels.clone(), recipe.rate_hz),
            dither: dithers.then(|| Ditherer::new(options.dither, channels.playback)),
            options,
            recipe,
            channels,
            quantum,
            device: Some(Box::new(device)),
            recovery: None,
            why_away: Arc::default(),
            requested: monitoring.as_ref().map(|monitoring| Arc::clone(monitoring.requested())),
            monitoring,
            is_fresh: false,
            fault: None,
            faults: 0,
            lost_us: None,
            _reservations: reservations,
        }))
    }

    /// Counts the lost time, and restarts the device or passes it to the recovery thread. Thread:
    /// cycle.
    fn recover(&mut self, fault: Fault) {
        let Some(device) = &mut self.device else { return };
        let now_ns = sys::clock::now_ns();
        if let Some(due_ns) = device.next_due_ns() {
            let late_us = u32::try_from(now_ns.saturating_sub(due_ns) / 1000).unwrap_or(u32::MAX);
            self.lost_us = Some(self.lost_us.unwrap_or(0).saturating_add(late_us.max(1)));
        }
        self.faults += 1;
        let again = fault != Fault::Gone
            && self.faults < FAULTS_TO_GIVE_UP
            && device.start() != Err(Fault::Gone);
        if !again {
            self.give_up(now_ns);
        }
    }

    /// Passes the device to the recovery thread; the timer starts the next cycle at `due_ns`.
    /// Thread: cycle.
    fn give_up(&mut self, due_ns: u64) {
        self.timer.take_over(due_ns, self.quantum);
        self.faults = 0;
        if let (Some(device), Some(recovery)) = (self.device.take(), &mut self.recovery) {
            recovery.take(device, self.quantum);
        }
    }

    /// Takes the device back if the recovery thread has it ready, at the beginning of a cycle that
    /// the timer started. Thread: cycle.
    fn take_back(&mut self) {
        let Some(recovery) = &mut self.recovery else { return };
        let Some(mut device) = recovery.give() else { return };
        if device.quantum == self.quantum && device.start().is_ok() {
            self.device = Some(device);
            self.is_fresh = true;
        } else {
            recovery.take(device, self.quantum);
        }
    }

    /// Returns ALSA's names of the devices that no other driver may be able to open meanwhile.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        self.recipe.names().map(str::to_owned).collect()
    }

    /// Returns the range of quanta that the device supports, as far as it reports.
    #[must_use]
    pub fn quanta(&self) -> RangeInclusive<u32> {
        self.quanta.clone()
    }

    /// Returns where the recovery thread writes why the device does not come back.
    #[must_use]
    pub fn why_away(&self) -> Arc<WhyAway> {
        Arc::clone(&self.why_away)
    }

    /// Returns a function that sets which of the card's inputs it plays at its outputs; `None` if
    /// hardware monitoring is off, or the card has none.
    #[must_use]
    pub fn monitoring(&self) -> Option<Box<dyn Fn(BTreeSet<u32>) + Send>> {
        let wanted = Arc::clone(self.requested.as_ref()?);
        Some(Box::new(move |inputs| wanted.ask(inputs)))
    }

    fn quantum_ns(&self) -> u64 {
        CycleInfo::nominal_period_ns(self.quantum, self.recipe.rate_hz) as u64
    }

    /// Returns the device if it has frames for this cycle. Thread: cycle.
    fn running(&mut self) -> Option<&mut Device> {
        self.device.as_deref_mut().filter(|_| !self.is_fresh && self.fault.is_none())
    }
}

impl Driver for AlsaDriver {
    fn description(&self) -> String {
        self.description.clone()
    }

    fn channels(&self) -> Channels {
        self.channels.clone()
    }

    fn sample_rate_hz(&self) -> u32 {
        self.recipe.rate_hz
    }

    fn latency(&self) -> DeviceLatency {
        let extra =
            |side: &Option<AlsaSide>| side.as_ref().map_or(0, |side| side.extra_latency_frames);
        DeviceLatency {
            capture_frames: extra(&self.options.capture),
            playback_frames: extra(&self.options.playback),
            playback_quanta: self.options.periods.saturating_sub(2),
        }
    }

    fn pacing(&self) -> Pacing {
        Pacing::RealTime
    }

    fn start(&mut self, quantum: u32) -> Result<(), String> {
        self.quantum = quantum;
        let (recipe, why_away) = (self.recipe.clone(), Arc::clone(&self.why_away));
        let recovery = DeviceRecovery::start(recipe, quantum, self.monitoring.take(), why_away);
        self.recovery =
            Some(recovery.map_err(|error| format!("no thread to keep the device: {error}"))?);
        self.timer.start(quantum)
    }

    fn wait(&mut self) -> Wake {
        self.is_fresh = false;
        if let Some(fault) = self.fault.take() {
            self.recover(fault);
        }
        while let Some(device) = &mut self.device {
            if device.next_due_ns().is_none() {
                match device.start() {
                    Ok(()) if !device.has_clock() => {
                        self.timer
                            .take_over(sys::clock::now_ns() + self.quantum_ns(), self.quantum);
                    }
                    Ok(()) => {}
                    Err(fault) => self.recover(fault),
                }
                continue;
            }
            if !device.has_clock() {
                break;
            }
            match device.wait() {
                Ok(due_ns) => {
                    self.faults = 0;
                    let lost_us = self.lost_us.take().filter(|_| !self.options.soft);
                    return Wake::Cycle { due_ns, xrun_us: lost_us };
                }
                Err(fault) => self.recover(fault),
            }
        }
        let wake = self.timer.wait();
        if self.device.is_none() {
            self.take_back();
        }
        match wake {
            Wake::Cycle { due_ns, xrun_us } => {
                Wake::Cycle { due_ns, xrun_us: self.lost_us.take().or(xrun_us) }
            }
            Wake::End => Wake::End,
        }
    }

    fn is_away(&self) -> bool {
        self.device.is_none()
    }

    fn next_due_ns(&self) -> u64 {
        let running = self.device.as_ref().filter(|device| device.has_clock() && !self.is_fresh);
        running.and_then(|device| device.next_due_ns()).unwrap_or_else(|| self.timer.next_due_ns())
    }

    fn set_quantum(&mut self, quantum: u32) {
        self.quantum = quantum;
        match &mut self.recovery {
            Some(recovery) if self.device.is_none() => recovery.expect_quantum(quantum),
            _ => {}
        }
        if self.device.is_some() {
            // The cycle that begins is the last one that the device started.
            self.give_up(sys::clock::now_ns() + self.quantum_ns());
        } else {
            self.timer.set_quantum(quantum);
        }
    }

    fn read(&mut self, capture: &mut dyn Capture) {
        let outcome = match self.running() {
            Some(device) => device.read(capture),
            None => Err(Fault::Stalled),
        };
        if let Err(fault) = outcome {
            silence(self.channels.capture, capture);
            self.fault = self.running().is_some().then_some(fault).or(self.fault);
        }
    }

    fn write(&mut self, frames: u32, playback: &mut dyn Playback) {
        let is_whole = frames == self.quantum;
        let is_running = is_whole && self.running().is_some();
        let (Some(device), dither) =
            (self.device.as_deref_mut().filter(|_| is_running), &mut self.dither)
        else {
            return;
        };
        let outcome = device.write(playback, |channel, samples| {
            if let Some(dither) = dither {
                dither.apply(channel, samples);
            }
        });
        self.fault = outcome.err().or(self.fault);
    }

    fn can_park(&self) -> bool {
        true
    }

    fn pause(&mut self) {
        if let Some(device) = &mut self.device {
            device.stop();
        }
    }

    fn resume(&mut self) {
        // The device is started when the next cycle is waited for: it has no frames for this one.
        self.is_fresh = true;
        self.timer.take_over(sys::clock::now_ns() + self.quantum_ns(), self.quantum);
    }

    fn stop(&mut self) {
        if let Some(device) = &mut self.device {
            device.stop();
        }
        self.recovery = None;
    }
}

/// Returns whether these options name one of `devices`, which must be closed before it can be
/// opened.
#[must_use]
pub fn may_share(options: &AlsaOptions, devices: &[String]) -> bool {
    // Only one driver at a time can save and restore a card's monitor switches, whichever of its
    // devices it has open.
    let same = |requested: (u32, u32), held: (u32, u32)| {
        requested == held || (options.hardware_monitoring && requested.0 == held.0)
    };
    let is = |name: &str, device: &String| {
        let locations = alsa::locate(name).zip(alsa::locate(device));
        name == device || locations.is_some_and(|(wanted, held)| same(wanted, held))
    };
    let recipe = Recipe::new(options);
    recipe.is_some_and(|recipe| {
        recipe.names().any(|name| devices.iter().any(|device| is(name, device)))
    })
}

/// Opens the hardware monitoring of the device's card, or prints why there is none.
fn open_monitoring(device: &Device, rate_hz: u32) -> Option<HardwareMonitoring> {
    let opened = HardwareMonitoring::open(device, rate_hz);
    let complain = |reason| {
        sys::report!("consort: no hardware monitoring, requests are only counted: {reason}")
    };
    opened.map_err(complain).ok()
}

/// Returns "alsa hw:CARD=PCH,DEV=0 (capture 2 S32_LE, playback 2 S32_LE, by its interrupts)".
fn describe(recipe: &Recipe, device: &Device, monitoring: Option<&HardwareMonitoring>) -> String {
    let name = |side: &Option<recipe::SideRecipe>| side.as_ref().map(|side| side.name.clone());
    let names = match (name(&recipe.capture), name(&recipe.playback)) {
        (Some(capture), Some(playback)) if capture != playback => format!("{capture} → {playback}"),
        (capture, playback) => playback.or(capture).unwrap_or_default(),
    };
    let side = |what: &str, pcm: &Option<Pcm>| {
        pcm.as_ref().map(|pcm| format!("{what} {}", recipe::layout(pcm)))
    };
    let sides = [side("capture", &device.capture), side("playback", &device.playback)];
    let mut parts: Vec<String> = sides.into_iter().flatten().collect();
    parts.push(device.manner().to_owned());
    parts.extend(monitoring.map(|card| format!("hardware monitoring of {} inputs", card.inputs())));
    format!("alsa {names} ({})", parts.join(", "))
}
