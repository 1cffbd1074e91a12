//! Modules that lines of the rules load: each is there as long as its line is, and a server, and
//! what it needs.

use std::ffi::{CStr, CString};

use policy::ModuleLine;

use super::requests::Failure;
use super::{Asker, Module, Modules, State};
use crate::front_end::FrontEnd;
use crate::front_end::sources::Source;
use crate::output::Devices;

/// How long after a device has come the lines are tried that lack one: a card has several, and the
/// module of one that was just replaced may not have ended yet.
const SETTLED_NS: u64 = 1_000_000_000;
/// They do not wait any longer, although devices come without end.
const SETTLED_WITHIN_NS: u64 = 5_000_000_000;
/// When a server that has not answered in time is asked again.
const ANSWERS_NS: u64 = 5_000_000_000;

/// A line, and its module.
#[derive(Debug)]
pub(super) struct Ruled {
    line: ModuleLine,
    state: RuledState,
    /// How often devices had come when it was loaded.
    devices_came: u64,
    /// Why it was not there, as it was last reported. `None`: nothing was since it last was there.
    reported: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuledState {
    /// It could not be loaded, or not yet.
    Missing,
    /// It has this index, or had it: it may have failed, or gone with its server.
    Loaded(u32),
    /// A program has unloaded it, or it does nothing but being loaded once.
    StaysAway,
}

/// When the lines whose modules are missing are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextTry {
    due_ns: u64,
    /// It is not put off any longer.
    latest_ns: u64,
}

impl NextTry {
    /// A device has come.
    fn after_device(before: Option<Self>, now_ns: u64) -> Self {
        let own_ns = now_ns.saturating_add(SETTLED_WITHIN_NS);
        let latest_ns = before.map_or(own_ns, |before| before.latest_ns);
        Self { due_ns: now_ns.saturating_add(SETTLED_NS).min(latest_ns), latest_ns }
    }
}

impl Modules {
    /// A program unloads a module: its line, if it has one, loads it no more.
    pub(super) fn leave_unloaded(&mut self, index: u32) {
        if let Some(ruled) = self.ruled_as(index) {
            ruled.state = RuledState::StaysAway;
        }
    }

    fn ruled_as(&mut self, index: u32) -> Option<&mut Ruled> {
        self.ruled.iter_mut().find(|ruled| ruled.state == RuledState::Loaded(index))
    }

    /// A module is there: what is reported of its line from now on is news.
    pub(super) fn line_is_obeyed(&mut self, index: u32) {
        if let Some(ruled) = self.ruled_as(index) {
            ruled.reported = None;
        }
    }

    /// Takes the lines as they are; returns the indices of modules that have none any more.
    fn follow(&mut self, lines: &[ModuleLine]) -> Vec<u32> {
        let mut before = std::mem::take(&mut self.ruled);
        for line in lines {
            let known = before.iter().position(|ruled| ruled.line.is_same(line));
            self.ruled.push(match known.map(|at| before.remove(at)) {
                Some(ruled) => Ruled { line: line.clone(), ..ruled },
                None => Ruled {
                    line: line.clone(),
                    state: RuledState::Missing,
                    devices_came: 0,
                    reported: None,
                },
            });
        }
        let indices = before.into_iter().filter_map(|ruled| match ruled.state {
            RuledState::Loaded(index) => Some(index),
            RuledState::Missing | RuledState::StaysAway => None,
        });
        indices.collect()
    }

    /// Returns whether the module of a line is to be loaded.
    fn is_missing(&self, ruled: &Ruled) -> bool {
        match ruled.state {
            RuledState::Missing => true,
            RuledState::Loaded(index) => !self.all.contains_key(&index),
            RuledState::StaysAway => false,
        }
    }

    /// Returns whether a line has loaded this module.
    fn is_ruled(&self, index: u32) -> bool {
        self.ruled.iter().any(|ruled| ruled.state == RuledState::Loaded(index))
    }

    /// Returns when [`FrontEnd::load_missing_modules_if_due`] is to be called.
    pub fn due_ns(&self) -> Option<u64> {
        self.next_try.map(|next| next.due_ns)
    }
}

impl<D: Devices> FrontEnd<D> {
    /// Loads the modules of the rules' lines that are not there, and unloads those that have no
    /// line any more. Why one cannot be loaded is reported once. Without a server, nothing is
    /// loaded.
    pub fn load_ruled_modules(&mut self, now_ns: u64) {
        for index in self.modules.follow(self.desktop.rules.modules()) {
            self.remove_module(index, now_ns);
        }
        self.load_missing_modules(now_ns);
    }

