//! Drivers that are opened, handed to the driver thread, and closed while the server runs.
//!
//! A driver is opened next to the one in force, on a thread, because devices and disks take their
//! time. It takes the other's place with a plan; the one before comes back with the plan that
//! retires, and is closed on a thread, too.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;

use device::{CardReservation, Driver};
use proto::driver::{DriverChoice, DriverSwitch};
use proto::limits::QUANTUM_FRAMES;
use proto::request::RequestError;
use sys::clock::now_ns;
use sys::memory::OwnSlab;

use super::CycleSettings;
use super::steps::{Change, Event};
use crate::config::Config;
use crate::control::Control;
use crate::driver_swap::{DriverSwap, capture_slabs};
use crate::opening::{self, NewDriver};

/// The drivers that are not in force. Each waits for a thread, for a plan, or to be closed.
#[derive(Default)]
pub(super) struct Drivers {
    /// From the thread that opens a driver.
    opening: Option<Receiver<OpenResult>>,
    /// It waits until every client knows of the quantum.
    ready: Option<ReadyDriver>,
    /// It is back from the driver thread, and still open.
    retired: Option<Box<dyn Driver>>,
    /// Threads that close drivers.
    closing: Vec<JoinHandle<()>>,
}

/// A driver that has been opened and started, and what is needed for it.
struct ReadyDriver {
    choice: DriverChoice,
    driver: NewDriver,
    /// Slabs for capture ports that the driver before did not have.
    slabs: Vec<OwnSlab>,
}

/// What the thread that opens drivers has found.
struct OpenResult {
    /// The first that could be opened.
    opened: Option<(DriverChoice, NewDriver)>,
    /// Why those before it could not.
    refusal: Option<String>,
}

/// A driver and the quantum that it is for.
type Attempt = (DriverChoice, u32);

/// A plan that was taken retires within its first cycle.
const RETIRING_NS: u64 = 2_000_000_000;
const RETIRING_POLL_NS: u64 = 1_000_000;

fn refused(reason: impl Into<String>) -> RequestError {
    RequestError::Driver(reason.into())
}

impl CycleSettings {
    /// Returns the change to another driver, if it is possible as far as that is known before it is
    /// tried.
    pub(in crate::control) fn check_driver(
        &self,
        asked: DriverSwitch,
        config: &Config,
    ) -> Result<Change, RequestError> {
        self.check_idle()?;
        if self.freewheels {
            return Err(refused("in freewheel no driver starts the cycles: end that first"));
        }
        if let Some(frames) = asked.quantum.filter(|frames| !QUANTUM_FRAMES.contains(frames)) {
            return Err(RequestError::Quantum(frames));
        }
        opening::check(&asked.driver, config.port_max)
            .map_err(|error| refused(error.to_string()))?;
        if let DriverChoice::File { input, output, .. } = &asked.driver
            && [input, output].into_iter().flatten().any(|path| path.is_relative())
        {
            return Err(refused(
                "the server needs the files' whole paths: it may run in another directory",
            ));
        }
        if let Some(path) = opening::file_in_use(&config.driver, &asked.driver) {
            let path = path.display();
            return Err(refused(format!("{path}: the driver that runs has this file open")));
        }
        let choice = opening::at_rate(asked.driver, self.driver.sample_rate_hz).map_err(refused)?;
        Ok(Change::Driver { choice, quantum: asked.quantum.unwrap_or(self.quantum) })
    }
}

impl Control {
    /// Lets a timer take the place of the driver in force, with the same ports.
    pub(super) fn stand_in(&mut self) -> Result<(), RequestError> {
        let channels = self.settings.driver.channels.clone();
        let timer = DriverChoice::Timer {
            capture: channels.capture,
            playback: channels.playback,
            sample_rate_hz: Some(self.settings.driver.sample_rate_hz),
            looped: false,
            monitors: channels.monitors > 0,
        };
        let driver = open_started(&timer, self.settings.quantum, &*self.platform.cards);
        // The server's choice stays: it is what is opened again if the other cannot be.
        self.hand_over(driver.map_err(refused)?, Vec::new());
        Ok(())
    }

    /// Lets a thread close the driver that is back from the driver thread, if there is one, and
    /// open the one that the change asks for; `or_previous`: if it cannot be opened, the server's
    /// driver before.
    pub(super) fn open_driver(&mut self, or_previous: bool) {
        let Some(Change::Driver { choice, quantum }) =
            self.settings.transition.as_ref().map(|transition| transition.change().clone())
        else {
            return;
        };
        let previous = or_previous.then(|| (self.config.driver.clone(), self.settings.quantum));
        let attempts: Vec<Attempt> = [(choice, quantum)].into_iter().chain(previous).collect();
        let closes = self.settings.drivers.retired.take();
        let (sender, receiver) = channel();
        let shared = Arc::clone(&self.shared);
        let cards = Arc::clone(&self.platform.cards);
        let body = move || {
            closes.into_iter().for_each(close);
            // Fails if the server has ended: then the driver is closed here.
            let _ = sender.send(open_first(attempts, &*cards));
            shared.waker.wake();
        };
        // Without a thread, the channel is closed at once, which counts as a refusal.
        let _ = std::thread::Builder::new().name("consort-opener".into()).spawn(body);
        self.settings.drivers.opening = Some(receiver);
    }

