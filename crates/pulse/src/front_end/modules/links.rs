//! What passes frames on for modules: that it has begun, that it has ended, and that the next
//! server has it again.

use super::arguments::Arguments;
use super::kinds::Kind;
use super::plans::Plan;
use super::streams::Side;
use super::{Asker, Module, OwnLink, State};
use crate::front_end::{Answer, FrontEnd};
use crate::output::{Devices, NewLink, NewLoopback};

impl<D: Devices> FrontEnd<D> {
    /// The process of a module passes frames on, or says why it cannot.
    pub fn link_has_begun(&mut self, index: u32, begun: Result<(), String>, now_ns: u64) {
        let Some(module) = self.modules.get_mut(index) else { return };
        match (module.state, begun) {
            (State::Awaited(asker), Ok(())) => {
                self.module_streams_begin(index);
                let answer = self.module_is_there(index, asker);
                if let (Some(Answer::Packet(bytes)), Asker::Program { client, .. }) =
                    (answer, asker)
                {
                    self.send_if_there(client, bytes);
                }
                self.loopbacks_follow(now_ns);
            }
            (State::Awaited(_), Err(reason)) => self.module_fails(index, &reason, now_ns),
            // It ends next, unless its server has gone as well.
            (State::There, Err(reason)) => {
                let title = Module::title(module.kind.name(), module.argument.as_deref());
                self.devices.report(format!("'{title}' is not connected again: {reason}"));
            }
            (State::There, Ok(())) => {
                self.module_streams_begin(index);
                self.loopbacks_follow(now_ns);
            }
            (State::Begins, _) => {}
        }
    }

    /// The process of a module has ended, but its server has not: a device has gone, or what it
    /// says.
    pub fn link_has_ended(&mut self, index: u32, reason: Option<&str>, now_ns: u64) {
        let before = self.link_of(index);
        self.refresh(now_ns);
        let goes_on = before != self.link_of(index)
            || self.follow_default(index, now_ns)
            || self.goes_on_with_fewer(index, now_ns);
        if goes_on {
            // Another process has taken its place.
            return;
        }
        let is_plug_in =
            self.modules.get(index).is_some_and(|module| module.kind == Kind::LadspaSink);
        let unknown = match is_plug_in {
            true => "a device that it needs has gone, or its plug-in has crashed",
            false => "a device that it needs has gone",
        };
        self.module_fails(index, reason.unwrap_or(unknown), now_ns);
    }

    fn link_of(&self, index: u32) -> Option<NewLink> {
        Some(self.modules.get(index)?.link.as_ref()?.new.clone())
    }

    /// A loopback that names no source, or no sink, follows the default one. It stays where it is
    /// if it cannot go there.
    pub(in crate::front_end) fn loopbacks_follow(&mut self, now_ns: u64) {
        for index in self.modules.all_of(Kind::Loopback) {
            let link = self.modules.get(index).and_then(|module| module.link.as_ref());
            if link.is_some_and(|link| !link.is_down) {
                self.follow_default(index, now_ns);
            }
        }
    }

    /// Has a loopback follow the default; returns whether it goes on elsewhere.
    fn follow_default(&mut self, index: u32, now_ns: u64) -> bool {
        let loopback = self.modules.get(index).filter(|module| module.kind == Kind::Loopback);
        let Some(module) = loopback else { return false };
        let arguments = Arguments::read(&module.argument_text(), Kind::Loopback.keys());
        let planned = arguments.and_then(|arguments| self.plan(Kind::Loopback, &arguments));
        let Ok(Plan { link: Some(link), .. }) = planned else { return false };
        let NewLink::Loopback(planned) = link(String::new()) else { return false };
        let Some(loopback) = self.where_it_was_moved(index, planned) else { return false };
        let link = NewLink::Loopback(loopback);
        let is_another = self.link_of(index).is_some_and(|own| own != link);
        if is_another {
            self.link_again(index, link, now_ns);
        }
        is_another
    }

