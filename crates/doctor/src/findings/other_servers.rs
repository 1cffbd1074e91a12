//! Judges what other sound servers have: processes, sockets, names on the session bus.

use super::{Finding, Verdict, flatpak, good};
use crate::bus::{CARD, JACK, PULSEAUDIO};
use crate::{BusName, Facts, OtherServer, PipeWireFacts, PulseSocket};

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let mut found = vec![others(facts), pulse(facts)];
    found.extend(flatpak::finding(facts));
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
        None => good(subject, format!("runs, but does not report its devices (process {process})"))
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
pub(super) const PULSE_UNIT: &str = "consort-pulse.service";

fn pulse(facts: &Facts) -> Finding {
    let subject = "pulse";
    let begin = "systemctl --user enable --now consort-pulse.socket, or: consort run --pulse";
    if let Some(named) = &facts.pulse_server {
        let file = named.file.as_deref().map(|file| file.display().to_string());
        let by = file.as_deref().unwrap_or("PULSE_SERVER");
        let found = format!("{by} sends programs of PulseAudio to {}", named.address);
        return good(subject, found).but(Verdict::Note, named.forget());
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
