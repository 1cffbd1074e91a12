//! What programs have loaded: *modules*.

mod arguments;
mod echo;
mod kinds;
mod ladspa;
mod links;
mod manager;
mod plans;
mod policies;
mod requests;
mod roles;
mod rtp;
mod ruled;
mod stream_requests;
mod streams;
mod tunnels;
mod x11;
mod zeroconf;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use policy::RoleModule;
use pulseaudio::protocol::{ModuleInfo, Props};

use super::properties;
use super::sinks::{Described, Shown};
use crate::output::NewLink;
use kinds::Kind;
use manager::Manager;
use ruled::{NextTry, Ruled};
use streams::{ModuleStream, Side};

/// What loads a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asker {
    /// A program, which waits for an answer to its request.
    Program { client: u32, tag: u32 },
    /// A line of the rules.
    Rules,
}

/// One module: a device of the server, or what passes frames on between devices, or both. They go
/// with it.
#[derive(Debug)]
pub(super) struct Module {
    pub kind: Kind,
    /// As it was given.
    pub argument: Option<CString>,
    /// Its device, if it has one.
    pub device: Option<OwnDevice>,
    /// Another one, if it has two.
    pub second: Option<OwnDevice>,
    /// What passes frames on for it, if something does.
    pub link: Option<OwnLink>,
    /// The streams of that which programs see.
    pub streams: Vec<ModuleStream>,
    /// What it has streams do to each other, by their roles.
    pub roles: Vec<RoleModule>,
    /// What it has streams do where nobody has chosen a device for them, if it is about that.
    pub manager: Option<Manager>,
    pub state: State,
}

/// Whether a module is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Not yet: the request for it is being answered.
    Begins,
    /// Not yet: its process has begun, and this waits for it.
    Awaited(Asker),
    There,
}

/// What passes frames on for a module.
#[derive(Debug)]
pub(super) struct OwnLink {
    pub new: NewLink,
    /// Its server has gone, and it is to be started again.
    pub is_down: bool,
}

/// The device of a module.
#[derive(Debug)]
pub(super) struct OwnDevice {
    /// The server's name of it.
    pub name: String,
    /// What programs see of it.
    pub shown: Shown,
}

impl Module {
    /// One of its devices has gone.
    pub fn forget_device(&mut self, name: &str) {
        for own in [&mut self.device, &mut self.second] {
            own.take_if(|own| own.name == name);
        }
    }

    /// Takes its devices, which are removed.
    pub fn take_devices(&mut self) -> Vec<OwnDevice> {
        [self.device.take(), self.second.take()].into_iter().flatten().collect()
    }

    /// Returns one of its streams.
    pub fn stream(&self, (side, index): (Side, u32)) -> Option<&ModuleStream> {
        let is_it = |stream: &&ModuleStream| stream.index == index && stream.side() == side;
        self.streams.iter().find(is_it)
    }

    /// The same, to be changed.
    pub fn stream_mut(&mut self, (side, index): (Side, u32)) -> Option<&mut ModuleStream> {
        let is_it = |stream: &&mut ModuleStream| stream.index == index && stream.side() == side;
        self.streams.iter_mut().find(is_it)
    }

    /// Returns its devices.
    pub fn devices(&self) -> impl Iterator<Item = &OwnDevice> {
        self.device.iter().chain(&self.second)
    }

    /// Returns what programs see of it; `used`: by how many streams.
    pub fn info(&self, index: u32, used: Option<usize>) -> ModuleInfo {
        let mut props = Props::new();
        properties::set(&mut props, c"module.description", self.kind.description());
        properties::set(&mut props, c"module.version", env!("CARGO_PKG_VERSION"));
        ModuleInfo {
            index,
            name: self.kind.name().into(),
            argument: self.argument.clone(),
            n_used: used.and_then(|used| u32::try_from(used).ok()),
            props,
            ..ModuleInfo::default()
        }
    }

    /// Returns its arguments.
    pub fn argument_text(&self) -> String {
        self.argument.as_deref().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns its name and arguments, for users.
    pub fn title(kind: &CStr, argument: Option<&CStr>) -> String {
        let argument = argument.unwrap_or_default().to_string_lossy();
        format!("{} {argument}", kind.to_string_lossy()).trim_end().to_owned()
    }
}

/// All modules, by index.
#[derive(Debug, Default)]
pub(super) struct Modules {
    all: BTreeMap<u32, Module>,
    next: u32,
    /// Those that lines of the rules load.
    ruled: Vec<Ruled>,
    /// `None`: no line is to be tried again.
    next_try: Option<NextTry>,
    /// How often devices have come that belong to no line of the rules.
    devices_came: u64,
}

impl Modules {
    /// Returns an index that no module has had.
    pub fn next_index(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next.wrapping_sub(1)
    }

