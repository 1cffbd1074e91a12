//! A recording as a trace in Chrome's JSON format, which Perfetto opens: one track for each client
//! and one for each CPU.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::timeline::Timeline;

/// Process id of the tracks of the clients and the driver.
const GRAPH: u32 = 1;
/// Process id of the tracks of the CPUs.
const CPUS: u32 = 2;
/// Thread id of the driver's track.
const DRIVER: u32 = 0;

/// Writes the whole trace. Times are in µs after the first cycle was due.
pub(crate) fn write(timeline: &Timeline, to: &mut impl Write) -> io::Result<()> {
    let origin_ns = timeline.runs.first().map_or(0, |run| run.cycle.due_ns.min(run.cycle.woken_ns));
    let mut separator = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    let mut put = |event: Value| {
        write!(to, "{separator}{event}")?;
        separator = ",\n";
        io::Result::Ok(())
    };
    put(named("process_name", GRAPH, 0, &format!("server {}", timeline.origin.server)))?;
    put(named("process_name", CPUS, 0, "CPUs"))?;
    put(named("thread_name", GRAPH, DRIVER, "driver"))?;
    for (number, name) in (DRIVER + 1..).zip(&timeline.names) {
        put(named("thread_name", GRAPH, number, name))?;
    }
    let span = |name: &str, track: (u32, u32), from_ns: u64, to_ns: u64, details: Value| {
        let us = |ns: u64| ns as f64 / 1000.0;
        json!({
            "ph": "X", "name": name, "pid": track.0, "tid": track.1, "args": details,
            "ts": us(from_ns.saturating_sub(origin_ns)), "dur": us(to_ns.saturating_sub(from_ns)),
        })
    };
    for run in &timeline.runs {
        let cycle = &run.cycle;
        let details = json!({"cycle": cycle.cycle, "quantum": cycle.quantum, "plan": cycle.plan, "xrun_us": cycle.xrun_us,
            "woken_late_us": cycle.woken_ns.saturating_sub(cycle.due_ns) as f64 / 1000.0});
        put(span("cycle", (GRAPH, DRIVER), cycle.woken_ns, cycle.end_ns, details.clone()))?;
        put(span("driver", (CPUS, cycle.cpu.into()), cycle.woken_ns, cycle.end_ns, details))?;
        for (client, record) in &run.clients {
            let track = (GRAPH, DRIVER + 1 + u32::try_from(*client).unwrap_or(u32::MAX - 1));
            let details = json!({"cycle": record.cycle, "late_cycles": record.late_cycles, "cpu": record.cpu});
            if record.scheduling_ns().is_some() {
                put(span("wake-up", track, record.signaled_ns, record.awake_ns, details.clone()))?;
            }
            if record.duration_ns().is_some() {
                let name = timeline.names.get(*client).map_or("?", String::as_str);
                put(span("process", track, record.awake_ns, record.finished_ns, details.clone()))?;
                put(span(
                    name,
                    (CPUS, record.cpu.into()),
                    record.awake_ns,
                    record.finished_ns,
                    details,
                ))?;
            } else if record.late_cycles > 0 {
                put(
                    json!({"ph": "i", "s": "t", "name": "late", "pid": track.0, "tid": track.1, "args": details,
                    "ts": cycle.end_ns.saturating_sub(origin_ns) as f64 / 1000.0}),
                )?;
            }
        }
    }
    to.write_all(b"\n]}\n")
}

fn named(what: &str, process: u32, thread: u32, name: &str) -> Value {
    json!({"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::sample;

    #[test]
    fn every_client_and_every_cpu_has_a_track_with_its_cycles() {
        let mut text = Vec::new();
        write(&sample(3), &mut text).unwrap();
        let trace: Value = serde_json::from_slice(&text).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let count = |name: &str, process: u32| {
            events
                .iter()
                .filter(|event| {
                    event["ph"] == "X" && event["name"] == name && event["pid"] == process
                })
                .count()
        };
        assert_eq!((count("cycle", GRAPH), count("driver", CPUS)), (3, 3));
        assert_eq!((count("wake-up", GRAPH), count("process", GRAPH)), (6, 6));
        assert_eq!((count("synth", CPUS), count("reverb", CPUS)), (3, 3));
        let first = events.iter().find(|event| event["name"] == "process").unwrap();
        assert_eq!((first["ts"].as_f64(), first["dur"].as_f64()), (Some(17.0), Some(100.0)));
    }

    #[test]
    fn a_trace_of_nothing_is_a_trace() {
        let mut text = Vec::new();
        write(&Timeline::default(), &mut text).unwrap();
        assert!(serde_json::from_slice::<Value>(&text).is_ok());
    }
}
