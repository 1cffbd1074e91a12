//! Devices without hardware, which are threads of the server's: for streams alone.

use anyhow::ensure;
use client::Observer;
use client::stream::{DeviceState, FurtherDevice, NewDevice};

use super::links::LinkArguments;
use super::serve::Options;

/// Its name where none is given.
const DEFAULT_NAME: &str = "null";
/// Its channels where none are given.
pub(super) const DEFAULT_CHANNELS: u32 = 2;

/// Adds one; returns what the user reads.
pub(super) fn add(server: &Observer, options: &Options) -> anyhow::Result<String> {
    let Options { name, playback, rate, link, .. } = options;
    ensure!(
        !options.has_hardware_options() && *link == LinkArguments::default(),
        "a null device takes --name, --playback and --rate alone: it has no hardware"
    );
    let name = name.as_deref().unwrap_or(DEFAULT_NAME);
    server.add_device(NewDevice {
        name: name.into(),
        channels: playback.unwrap_or(DEFAULT_CHANNELS),
        sample_rate_hz: *rate,
        ends_with_connection: false,
    })?;
    let device = server.further_devices()?.into_iter().find(|device| device.name == name);
    Ok(device.map_or_else(String::new, |device| format!("{name}: {}\n", description(&device))))
}

fn description(device: &FurtherDevice) -> String {
    format!("null device, {} Hz, {} channels", device.sample_rate_hz, device.channels)
}

/// Returns lines about those that there are.
pub(super) fn list(server: &Observer) -> anyhow::Result<String> {
    let devices = server.further_devices()?;
    if devices.is_empty() {
        return Ok(String::new());
    }
    let lines = devices.iter().map(|device| {
        let plays = if device.state == DeviceState::Parked { "silent" } else { "plays" };
        format!("    {:<16} {}: {plays}\n", device.name, description(device))
    });
    Ok(std::iter::once("For streams:\n".to_owned()).chain(lines).collect())
}
