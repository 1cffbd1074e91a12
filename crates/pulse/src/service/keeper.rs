//! The files of the desktop's policy: what is remembered, which this process writes, and the rules,
//! which users write.

#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, File, Metadata, rename};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use policy::{Damaged, Memory, Rules};

/// The least time between two writes: everything that changes meanwhile is written with the second
/// one.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Longest file that is read: longer than any that is written.
const MAX_BYTES: u64 = 16 << 20;

/// The files, and what is to be written.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// `None`: nothing can be kept, which was reported.
    kept: Option<PathBuf>,
    rules: Option<PathBuf>,
    /// The rules as they were read last.
    read: Option<Stamp>,
    /// When a change is to be written, ns.
    due_ns: Option<u64>,
    /// When it was written last, ns.
    written_ns: Option<u64>,
    /// Writes, as long as the disk needs for it; returns whether it could.
    writer: Option<JoinHandle<bool>>,
    /// What could not be written was reported.
    is_failing: bool,
}

/// What tells one content of a file from another.
type Stamp = (u64, u64, i64, i64);

impl Keeper {
    /// The files of the server `server`, by `XDG_STATE_HOME`, `XDG_CONFIG_HOME` and `HOME`.
    pub fn of_user(server: &str) -> Self {
        let directory = |variable: &str, default: &str| {
            let absolute = |name: &str| {
                std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
            };
            absolute(variable).or_else(|| Some(absolute("HOME")?.join(default)))
        };
        let of_server = |ending: &str| match server {
            "default" => format!("consort/desktop.{ending}"),
            other => format!("consort/desktop-{other}.{ending}"),
        };
        let kept = directory("XDG_STATE_HOME", ".local/state");
        let rules = directory("XDG_CONFIG_HOME", ".config");
        if kept.is_none() {
            sys::report!(
                "consort: nothing about programs of PulseAudio is remembered: neither \
                 XDG_STATE_HOME nor HOME names a directory"
            );
        }
        Self::of(
            kept.map(|directory| directory.join(of_server("json"))),
            rules.map(|directory| directory.join(of_server("rules"))),
        )
    }

    fn of(kept: Option<PathBuf>, rules: Option<PathBuf>) -> Self {
        Self {
            kept,
            rules,
            read: None,
            due_ns: None,
            written_ns: None,
            writer: None,
            is_failing: false,
        }
    }

    /// Reads what is remembered. A file that is damaged is set aside, and one that cannot be read
    /// is left as it is: nothing keeps programs from being served.
    pub fn load(&mut self) -> Memory {
        let Some(path) = self.kept.take() else { return Memory::default() };
        let shown = path.display();
        let text = match text_of(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.kept = Some(path);
                return Memory::default();
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => String::new(),
            Err(error) => {
                sys::report!(
                    "consort: cannot read {shown}: {error}. What programs of PulseAudio change is \
                     not remembered until consort pulse starts again"
                );
                return Memory::default();
            }
        };
        match Memory::parse(&text) {
            Ok(memory) => {
                self.kept = Some(path);
                memory
            }
            Err(version @ Damaged::Version(_)) => {
                sys::report!(
                    "consort: cannot use {shown}: {version}. What programs of PulseAudio change is \
                     not remembered"
                );
                Memory::default()
            }
            Err(damage) => {
                self.set_aside(path, &damage);
                Memory::default()
            }
        }
    }

