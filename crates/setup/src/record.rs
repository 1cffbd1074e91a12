//! What was changed, so that it can be undone exactly. Pure: what is on the machine comes in as
//! [`Found`].

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::Change;

/// The changes of one part of a setup. It is written before they are made, so each of them may
/// still be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub entries: Vec<Entry>,
    /// Directories that were made, for its own file as well; each after those that it lies in.
    pub directories: Vec<PathBuf>,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Entry {
    /// A file; `None`: there was none.
    File { path: PathBuf, before: Option<String>, after: String },
    /// A user became a member of a group.
    Member { user: String, group: String },
}

/// What a change is about, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The text of a file, if it is there.
    File(Option<String>),
    /// Whether the user is a member.
    Member(bool),
}

/// A step, of a setup or back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Write { path: PathBuf, content: String },
    Remove { path: PathBuf },
    Join { user: String, group: String },
    Leave { user: String, group: String },
}

impl Change {
    /// The entry that it becomes if it is made now; `None`: it is so already.
    fn entry(self, found: &Found) -> Option<Entry> {
        match (self, found) {
            (Self::File { path, content: after }, Found::File(before)) => {
                let is_new = before.as_ref() != Some(&after);
                is_new.then(|| Entry::File { path, before: before.clone(), after })
            }
            (Self::Member { user, group }, Found::Member(false)) => {
                Some(Entry::Member { user, group })
            }
            _ => None,
        }
    }
}

impl Entry {
    /// The same entry with what another setup wants now; `None`: it is about something else.
    fn changed_to(&self, change: &Change) -> Option<Self> {
        match (self, change) {
            (Self::File { path, before, .. }, Change::File { path: same, content })
                if path == same =>
            {
                let (path, before, after) = (path.clone(), before.clone(), content.clone());
                Some(Self::File { path, before, after })
            }
            (Self::Member { user, group }, Change::Member { user: same, group: as_well })
                if (user, group) == (same, as_well) =>
            {
                Some(self.clone())
            }
            _ => None,
        }
    }

    /// Whether it is as the setup left it, or as it was before.
    fn is_ours(&self, found: &Found) -> bool {
        match (self, found) {
            (Self::File { before, after, .. }, Found::File(now)) => {
                now == before || now.as_ref() == Some(after)
            }
            (Self::Member { .. }, Found::Member(_)) => true,
            _ => false,
        }
    }

    /// What it is about, for users.
    fn subject(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Member { user, group } => format!("the group '{group}' of {user}"),
        }
    }

    fn make(&self, found: &Found) -> Option<Step> {
        match (self, found) {
            (Self::File { path, after, .. }, Found::File(now)) => {
                let step = || Step::Write { path: path.clone(), content: after.clone() };
                (now.as_ref() != Some(after)).then(step)
            }
            (Self::Member { user, group }, Found::Member(false)) => {
                Some(Step::Join { user: user.clone(), group: group.clone() })
            }
            _ => None,
        }
    }

    fn undo(&self, found: &Found) -> Option<Step> {
        match (self, found) {
            (Self::File { before, .. }, Found::File(now)) if now == before => None,
            (Self::File { path, before: Some(before), .. }, Found::File(_)) => {
                Some(Step::Write { path: path.clone(), content: before.clone() })
            }
            (Self::File { path, before: None, .. }, Found::File(_)) => {
                Some(Step::Remove { path: path.clone() })
            }
            (Self::Member { user, group }, Found::Member(true)) => {
                Some(Step::Leave { user: user.clone(), group: group.clone() })
            }
            _ => None,
        }
    }
}

/// What a setup does to the record and to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub record: Record,
    pub steps: Vec<Step>,
}

/// Things that were changed since the setup, for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflicts(pub Vec<String>);

