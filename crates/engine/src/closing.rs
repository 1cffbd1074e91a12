//! When the hardware of a driver that runs no cycles is closed: some time after the last sound.

use device::Driver;

/// Since when nothing has played, and how long that may last.
#[derive(Debug)]
pub struct Closing {
    /// `None`: the hardware stays open.
    suspend_ns: Option<u64>,
    silent_since_ns: Option<u64>,
}

impl Closing {
    /// Returns one for hardware that is closed when nothing has played for `suspend_ns`; `None`:
    /// never.
    pub fn after(suspend_ns: Option<u64>) -> Self {
        Self { suspend_ns, silent_since_ns: None }
    }

    /// Notes whether something plays at `now_ns`, and closes the hardware of a driver that is
    /// paused if it is time; returns when it will be. Thread: cycle.
    pub fn step(&mut self, driver: &mut dyn Driver, plays: bool, now_ns: u64) -> Option<u64> {
        let due_ns = self.note(plays, now_ns)?;
        if !driver.can_close() {
            return None;
        }
        if now_ns < due_ns {
            return Some(due_ns);
        }
        driver.close();
        None
    }

    fn note(&mut self, plays: bool, now_ns: u64) -> Option<u64> {
        let suspend_ns = self.suspend_ns?;
        if plays {
            self.silent_since_ns = None;
            return None;
        }
        Some(self.silent_since_ns.get_or_insert(now_ns).saturating_add(suspend_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hardware_is_closed_after_the_silence_since_the_last_sound() {
        let mut closing = Closing::after(Some(5));
        assert_eq!(closing.note(false, 10), Some(15));
        assert_eq!(closing.note(false, 12), Some(15), "a call is no sound");
        assert_eq!(closing.note(true, 14), None);
        assert_eq!(closing.note(false, 20), Some(25));
        assert_eq!(Closing::after(None).note(false, 10), None, "never");
    }
}
