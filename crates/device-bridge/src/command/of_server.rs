//! Devices that are threads of the server's, for streams alone: cards, and those without hardware.

use anyhow::ensure;
use client::Observer;
use client::stream::{DeviceState, FurtherDevice, NewDevice, NewHardware};

use super::links::LinkArguments;
use super::serve::Options;

/// The name of a device without hardware where none is given.
const DEFAULT_NAME: &str = "null";
/// Its channels where none are given.
pub(super) const DEFAULT_CHANNELS: u32 = 2;

/// Adds one; returns what the user reads.
pub(super) fn add(server: &Observer, options: &Options) -> anyhow::Result<String> {
    let device = if options.is_null() { null(options)? } else { card(options)? };
    let name = device.name.clone();
    server.add_device(device)?;
    let device = server.further_devices()?.into_iter().find(|device| device.name == name);
    Ok(device.map_or_else(String::new, |device| format!("{name}: {}\n", description(&device))))
}

fn null(options: &Options) -> anyhow::Result<NewDevice> {
    let Options { name, playback, rate, link, .. } = options;
    ensure!(
        !options.has_hardware_options() && *link == LinkArguments::default(),
        "a null device takes only --name, --playback and --rate: it has no hardware"
    );
    Ok(NewDevice {
        name: name.as_deref().unwrap_or(DEFAULT_NAME).into(),
        hardware: NewHardware::Nothing { channels: playback.unwrap_or(DEFAULT_CHANNELS) },
        sample_rate_hz: *rate,
        ends_with_connection: false,
    })
}

fn card(options: &Options) -> anyhow::Result<NewDevice> {
    ensure!(
        options.is_card() && options.link == LinkArguments::default() && options.margin.is_none(),
        "--streams is for a card, as ALSA calls it, and without --margin: nothing is resampled"
    );
    let card = options.card();
    Ok(NewDevice {
        name: card.name,
        hardware: NewHardware::Card { options: Box::new(card.alsa), quantum: card.quantum },
        sample_rate_hz: options.rate,
        ends_with_connection: false,
    })
}

fn description(device: &FurtherDevice) -> String {
    let FurtherDevice { sample_rate_hz, channels, captured, card, .. } = device;
    let what = card.as_deref().unwrap_or("null device");
    let channels = match channels {
        0 => format!("captures {captured} channels"),
        channels => format!("{channels} channels"),
    };
    format!("{what}, {sample_rate_hz} Hz, {channels}")
}

/// Returns lines about those that there are.
pub(super) fn list(server: &Observer) -> anyhow::Result<String> {
    let devices = server.further_devices()?;
    if devices.is_empty() {
        return Ok(String::new());
    }
    let lines = devices.iter().map(|device| {
        let does = match (&device.why_away, device.state) {
            (Some(why), _) => why,
            (None, DeviceState::Parked) => "silent",
            (None, DeviceState::Deep) => "plays",
            (None, DeviceState::Cycling) => "is recorded",
        };
        format!("    {:<16} {}: {does}\n", device.name, description(device))
    });
    Ok(std::iter::once("For streams:\n".to_owned()).chain(lines).collect())
}
