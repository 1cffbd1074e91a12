//! The process that has a device open, according to `/proc/asound`.

use std::fmt::{self, Display, Formatter};
use std::fs;

use crate::Direction;

/// A process that has a device open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Process id.
    pub process: u32,
    /// Its name, if it may be read.
    pub program: Option<String>,
}

/// Returns the process that has the device open in this direction; `None` if there is none, or it
/// is unknown.
#[must_use]
pub fn holder(card: u32, device: u32, direction: Direction) -> Option<Holder> {
    let letter = match direction {
        Direction::Capture => 'c',
        Direction::Playback => 'p',
    };
    let subdevices = fs::read_dir(format!("/proc/asound/card{card}/pcm{device}{letter}")).ok()?;
    let thread = subdevices.flatten().find_map(|entry| {
        fs::read_to_string(entry.path().join("status")).ok().and_then(|status| owner(&status))
    })?;
    Some(Holder::of_thread(thread))
}

/// Returns the thread that opened a substream, from its status.
fn owner(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("owner_pid"))?;
    line.trim_start_matches([' ', ':']).trim().parse().ok()
}

impl Holder {
    /// Returns the process of the thread that opened the device, which may have ended.
    pub(crate) fn of_thread(thread: u32) -> Self {
        let group = fs::read_to_string(format!("/proc/{thread}/status")).ok();
        let leader = group.and_then(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix("Tgid:"))
                .and_then(|id| id.trim().parse().ok())
        });
        let process = leader.unwrap_or(thread);
        let program = fs::read_to_string(format!("/proc/{process}/comm")).ok();
        Self { process, program: program.map(|name| name.trim().to_owned()) }
    }
}

impl Display for Holder {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let program = self.program.as_deref().unwrap_or("a program");
        write!(formatter, "{program} (process {})", self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_open_substream_has_an_owner() {
        let open = "state: RUNNING\nowner_pid   : 4294967\ntrigger_time: 26.8\n";
        assert_eq!(owner(open), Some(4_294_967));
        assert_eq!(owner("closed\n"), None);
    }

    #[test]
    fn a_holder_is_named_by_its_program_if_that_is_known() {
        let own = Holder::of_thread(std::process::id());
        assert!(
            own.program.is_some()
                && own.to_string().ends_with(&format!("(process {})", own.process))
        );
        assert_eq!(Holder::of_thread(4_294_967).to_string(), "a program (process 4294967)");
    }

    #[test]
    fn a_missing_card_has_no_holder() {
        assert_eq!(holder(31, 31, Direction::Playback), None);
    }
}
