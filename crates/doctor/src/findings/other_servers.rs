//! Judges what other sound servers have: processes, sockets, names on the session bus.

use super::{Finding, Verdict, good};
use crate::bus::{CARD, JACK, PULSEAUDIO};
use crate::{BusName, Facts, OtherServer, PipeWireFacts, PulseSocket};

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut found = vec![others(facts), pulse(facts)];
    found.extend(flatpak(facts));
    found.extend(facts.pipewire.as_ref().map(|found| pipewire(facts, found)));
    found.extend(facts.bus.iter().map(|name| bus_name(facts, name)));
    found
}

/// What ends a server, and keeps systemd from starting it again.
pub(super) fn end(facts: &Facts, program: &str, process: u32) -> String {
    match program {
        "pipewire" | "wireplumber" => leave_cards(facts),
        _ => unit(program).map_or_else(
            || format!("kill {process}"),
            |units| format!("systemctl --user disable --now {units}"),
        ),
    }
}

/// What makes PipeWire's session manager leave cards alone.
fn leave_cards(facts: &Facts) -> String {
    facts.wireplumber.map_or_else(
        || "have its session manager leave cards alone: WirePlumber can, and is not here".into(),
        |wireplumber| wireplumber.leave_cards().into(),
    )
}

fn pipewire(facts: &Facts, found: &PipeWireFacts) -> Finding {
    let subject = "pipewire";
    let process = found.process;
    match found.sound.as_deref() {
        Some([]) => {
            good(subject, format!("has cameras and screens, and no sound (process {process})"))
        }
        Some(names) => {
            let names = names.join(", ");
            let advice = if found.has_our_settings {
                "systemctl --user restart wireplumber, which has settings since that leave cards \
                 alone"
                    .to_owned()
            } else {
                leave_cards(facts)
            };
            good(subject, format!("offers sound of its own (process {process}): {names}"))
                .but(Verdict::Note, advice)
        }
        None => good(subject, format!("runs, and does not say what it has (process {process})"))
            .but(Verdict::Note, "sudo apt install pipewire-bin, and ask again"),
    }
}

fn bus_name(facts: &Facts, found: &BusName) -> Finding {
    let BusName { name, owner: OtherServer { program, process }, is_ours } = found;
    let text = format!("{name} is {program}'s (process {process})");
    let text = good("d-bus", text);
    if *is_ours {
        return text;
    }
    let end = end(facts, program, *process);
    let advice = match name.as_str() {
        JACK => format!("programs that control JACK there control that one: {end}"),
        PULSEAUDIO => format!("another server of PulseAudio's kind runs: {end}"),
        name if name.starts_with(CARD) => {
            format!("a server gets that card only if that program gives it up: {end}")
        }
        _ => end,
    };
    text.but(Verdict::Note, advice)
}

/// Programs in a Flatpak get the socket that is there when they start, and none of the network.
fn flatpak(facts: &Facts) -> Option<Finding> {
    let subject = "flatpak";
    let named = facts.pulse_server.as_deref();
    let path = named.filter(|named| named.starts_with('/') || named.starts_with("unix:"));
    let found = match (path, &facts.pulse) {
        (Some(path), _) => good(subject, format!("programs in Flatpaks play to {path}"))
            .but(Verdict::Note, "unset PULSE_SERVER, to have them here"),
        (None, PulseSocket::Nobody) => good(subject, "programs in Flatpaks find no server").but(
            Verdict::Note,
            "see 'pulse', and start them again: they see only what was there when they started",
        ),
        (None, PulseSocket::Ours(_)) => good(subject, "programs in Flatpaks play here"),
        (None, PulseSocket::Unit(Some(unit))) if unit == PULSE_UNIT => {
            good(subject, "programs in Flatpaks play here")
        }
        (None, PulseSocket::Unit(_) | PulseSocket::Other(_)) => {
            good(subject, "programs in Flatpaks play to another server")
                .but(Verdict::Note, "see 'pulse', and start them again")
        }
    };
    facts.has_flatpak.then_some(found)
}

fn others(facts: &Facts) -> Finding {
    let subject = "servers";
    if facts.others.is_empty() {
        return good(subject, "no other sound server of yours runs");
    }
    let list = |server: &OtherServer| format!("{} (process {})", server.program, server.process);
    let list: Vec<String> = facts.others.iter().map(list).collect();
    let units: Vec<&str> = facts.others.iter().filter_map(|server| unit(&server.program)).collect();
    let found = good(subject, format!("also running: {}", list.join(", ")));
    let end: Vec<String> = facts.others.iter().map(|server| server.process.to_string()).collect();
    found.but(
        Verdict::Note,
        if units.is_empty() {
            format!("they may hold a card; to end them: kill {}", end.join(" "))
        } else {
            format!("they may hold a card: systemctl --user disable --now {}", units.join(" "))
        },
    )
}

/// The units with which systemd starts a server, and a socket starts it again.
fn unit(program: &str) -> Option<&'static str> {
    match program {
        "pulseaudio" => Some("pulseaudio.socket pulseaudio.service"),
        "pipewire-pulse" => Some("pipewire-pulse.socket pipewire-pulse.service"),
        _ => None,
    }
}

/// What systemd starts for programs of PulseAudio, if it is consort.
const PULSE_UNIT: &str = "consort-pulse.service";

fn pulse(facts: &Facts) -> Finding {
    let subject = "pulse";
    let begin = "systemctl --user enable --now consort-pulse.socket, or: consort run --pulse";
    if let Some(named) = &facts.pulse_server {
        let found = format!("PULSE_SERVER sends programs of PulseAudio to {named}");
        return good(subject, found).but(Verdict::Note, "unset PULSE_SERVER, to have them here");
    }
    match &facts.pulse {
        PulseSocket::Ours(process) => {
            good(subject, format!("programs of PulseAudio play here, through process {process}"))
        }
        PulseSocket::Unit(Some(unit)) if unit == PULSE_UNIT => {
            good(subject, "programs of PulseAudio play here: the first one starts what they need")
        }
        PulseSocket::Unit(Some(unit)) => {
            let socket = unit.strip_suffix(".service").unwrap_or(unit);
            good(subject, format!("programs of PulseAudio have systemd start {unit}")).but(
                Verdict::Note,
                format!("systemctl --user disable --now {socket}.socket, then {begin}"),
            )
        }
        PulseSocket::Unit(None) => {
            good(subject, "programs of PulseAudio have systemd start something")
                .but(Verdict::Note, "systemctl --user list-sockets says what")
        }
        PulseSocket::Other(OtherServer { program, process }) => {
            let found = format!("programs of PulseAudio play to {program} (process {process})");
            let end = end(facts, program, *process);
            good(subject, found).but(Verdict::Note, format!("{end}, then {begin}"))
        }
        PulseSocket::Nobody => {
            good(subject, "programs of PulseAudio find no server").but(Verdict::Note, begin)
        }
    }
}