impl Record {
    /// Carries changes out, on top of what an earlier setup did. What was there before the first
    /// setup stays in the record.
    pub fn set_up(
        &self,
        changes: Vec<Change>,
        mut look: impl FnMut(&Subject<'_>) -> Found,
    ) -> Result<Outcome, Conflicts> {
        let mut record = self.clone();
        let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
        for change in changes {
            let found = look(&Subject::of_change(&change));
            let old = record.entries.iter_mut().find_map(|entry| {
                let changed = entry.changed_to(&change)?;
                Some((entry, changed))
            });
            let entry = match old {
                Some((old, _)) if !old.is_ours(&found) => {
                    conflicts.push(old.subject());
                    continue;
                }
                Some((old, changed)) => {
                    *old = changed.clone();
                    changed
                }
                None => {
                    let Some(entry) = change.entry(&found) else { continue };
                    record.entries.push(entry.clone());
                    entry
                }
            };
            steps.extend(entry.make(&found));
        }
        if conflicts.is_empty() { Ok(Outcome { record, steps }) } else { Err(Conflicts(conflicts)) }
    }

    /// The steps that bring back what was there before the first setup, the last change first.
    pub fn undo(
        &self,
        mut look: impl FnMut(&Subject<'_>) -> Found,
    ) -> Result<Vec<Step>, Conflicts> {
        let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
        for entry in self.entries.iter().rev() {
            let found = look(&Subject::of_entry(entry));
            if entry.is_ours(&found) {
                steps.extend(entry.undo(&found));
            } else {
                conflicts.push(entry.subject());
            }
        }
        if conflicts.is_empty() { Ok(steps) } else { Err(Conflicts(conflicts)) }
    }
}

/// What has to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject<'a> {
    File(&'a Path),
    Member { user: &'a str, group: &'a str },
}

impl<'a> Subject<'a> {
    fn of_change(change: &'a Change) -> Self {
        match change {
            Change::File { path, .. } => Self::File(path),
            Change::Member { user, group } => Self::Member { user, group },
        }
    }

    fn of_entry(entry: &'a Entry) -> Self {
        match entry {
            Entry::File { path, .. } => Self::File(path),
            Entry::Member { user, group } => Self::Member { user, group },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A machine in memory: files by name, and members of the one group.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    struct Machine {
        files: BTreeMap<PathBuf, String>,
        members: Vec<String>,
    }

    impl Machine {
        fn look(&self, subject: &Subject<'_>) -> Found {
            match subject {
                Subject::File(path) => Found::File(self.files.get(*path).cloned()),
                Subject::Member { user, .. } => {
                    Found::Member(self.members.iter().any(|member| member == user))
                }
            }
        }

        fn take(&mut self, steps: &[Step]) {
            for step in steps.iter().cloned() {
                match step {
                    Step::Write { path, content } => drop(self.files.insert(path, content)),
                    Step::Remove { path } => drop(self.files.remove(&path).expect("there")),
                    Step::Join { user, .. } => self.members.push(user),
                    Step::Leave { user, .. } => self.members.retain(|member| *member != user),
                }
            }
        }

        fn set_up(&mut self, record: &mut Record, changes: &[Change]) {
            let outcome = record.set_up(changes.to_vec(), |it| self.look(it)).expect("no conflict");
            self.take(&outcome.steps);
            *record = outcome.record;
        }
    }

    fn file(content: &str) -> Change {
        Change::File { path: "/service".into(), content: content.into() }
    }

    fn member() -> Change {
        Change::Member { user: "ann".into(), group: "realtime".into() }
    }

    fn machines() -> Vec<Machine> {
        let files = [None, Some("mine"), Some("new")];
        let with = |file: Option<&str>, members: &[&str]| Machine {
            files: file.map(|text| ("/service".into(), text.into())).into_iter().collect(),
            members: members.iter().map(|name| (*name).into()).collect(),
        };
        files.into_iter().flat_map(|file| [with(file, &[]), with(file, &["ann"])]).collect()
    }

    #[test]
    fn undo_brings_back_what_was_there_before_the_first_setup() {
        for before in machines() {
            let (mut machine, mut record) = (before.clone(), Record::default());
            machine.set_up(&mut record, &[file("new"), member()]);
            assert_eq!(machine.files[Path::new("/service")], "new");
            assert_eq!(machine.members, ["ann"]);
            machine.set_up(&mut record, &[file("newer"), member()]);
            assert_eq!(machine.files[Path::new("/service")], "newer");
            let steps = record.undo(|it| machine.look(it)).expect("no conflict");
            machine.take(&steps);
            assert_eq!(machine, before);
        }
    }

    #[test]
    fn a_setup_that_was_cut_short_is_undone() {
        for before in machines() {
            let record = Record::default();
            let outcome = record.set_up(vec![file("new"), member()], |it| before.look(it));
            let outcome = outcome.expect("no conflict");
            for made in 0..=outcome.steps.len() {
                let mut machine = before.clone();
                machine.take(&outcome.steps[..made]);
                let steps = outcome.record.undo(|it| machine.look(it)).expect("no conflict");
                machine.take(&steps);
                assert_eq!(machine, before, "after {made} steps");
            }
        }
    }

    #[test]
    fn what_was_changed_since_is_left_alone() {
        let (mut machine, mut record) = (Machine::default(), Record::default());
        machine.set_up(&mut record, &[file("new"), member()]);
        machine.files.insert("/service".into(), "edited".into());
        let edited = Conflicts(vec!["/service".into()]);
        assert_eq!(record.undo(|it| machine.look(it)), Err(edited.clone()));
        assert_eq!(record.set_up(vec![file("newer")], |it| machine.look(it)), Err(edited));
        machine.files.clear();
        assert_eq!(
            record.undo(|it| machine.look(it)).expect("a removed file is as before"),
            [Step::Leave { user: "ann".into(), group: "realtime".into() }]
        );
    }

    #[test]
    fn what_is_so_already_is_no_change() {
        let machine = Machine {
            files: [("/service".into(), "new".into())].into(),
            members: vec!["ann".into()],
        };
        let outcome = Record::default().set_up(vec![file("new"), member()], |it| machine.look(it));
        assert_eq!(outcome, Ok(Outcome { record: Record::default(), steps: Vec::new() }));
    }
}
