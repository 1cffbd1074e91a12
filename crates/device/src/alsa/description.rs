//! What users read about a card. Thread: not the cycle's.

use alsa::{Access, Pcm};
use rt::rate::duration_ns;

use super::device::Device;
use super::hardware_monitoring::HardwareMonitoring;
use super::recipe::{self, AHEAD_NS, Recipe};

/// Opens the hardware monitoring of the device's card, or prints why there is none.
pub(super) fn open_monitoring(device: &Device, rate_hz: u32) -> Option<HardwareMonitoring> {
    let opened = HardwareMonitoring::open(device, rate_hz);
    let complain = |reason| {
        sys::report!("consort: no hardware monitoring, requests are only counted: {reason}")
    };
    opened.map_err(complain).ok()
}

/// Returns "alsa hw:CARD=PCH,DEV=0 (capture 2 S32_LE, playback 2 S32_LE, by its interrupts)".
pub(super) fn describe(
    recipe: &Recipe,
    device: &Device,
    monitoring: Option<&HardwareMonitoring>,
) -> String {
    let name = |side: &Option<recipe::SideRecipe>| side.as_ref().map(|side| side.name.clone());
    let names = match (name(&recipe.capture), name(&recipe.playback)) {
        (Some(capture), Some(playback)) if capture != playback => format!("{capture} → {playback}"),
        (capture, playback) => playback.or(capture).unwrap_or_default(),
    };
    let side = |what: &str, pcm: &Option<Pcm>| {
        pcm.as_ref().map(|pcm| format!("{what} {}", recipe::layout(pcm)))
    };
    let sides = [side("capture", &device.capture), side("playback", &device.playback)];
    let mut parts: Vec<String> = sides.into_iter().flatten().collect();
    parts.push(device.manner().to_owned());
    parts.extend(device.playback.as_ref().and_then(|playback| streams(playback, recipe.rate_hz)));
    parts.extend(recipe.clock(device));
    parts.extend(monitoring.map(|card| format!("hardware monitoring of {} inputs", card.inputs())));
    format!("alsa {names} ({})", parts.join(", "))
}

/// Returns how far ahead of a device its streams can be rendered, and what keeps it from sleeping
/// all the same.
fn streams(playback: &Pcm, rate_hz: u32) -> Option<String> {
    let setup = playback.setup()?;
    if setup.access == Access::Copied {
        return Some("no streams: not a hw: device".into());
    }
    let ahead_ns = duration_ns(setup.most_buffer_frames.into(), rate_hz).min(AHEAD_NS);
    let interrupts = if setup.can_be_silent { "" } else { ", but it keeps its interrupts" };
    Some(format!("streams up to {} ms ahead{interrupts}", ahead_ns / 1_000_000))
}
