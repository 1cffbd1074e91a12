//! Judges the facts. Pure: no finding asks the machine anything.

mod bluetooth;
mod flatpak;
mod other_servers;

use crate::{CardFacts, Facts, LibraryFacts, ServerFacts};

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How it is.
    pub verdict: Verdict,
    /// What it is about.
    pub subject: &'static str,
    /// What was found.
    pub found: String,
    /// What to do about it; `None`: nothing.
    pub advice: Option<String>,
}

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, but not as well as it could.
    Note,
    /// Keeps programs from playing, or from playing in time.
    Wrong,
}

impl Verdict {
    /// The word for it, for users.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Wrong => "wrong",
        }
    }
}

/// The priority of a server's driver thread, unless another is asked for.
const DRIVER_PRIORITY: u32 = 10;

/// What a server and its clients lock at most, roughly: below that, pages of a cycle may be taken
/// out of memory.
const ENOUGH_LOCKED_BYTES: u64 = 256 << 20;

/// Judges everything, in the order in which it matters.
#[must_use]
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut found = vec![library(facts), server(facts)];
    found.extend(narrow_library(facts.narrow_libjack.as_ref()));
    found.extend(cards(facts));
    found.extend(other_servers::findings(facts));
    found.extend(bluetooth::finding(facts));
    found.extend([priority(facts), memory(facts)]);
    found.extend(throttle(facts));
    found.extend(governor(&facts.governors));
    found.into_iter().map(Finding::printable).collect()
}

fn good(subject: &'static str, found: impl Into<String>) -> Finding {
    Finding { verdict: Verdict::Good, subject, found: found.into(), advice: None }
}

impl Finding {
    fn but(self, verdict: Verdict, advice: impl Into<String>) -> Self {
        Self { verdict, advice: Some(advice.into()), ..self }
    }

    /// Programs and devices have names that they have given themselves, which must not change the
    /// terminal.
    fn printable(self) -> Self {
        let printable = |text: String| text.replace(char::is_control, " ");
        Self { found: printable(self.found), advice: self.advice.map(printable), ..self }
    }
}

fn library(facts: &Facts) -> Finding {
    let advice = "install libjack-consort0, or: consort exec -- PROGRAM";
    match &facts.libjack {
        Some(LibraryFacts { path, is_ours: true }) => good("libjack", path.display().to_string()),
        Some(LibraryFacts { path, is_ours: false }) => {
            let found = format!("programs get {}, which is not consort's", path.display());
            good("libjack", found).but(Verdict::Wrong, advice)
        }
        None => good("libjack", "the loader finds none").but(Verdict::Wrong, advice),
    }
}

/// Few programs have 32 bits, and need no library if they play through ALSA or PulseAudio.
fn narrow_library(library: Option<&LibraryFacts>) -> Option<Finding> {
    let LibraryFacts { path, is_ours } = library?;
    let path = path.display();
    Some(if *is_ours {
        good("libjack", format!("{path}, for programs of 32 bits"))
    } else {
        good("libjack", format!("programs of 32 bits get {path}, which is not consort's")).but(
            Verdict::Note,
            "install the package libjack-consort0:i386; docs/needs.md says what building it takes",
        )
    })
}

fn server(facts: &Facts) -> Finding {
    if facts.starts_on_demand {
        return good("server", "the first program starts it");
    }
    let Some(server) = &facts.server else {
        // A restart, because systemd may wait at a socket that has lost its name.
        let advice = "systemctl --user enable consort.socket && systemctl --user restart \
                      consort.socket";
        return good("server", "none runs").but(Verdict::Note, advice);
    };
    let ServerFacts { name, process, driver, xruns, cycles, .. } = server;
    let found = format!("'{name}', process {process}: {driver}, {xruns} xruns in {cycles} cycles");
    if server.realtime_priority.is_none() {
        let advice = "see 'real-time' below, then restart it";
        return good("server", format!("{found}, not real-time")).but(Verdict::Note, advice);
    }
    good("server", found)
}

fn cards(facts: &Facts) -> Vec<Finding> {
    if facts.cards.is_empty() {
        let none = good("card", "none: programs play to the timer, and are not heard");
        return vec![none.but(Verdict::Note, "plug one in, or load its driver: aplay -l")];
    }
    facts.cards.iter().map(|found| card(facts, found)).collect()
}

fn card(facts: &Facts, card: &CardFacts) -> Finding {
    let CardFacts { name, device, .. } = card;
    if card.is_forbidden {
        return good("card", format!("{name} ({device}) is closed to you")).but(
            Verdict::Wrong,
            "log in at the machine itself, or: sudo adduser $USER audio, and log in again",
        );
    }
    match &card.holder {
        Some(holder) if holder.program.as_deref() != Some("consort") => {
            let program = holder.program.as_deref().unwrap_or_default();
            good("card", format!("{name} ({device}) is in use by {holder}"))
                .but(Verdict::Wrong, other_servers::end(facts, program, holder.process))
        }
        Some(holder) => good("card", format!("{name} ({device}), open in {holder}")),
        None => good("card", format!("{name} ({device})")),
    }
}

/// Joins the group `realtime` where the package has made it, and writes a file of limits elsewhere.
const GET_RIGHTS: &str = "sudo consort setup, and log in again";

fn priority(facts: &Facts) -> Finding {
    let subject = "real-time";
    let limit = facts.rtprio_limit;
    match (limit, facts.has_realtime_kit) {
        (DRIVER_PRIORITY.., _) => good(subject, format!("priorities up to {limit}")),
        (_, true) => good(subject, format!("priorities up to {limit}; RealtimeKit gives others"))
            .but(Verdict::Note, GET_RIGHTS),
        (_, false) => good(subject, format!("priorities up to {limit}, and no RealtimeKit"))
            .but(Verdict::Wrong, GET_RIGHTS),
    }
}

fn memory(facts: &Facts) -> Finding {
    let subject = "memory";
    match facts.memlock_limit {
        None => good(subject, "any of it may be locked"),
        Some(bytes @ ENOUGH_LOCKED_BYTES..) => {
            good(subject, format!("{} MiB of it may be locked", bytes >> 20))
        }
        Some(bytes) => good(
            subject,
            format!("{} KiB of it may be locked: the rest may be paged out", bytes >> 10),
        )
        .but(Verdict::Note, GET_RIGHTS),
    }
}

/// Below this share, real-time threads that do their work may be stopped for doing it.
const ENOUGH_PERCENT: i64 = 90;

fn throttle(facts: &Facts) -> Option<Finding> {
    let (runtime_us, period_us) = facts.realtime_throttle_us?;
    let subject = "throttling";
    if runtime_us < 0 {
        let found = "none: a real-time thread that hangs stops its CPU";
        return Some(
            good(subject, found)
                .but(Verdict::Note, "sudo sysctl kernel.sched_rt_runtime_us=950000"),
        );
    }
    let percent = runtime_us.saturating_mul(100).checked_div(period_us)?;
    let found = format!("real-time threads have {percent} % of the CPU's time");
    let found = good(subject, found);
    Some(if percent >= ENOUGH_PERCENT {
        found
    } else {
        found.but(Verdict::Wrong, "sudo sysctl kernel.sched_rt_runtime_us=950000")
    })
}

fn governor(governors: &[String]) -> Option<Finding> {
    let names = governors.join(", ");
    let found = good("governor", format!("the CPUs' frequency: {names}"));
    match governors {
        [] => None,
        all if all.iter().all(|name| name == "performance") => Some(found),
        _ => Some(found.but(
            Verdict::Note,
            "for short cycles: echo performance | sudo tee \
             /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        )),
    }
}
