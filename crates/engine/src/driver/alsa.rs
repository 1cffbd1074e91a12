//! The ALSA driver: a sound card starts the cycles, and a timer while it is gone.
//!
//! The cycle thread owns the open device. When the card is pulled out, is stuck, or has to be configured for another
//! quantum, the device goes to the keeper thread, cycles go on from the timer with silence, and the keeper hands the
//! device back when it is ready; the cycle thread itself never opens, configures or closes anything.

mod choose;
mod device;
mod dither;
mod explain;
mod formats;
mod keeper;
mod monitoring;
mod pace;
mod recipe;
mod reservation;
mod transfer;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use pcm::{Fault, Pcm};
use proto::driver::{AlsaOptions, AlsaSide, Dither};
use rt::shm::CycleInfo;

use super::{Capture, Channels, DeviceLatency, Driver, Pace, Playback, Timer, Wake, silence};
use device::Device;
use dither::Ditherer;
use keeper::Keeper;
pub use keeper::WhyAway;
use monitoring::{Monitoring, Wanted};
use recipe::Recipe;
pub use reservation::REFUSED;
use reservation::Reservations;

/// Drives the graph from a sound card.
#[derive(Debug)]
pub struct AlsaDriver {
    options: AlsaOptions,
    recipe: Recipe,
    description: String,
    channels: Channels,
    quanta: RangeInclusive<u32>,
    quantum: u32,
    /// `None`: the card is gone, or the keeper has it.
    device: Option<Box<Device>>,
    /// Of the time without the device, and of devices without a clock.
    timer: Timer,
    keeper: Option<Keeper>,
    why_away: Arc<WhyAway>,
    /// Until the keeper has it.
    monitoring: Option<Monitoring>,
    wanted: Option<Arc<Wanted>>,
    dither: Option<Ditherer>,
    /// The device was started in this cycle: it has nothing to be read, and its queue is full.
    is_fresh: bool,
    /// What went wrong inside the cycle.
    fault: Option<Fault>,
    /// Faults since the last good cycle.
    faults: u32,
    /// Time lost that no cycle has reported yet, µs.
    lost_us: Option<u32>,
    /// Given back when the driver has let go of the device.
    _reserved: Reservations,
}

/// So many starts without a cycle after them, and the device is opened anew.
const FAULTS_TO_GIVE_UP: u32 = 4;

