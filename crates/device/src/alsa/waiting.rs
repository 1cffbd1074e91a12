//! Waiting for the next cycle: of the device, or of the timer while there is none. Thread: cycle.

use super::AlsaDriver;
use crate::{Driver, Wake};

impl AlsaDriver {
    /// Sleeps until the next cycle is due. Thread: cycle.
    pub(super) fn next_cycle(&mut self) -> Wake {
        self.is_fresh = false;
        if let Some(fault) = self.fault.take() {
            self.recover(fault);
        }
        self.yield_card();
        while let Some(device) = &mut self.device {
            if device.next_due_ns().is_none() && device.streams.is_some() {
                // It is started by what is written to it.
                break;
            }
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
}