    pub fn insert(&mut self, index: u32, module: Module) {
        self.all.insert(index, module);
    }

    pub fn remove(&mut self, index: u32) -> Option<Module> {
        self.all.remove(&index)
    }

    /// Returns a module, whether it is there already or not.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Module> {
        self.all.get_mut(&index)
    }

    /// Returns a module that is there.
    pub fn get(&self, index: u32) -> Option<&Module> {
        self.all.get(&index).filter(|module| module.state == State::There)
    }

    /// Returns those that are there.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Module)> {
        let loaded = self.all.iter().filter(|(_, module)| module.state == State::There);
        loaded.map(|(index, module)| (*index, module))
    }

    /// Returns the indices of those of this kind that are there.
    pub fn all_of(&self, kind: Kind) -> Vec<u32> {
        self.iter().filter(|(_, module)| module.kind == kind).map(|(index, _)| index).collect()
    }

    /// Returns the devices of all, whether they are there already or not.
    pub fn devices(&self) -> impl Iterator<Item = &OwnDevice> {
        self.all.values().flat_map(Module::devices)
    }

    /// Returns what passes frames on, by the index of its module.
    pub fn links(&self) -> impl Iterator<Item = (u32, &OwnLink)> {
        self.all.iter().filter_map(|(index, module)| Some((*index, module.link.as_ref()?)))
    }

    /// The same, to be changed.
    pub fn links_mut(&mut self) -> impl Iterator<Item = (u32, &mut OwnLink)> {
        self.all.iter_mut().filter_map(|(index, module)| Some((*index, module.link.as_mut()?)))
    }

    /// Returns the streams of those that are there, with the indices of their modules.
    pub fn streams(&self, side: Side) -> impl Iterator<Item = (u32, &ModuleStream)> {
        let all = self
            .iter()
            .flat_map(|(index, module)| module.streams.iter().map(move |stream| (index, stream)));
        all.filter(move |(_, stream)| stream.side() == side)
    }

    /// Returns the module that has a stream.
    pub fn of_stream(&self, side: Side, index: u32) -> Option<u32> {
        self.streams(side).find(|(_, stream)| stream.index == index).map(|(module, _)| module)
    }

    /// Returns the index of one of this kind that is there.
    pub fn index_of(&self, kind: Kind) -> Option<u32> {
        self.iter().find(|(_, module)| module.kind == kind).map(|(index, _)| index)
    }

    /// Returns how many there are, with those that are not there yet.
    pub fn count(&self, is_counted: impl Fn(&Module) -> bool) -> usize {
        self.all.values().filter(|module| is_counted(module)).count()
    }

    /// Returns the bytes of the arguments of all, whether they are there already or not.
    pub fn arguments_bytes(&self) -> usize {
        let arguments = self.all.values().filter_map(|module| module.argument.as_ref());
        arguments.map(|argument| argument.as_bytes().len()).sum()
    }

    /// Returns what the module says about a device that it has made.
    pub fn description_of(&self, device: &str) -> Option<Described> {
        self.all.iter().find_map(|(index, module)| {
            let own = module.devices().find(|own| own.name == device)?;
            Some(Described { module: *index, shown: own.shown.clone() })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_module_has_its_own_name() {
        for kind in [
            Kind::NullSink,
            Kind::NullSource,
            Kind::Loopback,
            Kind::CombineSink,
            Kind::RemapSink,
            Kind::RemapSource,
            Kind::PipeSink,
            Kind::PipeSource,
            Kind::NativeProtocolTcp,
            Kind::AlwaysSink,
            Kind::SwitchOnConnect,
            Kind::RescueStreams,
            Kind::SuspendOnIdle,
            Kind::StreamRestore,
            Kind::DeviceRestore,
            Kind::DeviceManager,
            Kind::RoleCork,
            Kind::RoleDucking,
            Kind::TunnelSink,
            Kind::TunnelSource,
            Kind::SimpleProtocolTcp,
            Kind::LadspaSink,
            Kind::EchoCancel,
            Kind::RtpSend,
            Kind::RtpReceive,
            Kind::ZeroconfPublish,
            Kind::ZeroconfDiscover,
            Kind::X11Bell,
        ] {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named(c"module-other"), None);
    }
}
