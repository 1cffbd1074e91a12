//! Modules that say what happens of itself, or who is let in: they pass no sound on.

use std::net::IpAddr;

use super::OwnDevice;
use super::arguments::Arguments;
use super::kinds::Kind;
use super::plans::{Plan, PlannedDevice, described};
use crate::front_end::sinks::{DRIVER, Face, Shown};
use crate::front_end::sources::Source;
use crate::front_end::{Effect, FrontEnd, Way};
use crate::output::{Devices, Network, NewListening};

/// PulseAudio's port.
const PORT: u32 = 4713;
/// The sink that there is if there is no other.
const NO_SINK_NAME: &str = "auto_null";

impl Plan {
    /// Nothing: what the module is about happens of itself.
    pub(super) const BUILT_IN: Self = Self { device: None, link: None, listening: None };
}

/// Devices sleep as soon as nothing uses them, whatever the timeout is.
pub(super) fn suspend_on_idle(arguments: &Arguments) -> Result<Plan, String> {
    arguments.number("timeout", 0..=u32::MAX)?;
    Ok(Plan::BUILT_IN)
}

/// What streams and devices had is remembered, and all of it is restored.
pub(super) fn remembering(kind: Kind, arguments: &Arguments) -> Result<Plan, String> {
    // The other keys are those of earlier versions, which PulseAudio does not read either.
    for key in kind.keys().iter().filter(|key| key.starts_with("restore_")) {
        if arguments.boolean(key)? == Some(false) {
            return Err(format!("{key} is always so here"));
        }
    }
    if arguments.text("fallback_table").is_some() {
        return Err("fallback_table is not known here: write rules into desktop.rules".into());
    }
    Ok(Plan::BUILT_IN)
}

/// What is new becomes the default.
pub(super) fn switch_on_connect(arguments: &Arguments) -> Result<Plan, String> {
    arguments.boolean("only_from_unavailable")?;
    arguments.boolean("ignore_virtual")?;
    if arguments.text("blacklist").is_some() {
        return Err("blacklist is not known here".into());
    }
    Ok(Plan::BUILT_IN)
}

/// There is a sink while there is no other.
pub(super) fn always_sink(arguments: &Arguments) -> Result<Plan, String> {
    arguments.name("sink_name")?;
    Ok(Plan::BUILT_IN)
}

/// Programs over TCP are let in.
pub(super) fn native_protocol_tcp(arguments: &Arguments) -> Result<Plan, String> {
    let address = arguments.name("listen")?.map(|text| {
        text.parse::<IpAddr>().map_err(|_| format!("listen is '{text}', and takes an address"))
    });
    let port = arguments.number("port", 1..=u16::MAX.into())?.unwrap_or(PORT);
    if arguments.text("auth-cookie").is_some() {
        return Err("auth-cookie: there is one cookie, that of consort pulse --cookie".into());
    }
    let open_to = arguments.text("auth-ip-acl").unwrap_or_default();
    let open_to = open_to.split(';').filter(|text| !text.is_empty()).map(|text| {
        network(text).ok_or_else(|| format!("auth-ip-acl has '{text}', and takes addresses"))
    });
    let listening = NewListening {
        address: address.transpose()?,
        port: u16::try_from(port).map_err(|_| "port is too high")?,
        is_open: arguments.boolean("auth-anonymous")?.unwrap_or(false),
        open_to: open_to.collect::<Result<_, _>>()?,
        takes_cookie: arguments.boolean("auth-cookie-enabled")?.unwrap_or(true),
    };
    Ok(Plan { listening: Some(listening), ..Plan::BUILT_IN })
}

/// Reads an address, or ADDRESS/BITS.
fn network(text: &str) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(most);
    (bits <= most).then_some(Network { address, bits })
}

impl<D: Devices> FrontEnd<D> {
    /// Does what modules say that happens when devices have come or gone: these are new.
    pub(in crate::front_end) fn obey_policies(&mut self, new: &[u32], now_ns: u64) {
        self.keep_a_sink(now_ns);
        for index in new {
            self.switch_to(*index, now_ns);
        }
    }

    /// With `module-always-sink`, there is a sink, which is silent, while there is no other.
    pub(super) fn keep_a_sink(&mut self, now_ns: u64) {
        let Some(index) = self.modules.index_of(Kind::AlwaysSink) else { return };
        let Some(module) = self.modules.get_mut(index) else { return };
        let own = module.device.as_ref().map(|own| own.name.clone());
        let has_other = self.has_sink_besides(own.as_deref(), &[]);
        match own {
            None if !has_other => self.add_silent_sink(index, now_ns),
            Some(own) if has_other => {
                let before = self.defaults();
                self.set_device_of_module(index, None);
                if let Some(sink) = self.sinks.of_device(Some(&own)) {
                    self.remove_sinks(&[sink], before, now_ns);
                }
                self.devices.remove(&own);
            }
            _ => {}
        }
    }

