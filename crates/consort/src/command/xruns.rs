//! `consort xruns`: which client was late, when, and why.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cli::output;
use client::Observer;
use proto::xrun::{CpuUser, Evidence, Timestamps, Verdict, Xrun};
use serde_json::{Value, json};

/// Show which client was late, when, and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort xruns
  consort xruns --follow
  consort xruns --json | jq 'select(.verdict == \"blocked\") | .client'")]
pub(crate) struct ShowXruns {
    /// Keep running and show each new one as soon as its verdict is known
    #[arg(short, long)]
    follow: bool,
    /// Print one line of JSON for each
    #[arg(long)]
    json: bool,
}

/// Maximum number of answers to read: more than all xruns that the server remembers fill.
const ANSWERS: u32 = 64;
/// Interval at which the server is asked for new ones.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

impl ShowXruns {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let observer = Observer::open(Some(server))?;
        let mut last = 0;
        let mut asked = 0;
        // Bounded without --follow, in case new xruns keep coming.
        while self.follow || asked < ANSWERS {
            asked = asked.saturating_add(1);
            // While following, one without a verdict is asked for again, along with all after it.
            let mut new = observer.xruns(last)?;
            if self.follow {
                new.truncate(new.iter().take_while(|xrun| xrun.verdict.is_some()).count());
            }
            for xrun in &new {
                last = xrun.number;
                output::print(&if self.json {
                    format!("{}\n", as_json(xrun))
                } else {
                    as_text(xrun)
                })?;
            }
            let rest = if new.is_empty() { POLL_INTERVAL } else { Duration::ZERO };
            let is_done = if self.follow { output::is_closed_after(rest)? } else { new.is_empty() };
            if is_done {
                break;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The time of day, UTC.
fn time_of_day(unix_ms: u64) -> String {
    let (ms, seconds) = (unix_ms % 1000, unix_ms / 1000);
    format!("{:02}:{:02}:{:02}.{ms:03}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

fn ms(time_ns: u64) -> String {
    format!("{:.2}", time_ns as f64 / 1e6)
}

fn as_text(xrun: &Xrun) -> String {
    let who = xrun.client.as_ref().map_or("the driver", |(_, name)| name);
    let verdict = xrun.verdict.as_ref().map_or_else(|| "not judged yet".into(), Verdict::describe);
    let cycles =
        if xrun.cycles == 1 { "1 cycle".into() } else { format!("{} cycles", xrun.cycles) };
    let mut text = format!(
        "{:>4}  {} UTC  {who}, {cycles}: {verdict}\n",
        xrun.number,
        time_of_day(xrun.unix_ms)
    );
    let mut more = |line: String| {
        text.push_str("      ");
        text.push_str(&line);
        text.push('\n');
    };
    if let Some(evidence) = &xrun.evidence {
        more(evidence_text(evidence));
    }
    if !xrun.had_cpu.is_empty() {
        let users: Vec<String> = xrun.had_cpu.iter().map(user_text).collect();
        more(format!("its CPU had: {}", users.join(", ")));
    }
    if xrun.client.is_some() {
        let usual = xrun.usual.map_or_else(String::new, |usual| {
            format!(
                "; usually awake after {} and done in {}",
                ms(usual.scheduling_ns),
                ms(usual.duration_ns)
            )
        });
        more(format!("of {} ms: {}{usual}", ms(xrun.period_ns), timestamps_text(&xrun.timestamps)));
    }
    if xrun.driver_late_ns >= xrun.period_ns / 10 {
        more(format!("the driver woke {} ms late", ms(xrun.driver_late_ns)));
    }
    let links: Vec<String> = xrun
        .chain
        .iter()
        .map(|link| format!("{} {}", link.name, timestamps_text(&link.timestamps)))
        .collect();
    if !links.is_empty() {
        more(format!("before it: {}", links.join("; ")));
    }
    text
}

fn timestamps_text(timestamps: &Timestamps) -> String {
    let part = |word: &str, time: Option<u64>| match time {
        Some(time_ns) => format!("{word} {}", ms(time_ns)),
        None => format!("not {word}"),
    };
    [
        part("signaled", timestamps.signaled_ns),
        part("awake", timestamps.awake_ns),
        part("finished", timestamps.finished_ns),
    ]
    .join(", ")
}

fn user_text(user: &CpuUser) -> String {
    let CpuUser { thread, name, realtime_priority, ran_ns } = user;
    let time = ms(*ran_ns);
    match (thread, realtime_priority) {
        (0, _) => format!("{name} for {time} ms"),
        (thread, Some(priority)) => format!("{name} ({thread}, FIFO {priority}) for {time} ms"),
        (thread, None) => format!("{name} ({thread}) for {time} ms"),
    }
}

fn evidence_text(evidence: &Evidence) -> String {
    let Evidence { lost_ns, running_ns, runnable_ns, asleep_ns, state, cpu, .. } = evidence;
    let mut text = format!(
        "in {} ms since it could run: {} running, {} ready, {} asleep; state {state}, CPU {cpu}",
        ms(*lost_ns),
        ms(*running_ns),
        ms(*runnable_ns),
        ms(*asleep_ns)
    );
    let (sleeps, cycles) = (evidence.voluntary_switches, evidence.cycles);
    text.push_str(&format!("; lately {sleeps} sleeps in {cycles} cycles"));
    for (count, what) in [
        (evidence.involuntary_switches, "preemptions"),
        (evidence.minor_faults, "page faults"),
        (evidence.major_faults, "page faults from disk"),
    ] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

fn as_json(xrun: &Xrun) -> Value {
    let by = match &xrun.verdict {
        Some(Verdict::SignaledLate { by }) => by.clone(),
        _ => None,
    };
    json!({
        "number": xrun.number,
        "cycle": xrun.cycle,
        "unix_ms": xrun.unix_ms,
        "client": xrun.client.as_ref().map(|(_, name)| name),
        "client_id": xrun.client.as_ref().map(|(id, _)| id),
        "cycles": xrun.cycles,
        "period_ns": xrun.period_ns,
        "driver_late_ns": xrun.driver_late_ns,
        "timestamps": xrun.timestamps,
        "usual": xrun.usual,
        "verdict": xrun.verdict.as_ref().map(Verdict::word),
        "by": by,
        "evidence": xrun.evidence,
        "had_cpu": xrun.had_cpu,
        "chain": xrun.chain,
    })
}

#[cfg(test)]
mod tests {
    use proto::xrun::{TypicalTimes, UpstreamClient};

    use super::*;

    fn sample() -> Xrun {
        let timestamps =
            Timestamps { signaled_ns: Some(50_000), awake_ns: Some(70_000), finished_ns: None };
        let evidence = Evidence {
            lost_ns: 1_600_000,
            running_ns: 200_000,
            runnable_ns: 100_000,
            asleep_ns: 1_300_000,
            state: 'S',
            cpu: 1,
            voluntary_switches: 401,
            cycles: 400,
            minor_faults: 3,
            ..Evidence::default()
        };
        Xrun {
            number: 7,
            cycle: 1234,
            unix_ms: 86_400_000 + 3_723_004,
            client: Some((4, "reverb".into())),
            cycles: 2,
            period_ns: 1_333_333,
            driver_late_ns: 10_000,
            timestamps,
            usual: Some(TypicalTimes { scheduling_ns: 20_000, duration_ns: 300_000 }),
            verdict: Some(Verdict::Blocked),
            evidence: Some(evidence),
            had_cpu: Vec::new(),
            chain: vec![UpstreamClient {
                name: "synth".into(),
                timestamps: Timestamps { finished_ns: Some(50_000), ..timestamps },
                cpu: 1,
            }],
        }
    }

    #[test]
    fn an_xruns_reason_is_printed_first() {
        assert_eq!(
            as_text(&sample()),
            "   7  01:02:03.004 UTC  reverb, 2 cycles: blocked in its own code: it slept though it was its turn
      in 1.60 ms since it could run: 0.20 running, 0.10 ready, 1.30 asleep; state S, CPU 1; lately 401 sleeps in 400 cycles, 3 page faults
      of 1.33 ms: signaled 0.05, awake 0.07, not finished; usually awake after 0.02 and done in 0.30
      before it: synth signaled 0.05, awake 0.07, finished 0.05
"
        );
    }

    #[test]
    fn an_xrun_of_the_driver_has_no_timestamps() {
        let xrun = Xrun {
            client: None,
            cycles: 1,
            verdict: None,
            evidence: None,
            usual: None,
            driver_late_ns: 4_000_000,
            chain: Vec::new(),
            ..sample()
        };
        assert_eq!(
            as_text(&xrun),
            "   7  01:02:03.004 UTC  the driver, 1 cycle: not judged yet\n      the driver woke 4.00 ms late\n"
        );
        assert_eq!(as_json(&xrun)["client"], Value::Null);
        assert_eq!(as_json(&xrun)["verdict"], Value::Null);
    }

    #[test]
    fn threads_that_had_the_cpu_are_named_with_their_priority() {
        let user = |thread, name: &str, realtime_priority, ran_ns| {
            let name = name.into();
            CpuUser { thread, name, realtime_priority, ran_ns }
        };
        let had_cpu = vec![
            user(77, "cc1plus", None, 4_000_000),
            user(8, "irq/9-acpi", Some(50), 300_000),
            user(0, "idle", None, 10_000),
        ];
        let text = as_text(&Xrun { had_cpu, verdict: Some(Verdict::NotRunning), ..sample() });
        let line = "      its CPU had: cc1plus (77) for 4.00 ms, irq/9-acpi (8, FIFO 50) for 0.30 ms, idle for 0.01 ms";
        assert!(text.lines().any(|found| found == line), "{text}");
    }

    #[test]
    fn json_names_the_client_that_is_to_blame() {
        let by = Some("synth".to_owned());
        let json = as_json(&Xrun { verdict: Some(Verdict::SignaledLate { by }), ..sample() });
        assert_eq!((&json["verdict"], &json["by"]), (&json!("signaled-late"), &json!("synth")));
        assert_eq!(json["evidence"]["asleep_ns"], 1_300_000);
    }
}
