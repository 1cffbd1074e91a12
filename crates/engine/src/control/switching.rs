//! Another driver for a server that runs. It is opened beside the one in force, on a thread of its own since devices and
//! disks take their time, and takes the other's place with a plan; the one before comes back with the plan that retires
//! and is closed on a thread, too. What cannot be opened changes nothing.
//!
//! A card that is to be opened anew is closed first: a timer stands in for it meanwhile.

use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;

use proto::driver::{DriverChoice, DriverSwitch};
use proto::limits::QUANTUM_FRAMES;
use proto::request::{Reply, RequestError};
use rt::shm::SLOTS_PER_SLAB;
use sys::clock::now_ns;
use sys::memory::OwnSlab;

use super::Control;
use super::changeover::Mode;
use super::requests::Outcome;
use crate::driver::Driver;
use crate::handed::{Handed, capture_slabs};
use crate::opening::{self, Opened};
use crate::plan::SYSTEM;

/// A switch under way.
pub(super) struct Switching {
    wanted: DriverChoice,
    /// Length of a cycle from then on, frames.
    quantum: u32,
    connection: u64,
    number: u32,
    stage: Stage,
    /// Why another driver comes than the one that is wanted.
    refusal: Option<String>,
}

enum Stage {
    /// A thread opens a driver.
    Opening(Receiver<Found>),
    /// A timer is on its way to the driver thread: what it takes the place of is closed, so that it can be opened.
    StandingIn,
    /// The driver waits until every client knows of a new quantum.
    Opened(Box<Coming>),
    /// It is in the next plan.
    Handed,
}

/// A driver that has been opened and started, and what is needed for it.
struct Coming {
    choice: DriverChoice,
    opened: Opened,
    /// Slabs that there have not been.
    slabs: Vec<OwnSlab>,
}

/// What the thread that opens drivers found.
struct Found {
    /// The first that could be opened.
    opened: Option<(DriverChoice, Opened)>,
    /// Why those before it could not.
    refusal: Option<String>,
}

/// A driver and the quantum that it is for.
type Attempt = (DriverChoice, u32);

fn refused(reason: impl Into<String>) -> RequestError {
    RequestError::Driver(reason.into())
}

impl Control {
    /// Whether the driver can be switched so, as far as that is known before it is tried.
    pub(super) fn check_switch(&self, asked: DriverSwitch) -> Result<Outcome, RequestError> {
        self.check_no_changeover()?;
        if self.freewheels {
            return Err(refused("in freewheel no driver starts the cycles: end that first"));
        }
        if let Some(frames) = asked.quantum.filter(|frames| !QUANTUM_FRAMES.contains(frames)) {
            return Err(RequestError::Quantum(frames));
        }
        opening::check(&asked.driver, self.parts.config.port_max)
            .map_err(|error| refused(error.to_string()))?;
        if let DriverChoice::File { input, output, .. } = &asked.driver
            && [input, output].into_iter().flatten().any(|path| path.is_relative())
        {
            return Err(refused("the server needs the files' whole paths: it may run in another directory"));
        }
        if let Some(path) = opening::file_in_use(&self.parts.config.driver, &asked.driver) {
            return Err(refused(format!("{}: the driver that runs has this file open", path.display())));
        }
        let driver = opening::at_rate(asked.driver, self.parts.driver.sample_rate_hz).map_err(refused)?;
        Ok(Outcome::Driver(DriverSwitch { driver, ..asked }))
    }

    pub(super) fn begin_switch(&mut self, connection: u64, number: u32, asked: DriverSwitch) {
        let DriverSwitch { driver: wanted, quantum } = asked;
        let quantum = quantum.unwrap_or(self.quantum);
        let stands_in = opening::must_close_first(&self.parts.driver.devices, &wanted);
        let stage =
            if stands_in { Stage::StandingIn } else { self.open(None, vec![(wanted.clone(), quantum)]) };
        self.switching = Some(Switching { wanted, quantum, connection, number, stage, refusal: None });
        if stands_in {
            self.stand_in();
        }
    }

