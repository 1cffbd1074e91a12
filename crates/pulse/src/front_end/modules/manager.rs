//! What `module-device-manager` is asked to do while it is loaded.

use super::Modules;
use super::arguments::Arguments;
use super::kinds::Kind;

/// What becomes of streams for which nobody has chosen a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::front_end) struct Manager {
    /// They get the one that comes first for their role.
    pub routes: bool,
    /// Also those that play when a device comes.
    pub on_hotplug: bool,
    /// Also those whose device goes.
    pub on_rescue: bool,
}

impl Manager {
    /// Reads what a module of this kind does; `None`: it is another one.
    ///
    /// # Errors
    /// A reason: its arguments make no sense.
    pub(super) fn of(kind: Kind, arguments: &Arguments) -> Result<Option<Self>, String> {
        if kind != Kind::DeviceManager {
            return Ok(None);
        }
        Ok(Some(Self {
            routes: arguments.boolean("do_routing")?.unwrap_or(false),
            on_hotplug: arguments.boolean("on_hotplug")?.unwrap_or(true),
            on_rescue: arguments.boolean("on_rescue")?.unwrap_or(true),
        }))
    }
}

impl Modules {
    /// Returns what `module-device-manager` does, with its index, if it is loaded.
    pub fn manager(&self) -> Option<(u32, Manager)> {
        self.iter().find_map(|(index, module)| Some((index, module.manager?)))
    }

    /// Has it route streams, or not any more.
    pub fn set_routes(&mut self, routes: bool) {
        if let Some(manager) = self.all.values_mut().find_map(|module| module.manager.as_mut()) {
            manager.routes = routes;
        }
    }

    /// Returns whether it routes streams.
    pub fn routes(&self) -> bool {
        self.manager().is_some_and(|(_, manager)| manager.routes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_say_when_streams_are_routed() {
        let read = |text| {
            let arguments = Arguments::read(text, Kind::DeviceManager.keys())?;
            Manager::of(Kind::DeviceManager, &arguments)
        };
        let plain = Manager { routes: false, on_hotplug: true, on_rescue: true };
        assert_eq!(read(""), Ok(Some(plain)));
        let other = Manager { routes: true, on_hotplug: false, on_rescue: false };
        assert_eq!(read("do_routing=1 on_hotplug=no on_rescue=off"), Ok(Some(other)));
        let refused = read("do_routing=perhaps").expect_err("neither");
        assert!(refused.contains("takes yes or no"), "{refused}");
        assert!(read("routing=1").is_err());
    }
}
