//! Judges who has the headsets of Bluetooth. consort plays on none: PipeWire does, and a module can
//! play there.

use super::{Finding, Verdict, good};
use crate::Facts;

/// What PipeWire calls the sinks that are headsets.
const SINKS: &str = "bluez_output.";

pub(super) fn finding(facts: &Facts) -> Option<Finding> {
    let subject = "bluetooth";
    let headset = facts.headsets.iter().max_by_key(|headset| headset.is_connected)?;
    let name = &headset.name;
    let state = if headset.is_connected { "connected" } else { "paired" };
    let offered = facts.pipewire.as_ref().and_then(|found| found.sound.as_ref());
    let sink = offered.into_iter().flatten().find(|name| name.starts_with(SINKS));
    let (found, advice) = match (sink, facts.wireplumber) {
        (Some(sink), _) => (
            format!("PipeWire has {name}, where nothing is heard that plays here"),
            format!("to hear it there: {}", carry(sink)),
        ),
        (None, Some(wireplumber)) => (
            format!("{name} is {state}, and nothing plays there: consort does not"),
            format!("to have PipeWire do: {}, and ask again", wireplumber.take_headsets()),
        ),
        (None, None) => (
            format!("{name} is {state}, and no program here plays there: consort does not"),
            "PipeWire can: sudo apt install wireplumber libspa-0.2-bluetooth, and ask again".into(),
        ),
    };
    Some(good(subject, found).but(Verdict::Note, advice))
}

/// What makes a sink of PipeWire one of consort: PipeWire listens for programs of PulseAudio at a
/// socket of its own, and a module plays there. A name that a shell could take for more than a name
/// is left out: the module plays on PipeWire's default sink then.
fn carry(sink: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let sink = if sink.chars().all(is_plain) { format!(" sink={sink}") } else { String::new() };
    format!(
        "mkdir -p ~/.config/pipewire/pipewire.conf.d && echo 'context.modules = [ {{ name = \
         libpipewire-module-protocol-pulse args = {{ server.address = [ \"unix:pipewire\" ] }} }} ]' \
         > ~/.config/pipewire/pipewire.conf.d/headsets.conf && systemctl --user restart pipewire, \
         and once it is connected again: pactl load-module module-tunnel-sink \
         server=unix:$XDG_RUNTIME_DIR/pulse/pipewire{sink} sink_name=headset"
    )
}