    /// A timer takes the place of the driver in force, with the same ports.
    fn stand_in(&mut self) {
        let channels = self.parts.driver.channels.clone();
        let timer = DriverChoice::Timer {
            capture: channels.capture,
            playback: channels.playback,
            sample_rate_hz: Some(self.parts.driver.sample_rate_hz),
            looped: false,
            monitors: channels.monitors > 0,
        };
        match open_started(&timer, self.quantum, &self.parts.hosting.program) {
            // What it stands in for is what is opened again if the other cannot be.
            Ok(opened) => self.hand_over(opened, Vec::new()),
            Err(reason) => self.fail_switch(refused(reason)),
        }
    }

    /// Has a thread close `before`, and open the first of `attempts` that can be opened.
    fn open(&self, before: Option<Box<dyn Driver>>, attempts: Vec<Attempt>) -> Stage {
        let (found, finds) = channel();
        let shared = std::sync::Arc::clone(&self.parts.shared);
        let program = self.parts.hosting.program.clone();
        let body = move || {
            before.into_iter().for_each(close);
            // Not taken if the server has ended: then the driver is closed here.
            let _ = found.send(open_first(attempts, &program));
            shared.waker.wake();
        };
        // Without a thread, the channel is closed at once, which is told like any other refusal.
        let _ = std::thread::Builder::new().name("consort-opener".into()).spawn(body);
        Stage::Opening(finds)
    }

    /// Goes on with the switch under way, if its driver has been opened or refused.
    pub(super) fn step_switch(&mut self) {
        let Some(Switching { stage: Stage::Opening(finds), .. }) = &self.switching else { return };
        let found = match finds.try_recv() {
            Ok(found) => found,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => {
                Found { opened: None, refusal: Some("no thread was left to open the driver".into()) }
            }
        };
        let Found { opened, refusal } = found;
        let Some((choice, opened)) = opened else {
            return self.fail_switch(refused(refusal.unwrap_or_default()));
        };
        match self.make_ports(&opened) {
            Ok(slabs) => self.take_up(Coming { choice, opened, slabs }, refusal),
            Err(error) => {
                self.close_driver(opened.driver);
                self.fail_switch(error);
            }
        }
    }

    /// Has the graph's ports be the driver's, and makes memory for them.
    fn make_ports(&mut self, opened: &Opened) -> Result<Vec<OwnSlab>, RequestError> {
        let wanted = opened.facts.channels.outputs().div_ceil(SLOTS_PER_SLAB);
        let there = u32::try_from(self.parts.system_slabs.len()).unwrap_or(u32::MAX);
        let (own, shared) = capture_slabs(wanted.saturating_sub(there), self.quantum)
            .map_err(|error| RequestError::Memory(error.to_string()))?;
        self.parts.model.set_channels(SYSTEM, &opened.facts.channels)?;
        self.parts.system_slabs.extend(shared);
        self.carry_changes();
        self.reconnect();
        Ok(own)
    }

    /// A driver that was opened comes into force, with its quantum.
    fn take_up(&mut self, coming: Coming, refusal: Option<String>) {
        let Some(switching) = &mut self.switching else { return };
        let frames = if refusal.is_none() { switching.quantum } else { self.quantum };
        (switching.stage, switching.refusal) = (Stage::Opened(Box::new(coming)), refusal);
        let (connection, number) = (switching.connection, switching.number);
        self.begin_changeover(Mode::Driver(frames), connection, number);
    }

    /// The driver that was opened goes into the next plan.
    pub(super) fn hand_over_opened(&mut self) {
        let Some(switching) = &mut self.switching else { return };
        let Stage::Opened(coming) = std::mem::replace(&mut switching.stage, Stage::Handed) else { return };
        let Coming { choice, opened, slabs } = *coming;
        self.parts.config.driver = choice;
        eprintln!("consort: the driver is now {}, {} frames", opened.facts.description, self.quantum);
        self.hand_over(opened, slabs);
    }

