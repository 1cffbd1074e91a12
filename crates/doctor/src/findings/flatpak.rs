//! Judges where programs in Flatpaks play.

use super::other_servers::PULSE_UNIT;
use super::{Finding, Verdict, good};
use crate::{Facts, FlatpakFacts, FlatpakSocket, PulseSocket};

const SUBJECT: &str = "flatpak";

/// Programs in a Flatpak get the socket that is there when they start.
pub(super) fn finding(facts: &Facts) -> Option<Finding> {
    let running = facts.flatpaks.as_ref()?;
    Some(match (&facts.pulse_server, &facts.pulse) {
        // Those without a network do not reach one of the network.
        (Some(named), _) => {
            good(SUBJECT, format!("programs in Flatpaks play to {}", named.address))
                .but(Verdict::Note, named.forget())
        }
        (None, PulseSocket::Nobody) => good(SUBJECT, "programs in Flatpaks find no server").but(
            Verdict::Note,
            "see 'pulse', and start them again: they see only what was there when they started",
        ),
        (None, PulseSocket::Ours(_)) => here(running),
        (None, PulseSocket::Unit(Some(unit))) if unit == PULSE_UNIT => here(running),
        (None, PulseSocket::Unit(_) | PulseSocket::Other(_)) => {
            good(SUBJECT, "programs in Flatpaks play to another server")
                .but(Verdict::Note, "see 'pulse', and start them again")
        }
    })
}

/// The socket that a program gets which starts now is ours. What those have that run?
fn here(running: &[FlatpakFacts]) -> Finding {
    let with = |socket| {
        let those = running.iter().filter(move |running| running.socket == socket);
        those.map(|running| running.application.as_str()).collect::<Vec<_>>()
    };
    let mut text = "programs in Flatpaks play here".to_owned();
    let silent = with(FlatpakSocket::NotAllowed);
    if !silent.is_empty() {
        let silent = silent.join(", ");
        text += &format!("; without --socket=pulseaudio, and so without sound: {silent}");
    }
    let others = with(FlatpakSocket::Other);
    if others.is_empty() {
        return good(SUBJECT, text);
    }
    text += &format!("; with a socket that is no longer there: {}", others.join(", "));
    let kill = others.iter().map(|application| format!("flatpak kill {application}"));
    let advice = format!("start them again: {}", kill.collect::<Vec<_>>().join("; "));
    good(SUBJECT, text).but(Verdict::Note, advice)
}
