//! The device on its way to the recovery thread and back: after faults, when another program is to
//! have it, and when it is needed for something else. Thread: cycle.

use alsa::Fault;

use super::device::Need;
use super::recovery::DeviceRecovery;
use super::{AlsaDriver, CHANGE_NS, FAULTS_TO_GIVE_UP};
use crate::Driver;

impl AlsaDriver {
    /// Counts the time that a fault costs. Thread: cycle.
    pub(super) fn note_lost(&mut self, now_ns: u64) {
        let due_ns = self.device.as_ref().and_then(|device| device.next_due_ns());
        if let Some(due_ns) = due_ns {
            let late_us = u32::try_from(now_ns.saturating_sub(due_ns) / 1000).unwrap_or(u32::MAX);
            self.lost_us = Some(self.lost_us.unwrap_or(0).saturating_add(late_us.max(1)));
        }
    }

    /// Counts the lost time, and restarts the device or passes it to the recovery thread. Thread:
    /// cycle.
    pub(super) fn recover(&mut self, fault: Fault) {
        let now_ns = sys::clock::now_ns();
        self.note_lost(now_ns);
        let Some(device) = &mut self.device else { return };
        self.faults += 1;
        let again = fault != Fault::Gone
            && self.faults < FAULTS_TO_GIVE_UP
            && match device.streams {
                Some(_) => device.restart_cycles(),
                None => device.start(),
            } != Err(Fault::Gone);
        if !again {
            self.give_up(now_ns);
        } else if self.plays_streams {
            self.timer.take_over(now_ns + self.quantum_ns(), self.quantum);
        }
    }

    /// Passes the device to the recovery thread; the timer starts the next cycle at `due_ns`.
    /// Thread: cycle.
    pub(super) fn give_up(&mut self, due_ns: u64) {
        self.timer.take_over(due_ns, self.quantum);
        self.faults = 0;
        self.changes_until_ns = 0;
        let now_ns = sys::clock::now_ns();
        let played = self.device.as_mut().and_then(|device| device.give_up_streams(now_ns));
        self.frames = played.unwrap_or(self.frames);
        let need = self.need();
        if let (Some(device), Some(recovery)) = (self.device.take(), &mut self.recovery) {
            recovery.take(device, self.quantum, need);
        }
    }

    /// Passes the device to the recovery thread, which is to configure it differently. Thread:
    /// cycle.
    pub(super) fn change(&mut self, due_ns: u64) {
        self.give_up(due_ns);
        self.changes_until_ns = sys::clock::now_ns() + CHANGE_NS;
    }

    pub(super) fn need(&self) -> Need {
        if self.plays_streams { Need::Streams } else { Need::Cycles }
    }

    /// Says what the device is to be that comes back. Thread: cycle.
    pub(super) fn expect_device(&mut self) {
        let need = self.need();
        if let Some(recovery) = &mut self.recovery {
            recovery.expect(self.quantum, need);
        }
    }

    /// Passes the device to the recovery thread if another program is to have its card. Thread:
    /// cycle.
    pub(super) fn yield_card(&mut self) {
        let is_wanted = self.recovery.as_ref().is_some_and(DeviceRecovery::card_is_wanted);
        if is_wanted && self.device.is_some() {
            self.give_up(self.next_due_ns());
        }
    }

    /// Takes the device back if the recovery thread has it ready. Thread: cycle.
    pub(super) fn take_back(&mut self) {
        let need = self.need();
        let Some(recovery) = &mut self.recovery else { return };
        let Some(mut device) = recovery.give() else { return };
        let is_right = device.quantum == self.quantum && device.need == need;
        let is_ready = is_right
            && if self.plays_streams {
                device.begin_streams(self.frames);
                device.runs_cycles = self.runs_cycles;
                true
            } else {
                !self.runs_cycles || device.start().is_ok()
            };
        if is_ready {
            self.device = Some(device);
            self.is_fresh = true;
        } else {
            recovery.take(device, self.quantum, need);
        }
    }

    /// Takes the device if it is there, and has it opened if it is closed. Thread: cycle.
    pub(super) fn take_or_request(&mut self) -> bool {
        if self.device.is_none() {
            self.open_closed();
            self.take_back();
        }
        self.device.is_some()
    }

    /// Has a device opened that was closed because nothing played. Thread: cycle.
    pub(super) fn open_closed(&mut self) {
        let need = self.need();
        if let Some(recovery) = self.recovery.as_mut().filter(|_| self.is_closed) {
            self.is_closed = false;
            self.changes_until_ns = sys::clock::now_ns() + CHANGE_NS;
            recovery.open(self.quantum, need);
        }
    }
}
