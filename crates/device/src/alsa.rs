//! The ALSA driver: a sound card starts the cycles, and a timer while it is gone.
//!
//! The cycle thread owns the open device. When the card is unplugged, hangs, or must be configured
//! for another quantum, the cycle thread passes the device to the recovery thread and continues
//! with the timer and silence. The recovery thread passes it back when it is ready: the cycle
//! thread never opens, configures or closes anything.

mod capture_clock;
mod choose;
mod claims;
mod description;
mod device;
mod dither;
mod exchange;
mod explain;
mod formats;
mod hardware_monitoring;
mod period_clock;
mod recipe;
mod recovery;
mod stream_card;
mod stream_device;
mod stream_queue;
#[cfg(test)]
mod tests;
mod transfer;
mod waiting;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use alsa::{Access, Fault, Pcm};
use proto::driver::{AlsaOptions, AlsaSide, Dither};
use rt::shm::CycleInfo;

use crate::reservation::reserve_all;
use crate::{
    Capture, CardReservation, Channels, DeviceLatency, Driver, Pacing, Playback, Timer, Wake,
    silence, touched,
};
use capture_clock::CaptureClock;
pub use choose::{has_card, stream_cards};
use claims::Claims;
use description::{describe, open_monitoring};
use device::Device;
use dither::Ditherer;
use hardware_monitoring::{HardwareMonitoring, RequestedInputs};
use recipe::Recipe;
pub use recovery::watch_cards;
use recovery::{DeviceRecovery, Kept};
pub use recovery::{RestCall, WhyAway};

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
    rest_call: Arc<RestCall>,
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
    /// Cycles are run.
    runs_cycles: bool,
    /// It can play streams.
    can_play_streams: bool,
    /// The loop of streams plays on the device, instead of `write`.
    plays_streams: bool,
    /// It is a device of streams that plays nothing.
    capture_clock: Option<CaptureClock>,
    /// The frame that the device of the streams has come to, while it is not there.
    frames: u64,
    /// Frames to which noise is added.
    scratch: Vec<f32>,
    /// The device is closed because nothing plays.
    is_closed: bool,
    /// The recovery thread has the device in order to configure it differently: before this time,
    /// that is no reason to say that it is away.
    changes_until_ns: u64,
    /// Released after the device, which is declared before.
    claims: Claims,
}

