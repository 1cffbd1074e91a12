//! What the driver thread and the control thread share.

use std::io;
use std::sync::Arc;

use device::RestCall;
use proto::stream::DeviceState;
use rt::shm::{EngineSegment, Handover, Recording, TransportRequests};
use rt::sync::{AtomicU32, AtomicU64, Ordering};
use sys::memory::Shared;
use sys::poll::Waker;

use crate::device_shared::DeviceShared;
use crate::plan::Plan;
use crate::resume::Resume;

/// The state that the driver thread and the control thread share.
#[derive(Debug)]
pub struct CycleShared {
    /// The engine segment.
    pub engine: Shared<EngineSegment>,
    /// The recording: written by the driver thread alone.
    pub recording: Shared<Recording>,
    /// The next plan.
    pub next: Handover<Plan>,
    /// Transport requests of programs that are in no cycle; clients in a cycle write theirs on
    /// their own pages.
    pub transport: TransportRequests,
    /// Id of the timebase master; 0: none. Control thread writes.
    pub timebase: AtomicU32,
    /// 1: a transition waits for a plan, and the driver must not wait for the graph any longer: a
    /// client may hang. Control thread writes.
    pub hurry: AtomicU32,
    /// Wakes the control thread.
    pub waker: Waker,
    /// The device that drives. Its call wakes the driver thread while that runs no cycles.
    pub device: Arc<DeviceShared>,
    /// 1: the driver's hardware is closed, because nothing plays. Driver thread writes.
    closed: AtomicU32,
    /// 1: the driver's hardware is not there, as far as that is known without cycles. Driver thread
    /// writes.
    away: AtomicU32,
    /// 1: one cycle is wanted for what was left for the driver thread, also if no client needs it.
    pub wants_cycle: AtomicU32,
    /// Id of the driver thread; 0 before it runs.
    pub driver_thread: AtomicU32,
    /// 1: the driver thread is to end, or has ended.
    pub stop: AtomicU32,
    /// Where the frame clock continues, if clients of another server have returned.
    pub resume: Resume,
    /// How long the driver usually keeps its CPU for accounting, once it has woken the first
    /// clients, ns. Driver thread writes.
    pub accounting_ns: AtomicU64,
}

impl CycleShared {
    /// Creates the state of a server whose driver thread does not run yet.
    ///
    /// # Errors
    /// The kernel has no event descriptor left.
    pub fn new(engine: Shared<EngineSegment>, recording: Shared<Recording>) -> io::Result<Self> {
        Ok(Self {
            engine,
            recording,
            next: Handover::default(),
            transport: TransportRequests::default(),
            timebase: AtomicU32::new(0),
            hurry: AtomicU32::new(0),
            waker: Waker::new()?,
            device: Arc::new(DeviceShared::new(DeviceState::Cycling)),
            closed: AtomicU32::new(0),
            away: AtomicU32::new(0),
            wants_cycle: AtomicU32::new(0),
            driver_thread: AtomicU32::new(0),
            stop: AtomicU32::new(0),
            resume: Resume::default(),
            accounting_ns: AtomicU64::new(0),
        })
    }

    /// Notes what the device does, and has the control thread look if that is new. Driver thread.
    pub(super) fn note_state(&self, state: DeviceState) {
        if self.device.note_state(state) {
            self.engine.note_parked(state != DeviceState::Cycling);
            self.waker.wake();
        }
    }

    /// Notes whether the driver's hardware is closed, and whether it is away. Driver thread.
    pub(super) fn note_hardware(&self, closed: bool, away: bool) {
        // Relaxed, here and where they are read: they say nothing about other memory.
        self.closed.store(closed.into(), Ordering::Relaxed);
        self.away.store(away.into(), Ordering::Relaxed);
    }

    /// Returns whether the driver's hardware is closed because nothing plays. Thread: any.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed) != 0
    }

    /// Returns whether the driver's hardware is not there while no cycles run, which tell it
    /// otherwise. Thread: any.
    pub fn is_away(&self) -> bool {
        self.away.load(Ordering::Relaxed) != 0
    }

    /// Calls the driver thread, which may run no cycles, after a plan was published. Thread: any.
    pub fn call_driver(&self) {
        self.device.call();
    }

    /// Lets a driver call the driver thread while the driver rests. Thread: any.
    pub fn is_called_by(self: &Arc<Self>, rest_call: &RestCall) {
        let shared = Arc::clone(self);
        rest_call.set(move || shared.call_driver());
    }

    /// Makes the driver thread run a cycle, after something was left for it. Thread: any.
    pub fn call_for_cycle(&self) {
        // Relaxed: the call orders it.
        self.wants_cycle.store(1, Ordering::Relaxed);
        self.call_driver();
    }

    /// Ends the driver thread. Thread: any.
    pub fn end_cycles(&self) {
        // Release: like the driver thread's own store, which may have come first.
        self.stop.store(1, Ordering::Release);
        self.call_driver();
    }
}
