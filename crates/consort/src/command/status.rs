//! `consort status`: the state of the server and its clients.

pub(crate) mod streams;

use std::process::ExitCode;

use clap::Args;
use cli::output;
use proto::status::{ClientStatus, Place, Placement, Status, Timing};
use serde_json::{Value, json};

use self::streams::Streams;
use crate::attach;
use crate::server::Server;

/// Show the state of the server and its clients
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort status
  consort status --json | jq .xruns")]
pub(crate) struct ShowStatus {
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

impl ShowStatus {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let server = attach::to(server)?;
        let (status, streams) = (server.status()?, server.streams()?);
        if self.json {
            output::print_json(&with_streams(as_json(&status), &streams))?;
        } else {
            output::print(&(as_text(&status) + &streams.as_text(&status)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn with_streams(mut status: Value, streams: &Streams) -> Value {
    if let (Value::Object(status), Value::Object(streams)) = (&mut status, streams.as_json()) {
        status.extend(streams);
    }
    status
}

/// Text of the state column.
fn state(client: &ClientStatus) -> &'static str {
    match (client.bypassed, client.active) {
        (true, _) => "bypassed",
        (false, true) => "active",
        (false, false) => "inactive",
    }
}

fn as_text(status: &Status) -> String {
    let quantum_ms = f64::from(status.quantum) * 1000.0 / f64::from(status.sample_rate_hz.max(1));
    let mode = match (status.freewheel, status.sync) {
        (true, _) => "freewheel",
        (false, true) => "synchronous",
        (false, false) => "asynchronous",
    };
    let priority = status.realtime_priority.map_or_else(
        || "not real-time".into(),
        |priority| format!("real-time priority {priority}"),
    );
    let Status { name, version, process, driver, sample_rate_hz, quantum, .. } = status;
    let (ports, port_max) = status.ports;
    let mut text = format!(
        "\
server   {name}, consort {version}, pid {process}
driver   {driver}, {sample_rate_hz} Hz, {mode}, {priority}
quantum  {quantum} frames ({quantum_ms:.3} ms)
places   {}
load     {:.1} %
xruns    {} in {} cycles
graph    {} clients, {ports} of {port_max} ports, {} connections
",
        status.placement.as_ref().map_or_else(|| "chosen by the kernel".into(), places),
        status.load * 100.0,
        status.xruns,
        status.cycles,
        status.clients.len(),
        status.connections
    );
    if !status.clients.is_empty() {
        text.push('\n');
        text.push_str(&client_table(&status.clients));
        text.push_str("\nTimes in µs, median and longest: scheduling is signaled to awake, duration awake to finished.\n");
        if let Some(Placement { hop_ns, cross_hop_ns, .. }) = status.placement {
            text.push_str(&format!(
                "\
A client runs on the CPU of the client that wakes it, where waking takes {} µs, or in parallel, on another CPU,
where waking takes {} µs, if the graph ends earlier that way.
",
                us(hop_ns),
                us(cross_hop_ns)
            ));
        }
    }
    text
}

const HEADINGS: [&str; 10] =
    ["client", "pid", "state", "cpu", "scheduling", "max", "duration", "max", "late", "place"];
/// Columns of text; the others are numbers, aligned to the right.
const TEXT_COLUMNS: [usize; 3] = [0, 2, 9];

fn client_table(clients: &[ClientStatus]) -> String {
    let mut rows = vec![HEADINGS.map(String::from)];
    rows.extend(clients.iter().map(client_row));
    let widths: [usize; HEADINGS.len()] = std::array::from_fn(|column| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    });
    rows.iter().map(|row| aligned(row, &widths)).collect()
}

fn client_row(client: &ClientStatus) -> [String; HEADINGS.len()] {
    let time =
        |time_ns: fn(Timing) -> u64| client.timing.map_or_else(dash, |timing| us(time_ns(timing)));
    [
        client.name.clone(),
        client.process.to_string(),
        state(client).into(),
        client.cpu.map_or_else(dash, |cpu| cpu.to_string()),
        time(|timing| timing.scheduling_median_ns),
        time(|timing| timing.scheduling_max_ns),
        time(|timing| timing.duration_median_ns),
        time(|timing| timing.duration_max_ns),
        client.late_cycles.to_string(),
        client.place.as_ref().map_or_else(dash, place),
    ]
}

/// Describes the costs by which the places were chosen.
fn places(placement: &Placement) -> String {
    let Placement { cpus, expected_ns, alone_ns, .. } = placement;
    let others = cpus.iter().skip(1).map(|cpu| format!(", {cpu}")).collect::<String>();
    let driver = cpus.first().copied().unwrap_or_default();
    let (end, alone) = (us(*expected_ns), us(*alone_ns));
    format!(
        "on CPUs {driver} (the driver's){others}: ends {end} µs after the driver lets the first run, all on its CPU {alone} µs"
    )
}

/// Text of the place column.
fn place(place: &Place) -> String {
    let seconds = |ms: u64| ms.div_ceil(1000);
    match place {
        Place::After { cpu, waker: None } => format!("{cpu}, after the driver"),
        Place::After { cpu, waker: Some(waker) } => format!("{cpu}, after {waker}"),
        Place::Beside { cpu } => format!("{cpu}, in parallel"),
        Place::Late { left_ms } => format!("any for {} s: it was late", seconds(*left_ms)),
        Place::Refused { cpu, left_ms } => {
            format!("any for {} s: it may not use {cpu}", seconds(*left_ms))
        }
    }
}

fn place_json(place: &Place) -> Value {
    match place {
        Place::After { cpu, waker } => json!({"cpu": cpu, "why": "after", "client": waker}),
        Place::Beside { cpu } => json!({"cpu": cpu, "why": "beside"}),
        Place::Late { left_ms } => json!({"cpu": null, "why": "late", "left_ms": left_ms}),
        Place::Refused { cpu, left_ms } => {
            json!({"cpu": null, "why": "refused", "refused_cpu": cpu, "left_ms": left_ms})
        }
    }
}

fn dash() -> String {
    "-".into()
}

/// Nanoseconds in µs with one decimal, rounded.
fn us(time_ns: u64) -> String {
    let tenths = time_ns.saturating_add(50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<String> = row
        .iter()
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, &width))| {
            if TEXT_COLUMNS.contains(&column) {
                format!("{cell:width$}")
            } else {
                format!("{cell:>width$}")
            }
        })
        .collect();
    format!("{}\n", cells.join("  ").trim_end())
}

fn as_json(status: &Status) -> Value {
    json!({
        "name": status.name,
        "version": status.version,
        "pid": status.process,
        "driver": status.driver,
        "sample_rate_hz": status.sample_rate_hz,
        "quantum": status.quantum,
        "sync": status.sync,
        "freewheel": status.freewheel,
        "realtime_priority": status.realtime_priority,
        "cycles": status.cycles,
        "xruns": status.xruns,
        "load": status.load,
        "placement": status.placement,
        "ports": {"used": status.ports.0, "max": status.ports.1},
        "connections": status.connections,
        "clients": status.clients.iter().map(client_json).collect::<Value>(),
    })
}

fn client_json(client: &ClientStatus) -> Value {
    json!({
        "id": client.id,
        "name": client.name,
        "pid": client.process,
        "active": client.active,
        "bypassed": client.bypassed,
        "bypasses": client.bypasses,
        "late_cycles": client.late_cycles,
        "cpu": client.cpu,
        "place": client.place.as_ref().map(place_json),
        "timing": client.timing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str, process: u32) -> ClientStatus {
        ClientStatus {
            id: process,
            name: name.into(),
            process,
            active: true,
            bypassed: false,
            bypasses: 0,
            late_cycles: 0,
            cpu: None,
            place: None,
            timing: None,
        }
    }

    fn sample() -> Status {
        let timing = Timing {
            cycles: 100,
            scheduling_median_ns: 4_949,
            scheduling_max_ns: 123_450,
            duration_median_ns: 49,
            duration_max_ns: 1_000_000,
        };
        Status {
            name: "default".into(),
            version: "0.1.0".into(),
            process: 4321,
            driver: "timer".into(),
            sample_rate_hz: 48_000,
            quantum: 64,
            sync: false,
            freewheel: false,
            realtime_priority: Some(10),
            cycles: 75_000,
            xruns: 2,
            load: 0.1234,
            placement: Some(Placement {
                cpus: vec![0, 1],
                hop_ns: 5_100,
                cross_hop_ns: 51_020,
                expected_ns: 97_040,
                alone_ns: 143_000,
            }),
            clients: vec![
                ClientStatus {
                    cpu: Some(1),
                    place: Some(Place::Beside { cpu: 1 }),
                    timing: Some(timing),
                    late_cycles: 3,
                    ..client("synthé", 17)
                },
                ClientStatus { bypassed: true, ..client("a stuck one", 123_456) },
                ClientStatus { active: false, ..client("idle", 5) },
            ],
            ports: (12, 2048),
            connections: 8,
        }
    }

    #[test]
    fn columns_are_aligned_for_names_of_any_length() {
        assert_eq!(
            as_text(&sample()),
            "\
server   default, consort 0.1.0, pid 4321
driver   timer, 48000 Hz, asynchronous, real-time priority 10
quantum  64 frames (1.333 ms)
places   on CPUs 0 (the driver's), 1: ends 97.0 µs after the driver lets the first run, all on its CPU 143.0 µs
load     12.3 %
xruns    2 in 75000 cycles
graph    3 clients, 12 of 2048 ports, 8 connections

client          pid  state     cpu  scheduling    max  duration     max  late  place
synthé           17  active      1         4.9  123.5       0.0  1000.0     3  1, in parallel
a stuck one  123456  bypassed    -           -      -         -       -     0  -
idle              5  inactive    -           -      -         -       -     0  -

Times in µs, median and longest: scheduling is signaled to awake, duration awake to finished.
A client runs on the CPU of the client that wakes it, where waking takes 5.1 µs, or in parallel, on another CPU,
where waking takes 51.0 µs, if the graph ends earlier that way.
"
        );
    }

    #[test]
    fn each_place_shows_its_reason() {
        for (given, text) in [
            (Place::After { cpu: 0, waker: None }, "0, after the driver"),
            (Place::After { cpu: 1, waker: Some("synthé".into()) }, "1, after synthé"),
            (Place::Beside { cpu: 1 }, "1, in parallel"),
            (Place::Late { left_ms: 4_001 }, "any for 5 s: it was late"),
            (Place::Refused { cpu: 1, left_ms: 4_000 }, "any for 4 s: it may not use 1"),
        ] {
            assert_eq!(place(&given), text);
        }
    }

    #[test]
    fn a_server_without_clients_shows_no_table() {
        let status = Status {
            clients: vec![],
            realtime_priority: None,
            placement: None,
            sync: true,
            ..sample()
        };
        let text = as_text(&status);
        assert!(text.ends_with("graph    0 clients, 12 of 2048 ports, 8 connections\n"), "{text}");
        assert!(text.contains("synchronous, not real-time\n"), "{text}");
        assert!(text.contains("places   chosen by the kernel\n"), "{text}");
    }

    #[test]
    fn unknown_values_are_null_in_json() {
        let json = as_json(&sample());
        assert_eq!(json["clients"][0]["timing"]["duration_max_ns"], 1_000_000);
        assert_eq!(json["clients"][1]["timing"], Value::Null);
        assert_eq!(json["clients"][2]["active"], false);
        assert_eq!((&json["ports"]["used"], &json["ports"]["max"]), (&json!(12), &json!(2048)));
        assert_eq!(json["realtime_priority"], 10);
        assert_eq!(json["load"], 0.1234);
    }
}
