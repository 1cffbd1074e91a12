//! What a user has written: a line for each rule, in the order in which they are tried.
//!
//! `device=headset volume=80%   name=Firefox` has two settings and a condition. All conditions of
//! a line must match. Of each setting, the first line that matches decides.

mod allowance;
mod line;
mod module_line;
mod pattern;

use crate::identity::Identity;
use crate::rights::Rights;
use allowance::Allowance;
use line::Line;
pub(crate) use line::Reaction;
pub use module_line::ModuleLine;

/// Most lines that are read.
const MAX_LINES: usize = 1000;

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub reason: String,
}

/// A setting, and the number of the line that says so.
pub(crate) type Stated<T> = Option<(T, usize)>;

/// All rules.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    lines: Vec<(usize, Line)>,
    allowances: Vec<Allowance>,
    modules: Vec<ModuleLine>,
}

impl Rules {
    /// Reads rules. A line that cannot be read is left out, and complained about.
    #[must_use]
    pub fn parse(text: &str) -> (Self, Vec<Complaint>) {
        let (mut rules, mut complaints) = (Self::default(), Vec::new());
        for (line, text) in (1..).zip(text.lines()) {
            if line > MAX_LINES {
                let reason = format!("only the first {MAX_LINES} lines are read");
                complaints.push(Complaint { line, reason });
                break;
            }
            if let Err(reason) = rules.add(line, text) {
                complaints.push(Complaint { line, reason });
            }
        }
        (rules, complaints)
    }

    fn add(&mut self, line: usize, text: &str) -> Result<(), String> {
        if let Some(module) = ModuleLine::parse(line, text)? {
            self.modules.push(module);
            return Ok(());
        }
        match Allowance::parse(text)? {
            Some(allowance) => self.allowances.push(allowance),
            None => self.lines.extend(Line::parse(text)?.map(|read| (line, read))),
        }
        Ok(())
    }

    /// Returns the modules that are to be loaded, in the order of their lines.
    #[must_use]
    pub fn modules(&self) -> &[ModuleLine] {
        &self.modules
    }

    /// What a confined program of this control group may do; `None`: the kernel does not say which
    /// it has.
    #[must_use]
    pub fn allowed(&self, cgroup: Option<&str>) -> Rights {
        let is_for = |allowance: &&Allowance| cgroup.is_some_and(|path| allowance.is_for(path));
        self.allowances.iter().find(is_for).map_or(Rights::NONE, |allowance| allowance.rights)
    }

    /// The device that a stream is to be on.
    pub(crate) fn device(&self, stream: &Identity) -> Stated<&str> {
        self.first(stream, |line| line.device.as_deref())
    }

    /// Its volume when it begins, in PulseAudio's steps.
    pub(crate) fn volume(&self, stream: &Identity) -> Stated<u32> {
        self.first(stream, |line| line.volume)
    }

    /// Whether it begins muted.
    pub(crate) fn muted(&self, stream: &Identity) -> Stated<bool> {
        self.first(stream, |line| line.muted)
    }

    /// Whether it may be moved to another device.
    pub(crate) fn moves(&self, stream: &Identity) -> Stated<bool> {
        self.first(stream, |line| line.moves)
    }

    /// What it does to others while it is heard, by holding them.
    pub(crate) fn holds(&self, stream: &Identity) -> Stated<&Reaction> {
        self.first(stream, |line| line.cork.as_ref())
    }

    /// What it does to others while it is heard, by turning them down.
    pub(crate) fn ducks(&self, stream: &Identity) -> Stated<&Reaction> {
        self.first(stream, |line| line.duck.as_ref())
    }

    fn first<'a, T>(
        &'a self,
        stream: &Identity,
        setting: impl Fn(&'a Line) -> Option<T>,
    ) -> Stated<T> {
        let matching = self.lines.iter().filter(|(_, line)| line.matches(stream));
        matching.filter_map(|(number, line)| Some((setting(line)?, *number))).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Direction;

    fn stream(name: &str, role: Option<&str>) -> Identity {
        let mut stream = Identity::unknown(Direction::Playback);
        (stream.name, stream.role) = (Some(name.into()), role.map(Into::into));
        stream
    }

    #[test]
    fn the_first_line_that_matches_decides_each_setting() {
        let text = "# mine\n\nvolume=50%  name=mpv role=video\n  device=headset name=mpv\n\
                    volume=80% device=\"the other\"  name=\"m*\"  # most\nmuted=yes role=event\n";
        let (rules, complaints) = Rules::parse(text);
        assert_eq!(complaints, []);
        let video = stream("mpv", Some("video"));
        assert_eq!(rules.volume(&video), Some((0x8000, 3)));
        assert_eq!(rules.device(&video), Some(("headset", 4)));
        let other = stream("mixxx", None);
        assert_eq!(rules.volume(&other), Some((52_429, 5)));
        assert_eq!(rules.device(&other), Some(("the other", 5)));
        assert_eq!(rules.muted(&other), None);
        assert_eq!(rules.muted(&stream("a", Some("event"))), Some((true, 6)));
    }

    #[test]
    fn a_rule_may_be_for_what_plays_or_for_what_records() {
        let (rules, _) = Rules::parse("muted=yes direction=recording\nmuted=no name=a");
        let plays = stream("a", None);
        assert_eq!(rules.muted(&plays), Some((false, 2)));
        let records = Identity { direction: Direction::Recording, ..plays };
        assert_eq!(rules.muted(&records), Some((true, 1)));
    }

    #[test]
    fn the_first_line_that_names_a_control_group_says_what_its_programs_may_do() {
        let text = "allow=capture cgroup=*/app-flatpak-us.zoom.Zoom-*\nmuted=yes name=a\n\
                    allow=everything cgroup=/user.slice/*";
        let (rules, complaints) = Rules::parse(text);
        assert_eq!(complaints, []);
        let zoom = rules.allowed(Some("/user.slice/app.slice/app-flatpak-us.zoom.Zoom-7.scope"));
        assert_eq!(zoom, Rights { capture: true, ..Rights::NONE });
        assert_eq!(rules.allowed(Some("/user.slice/x.scope")), Rights::ALL);
        assert_eq!(rules.allowed(Some("/system.slice/x.scope")), Rights::NONE);
        assert_eq!(rules.allowed(None), Rights::NONE);
        assert_eq!(rules.muted(&stream("a", None)), Some((true, 2)));
    }

    #[test]
    fn modules_are_loaded_in_the_order_of_their_lines() {
        let text = "load-module module-null-sink sink_name=a\nmuted=yes name=b\n\
                    load-module module-always-sink\n";
        let (rules, complaints) = Rules::parse(text);
        assert_eq!(complaints, []);
        let lines = rules.modules().iter().map(|module| (module.line, module.name.as_str()));
        assert!(lines.eq([(1, "module-null-sink"), (3, "module-always-sink")]));
        assert_eq!(rules.muted(&stream("b", None)), Some((true, 2)));
    }

    #[test]
    fn a_line_that_cannot_be_read_costs_no_other() {
        let (rules, complaints) = Rules::parse("nonsense\nvolume=loud name=a\nmuted=no name=a\n");
        assert_eq!(complaints.iter().map(|complaint| complaint.line).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(rules.muted(&stream("a", None)), Some((false, 3)));
        let long = "\n".repeat(2 * MAX_LINES);
        assert_eq!(Rules::parse(&long).1.len(), 1);
    }
}
