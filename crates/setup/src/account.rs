//! Users and groups, as the system's databases have them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cli::UsageError;

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub name: String,
    pub number: u32,
    pub home: PathBuf,
}

impl Account {
    /// The user of that name.
    pub fn of_name(name: &str) -> Result<Self> {
        // It becomes a part of a file's name and of a line of limits.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.starts_with(['-', '.']) || !name.chars().all(is_plain) {
            return Err(UsageError(format!("'{name}' cannot be the name of a user")).into());
        }
        let unknown = || UsageError(format!("this machine has no user '{name}'"));
        let line = entry("passwd", name)?.ok_or_else(unknown)?;
        Ok(Self::of_line(&line).ok_or_else(unknown)?)
    }

    /// The user who runs this process.
    pub fn own() -> Result<Self> {
        let number = sys::process::real_user_id();
        let line = entry("passwd", &number.to_string())?;
        let found = line.and_then(|line| Self::of_line(&line));
        found.with_context(|| format!("this machine does not know the user with number {number}"))
    }

    /// Reads a line of `/etc/passwd`.
    fn of_line(line: &str) -> Option<Self> {
        let mut parts = line.trim_end().split(':');
        let name = parts.next()?.to_owned();
        let (_password, number, _group, _about) =
            (parts.next()?, parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
        Some(Self { name, number, home: PathBuf::from(parts.next()?) })
    }
}

/// Whether this machine has the group.
pub(crate) fn has_group(group: &str) -> Result<bool> {
    Ok(entry("group", group)?.is_some())
}

/// Whether the user is listed as a member of the group.
pub(crate) fn is_member(user: &str, group: &str) -> Result<bool> {
    let line = entry("group", group)?.unwrap_or_default();
    let members = line.trim_end().rsplit(':').next().unwrap_or_default();
    Ok(members.split(',').any(|member| member == user))
}

/// Makes the user a member of the group, or no member.
pub(crate) fn set_member(user: &str, group: &str, is_member: bool) -> Result<()> {
    let option = if is_member { "--add" } else { "--delete" };
    let output = Command::new("gpasswd").args([option, user, group]).output();
    let output = output.context("cannot run gpasswd")?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "gpasswd {option} {user} {group}: {said}");
    Ok(())
}

/// The entry for a key in one of the system's databases, wherever that is kept.
fn entry(database: &str, key: &str) -> Result<Option<String>> {
    let output = Command::new("getent").args([database, key]).output();
    let output = output.context("cannot run getent, which knows this machine's users")?;
    Ok(output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_line_has_the_home() {
        let line = "ann:x:1000:1000:Ann,,,:/home/ann:/bin/bash\n";
        let ann = Account { name: "ann".into(), number: 1000, home: "/home/ann".into() };
        assert_eq!(Account::of_line(line), Some(ann));
        assert_eq!(Account::of_line("ann:x:one:1000:::"), None);
    }

    #[test]
    fn names_that_would_be_more_than_a_name_are_refused() {
        for name in ["", "../ann", "ann\nroot - rtprio 99", "-ann", "ann smith", "ann:x"] {
            let refused = Account::of_name(name).expect_err(name).to_string();
            assert!(refused.contains("cannot be the name"), "{refused}");
        }
    }
}
