//! What programs ask about modules: to load, unload and list them.

use std::ffi::CStr;

use pulseaudio::protocol::{
    Command, LookupReply, ModuleInfo, PulseError, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType,
};

use super::arguments::Arguments;
use super::kinds::Kind;
use super::manager::Manager;
use super::plans::{Plan, PlannedDevice};
use super::{Asker, Module, OwnDevice, OwnLink, State};
use crate::front_end::{Answer, Answered, Client, FrontEnd};
use crate::output::{Devices, NewListening, NewNullDevice, Refusal};
use crate::wire;

/// Most modules that pass frames on: each is a process.
const MAX_LINKS: usize = 32;
/// Most modules.
const MAX_MODULES: usize = 256;
/// Most bytes of the arguments of all: a list of all is one packet.
const MAX_ARGUMENTS_BYTES: usize = 1 << 20;
/// Whatever keeps a module from being there is one error, as in PulseAudio.
const FAILED: PulseError = PulseError::ModInitFailed;

/// Why a module is not loaded.
pub(super) enum Failure {
    /// A server is missing: perhaps later.
    NotNow,
    Because(String),
}

impl<T: Into<String>> From<T> for Failure {
    fn from(reason: T) -> Self {
        Self::Because(reason.into())
    }
}

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about modules; `None` if it is none of these.
    pub(in crate::front_end) fn answer_about_modules(
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
                // One that fails takes an index as well, as in PulseAudio.
                let index = self.modules.next_index();
                let asker = Asker::Program { client, tag };
                let loaded = self.load_module(index, asker, name, argument, now_ns);
                loaded.map_err(|failure| match failure {
                    Failure::NotNow => PulseError::Busy,
                    Failure::Because(reason) => {
                        let title = Module::title(name, argument);
                        self.devices.report(format!("cannot load '{title}': {reason}"));
                        FAILED
                    }
                })
            }
            Command::UnloadModule(index) => match self.modules.get(*index) {
                Some(_) => {
                    self.modules.leave_unloaded(*index);
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
        let sinks = module.devices().filter_map(|own| self.sinks.of_device(Some(&own.name)));
        let used = sinks.map(|sink| self.streams_of(sink)).reduce(|one, other| one + other);
        module.info(index, used)
    }

    /// Loads a module, as the one of this index.
    ///
    /// # Errors
    /// Why it cannot be there, or not yet.
    pub(super) fn load_module(
        &mut self,
        index: u32,
        asker: Asker,
        name: &CStr,
        argument: Option<&CStr>,
        now_ns: u64,
    ) -> Result<Answer, Failure> {
        let kind = Kind::named(name).ok_or("there is no such module")?;
        let text =
            argument.unwrap_or_default().to_str().map_err(|_| "the arguments are not text")?;
        // PulseAudio does not read those of a module that does nothing.
        let text = if kind == Kind::RescueStreams { "" } else { text };
        let arguments = Arguments::read(text, kind.keys())?;
        let is_network = match asker {
            Asker::Program { client, .. } => {
                self.clients.get(&client).is_none_or(|known| known.origin.way.is_network())
            }
            Asker::Rules => false,
        };
        // MUTATION: modules.files_for_the_network
        let is_refused = kind.reaches_outside() && is_network;
        if is_refused {
            return Err("a program over the network asks for it".into());
        }
        if kind.is_once() && self.modules.index_of(kind).is_some() {
            return Err("it is loaded already".into());
        }
        // MUTATION: modules.without_limit
        if self.modules.count(|_| true) >= MAX_MODULES {
            return Err(format!(
                "{MAX_MODULES} modules are loaded already, and more are not allowed"
            )
            .into());
        }
        // MUTATION: modules.arguments_without_limit
        if self.modules.arguments_bytes() + text.len() > MAX_ARGUMENTS_BYTES {
            return Err("the arguments of all modules would be too long".into());
        }
        self.refresh(now_ns);
        let Plan { device, link, listening } = self.plan(kind, &arguments)?;
        let roles = self.modules.new_roles(index, kind, &arguments)?;
        let manager = Manager::of(kind, &arguments)?;
        if let Some(listening) = listening {
            self.listen_for_module(index, listening)?;
        }
        if link.is_some() && self.modules.links().count() >= MAX_LINKS {
            return Err(format!(
                "{MAX_LINKS} modules pass sound on already, and more are not allowed"
            )
            .into());
        }
        if link.is_some() && self.has_no_server() {
            return Err(Failure::NotNow);
        }
        let second = self.second_device(kind, &arguments)?;
        let second = second.map(|device| self.add_device_of_module(device)).transpose()?;
        let device = match device.map(|device| self.add_device_of_module(device)).transpose() {
            Ok(device) => device,
            Err(failure) => {
                second.iter().for_each(|own| self.devices.remove(&own.name));
                self.refresh(now_ns);
                return Err(failure);
            }
        };
        let device_name = device.as_ref().map(|device| device.name.clone());
        let link = link.map(|link| link(device_name.clone().unwrap_or_default()));
        let own_link = link.clone().map(|new| OwnLink { new, is_down: false });
        let (argument, state) = (argument.map(Into::into), State::Begins);
        let streams = Vec::new();
        let module = Module {
            kind,
            argument,
            device,
            second,
            link: own_link,
            streams,
            roles,
            manager,
            state,
        };
        self.modules.insert(index, module);
        self.refresh(now_ns);
        let is_there = |own: &OwnDevice| self.sinks.of_device(Some(&own.name)).is_some();
        if !self.modules.get_mut(index).is_some_and(|module| module.devices().all(is_there)) {
            self.remove_module(index, now_ns);
            return Err("another program has removed its device".into());
        }
        let Some(link) = link else {
            let answer = self.module_is_there(index, asker);
            match kind {
                Kind::AlwaysSink => self.keep_a_sink(now_ns),
                Kind::DeviceManager => self.begin_to_manage(now_ns),
                // As in PulseAudio, it goes at once: what it was for happens without it.
                Kind::RescueStreams => self.forget_module(index),
                _ => {}
            }
            return answer.ok_or_else(|| "it has gone".into());
        };
        if let Err(reason) = self.devices.link(index, link) {
            self.remove_module(index, now_ns);
            return Err(reason.into());
        }
        if let Some(module) = self.modules.get_mut(index) {
            module.state = State::Awaited(asker);
        }
        Ok(Answer::Later)
    }

    fn listen_for_module(&mut self, index: u32, listening: NewListening) -> Result<(), String> {
        let has_cookie = listening.takes_cookie && self.admission.cookie.is_some();
        if !has_cookie && !listening.is_open && listening.open_to.is_empty() {
            return Err("no program could connect: there is no cookie".into());
        }
        self.devices.listen(index, listening)
    }

    pub(super) fn add_device_of_module(
        &mut self,
        device: PlannedDevice,
    ) -> Result<OwnDevice, Failure> {
        let PlannedDevice { name, rate_hz, shown } = device;
        let name = self.sinks.free_name(&name).to_string_lossy().into_owned();
        let new =
            NewNullDevice { name: name.clone(), channels: shown.map.channels() as u32, rate_hz };
        match self.devices.add(new) {
            Ok(()) => Ok(OwnDevice { name, shown }),
            Err(Refusal::NotNow) => Err(Failure::NotNow),
            Err(Refusal::Never) => {
                Err(format!("the server refuses a device '{name}' like that, or one more").into())
            }
        }
    }

    /// A module is there: returns the answer to what loads it; `None`: there is none of this index.
    pub(super) fn module_is_there(&mut self, index: u32, asker: Asker) -> Option<Answer> {
        self.modules.get_mut(index)?.state = State::There;
        self.modules.line_is_obeyed(index);
        // It may be about roles.
        self.desktop.is_stale = true;
        self.notify(Facility::Module, EventType::New, index);
        let Asker::Program { client, tag } = asker else { return Some(Answer::Done) };
        let version = self.clients.get(&client).map_or(0, Client::version);
        Some(Answer::Packet(wire::reply(tag, &LookupReply(index), version)))
    }

    /// A device of a module has gone: the module goes as well, with another one that it has, unless
    /// it can do without.
    pub(in crate::front_end) fn device_of_module_has_gone(
        &mut self,
        index: u32,
        device: &str,
        now_ns: u64,
    ) {
        let Some(module) = self.modules.get_mut(index) else { return };
        module.forget_device(device);
        if module.kind != Kind::AlwaysSink {
            self.remove_module(index, now_ns);
        }
    }

    /// Removes a module, and with it its device.
    pub(super) fn remove_module(&mut self, index: u32, now_ns: u64) {
        let Some(module) = self.modules.get_mut(index) else { return };
        for OwnDevice { name: device, .. } in module.take_devices() {
            let before = self.defaults();
            if let Some(sink) = self.sinks.of_device(Some(&device)) {
                self.remove_sinks(&[sink], before, now_ns);
            }
            self.devices.remove(&device);
        }
        self.forget_module(index);
    }

    /// Sends an answer to a program that may have gone meanwhile.
    pub(super) fn send_if_there(&mut self, client: u32, bytes: Vec<u8>) {
        if self.clients.contains_key(&client) {
            self.send(client, bytes);
        }
    }

    /// A module has gone, or does with its device.
    pub(super) fn forget_module(&mut self, index: u32) {
        let Some(module) = self.modules.remove(index) else { return };
        self.desktop.is_stale = true;
        self.module_streams_end(&module.streams);
        if module.manager.is_some() {
            self.end_managing();
        }
        if module.link.is_some() {
            self.devices.unlink(index);
        }
        if module.kind == Kind::NativeProtocolTcp {
            self.devices.unlisten(index);
            self.disconnect_programs_of(index);
        }
        match module.state {
            State::There => self.notify(Facility::Module, EventType::Removed, index),
            State::Awaited(Asker::Program { client, tag }) => {
                self.send_if_there(client, wire::error(tag, FAILED));
            }
            State::Awaited(Asker::Rules) | State::Begins => {}
        }
    }
}
