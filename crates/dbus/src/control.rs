//! `org.jackaudio.JackControl`: the server as a whole.

use std::sync::Arc;

use client::{PlugIn, Requester};
use zbus::interface;
use zbus::object_server::SignalEmitter;

// The macro recognizes a fallible method by this name of its return type.
use crate::failure::{Answer as Result, Failure};
use crate::service::{Service, ServiceEvent};

/// The interface.
pub(crate) struct JackControl(pub(crate) Arc<Service>);

#[interface(name = "org.jackaudio.JackControl")]
impl JackControl {
    fn is_started(&self) -> bool {
        self.0.is_started()
    }

    /// Returns whether the service was started by hand instead of by the bus. jackdbus's tools only
    /// show it.
    fn is_manually_activated(&self) -> bool {
        std::env::var_os("DBUS_STARTER_ADDRESS").is_none()
    }

    fn start_server(&self) -> Result<()> {
        self.0.start()
    }

    fn stop_server(&self) -> Result<()> {
        self.0.stop()
    }

    fn exit(&self) {
        self.0.report(ServiceEvent::Exit);
    }

    /// Switches the running server to the driver and the parameters that are set. Clients stay.
    fn switch_master(&self) -> Result<()> {
        self.0.with_server(|server, state| {
            let switch = self.0.jackd().driver(&state.parameters.arguments());
            let switch = switch.map_err(|error| Failure::InvalidArgs(error.to_string()))?;
            Ok(server.switch_driver(switch)?)
        })
    }

    /// Returns the DSP load, percent.
    fn get_load(&self) -> Result<f64> {
        self.0.with_server(|server, _| Ok(f64::from(server.engine().load_ppm()) / 10_000.0))
    }

    fn get_xruns(&self) -> Result<u32> {
        self.0.with_server(|server, state| {
            Ok(server.engine().xruns().saturating_sub(state.forgotten_xruns))
        })
    }

    fn reset_xruns(&self) -> Result<()> {
        self.0.with_server(|server, state| {
            state.forgotten_xruns = server.engine().xruns();
            Ok(())
        })
    }

    fn get_sample_rate(&self) -> Result<u32> {
        self.0
            .with_server(|server, _| Ok(server.engine().info().unwrap_or_default().sample_rate_hz))
    }

    /// Returns the length of one cycle, ms.
    fn get_latency(&self) -> Result<f64> {
        self.0.with_server(|server, _| {
            let info = server.engine().info().unwrap_or_default();
            Ok(f64::from(info.quantum) * 1000.0 / f64::from(info.sample_rate_hz.max(1)))
        })
    }

    fn get_buffer_size(&self) -> Result<u32> {
        self.0.with_server(|server, _| Ok(server.engine().info().unwrap_or_default().quantum))
    }

    fn set_buffer_size(&self, frames: u32) -> Result<()> {
        self.0.with_server(|server, _| Ok(server.set_quantum(frames)?))
    }

    fn is_realtime(&self) -> Result<bool> {
        self.0.with_server(|server, _| Ok(server.engine().flags().realtime))
    }

    fn load_internal(&self, internal: &str) -> Result<()> {
        let plug_in = PlugIn {
            name: internal.to_owned(),
            exact: false,
            object: internal.to_owned(),
            parameters: String::new(),
        };
        self.0.with_server(|server, _| Ok(server.load_internal(plug_in).map(drop)?))
    }

    fn unload_internal(&self, internal: &str) -> Result<()> {
        self.0.with_server(|server, _| {
            let found = server.find_internal(internal)?;
            Ok(server.unload_internal(found.handle)?)
        })
    }

    /// Adds a device to the running server, or to the next one when it starts.
    fn add_slave_driver(&self, driver: &str) -> Result<()> {
        self.0.add_slave(driver)
    }

    fn remove_slave_driver(&self, driver: &str) -> Result<()> {
        self.0.remove_slave(driver)
    }

    #[zbus(signal)]
    pub(crate) async fn server_started(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn server_stopped(emitter: &SignalEmitter<'_>) -> zbus::Result<()>;
}

/// `org.jackaudio.JackTransport`, which is empty in jackdbus as well.
pub(crate) struct JackTransport;

#[interface(name = "org.jackaudio.JackTransport")]
impl JackTransport {}