    /// Returns the loopback with what a user has moved where that is, as long as its device is
    /// there; `None` if it would be played into itself.
    fn where_it_was_moved(&mut self, index: u32, mut planned: NewLoopback) -> Option<NewLoopback> {
        let module = self.modules.get_mut(index)?;
        let Some(NewLink::Loopback(own)) = module.link.as_ref().map(|link| &link.new) else {
            return Some(planned);
        };
        for stream in module.streams.iter_mut().filter(|stream| stream.is_pinned) {
            let end = own.ends().find(|end| Side::of(end) == stream.side())?;
            stream.is_pinned = self.sinks.of_device(end.device()).is_some();
            match (stream.is_pinned, stream.side()) {
                (false, _) => {}
                (true, Side::Input) => planned.to.clone_from(&own.to),
                (true, Side::Output) => {
                    planned.from.clone_from(&own.from);
                    (planned.from_map, planned.via) = (own.from_map, own.via);
                }
            }
        }
        (!planned.is_into_itself()).then_some(planned)
    }

    /// A combined sink goes on with the sinks that are left; returns whether some are.
    fn goes_on_with_fewer(&mut self, index: u32, now_ns: u64) -> bool {
        let is_combined = |module: &&Module| module.kind == Kind::CombineSink;
        let link = self.modules.get(index).filter(is_combined).and_then(|_| self.link_of(index));
        let Some(NewLink::Loopback(mut loopback)) = link else { return false };
        let before = loopback.to.len();
        loopback.to.retain(|(device, _)| self.sinks.of_device(device.as_deref()).is_some());
        let some_are_left = (1..before).contains(&loopback.to.len());
        if some_are_left {
            self.link_again(index, NewLink::Loopback(loopback), now_ns);
        }
        some_are_left
    }

    /// Has another process pass frames on for a module.
    pub(super) fn link_again(&mut self, index: u32, link: NewLink, now_ns: u64) {
        self.devices.unlink(index);
        let started = self.devices.link(index, link.clone());
        if let Some(module) = self.modules.get_mut(index) {
            module.link = Some(OwnLink { new: link, is_down: false });
        }
        if let Err(reason) = started {
            self.module_fails(index, &reason, now_ns);
        }
    }

    fn module_fails(&mut self, index: u32, reason: &str, now_ns: u64) {
        self.report_failure(index, reason, now_ns);
        self.remove_module(index, now_ns);
    }

    /// The server has gone, and all processes end with it. Nothing that they still say is heard.
    pub(in crate::front_end) fn links_are_down(&mut self) {
        for (index, link) in self.modules.links_mut() {
            link.is_down = true;
            self.devices.unlink(index);
        }
    }

    /// Returns what is to be started again.
    fn links_down(&self) -> Vec<(u32, NewLink)> {
        let down = self.modules.links().filter(|(_, link)| link.is_down);
        down.map(|(index, link)| (index, link.new.clone())).collect()
    }

    /// Returns whether something is to be started again.
    pub(in crate::front_end) fn has_links_down(&self) -> bool {
        self.modules.links().any(|(_, link)| link.is_down)
    }

    /// Starts again what passes frames on, as far as all of its devices are there.
    pub(in crate::front_end) fn restart_links(&mut self, now_ns: u64) {
        if self.has_no_server() {
            return;
        }
        for (index, new) in self.links_down() {
            let is_there = |device: &Option<&str>| {
                let sink = self.sinks.of_device(*device).and_then(|index| self.sinks.get(index));
                sink.is_some_and(|sink| !sink.is_away)
            };
            if !new.devices().iter().all(is_there) {
                continue;
            }
            if let Err(reason) = self.devices.link(index, new) {
                self.module_fails(index, &reason, now_ns);
            } else if let Some(link) = self.modules.get_mut(index).and_then(|of| of.link.as_mut()) {
                link.is_down = false;
            }
        }
    }

    /// Modules whose devices did not come in time go on with others, as if these had been removed,
    /// or are unloaded.
    pub(in crate::front_end) fn end_links_down(&mut self, now_ns: u64) {
        for (index, _) in self.links_down() {
            let goes_on = !self.has_no_server()
                && (self.follow_default(index, now_ns) || self.goes_on_with_fewer(index, now_ns));
            if goes_on {
                continue;
            }
            self.module_fails(index, "the next server does not have what it needs", now_ns);
        }
    }
}