    /// Takes the driver that a thread has opened, and makes its ports; returns what came of it.
    /// `None`: no thread has ended.
    pub(super) fn take_opened_driver(&mut self) -> Option<Event> {
        let result = match self.settings.drivers.opening.as_ref()?.try_recv() {
            Ok(result) => result,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => OpenResult {
                opened: None,
                refusal: Some("no thread was left to open the driver".into()),
            },
        };
        self.settings.drivers.opening = None;
        let OpenResult { opened, refusal } = result;
        let Some((choice, driver)) = opened else {
            return Some(Event::DriverFailed(refused(refusal.unwrap_or_default())));
        };
        Some(match self.make_ports(&driver) {
            Ok(slabs) => {
                self.settings.drivers.ready = Some(ReadyDriver { choice, driver, slabs });
                Event::DriverOpened { refusal }
            }
            Err(error) => {
                self.settings.drivers.close(driver.driver);
                Event::DriverFailed(error)
            }
        })
    }

    /// Adds the driver's ports, and memory for them, to the graph.
    fn make_ports(&mut self, driver: &NewDriver) -> Result<Vec<OwnSlab>, RequestError> {
        let Some(device) = self.model.driver() else { return Ok(Vec::new()) };
        let existing = self.clients.slabs_of_device(device);
        let (own, shared) = capture_slabs(existing, driver.facts.channels.slots())
            .map_err(|error| RequestError::Memory(error.to_string()))?;
        self.model.set_channels(device, &driver.facts.channels)?;
        self.clients.slabs_of_device(device).extend(shared);
        self.carry_changes();
        self.reconnect();
        Ok(own)
    }

    /// Puts the driver that was opened into the next plan.
    pub(super) fn hand_over_opened(&mut self) {
        let Some(ReadyDriver { choice, driver, slabs }) = self.settings.drivers.ready.take() else {
            return;
        };
        self.config.driver = choice;
        sys::report!(
            "consort: the driver is now {}, {} frames",
            driver.facts.description,
            self.settings.quantum
        );
        self.hand_over(driver, slabs);
    }

    fn hand_over(&mut self, driver: NewDriver, slabs: Vec<OwnSlab>) {
        let NewDriver { driver, facts, start_trigger, hardware_monitor } = driver;
        let slabs_in_use = |device| self.clients.slabs_of_device(device).len();
        let existing = self.model.driver().map_or(0, slabs_in_use) - slabs.len();
        self.shared.is_called_by(&facts.rest_call);
        let swap = DriverSwap::new(driver, start_trigger, slabs, existing);
        self.publisher.hand_over(swap, now_ns());
        self.settings.driver = facts;
        self.stream_driver_changed();
        self.services.hardware_monitor = hardware_monitor;
        self.update_hardware_monitoring();
        self.supervisor.is_away = false;
    }

    /// Notes that a driver is back from the driver thread, and that its successor is in force.
    pub(in crate::control) fn driver_retired(&mut self, retired: DriverSwap) {
        let DriverSwap { driver, start_trigger, .. } = retired;
        self.settings.start_trigger = start_trigger;
        self.start_if_connected();
        self.settings.drivers.retired = Some(driver);
        self.advance_transition(Event::DriverRetired);
        if let Some(driver) = self.settings.drivers.retired.take() {
            self.settings.drivers.close(driver);
        }
    }

    /// Closes every driver but the one in force, before the server ends.
    pub(in crate::control) fn close_drivers(&mut self) {
        self.withdraw();
        let deadline_ns = now_ns() + RETIRING_NS;
        while self.publisher.is_retiring() && now_ns() < deadline_ns {
            sys::clock::sleep_until(now_ns() + RETIRING_POLL_NS);
            self.notice_adoption();
        }
        self.settings.transition = None;
        self.publisher.drop_driver();
        let Drivers { closing, .. } = std::mem::take(&mut self.settings.drivers);
        for thread in closing {
            // A panic there has already been printed.
            let _: Result<(), _> = thread.join();
        }
    }
}

impl Drivers {
    /// Closes a driver on a thread: what it records may still be on its way to the disk.
    fn close(&mut self, driver: Box<dyn Driver>) {
        self.closing.retain(|thread| !thread.is_finished());
        let thread =
            std::thread::Builder::new().name("consort-closer".into()).spawn(move || close(driver));
        self.closing.extend(thread);
    }
}

fn open_started(
    choice: &DriverChoice,
    quantum: u32,
    cards: &dyn CardReservation,
) -> Result<NewDriver, String> {
    let opened = opening::open(choice, quantum, cards)?;
    let mut opened =
        opened.ok_or("this machine has no usable sound card: name one with --device")?;
    opened.driver.start(quantum)?;
    Ok(opened)
}

/// Opens and starts the first driver that can be.
fn open_first(attempts: Vec<Attempt>, cards: &dyn CardReservation) -> OpenResult {
    let mut refusal: Option<String> = None;
    for (choice, quantum) in attempts {
        match open_started(&choice, quantum, cards) {
            Ok(driver) => return OpenResult { opened: Some((choice, driver)), refusal },
            Err(reason) => {
                refusal = Some(match refusal {
                    None => reason,
                    Some(first) => format!(
                        "{first}; the previous driver cannot be opened again either: {reason}; \
                         cycles go on by timer"
                    ),
                });
            }
        }
    }
    OpenResult { opened: None, refusal }
}

fn close(mut driver: Box<dyn Driver>) {
    driver.stop();
    if let Some(report) = driver.report() {
        sys::report!("consort: {report}");
    }
}
