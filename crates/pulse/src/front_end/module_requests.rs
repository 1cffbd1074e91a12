//! What programs ask about modules: to load, unload and list them.

use std::ffi::CStr;

use convert::ChannelMap;
use pulseaudio::protocol::{
    Command, LookupReply, ModuleInfo, PulseError, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType,
};

use super::module_arguments::NullSink;
use super::modules::{Module, NULL_SINK};
use super::sinks::DRIVER;
use super::{Answer, Answered, Client, FrontEnd, properties};
use crate::output::{Devices, NewNullDevice};
use crate::wire;

/// Longest argument, bytes.
const MAX_ARGUMENT_BYTES: usize = 64 << 10;

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
            Command::LoadModule(asked) => self
                .load_module(&asked.name, asked.arguments.as_deref(), now_ns)
                .and_then(|index| packet(wire::reply(tag, &LookupReply(index), version))),
            Command::UnloadModule(index) => self.unload_module(*index, now_ns),
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
        let sink = self.sinks.of_device(Some(&module.device));
        let used = self.inputs.values().filter(|input| Some(input.sink) == sink).count();
        module.info(index, used)
    }

    /// Loads a module; returns its index. Whatever keeps it from being there is one error, as in
    /// PulseAudio.
    fn load_module(
        &mut self,
        name: &CStr,
        argument: Option<&CStr>,
        now_ns: u64,
    ) -> Result<u32, PulseError> {
        let failed = PulseError::ModInitFailed;
        let index = self.modules.next_index();
        if name != NULL_SINK {
            return Err(failed);
        }
        let text = argument.unwrap_or_default();
        if text.to_bytes().len() > MAX_ARGUMENT_BYTES {
            return Err(failed);
        }
        let asked: NullSink = text.to_str().ok().and_then(NullSink::read).ok_or(failed)?;
        let default_map = self.sinks.get(DRIVER).map_or_else(stereo, |sink| Some(sink.map));
        let map = asked.map.or(default_map).ok_or(failed)?;
        self.refresh(now_ns);
        let name = self.sinks.free_name(&asked.name);
        let device = name.to_str().map_err(|_| failed)?.to_owned();
        let new = NewNullDevice {
            name: device.clone(),
            channels: map.channels() as u32,
            rate_hz: asked.rate_hz,
        };
        if !self.devices.add(new) {
            return Err(failed);
        }
        let props = properties::limited(asked.props).map_err(|_| failed)?;
        let module = Module { argument: argument.map(Into::into), device, props, map };
        let device = module.device.clone();
        self.modules.insert(index, module);
        self.refresh(now_ns);
        if self.sinks.of_device(Some(&device)).is_none() {
            // Another program has removed it already.
            self.modules.remove(index);
            return Err(failed);
        }
        self.notify(Facility::Module, EventType::New, index);
        Ok(index)
    }

    /// Unloads a module, and removes its device.
    fn unload_module(&mut self, index: u32, now_ns: u64) -> Answered {
        let device = self.modules.get(index).ok_or(PulseError::NoEntity)?.device.clone();
        let before = self.defaults();
        if let Some(sink) = self.sinks.of_device(Some(&device)) {
            self.remove_sinks(&[sink], before, now_ns);
        }
        self.devices.remove(&device);
        self.forget_module(index);
        Ok(Answer::Done)
    }

    /// A module has gone with its device.
    pub(super) fn forget_module(&mut self, index: u32) {
        if self.modules.remove(index).is_some() {
            self.notify(Facility::Module, EventType::Removed, index);
        }
    }
}

fn stereo() -> Option<ChannelMap> {
    super::format::device_map(2)
}
