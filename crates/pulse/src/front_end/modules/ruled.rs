//! Modules that lines of the rules load: each is there as long as its line is, and a server.

use std::ffi::{CStr, CString};

use policy::ModuleLine;

use super::requests::Failure;
use super::{Asker, Module, Modules};
use crate::front_end::FrontEnd;
use crate::output::Devices;

/// A line, and its module.
#[derive(Debug)]
pub(super) struct Ruled {
    line: ModuleLine,
    state: RuledState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuledState {
    /// It is loaded when there is a server.
    Waits,
    /// It has this index, or had it: it may have gone with its server.
    Loaded(u32),
    /// It failed, or a program has unloaded it.
    StaysAway,
}

impl Modules {
    /// A program unloads a module: its line, if it has one, loads it no more.
    pub(super) fn leave_unloaded(&mut self, index: u32) {
        let of_index = |ruled: &&mut Ruled| ruled.state == RuledState::Loaded(index);
        if let Some(ruled) = self.ruled.iter_mut().find(of_index) {
            ruled.state = RuledState::StaysAway;
        }
    }

    /// Takes the lines as they are; returns the indices of modules that have none any more.
    fn follow(&mut self, lines: &[ModuleLine]) -> Vec<u32> {
        let mut before = std::mem::take(&mut self.ruled);
        for line in lines {
            let known = before.iter().position(|ruled| ruled.line.is_same(line));
            let state = known.map_or(RuledState::Waits, |at| before.remove(at).state);
            self.ruled.push(Ruled { line: line.clone(), state });
        }
        let indices = before.into_iter().filter_map(|ruled| match ruled.state {
            RuledState::Loaded(index) => Some(index),
            RuledState::Waits | RuledState::StaysAway => None,
        });
        indices.collect()
    }

    /// Returns whether the module of a line is to be loaded.
    fn is_missing(&self, ruled: &Ruled) -> bool {
        match ruled.state {
            RuledState::Waits => true,
            RuledState::Loaded(index) => !self.all.contains_key(&index),
            RuledState::StaysAway => false,
        }
    }
}

impl<D: Devices> FrontEnd<D> {
    /// Loads the modules of the rules' lines that are not there, and unloads those that have no
    /// line any more. What cannot be loaded is reported once. Without a server, nothing is loaded.
    pub fn load_ruled_modules(&mut self, now_ns: u64) {
        for index in self.modules.follow(self.desktop.rules.modules()) {
            self.remove_module(index, now_ns);
        }
        if self.has_no_server() {
            return;
        }
        for at in 0..self.modules.ruled.len() {
            let missing = self.modules.ruled.get(at).filter(|it| self.modules.is_missing(it));
            let Some(line) = missing.map(|ruled| ruled.line.clone()) else { continue };
            let state = self.load_line(&line, now_ns);
            if let Some(ruled) = self.modules.ruled.get_mut(at) {
                ruled.state = state;
            }
        }
    }

    fn load_line(&mut self, line: &ModuleLine, now_ns: u64) -> RuledState {
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let (name, arguments) = (text(&line.name), text(&line.arguments));
        let argument = Some(arguments.as_c_str()).filter(|text: &&CStr| !text.is_empty());
        let index = self.modules.next_index();
        match self.load_module(index, Asker::Rules, &name, argument, now_ns) {
            Ok(_) => RuledState::Loaded(index),
            Err(Failure::NotNow) => RuledState::Waits,
            Err(Failure::Because(reason)) => {
                let title = Module::title(&name, argument);
                let number = line.line;
                self.devices
                    .report(format!("line {number} of the rules cannot load '{title}': {reason}"));
                RuledState::StaysAway
            }
        }
    }
}