    /// With `module-always-sink`, the silent sink is there before the last others go, so that their
    /// streams go on at it.
    pub(in crate::front_end) fn keep_a_sink_without(&mut self, leaving: &[u32], now_ns: u64) {
        let Some(index) = self.modules.index_of(Kind::AlwaysSink) else { return };
        let of_module = |sink: &u32| {
            let described = self.sinks.get(*sink).and_then(|sink| sink.described.as_ref());
            described.is_some_and(|described| described.module == index)
        };
        let has_own = self.modules.get(index).is_none_or(|module| module.device.is_some());
        // Its own sink goes with the module, or because there is another one.
        if has_own || leaving.iter().any(of_module) || self.has_sink_besides(None, leaving) {
            return;
        }
        self.add_silent_sink(index, now_ns);
    }

    /// Returns whether there is a sink that is neither of this device nor about to leave: by what
    /// is known, or because its module has let go of its device.
    fn has_sink_besides(&self, own: Option<&str>, leaving: &[u32]) -> bool {
        let staying = self.sinks.indices().into_iter().filter(|index| !leaving.contains(index));
        let mut sinks = staying.filter_map(|index| self.sinks.get(index));
        sinks.any(|sink| {
            let Some(device) = sink.device.as_deref() else { return true };
            let is_kept = sink.described.is_none() || self.modules.description_of(device).is_some();
            Some(device) != own && is_kept
        })
    }

    fn add_silent_sink(&mut self, index: u32, now_ns: u64) {
        let Some(module) = self.modules.get(index) else { return };
        let read = Arguments::read(&module.argument_text(), Kind::AlwaysSink.keys()).ok();
        let name = read.and_then(|arguments| arguments.text("sink_name"));
        let name = name.unwrap_or_else(|| NO_SINK_NAME.into());
        let props = described("Dummy Output", "abstract");
        let Ok(map) = self.default_map() else { return };
        let shown = Shown { props, map, face: Face::Sink, later_us: 0 };
        let device = PlannedDevice { name, rate_hz: None, shown };
        // Without a server there is none.
        if let Ok(device) = self.add_device_of_module(device) {
            self.set_device_of_module(index, Some(device));
            self.refresh(now_ns);
        }
    }

    fn set_device_of_module(&mut self, index: u32, device: Option<OwnDevice>) {
        if let Some(module) = self.modules.get_mut(index) {
            module.device = device;
        }
    }

    /// With `module-switch-on-connect`, a device that is new becomes the default: one with
    /// hardware, or any.
    fn switch_to(&mut self, index: u32, now_ns: u64) {
        let module = self.modules.index_of(Kind::SwitchOnConnect);
        let Some(module) = module.and_then(|index| self.modules.get(index)) else { return };
        let arguments = Arguments::read(&module.argument_text(), Kind::SwitchOnConnect.keys());
        let is_set = |key: &str| {
            arguments.as_ref().ok().and_then(|arguments| arguments.boolean(key).ok().flatten())
        };
        // No default has a port that says that it is not available.
        let never = is_set("only_from_unavailable").unwrap_or(false);
        let ignores = index != DRIVER && is_set("ignore_virtual").unwrap_or(true);
        if never || ignores {
            return;
        }
        match self.sinks.get(index).map(crate::front_end::sinks::Sink::face) {
            Some(Face::Sink) => drop(self.set_default_sink(index, now_ns)),
            Some(Face::Source) => drop(self.set_default_source(Source::Monitor(index), now_ns)),
            Some(Face::Capture) => drop(self.set_default_source(Source::Capture(index), now_ns)),
            None => {}
        }
    }

    /// Disconnects the programs that came in by a module.
    pub(super) fn disconnect_programs_of(&mut self, module: u32) {
        let came = |way: Way| matches!(way, Way::Module { module: by, .. } if by == module);
        let programs = self.clients.iter().filter(|(_, known)| came(known.origin.way));
        let programs: Vec<u32> = programs.map(|(client, _)| *client).collect();
        self.effects.extend(programs.into_iter().map(|client| Effect::Close { client }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(text: &str) -> Result<NewListening, String> {
        let arguments = Arguments::read(text, Kind::NativeProtocolTcp.keys())?;
        native_protocol_tcp(&arguments).map(|plan| plan.listening.expect("it listens"))
    }

    #[test]
    fn arguments_say_where_programs_come_in_and_what_they_need() {
        let plain = listening("").expect("plain");
        assert_eq!((plain.address, plain.port), (None, 4713));
        assert!(!plain.is_open && plain.takes_cookie && plain.open_to.is_empty());
        let all = "listen=::1 port=99 auth-anonymous=1 auth-cookie-enabled=0 \
                   auth-ip-acl=127.0.0.1;10.0.0.0/8";
        let all = listening(all).expect("some");
        assert_eq!((all.address, all.port), ("::1".parse().ok(), 99));
        assert!(all.is_open && !all.takes_cookie);
        assert_eq!(all.open_to.len(), 2);
        for (text, reason) in [
            ("port=0", "port is '0'"),
            ("port=65536", "port is '65536'"),
            ("listen=localhost", "takes an address"),
            ("auth-cookie=x", "there is one cookie"),
            ("auth-ip-acl=10.0.0.0/33", "auth-ip-acl has '10.0.0.0/33'"),
            ("auth-ip-acl=here", "auth-ip-acl has 'here'"),
            ("auth-anonymous=perhaps", "takes yes or no"),
        ] {
            let refused = listening(text).expect_err(text);
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        for (text, address, is_in) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "::1", true),
        ] {
            let network = network(text).expect("a network");
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(network.has(address), is_in, "{address} in {text}");
        }
    }
}