    /// Tries the lines again whose modules are missing, if it is time.
    pub(in crate::front_end) fn load_missing_modules_if_due(&mut self, now_ns: u64) {
        if self.modules.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.load_missing_modules(now_ns);
        }
    }

    fn load_missing_modules(&mut self, now_ns: u64) {
        self.modules.next_try = None;
        if self.has_no_server() {
            return;
        }
        for at in 0..self.modules.ruled.len() {
            let missing = self.modules.ruled.get(at).filter(|it| self.modules.is_missing(it));
            let Some(line) = missing.map(|ruled| ruled.line.clone()) else { continue };
            match self.load_line(at, &line, now_ns) {
                Ok(()) => {}
                Err(Failure::Because(reason)) => self.line_has_failed(at, &reason),
                // The lines after it would wait for the same answer.
                Err(Failure::NotNow) => {
                    let due_ns = now_ns.saturating_add(ANSWERS_NS);
                    self.modules.next_try = Some(NextTry { due_ns, latest_ns: due_ns });
                    return;
                }
            }
        }
    }

    fn load_line(&mut self, at: usize, line: &ModuleLine, now_ns: u64) -> Result<(), Failure> {
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let (name, arguments) = (text(&line.name), text(&line.arguments));
        let argument = Some(arguments.as_c_str()).filter(|text: &&CStr| !text.is_empty());
        let index = self.modules.next_index();
        // What comes with it is known as its own.
        self.set_line(at, RuledState::Loaded(index));
        let loaded = self.load_module(index, Asker::Rules, &name, argument, now_ns);
        match &loaded {
            Ok(_) if self.modules.all.contains_key(&index) => {}
            Ok(_) => self.set_line(at, RuledState::StaysAway),
            Err(_) => self.set_line(at, RuledState::Missing),
        }
        loaded.map(drop)
    }

    fn set_line(&mut self, at: usize, state: RuledState) {
        if let Some(ruled) = self.modules.ruled.get_mut(at) {
            (ruled.state, ruled.devices_came) = (state, self.modules.devices_came);
        }
    }

    fn line_has_failed(&mut self, at: usize, reason: &str) {
        let Some(ruled) = self.modules.ruled.get_mut(at) else { return };
        if ruled.reported.as_deref() == Some(reason) {
            return;
        }
        ruled.reported = Some(reason.to_owned());
        let ModuleLine { line, name, arguments } = &ruled.line;
        let title = format!("{name} {arguments}");
        let title = title.trim_end();
        self.devices.report(format!("line {line} of the rules cannot load '{title}': {reason}"));
    }

    /// Reports that a module fails, with the line that has loaded it, if one has.
    pub(super) fn report_failure(&mut self, index: u32, reason: &str, now_ns: u64) {
        let Some(module) = self.modules.get_mut(index) else { return };
        let is_there = module.state == State::There;
        let title = Module::title(module.kind.name(), module.argument.as_deref());
        let is_its = |ruled: &Ruled| ruled.state == RuledState::Loaded(index);
        let Some(at) = self.modules.ruled.iter().position(is_its) else {
            let what = if is_there { "unloads" } else { "cannot load" };
            return self.devices.report(format!("{what} '{title}': {reason}"));
        };
        let came = self.modules.devices_came;
        if self.modules.ruled.get(at).is_some_and(|ruled| ruled.devices_came != came) {
            // What it lacks may have come back before it noticed.
            let next = NextTry::after_device(self.modules.next_try, now_ns);
            self.modules.next_try = Some(next);
        }
        if !is_there {
            return self.line_has_failed(at, reason);
        }
        let Some(ruled) = self.modules.ruled.get_mut(at) else { return };
        ruled.reported = Some(reason.to_owned());
        let line = ruled.line.line;
        self.devices.report(format!("unloads '{title}' of line {line} of the rules: {reason}"));
    }

    /// Returns the sources whose devices are there: each device that programs see has one.
    pub(in crate::front_end) fn sources_there(&self) -> Vec<Source> {
        let mut all = self.sources();
        all.retain(|source| self.sinks.get(source.sink()).is_some_and(|sink| !sink.is_away));
        all
    }

    /// If other devices are there than those of these sources, the lines whose modules are missing
    /// are tried soon: one may have lacked them.
    pub(in crate::front_end) fn note_devices_since(&mut self, before: &[Source], now_ns: u64) {
        let is_new = |source: &Source| {
            let sink = self.sinks.get(source.sink());
            let module = sink.and_then(|sink| Some(sink.described.as_ref()?.module));
            // One that fails and takes its device with it would be tried without end.
            let is_of_line = module.is_some_and(|module| self.modules.is_ruled(module));
            !is_of_line && !before.contains(source)
        };
        if !self.modules.ruled.is_empty() && self.sources_there().iter().any(is_new) {
            self.modules.devices_came += 1;
            let before = self.modules.next_try;
            self.modules.next_try = Some(NextTry::after_device(before, now_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_tried_once_devices_have_settled_or_have_come_for_long_enough() {
        let second = SETTLED_NS;
        let mut next = NextTry::after_device(None, 0);
        assert_eq!(next.due_ns, second);
        for now_ns in (0..10).map(|at| at * second / 2) {
            next = NextTry::after_device(Some(next), now_ns);
        }
        assert_eq!(next.due_ns, SETTLED_WITHIN_NS);
    }
}