    fn set_aside(&mut self, path: PathBuf, damage: &Damaged) {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".damaged");
        let (shown, aside) = (path.display(), PathBuf::from(aside));
        match rename(&path, &aside) {
            Ok(()) => {
                sys::report!(
                    "consort: {shown} is damaged ({damage}): it is {} now, and volumes and sinks \
                     of PulseAudio's programs are the usual ones",
                    aside.display()
                );
                self.kept = Some(path);
            }
            Err(error) => sys::report!(
                "consort: {shown} is damaged ({damage}), and cannot be renamed: {error}. What \
                 programs of PulseAudio change is not remembered"
            ),
        }
    }

    /// Returns the rules if they are others than those that were read last. Each line that cannot
    /// be read is reported.
    pub fn changed_rules(&mut self) -> Option<Rules> {
        let path = self.rules.as_deref()?;
        let found = path.metadata().ok();
        let stamp = found.as_ref().map(stamp);
        if std::mem::replace(&mut self.read, stamp) == stamp {
            return None;
        }
        let shown = path.display();
        let text = match found.map(|_| text_of(path)) {
            None => String::new(),
            Some(Ok(text)) => text,
            Some(Err(error)) => {
                sys::report!("consort: cannot read the rules {shown}: {error}. They are left out");
                String::new()
            }
        };
        let (rules, complaints) = Rules::parse(&text);
        for complaint in complaints {
            let (line, reason) = (complaint.line, complaint.reason);
            sys::report!("consort: line {line} of the rules {shown} is left out: {reason}");
        }
        Some(rules)
    }

    /// What is remembered has changed: it is to be written at once, unless that was just done.
    pub fn note(&mut self, now_ns: u64) {
        if self.kept.is_some() {
            let earliest_ns = self.written_ns.map_or(0, |written_ns| written_ns + INTERVAL_NS);
            let due_ns = now_ns.max(earliest_ns);
            self.due_ns.get_or_insert(due_ns);
        }
    }

    /// Returns when it is to be written, ns; `None`: the file has it.
    pub fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Writes what is due. A thread does it: a disk may take its time, and streams have to go on.
    pub fn write(&mut self, memory: &Memory, now_ns: u64) {
        if self.writer.as_ref().is_some_and(|writer| !writer.is_finished()) {
            self.due_ns = Some(now_ns + INTERVAL_NS);
            return;
        }
        self.collect();
        self.due_ns = None;
        let Some(path) = self.kept.clone() else { return };
        let (text, was_failing) = (memory.to_text(), self.is_failing);
        let thread = std::thread::Builder::new().name("memory".into());
        match thread.spawn(move || store(&path, &text, was_failing)) {
            Ok(writer) => (self.writer, self.written_ns) = (Some(writer), Some(now_ns)),
            // The kernel has no thread for it now.
            Err(_) => self.due_ns = Some(now_ns + INTERVAL_NS),
        }
    }

    /// Writes what has not been written yet.
    pub fn finish(mut self, memory: &Memory) {
        self.collect();
        if let Some(path) =
            self.kept.as_deref().filter(|_| self.due_ns.is_some() || self.is_failing)
        {
            store(path, &memory.to_text(), self.is_failing);
        }
    }

    /// Waits for what is being written.
    fn collect(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.is_failing = !writer.join().unwrap_or(false);
        }
    }
}

/// Writes a file, and makes its directory; returns whether that has worked. A failure is reported
/// once, until it works again.
fn store(path: &Path, text: &str, was_failing: bool) -> bool {
    let stored = path
        .parent()
        .map_or(Ok(()), |directory| DirBuilder::new().mode(0o700).recursive(true).create(directory))
        .and_then(|()| state::replace(path, text.as_bytes()));
    if let (Err(error), false) = (&stored, was_failing) {
        sys::report!(
            "consort: cannot write {}: {error}. What programs of PulseAudio change is written with \
             the next change",
            path.display()
        );
    }
    stored.is_ok()
}

/// Reads a file that may be anything a user has put there.
///
/// # Errors
/// The kernel's; `InvalidData` if it is no text, or too long.
fn text_of(path: &Path) -> io::Result<String> {
    // A pipe or a device is not waited for.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(ErrorKind::InvalidData.into());
    }
    Ok(text)
}

fn stamp(found: &Metadata) -> Stamp {
    (found.ino(), found.len(), found.mtime(), found.mtime_nsec())
}
