//! What programs ask about modules: to load, unload and list them.

use std::ffi::CStr;

use pulseaudio::protocol::{
    Command, LookupReply, ModuleInfo, PulseError, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType,
};

use super::module_arguments::Arguments;
use super::module_kinds::Kind;
use super::module_plans::{Plan, PlannedDevice};
use super::modules::{Asker, Module, OwnDevice, State};
use super::{Answer, Answered, Client, FrontEnd, Way};
use crate::output::{Devices, NewLink, NewListening, NewNullDevice};
use crate::wire;

/// Most modules that pass frames on: each is a process.
const MAX_LINKS: usize = 32;
/// Most modules.
const MAX_MODULES: usize = 256;
/// Whatever keeps a module from being there is one error, as in PulseAudio.
const FAILED: PulseError = PulseError::ModInitFailed;

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about modules; `None` if it is none of these.
    pub(super) fn answer_about_modules(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        now_ns: u64,
    ) -> Option<Answered> {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let packet = |bytes| Ok(Answer::Packet(bytes));
        Some(match command {
            Command::LoadModule(asked) => {
                let (name, argument) = (&*asked.name, asked.arguments.as_deref());
                let loaded = self.load_module(Asker { client, tag }, name, argument, now_ns);
                loaded.map_err(|reason| {
                    let title = Module::title(name, argument);
                    self.devices.report(format!("cannot load '{title}': {reason}"));
                    FAILED
                })
            }
            Command::UnloadModule(index) => match self.modules.get(*index) {
                Some(_) => {
                    self.remove_module(*index, now_ns);
                    Ok(Answer::Done)
                }
                None => Err(PulseError::NoEntity),
            },
            Command::GetModuleInfo(index) => {
                let info = self.modules.get(*index).map(|module| self.module_info(*index, module));
                let info = info.ok_or(PulseError::NoEntity);
                info.and_then(|info| packet(wire::reply(tag, &info, version)))
            }
            Command::GetModuleInfoList => {
                let all = self.modules.iter();
                let all: Vec<_> =
                    all.map(|(index, module)| self.module_info(index, module)).collect();
                packet(wire::reply(tag, &all, version))
            }
            _ => return None,
        })
    }

    fn module_info(&self, index: u32, module: &Module) -> ModuleInfo {
        let device = module.device.as_ref();
        let sink = device.and_then(|device| self.sinks.of_device(Some(&device.name)));
        let used = sink.map(|sink| self.streams_of(sink));
        module.info(index, used)
    }

    /// Loads a module.
    ///
    /// # Errors
    /// The reason why it cannot be there.
    fn load_module(
        &mut self,
        asker: Asker,
        name: &CStr,
        argument: Option<&CStr>,
        now_ns: u64,
    ) -> Result<Answer, String> {
        // One that fails takes an index as well, as in PulseAudio.
        let index = self.modules.next_index();
        let kind = Kind::named(name).ok_or("there is no such module")?;
        let text =
            argument.unwrap_or_default().to_str().map_err(|_| "the arguments are no text")?;
        // PulseAudio does not read those of a module that does nothing.
        let text = if kind == Kind::RescueStreams { "" } else { text };
        let arguments = Arguments::read(text, kind.keys())?;
        let way = self.clients.get(&asker.client).map(|known| known.origin.way);
        // MUTATION: modules.files_for_the_network
        let is_refused = kind.reaches_outside() && way.is_none_or(Way::is_network);
        if is_refused {
            return Err("a program over the network asks for it".into());
        }
        if kind.is_once() && self.modules.index_of(kind).is_some() {
            return Err("it is loaded already".into());
        }
        if self.modules.count(|_| true) >= MAX_MODULES {
            return Err(format!("there are {MAX_MODULES} modules, and these are the most"));
        }
        self.refresh(now_ns);
        let Plan { device, link, listening } = self.plan(kind, &arguments)?;
        if let Some(listening) = listening {
            self.listen_for_module(index, listening)?;
        }
        if link.is_some() && self.modules.count(|module| module.link.is_some()) >= MAX_LINKS {
            return Err(format!("{MAX_LINKS} modules pass sound on, and these are the most"));
        }
        let device = device.map(|device| self.add_device_of_module(device)).transpose()?;
        let device_name = device.as_ref().map(|device| device.name.clone());
        let argument = argument.map(Into::into);
        let state = State::Begins;
        let link = link.map(|link| link(device_name.clone().unwrap_or_default()));
        let module = Module { kind, argument, device, link: link.clone(), state };
        self.modules.insert(index, module);
        self.refresh(now_ns);
        let is_there = |name: &String| self.sinks.of_device(Some(name)).is_some();
        if !device_name.as_ref().is_none_or(is_there) {
            self.remove_module(index, now_ns);
            return Err("another program has removed its device".into());
        }
        let Some(link) = link else {
            let answer = self.module_is_there(index, asker).map(Answer::Packet);
            match kind {
                Kind::AlwaysSink => self.keep_a_sink(now_ns),
                // As in PulseAudio, it goes at once: what it was for happens without it.
                Kind::RescueStreams => self.forget_module(index),
                _ => {}
            }
            return answer.ok_or_else(|| "it has gone".into());
        };
        let started = self.devices.link(index, link);
        if let Err(reason) = started {
            self.remove_module(index, now_ns);
            return Err(reason);
        }
        if let Some(module) = self.modules.get_mut(index) {
            module.state = State::Awaited(asker);
        }
        Ok(Answer::Later)
    }

    fn listen_for_module(&mut self, index: u32, listening: NewListening) -> Result<(), String> {
        let has_cookie = listening.takes_cookie && self.admission.cookie.is_some();
        if !has_cookie && !listening.is_open && listening.open_to.is_empty() {
            return Err("nobody could come in: there is no cookie".into());
        }
        self.devices.listen(index, listening)
    }

    pub(super) fn add_device_of_module(
        &mut self,
        device: PlannedDevice,
    ) -> Result<OwnDevice, String> {
        let PlannedDevice { name, rate_hz, shown } = device;
        let name = self.sinks.free_name(&name).to_string_lossy().into_owned();
        let new =
            NewNullDevice { name: name.clone(), channels: shown.map.channels() as u32, rate_hz };
        if !self.devices.add(new) {
            return Err(format!("the server refuses a device '{name}' like that, or one more"));
        }
        Ok(OwnDevice { name, shown })
    }

    /// A module is there: returns the answer to the program that loads it.
    fn module_is_there(&mut self, index: u32, asker: Asker) -> Option<Vec<u8>> {
        self.modules.get_mut(index)?.state = State::There;
        self.notify(Facility::Module, EventType::New, index);
        let version = self.clients.get(&asker.client).map_or(0, Client::version);
        Some(wire::reply(asker.tag, &LookupReply(index), version))
    }

    /// The process of a module passes frames on, or says why it cannot.
    pub fn link_has_begun(&mut self, index: u32, begun: Result<(), String>, now_ns: u64) {
        let state = self.modules.get_mut(index).map(|module| module.state);
        let Some(state) = state else { return };
        match (begun, state) {
            (Ok(()), State::Awaited(asker)) => {
                if let Some(bytes) = self.module_is_there(index, asker) {
                    self.send_if_there(asker.client, bytes);
                }
                self.loopbacks_follow(now_ns);
            }
            (Ok(()), _) => {}
            (Err(reason), _) => self.module_fails(index, &reason, now_ns),
        }
    }

    /// The process of a module has ended: a device has gone, or the server.
    pub fn link_has_ended(&mut self, index: u32, now_ns: u64) {
        let link =
            |front_end: &mut Self| front_end.modules.get_mut(index).map(|it| it.link.clone());
        let before = link(self);
        self.refresh(now_ns);
        if before != link(self) || self.goes_on_with_fewer(index, now_ns) {
            // Another process has taken its place.
            return;
        }
        self.module_fails(index, "a device that it needs has gone", now_ns);
    }

    /// A loopback that names no source, or no sink, follows the default one. It stays where it is
    /// if it cannot go there.
    pub(super) fn loopbacks_follow(&mut self, now_ns: u64) {
        for index in self.modules.all_of(Kind::Loopback) {
            let Some(module) = self.modules.get(index) else { continue };
            let arguments = Arguments::read(&module.argument_text(), Kind::Loopback.keys());
            let planned = arguments.and_then(|arguments| self.plan(Kind::Loopback, &arguments));
            let Ok(Plan { link: Some(link), .. }) = planned else { continue };
            let link = link(String::new());
            if module.link.as_ref() == Some(&link) {
                continue;
            }
            self.link_again(index, link, now_ns);
        }
    }

    /// A combined sink goes on with the sinks that are left; returns whether some are.
    fn goes_on_with_fewer(&mut self, index: u32, now_ns: u64) -> bool {
        let module = self.modules.get(index).filter(|module| module.kind == Kind::CombineSink);
        let link = module.and_then(|module| module.link.clone());
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
    fn link_again(&mut self, index: u32, link: NewLink, now_ns: u64) {
        self.devices.unlink(index);
        let started = self.devices.link(index, link.clone());
        if let Some(module) = self.modules.get_mut(index) {
            module.link = Some(link);
        }
        if let Err(reason) = started {
            self.module_fails(index, &reason, now_ns);
        }
    }

    fn module_fails(&mut self, index: u32, reason: &str, now_ns: u64) {
        let Some(module) = self.modules.get_mut(index) else { return };
        let title = Module::title(module.kind.name(), module.argument.as_deref());
        let what = if module.state == State::There { "unloads" } else { "cannot load" };
        self.devices.report(format!("{what} '{title}': {reason}"));
        self.remove_module(index, now_ns);
    }

    /// The device of a module has gone: the module goes as well, unless it can do without.
    pub(super) fn device_of_module_has_gone(&mut self, index: u32) {
        match self.modules.get_mut(index) {
            Some(module) if module.kind == Kind::AlwaysSink => module.device = None,
            _ => self.forget_module(index),
        }
    }

    /// Removes a module, and with it its device.
    fn remove_module(&mut self, index: u32, now_ns: u64) {
        let Some(module) = self.modules.get_mut(index) else { return };
        let device = module.device.as_ref().map(|device| device.name.clone());
        if let Some(device) = device {
            let before = self.defaults();
            if let Some(sink) = self.sinks.of_device(Some(&device)) {
                self.remove_sinks(&[sink], before, now_ns);
            }
            self.devices.remove(&device);
        }
        self.forget_module(index);
    }

    /// Sends an answer to a program that may have gone meanwhile.
    fn send_if_there(&mut self, client: u32, bytes: Vec<u8>) {
        if self.clients.contains_key(&client) {
            self.send(client, bytes);
        }
    }

    /// A module has gone, or does with its device.
    pub(super) fn forget_module(&mut self, index: u32) {
        let Some(module) = self.modules.remove(index) else { return };
        if module.link.is_some() {
            self.devices.unlink(index);
        }
        if module.kind == Kind::NativeProtocolTcp {
            self.devices.unlisten(index);
            self.disconnect_programs_of(index);
        }
        match module.state {
            State::There => self.notify(Facility::Module, EventType::Removed, index),
            State::Awaited(Asker { client, tag }) => {
                self.send_if_there(client, wire::error(tag, FAILED));
            }
            State::Begins => {}
        }
    }
}
