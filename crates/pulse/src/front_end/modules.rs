//! What programs have loaded: *modules*, each a null sink.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use convert::ChannelMap;
use pulseaudio::protocol::{ModuleInfo, Props};

use super::properties;
use super::sinks::Described;

/// The only kind of module.
pub(super) const NULL_SINK: &CStr = c"module-null-sink";

/// One module: a device of the server, which goes with it.
#[derive(Debug)]
pub(super) struct Module {
    /// As it was given.
    pub argument: Option<CString>,
    /// The server's name of its device.
    pub device: String,
    /// What its sink shows.
    pub props: Props,
    pub map: ChannelMap,
}

impl Module {
    /// Returns what programs see of it; `used`: by how many streams.
    pub fn info(&self, index: u32, used: usize) -> ModuleInfo {
        let mut props = Props::new();
        properties::set(&mut props, c"module.description", "A device without hardware");
        properties::set(&mut props, c"module.version", env!("CARGO_PKG_VERSION"));
        ModuleInfo {
            index,
            name: NULL_SINK.into(),
            argument: self.argument.clone(),
            n_used: u32::try_from(used).ok(),
            props,
            ..ModuleInfo::default()
        }
    }
}

/// All modules, by index. The server bounds how many devices there are, and so these.
#[derive(Debug, Default)]
pub(super) struct Modules {
    all: BTreeMap<u32, Module>,
    next: u32,
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

    pub fn get(&self, index: u32) -> Option<&Module> {
        self.all.get(&index)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Module)> {
        self.all.iter().map(|(index, module)| (*index, module))
    }

    /// Returns what the module says about a device that has made it.
    pub fn description_of(&self, device: &str) -> Option<Described> {
        let (module, found) = self.iter().find(|(_, module)| module.device == device)?;
        Some(Described { module, props: found.props.clone(), map: found.map })
    }
}