    fn hand_over(&mut self, opened: Opened, slabs: Vec<OwnSlab>) {
        let Opened { driver, facts, gate, monitoring } = opened;
        let before = self.parts.system_slabs.len() - slabs.len();
        self.plans.hand_over(Handed::new(driver, gate, slabs, before), now_ns());
        self.parts.driver = facts;
        self.parts.monitoring = monitoring;
        self.tell_monitored();
        self.is_away = false;
    }

    /// A driver is back from the driver thread, and the one that took its place is in force.
    pub(super) fn driver_retired(&mut self, retired: Handed) {
        let Handed { driver, gate, .. } = retired;
        self.parts.on_audience = gate;
        self.begin_if_heard();
        let standing_in =
            self.switching.as_ref().filter(|switching| matches!(switching.stage, Stage::StandingIn));
        let attempts = standing_in.map(|switching| {
            let before = (self.parts.config.driver.clone(), self.quantum);
            vec![(switching.wanted.clone(), switching.quantum), before]
        });
        let Some(attempts) = attempts else { return self.close_driver(driver) };
        let stage = self.open(Some(driver), attempts);
        if let Some(switching) = &mut self.switching {
            switching.stage = stage;
        }
    }

    /// Closes a driver on a thread: what it records is still on its way to the disk, maybe.
    fn close_driver(&mut self, driver: Box<dyn Driver>) {
        self.closing.retain(|thread| !thread.is_finished());
        let thread = std::thread::Builder::new().name("consort-closer".into()).spawn(move || close(driver));
        self.closing.extend(thread);
    }

    fn fail_switch(&mut self, error: RequestError) {
        let Some(switching) = self.switching.take() else { return };
        self.refuse(switching.connection, switching.number, error);
    }

    /// The driver is in force.
    pub(super) fn end_switch(&mut self) {
        let Some(Switching { connection, number, refusal, .. }) = self.switching.take() else { return };
        match refusal {
            None => self.reply(connection, number, Reply::Done),
            Some(reason) => self.refuse(connection, number, refused(reason)),
        }
    }

    /// Closes every driver but the one in force, before the server ends.
    pub(super) fn finish_switch(&mut self) {
        self.withdraw();
        let deadline_ns = now_ns() + RETIRING_NS;
        while self.plans.is_retiring() && now_ns() < deadline_ns {
            sys::clock::sleep_until(now_ns() + RETIRING_LOOK_NS);
            self.notice_adoption();
        }
        self.switching = None;
        self.plans.drop_driver();
        for thread in self.closing.drain(..) {
            // A panic there has been printed.
            let _: Result<(), _> = JoinHandle::join(thread);
        }
    }

    pub(super) fn check_no_changeover(&self) -> Result<(), RequestError> {
        if self.changeover.is_none() && self.switching.is_none() {
            return Ok(());
        }
        let reason = "another change of the driver, the quantum, or freewheel is under way";
        Err(RequestError::Failed(reason.into()))
    }
}

/// A plan that was taken retires within its first cycle.
const RETIRING_NS: u64 = 2_000_000_000;
const RETIRING_LOOK_NS: u64 = 1_000_000;

fn open_started(choice: &DriverChoice, quantum: u32, program: &Path) -> Result<Opened, String> {
    let opened = opening::open(choice, quantum, program)?;
    let mut opened =
        opened.ok_or("this machine has no sound card that can be heard: name one with --device")?;
    opened.driver.start(quantum)?;
    Ok(opened)
}

fn open_first(attempts: Vec<Attempt>, program: &Path) -> Found {
    let mut refusal: Option<String> = None;
    for (choice, quantum) in attempts {
        match open_started(&choice, quantum, program) {
            Ok(opened) => return Found { opened: Some((choice, opened)), refusal },
            Err(reason) => {
                refusal = Some(match refusal {
                    None => reason,
                    Some(first) => {
                        format!(
                            "{first}; nor can the driver before be opened again: {reason}; cycles go on by timer"
                        )
                    }
                });
            }
        }
    }
    Found { opened: None, refusal }
}

fn close(mut driver: Box<dyn Driver>) {
    driver.stop();
    if let Some(report) = driver.report() {
        eprintln!("consort: {report}");
    }
}
