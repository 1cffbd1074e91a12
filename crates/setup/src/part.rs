//! One part of a setup, the user's or the machine's, with its record.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::plan::Change;
use crate::record::{Conflicts, Found, Record, Step, Subject};
use crate::{account, files};

/// A part, by the file in which what it changed is kept.
#[derive(Debug)]
pub(crate) struct Part {
    record: PathBuf,
}

impl Part {
    /// The files of this user.
    pub fn of_user(state: &Path) -> Self {
        Self { record: state.join("consort/setup.json") }
    }

    /// The machine's files, as far as they are about one user.
    pub fn of_machine(user: &str) -> Self {
        Self { record: PathBuf::from(format!("/var/lib/consort/setup/{user}.json")) }
    }

    /// Makes the changes; returns a line for each of them. Without `is_real` nothing is changed.
    pub fn set_up(&self, changes: Vec<Change>, is_real: bool) -> Result<Vec<String>> {
        let old = self.read()?.unwrap_or_default();
        let mut looks = Looks::default();
        let outcome = old.set_up(changes, |subject| looks.look(subject));
        looks.finish()?;
        let mut outcome = outcome.map_err(|conflicts| self.refusal(&conflicts))?;
        let lines = outcome.steps.iter().map(describe).collect();
        if !is_real || outcome.record == old && outcome.steps.is_empty() {
            return Ok(lines);
        }
        let mut wanted = files::missing_directories(&self.record);
        for step in &outcome.steps {
            if let Step::Write { path, .. } = step {
                wanted.extend(files::missing_directories(path));
            }
        }
        wanted.retain(|directory| !outcome.record.directories.contains(directory));
        outcome.record.directories.extend(wanted.iter().cloned());
        files::make_directories(&wanted)?;
        // First what would be undone, then the changes: whatever happens in between is undone, too.
        files::write(&self.record, &format!("{:#}\n", serde_json::to_value(&outcome.record)?))?;
        outcome.steps.iter().try_for_each(take)?;
        Ok(lines)
    }

    /// Undoes what was set up; returns a line for each change, and `None` if there was no setup.
    pub fn undo(&self, is_real: bool) -> Result<Option<Vec<String>>> {
        let Some(record) = self.read()? else { return Ok(None) };
        let mut looks = Looks::default();
        let steps = record.undo(|subject| looks.look(subject));
        looks.finish()?;
        let steps = steps.map_err(|conflicts| self.refusal(&conflicts))?;
        if is_real {
            steps.iter().try_for_each(take)?;
            files::remove(&self.record)?;
            files::remove_empty(&record.directories);
        }
        Ok(Some(steps.iter().map(describe).collect()))
    }

    fn read(&self) -> Result<Option<Record>> {
        let Some(text) = files::read(&self.record)? else { return Ok(None) };
        let record = serde_json::from_str(&text);
        record.map(Some).with_context(|| {
            format!("{} is not a record of 'consort setup'", self.record.display())
        })
    }

    fn refusal(&self, Conflicts(subjects): &Conflicts) -> anyhow::Error {
        anyhow::anyhow!(
            "{} has been changed since 'consort setup', and nothing was done: what was set up, and \
             what was there before, is in {}; put back either of them, or remove that record to \
             keep things as they are",
            subjects.join(", "),
            self.record.display()
        )
    }
}

/// Looks at the machine, and keeps the first error.
#[derive(Debug, Default)]
struct Looks(Option<anyhow::Error>);

impl Looks {
    fn look(&mut self, subject: &Subject<'_>) -> Found {
        let found = match *subject {
            Subject::File(path) => files::read(path).map(Found::File),
            Subject::Member { user, group } => account::is_member(user, group).map(Found::Member),
        };
        found.unwrap_or_else(|error| {
            self.0.get_or_insert(error);
            Found::File(None)
        })
    }

    fn finish(self) -> Result<()> {
        match self.0 {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn take(step: &Step) -> Result<()> {
    match step {
        Step::Write { path, content } => files::write(path, content),
        Step::Remove { path } => files::remove(path),
        Step::Join { user, group } => account::set_member(user, group, true),
        Step::Leave { user, group } => account::set_member(user, group, false),
    }
}

/// A step for users.
fn describe(step: &Step) -> String {
    match step {
        Step::Write { path, content } => {
            let lines = content.lines().filter(|line| !line.starts_with('#'));
            let lines: Vec<&str> = lines.collect();
            format!("writes   {}: {}", path.display(), lines.join("; "))
        }
        Step::Remove { path } => format!("removes  {}", path.display()),
        Step::Join { user, group } => format!("joins    {user} to the group '{group}'"),
        Step::Leave { user, group } => format!("takes    {user} out of the group '{group}'"),
    }
}
