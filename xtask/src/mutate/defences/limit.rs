//! Commands that may not end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs a command in a process group of its own. After `limit` the group is killed; then `None`.
pub(super) fn status_within(
    command: &mut Command,
    limit: Duration,
) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    let mut child = command.process_group(0).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_does_not_end_is_killed_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]);
        assert!(status_within(&mut command, Duration::from_millis(100)).unwrap().is_none());
        let ended = status_within(&mut Command::new("false"), Duration::from_secs(600)).unwrap();
        assert!(ended.is_some_and(|status| !status.success()));
    }
}