/// Restarts without a completed cycle before the device is reopened.
const FAULTS_TO_GIVE_UP: u32 = 4;
/// How long it may take to configure a device differently, ns.
const CHANGE_NS: u64 = 1_000_000_000;
/// Frames that the loop of streams writes at once, at most.
const LONGEST_PIECE: usize = mix::PIECE_FRAMES;

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
        let reserved = reserve_all(&recipe.cards(), options.reserve_priority, reservations);
        let device = recipe.open_first(quantum)?;
        // Cycles run its code, first when this driver is in force.
        sys::memory::populate_device_libraries();
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
        let is_mapped = |pcm: &Pcm| pcm.setup().is_some_and(|setup| setup.access != Access::Copied);
        let can_play_streams = device.playback.as_ref().is_some_and(is_mapped);
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
            rest_call: Arc::default(),
            requested: monitoring.as_ref().map(|monitoring| Arc::clone(monitoring.requested())),
            monitoring,
            is_fresh: false,
            fault: None,
            faults: 0,
            lost_us: None,
            runs_cycles: false,
            can_play_streams,
            plays_streams: false,
            capture_clock: None,
            frames: 0,
            scratch: if dithers { touched(LONGEST_PIECE) } else { Vec::new() },
            is_closed: false,
            changes_until_ns: 0,
            claims: Claims::new(reserved),
        }))
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

    /// Returns what calls the thread in which the driver rests.
    #[must_use]
    pub fn rest_call(&self) -> Arc<RestCall> {
        Arc::clone(&self.rest_call)
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
        self.runs_cycles = true;
        let kept = Kept {
            recipe: self.recipe.clone(),
            monitoring: self.monitoring.take(),
            claims: self.claims.clone(),
            why_away: Arc::clone(&self.why_away),
            rest_call: Arc::clone(&self.rest_call),
        };
        let recovery = DeviceRecovery::start(kept, quantum);
        self.recovery =
            Some(recovery.map_err(|error| format!("no thread to keep the device: {error}"))?);
        self.timer.start(quantum)
    }

    fn wait(&mut self) -> Wake {
        let wake = self.next_cycle();
        self.follow_capture(wake);
        wake
    }

    fn is_away(&self) -> bool {
        self.device.is_none() && sys::clock::now_ns() >= self.changes_until_ns
    }

    fn next_due_ns(&self) -> u64 {
        let running = self.device.as_ref().filter(|device| device.has_clock() && !self.is_fresh);
        running.and_then(|device| device.next_due_ns()).unwrap_or_else(|| self.timer.next_due_ns())
    }

    fn set_quantum(&mut self, quantum: u32) {
        self.quantum = quantum;
        let need = self.need();
        match &mut self.recovery {
            Some(recovery) if self.device.is_none() => recovery.expect(quantum, need),
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

    fn card(&mut self) -> Option<&mut dyn mix::Card> {
        if self.can_play_streams {
            return Some(self);
        }
        let clock = self.capture_clock.as_mut()?;
        clock.note_open(self.device.is_some());
        Some(clock)
    }

    fn begin_streams(&mut self, graph_is_heard: bool) {
        if self.plays_streams || !self.can_play_streams {
            return;
        }
        let due_ns = self.next_due_ns();
        self.plays_streams = true;
        match &mut self.device {
            Some(device) if device.can_begin_streams(graph_is_heard) => {
                device.begin_streams(self.frames);
            }
            Some(_) => self.change(due_ns),
            None => self.expect_device(),
        }
    }

    fn end_streams(&mut self) {
        if !self.plays_streams {
            return;
        }
        self.plays_streams = false;
        match &mut self.device {
            Some(device) => self.frames = device.end_streams().unwrap_or(self.frames),
            None => self.expect_device(),
        }
    }

    fn pause(&mut self) {
        self.runs_cycles = false;
        if let Some(clock) = &mut self.capture_clock {
            clock.end_cycles();
        }
        match &mut self.device {
            Some(device) if device.streams.is_some() => device.end_cycles(),
            Some(device) => device.stop(),
            None => {}
        }
    }

    fn can_close(&self) -> bool {
        let plays = |device: &Device| device.streams.is_some_and(|streams| streams.runs());
        self.device.as_deref().is_some_and(|device| !plays(device))
    }

    fn close(&mut self) {
        let need = self.need();
        let Some(recovery) = &mut self.recovery else { return };
        self.is_closed = true;
        match self.device.take() {
            Some(mut device) => {
                self.frames = device.streams.take().map_or(self.frames, |queue| queue.played());
                recovery.close(device, self.quantum, need);
            }
            None => recovery.keep_closed(),
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn is_unplugged(&self) -> bool {
        self.recovery.as_ref().is_some_and(DeviceRecovery::is_unplugged)
    }

    fn rest(&mut self) {
        self.yield_card();
        let need = self.need();
        match &mut self.recovery {
            Some(recovery) if recovery.card_is_wanted() => {
                if let Some(device) = recovery.give() {
                    recovery.take(device, self.quantum, need);
                }
            }
            _ if self.device.is_none() => self.take_back(),
            _ => {}
        }
    }

    fn resume(&mut self) {
        // The device is started when the next cycle is waited for: it has no frames for this one.
        self.is_fresh = true;
        self.runs_cycles = true;
        let now_ns = sys::clock::now_ns();
        let due_ns = now_ns + self.quantum_ns();
        if let Some(clock) = &mut self.capture_clock {
            clock.begin_cycles(now_ns);
        }
        self.timer.take_over(due_ns, self.quantum);
        let need = self.need();
        match &mut self.device {
            Some(device) if device.streams.is_some() => {
                self.fault = device.begin_cycles().err().or(self.fault);
            }
            Some(device) if device.need != need => self.change(due_ns),
            Some(_) => {}
            None => self.open_closed(),
        }
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
