//! Modules by which machines of a network learn of each other's sinks and sources, through Avahi.

use super::arguments::Arguments;
use super::kinds::Kind;
use super::plans::Plan;
use super::policies::native_protocol_tcp;
use crate::front_end::FrontEnd;
use crate::output::{Devices, NewLink};

/// Milliseconds from when a frame is heard at one end of a tunnel until it is heard at the other.
const LATENCY_MS: std::ops::RangeInclusive<u32> = 20..=400;

impl<D: Devices> FrontEnd<D> {
    /// Sinks and sources are published.
    pub(super) fn zeroconf_publish(&self) -> Result<Plan, String> {
        let port = self.machine.tcp_port.or_else(|| self.port_of_modules());
        let port = port.ok_or(
            "no program of another machine could come in: load module-native-protocol-tcp before",
        )?;
        let link = Box::new(move |_| NewLink::ZeroconfPublisher { port });
        Ok(Plan { device: None, link: Some(link), listening: None })
    }

    /// Returns a port at which a module lets programs in.
    fn port_of_modules(&self) -> Option<u16> {
        let kind = Kind::NativeProtocolTcp;
        let index = self.modules.index_of(kind)?;
        let text = self.modules.get(index)?.argument_text();
        let arguments = Arguments::read(&text, kind.keys()).ok()?;
        let plan = native_protocol_tcp(&arguments).ok()?;
        plan.listening.map(|listening| listening.port)
    }
}

/// Plans tunnels to the devices of other machines.
pub(super) fn zeroconf_discover(arguments: &Arguments) -> Result<Plan, String> {
    let latency_ms = arguments.number("latency_msec", 1..=30_000)?;
    let latency_ms = latency_ms.map(|ms| ms.max(*LATENCY_MS.start()));
    if let Some(ms) = latency_ms.filter(|ms| !LATENCY_MS.contains(ms)) {
        return Err(format!("latency_msec is {ms}, and {} is the most", LATENCY_MS.end()));
    }
    let link = Box::new(move |_| NewLink::ZeroconfDiscoverer { latency_ms });
    Ok(Plan { device: None, link: Some(link), listening: None })
}