impl AlsaDriver {
    /// Opens the device, and has other sound servers let its card go: `program` takes the arguments of `consort`. `None`: no
    /// device was named, and this machine has no card.
    ///
    /// # Errors
    /// A sentence that says what the device refused, what it can do, and what to do.
    pub fn open(options: AlsaOptions, quantum: u32, program: &Path) -> Result<Option<Self>, String> {
        let Some(mut recipe) = Recipe::new(&options) else {
            // What this user may not open, the library does not list.
            let forbidden = pcm::first_forbidden();
            return forbidden.map_or(Ok(None), |name| {
                Err(explain::not_opened(&name, pcm::Direction::Playback, pcm::OpenError::Denied))
            });
        };
        let reserved = Reservations::of(&recipe.cards(), program);
        let device = recipe.open_first(quantum)?;
        let channels =
            |pcm: &Option<Pcm>| pcm.as_ref().and_then(Pcm::setup).map_or(0, |setup| setup.channels);
        let channels = Channels {
            capture: channels(&device.capture),
            playback: channels(&device.playback),
            monitors: 0,
        };
        let bits_16 = |pcm: &Pcm| pcm.setup().is_some_and(|setup| setup.format.bytes_per_sample() == 2);
        let dithers = options.dither != Dither::None && device.playback.as_ref().is_some_and(bits_16);
        let monitoring =
            if options.hardware_monitoring { open_monitoring(&device, recipe.rate_hz) } else { None };
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
            keeper: None,
            why_away: Arc::default(),
            wanted: monitoring.as_ref().map(|monitoring| Arc::clone(monitoring.wanted())),
            monitoring,
            is_fresh: false,
            fault: None,
            faults: 0,
            lost_us: None,
            _reserved: reserved,
        }))
    }

    /// Notes what is lost, and starts the device again, or gives it up. Thread: cycle.
    fn recover(&mut self, fault: Fault) {
        let Some(device) = &mut self.device else { return };
        let now_ns = sys::clock::now_ns();
        if let Some(due_ns) = device.next_due_ns() {
            let late_us = u32::try_from(now_ns.saturating_sub(due_ns) / 1000).unwrap_or(u32::MAX);
            self.lost_us = Some(self.lost_us.unwrap_or(0).saturating_add(late_us.max(1)));
        }
        self.faults += 1;
        let again =
            fault != Fault::Gone && self.faults < FAULTS_TO_GIVE_UP && device.start() != Err(Fault::Gone);
        if !again {
            self.give_up(now_ns);
        }
    }

    /// The device goes to the keeper; the timer goes on, with a cycle at `due_ns`. Thread: cycle.
    fn give_up(&mut self, due_ns: u64) {
        self.timer.take_over(due_ns, self.quantum);
        self.faults = 0;
        if let (Some(device), Some(keeper)) = (self.device.take(), &mut self.keeper) {
            keeper.take(device, self.quantum);
        }
    }

    /// Takes the device back, if the keeper has it ready, at the begin of a cycle of the timer's. Thread: cycle.
    fn take_back(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        let Some(mut device) = keeper.give() else { return };
        if device.quantum == self.quantum && device.start().is_ok() {
            self.device = Some(device);
            self.is_fresh = true;
        } else {
            keeper.take(device, self.quantum);
        }
    }

    /// What nobody else may be able to open meanwhile, as ALSA calls it.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        self.recipe.names().map(str::to_owned).collect()
    }

    /// The quanta that the device can do, as far as it says.
    #[must_use]
    pub fn quanta(&self) -> RangeInclusive<u32> {
        self.quanta.clone()
    }

    /// Why the device does not come back while it is away.
    #[must_use]
    pub fn why_away(&self) -> Arc<WhyAway> {
        Arc::clone(&self.why_away)
    }

    /// Tells the card which of its inputs are to be heard at its outputs; `None`: nobody asked for that, or it cannot.
    #[must_use]
    pub fn monitoring(&self) -> Option<Box<dyn Fn(BTreeSet<u32>) + Send>> {
        let wanted = Arc::clone(self.wanted.as_ref()?);
        Some(Box::new(move |inputs| wanted.ask(inputs)))
    }

    fn quantum_ns(&self) -> u64 {
        CycleInfo::nominal_period_ns(self.quantum, self.recipe.rate_hz) as u64
    }

    /// The device that has this cycle's frames. Thread: cycle.
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
        let extra = |side: &Option<AlsaSide>| side.as_ref().map_or(0, |side| side.extra_latency_frames);
        DeviceLatency {
            capture_frames: extra(&self.options.capture),
            playback_frames: extra(&self.options.playback),
            playback_quanta: self.options.periods.saturating_sub(2),
        }
    }

    fn pace(&self) -> Pace {
        Pace::RealTime
    }

    fn start(&mut self, quantum: u32) -> Result<(), String> {
        self.quantum = quantum;
        let (recipe, why_away) = (self.recipe.clone(), Arc::clone(&self.why_away));
        let keeper = Keeper::start(recipe, quantum, self.monitoring.take(), why_away);
        self.keeper = Some(keeper.map_err(|error| format!("no thread to keep the device: {error}"))?);
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
                        self.timer.take_over(sys::clock::now_ns() + self.quantum_ns(), self.quantum);
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
        match &mut self.keeper {
            Some(keeper) if self.device.is_none() => keeper.expect_quantum(quantum),
            _ => {}
        }
        if self.device.is_some() {
            // The cycle that begins is the last that the device started.
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
        let (Some(device), dither) = (self.device.as_deref_mut().filter(|_| is_running), &mut self.dither)
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

    fn pause(&mut self) {
        if let Some(device) = &mut self.device {
            device.stop();
        }
    }

    fn resume(&mut self) {
        // The device is started when the next cycle is waited for: this one has none of its frames.
        self.is_fresh = true;
        self.timer.take_over(sys::clock::now_ns() + self.quantum_ns(), self.quantum);
    }

    fn stop(&mut self) {
        if let Some(device) = &mut self.device {
            device.stop();
        }
        self.keeper = None;
    }
}

/// Whether these options ask for one of `devices`, so that it can be opened only once those are closed.
pub(crate) fn may_share(options: &AlsaOptions, devices: &[String]) -> bool {
    // What a card was set to before can be told only by one at a time, whichever of its devices they have.
    let same = |wanted: (u32, u32), held: (u32, u32)| {
        wanted == held || (options.hardware_monitoring && wanted.0 == held.0)
    };
    let is = |name: &str, device: &String| {
        let places = pcm::locate(name).zip(pcm::locate(device));
        name == device || places.is_some_and(|(wanted, held)| same(wanted, held))
    };
    let recipe = Recipe::new(options);
    recipe.is_some_and(|recipe| recipe.names().any(|name| devices.iter().any(|device| is(name, device))))
}

/// The device's card, if it can monitor; says why not otherwise.
fn open_monitoring(device: &Device, rate_hz: u32) -> Option<Monitoring> {
    let opened = Monitoring::open(device, rate_hz);
    let complain = |reason| eprintln!("consort: no hardware monitoring, requests are only counted: {reason}");
    opened.map_err(complain).ok()
}

/// "alsa hw:CARD=PCH,DEV=0 (capture 2 S32_LE, playback 2 S32_LE, by its interrupts)".
fn describe(recipe: &Recipe, device: &Device, monitoring: Option<&Monitoring>) -> String {
    let name = |side: &Option<recipe::SideRecipe>| side.as_ref().map(|side| side.name.clone());
    let names = match (name(&recipe.capture), name(&recipe.playback)) {
        (Some(capture), Some(playback)) if capture != playback => format!("{capture} → {playback}"),
        (capture, playback) => playback.or(capture).unwrap_or_default(),
    };
    let side =
        |what: &str, pcm: &Option<Pcm>| pcm.as_ref().map(|pcm| format!("{what} {}", recipe::layout(pcm)));
    let sides = [side("capture", &device.capture), side("playback", &device.playback)];
    let mut parts: Vec<String> = sides.into_iter().flatten().collect();
    parts.push(device.manner().to_owned());
    parts.extend(monitoring.map(|card| format!("hardware monitoring of {} inputs", card.inputs())));
    format!("alsa {names} ({})", parts.join(", "))
}
