//! Metrics in Prometheus' text format.
//!
//! Counters are the server's own, since its start. Histograms and counters derived from the
//! recording begin with this process. A counter that falls has started over, as Prometheus expects.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use client::TransportState;
use proto::status::Status;
use proto::xrun::Verdict;
use rt::record::{ClientRecord, CycleRecord, Record};

/// Upper bounds of a histogram's buckets, in ns.
const BUCKETS_NS: [u64; 13] = [
    5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000,
    10_000_000, 20_000_000, 50_000_000,
];

/// Content type of the answer.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone, Copy, Default)]
struct Histogram {
    /// Count of each bucket alone; the last one has no upper bound.
    counts: [u64; BUCKETS_NS.len() + 1],
    sum_ns: u64,
}

impl Histogram {
    fn add(&mut self, time_ns: u64) {
        let bucket = BUCKETS_NS.partition_point(|end| *end < time_ns);
        self.counts.iter_mut().skip(bucket).take(1).for_each(|count| *count += 1);
        self.sum_ns = self.sum_ns.saturating_add(time_ns);
    }
}

/// A client's figures since it was first seen.
#[derive(Debug, Default)]
struct Client {
    scheduling: Histogram,
    duration: Histogram,
    wakeups: u64,
}

/// Figures derived from the recording.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    names: BTreeMap<u32, String>,
    clients: BTreeMap<u32, Client>,
    wakeup: Histogram,
    end: Histogram,
    newest: CycleRecord,
    lost: u64,
    verdicts: BTreeMap<&'static str, u64>,
}

impl Metrics {
    /// Records the name of the client `id`.
    pub(crate) fn name(&mut self, id: u32, name: &str) {
        self.names.insert(id, name.to_owned());
        self.clients.remove(&id);
    }

    /// Adds a record.
    pub(crate) fn add(&mut self, record: Record) {
        match record {
            Record::Cycle(cycle) => {
                self.wakeup.add(cycle.woken_ns.saturating_sub(cycle.due_ns));
                self.end.add(cycle.end_ns.saturating_sub(cycle.woken_ns));
                self.newest = cycle;
            }
            Record::Client(client) if client.cycle == self.newest.cycle => self.add_client(&client),
            Record::Client(_) => {}
        }
    }

    fn add_client(&mut self, record: &ClientRecord) {
        let client = self.clients.entry(record.client).or_default();
        client.wakeups += u64::from(record.awake_ns != 0);
        record.scheduling_ns().into_iter().for_each(|time_ns| client.scheduling.add(time_ns));
        record.duration_ns().into_iter().for_each(|time_ns| client.duration.add(time_ns));
    }

    /// Adds records that were overwritten before they were read.
    pub(crate) fn lost(&mut self, records: u64) {
        self.lost = self.lost.saturating_add(records);
    }

    /// Adds the diagnosis of an xrun.
    pub(crate) fn judged(&mut self, verdict: &Verdict) {
        *self.verdicts.entry(verdict.word()).or_default() += 1;
    }

    /// Returns all metrics as text.
    pub(crate) fn text(
        &self,
        status: &Status,
        transport: TransportState,
        browsers: usize,
    ) -> String {
        let mut page = Page::default();
        page.one("up", "gauge", "Whether the server answers", 1);
        page.one("cycles_total", "counter", "Cycles since the server started", status.cycles);
        page.one("xruns_total", "counter", "Xruns since the server started", status.xruns);
        page.one(
            "dsp_load_ratio",
            "gauge",
            "Fraction of the period that the graph takes",
            status.load,
        );
        page.one("sample_rate_hertz", "gauge", "Sample rate", status.sample_rate_hz);
        page.one("quantum_frames", "gauge", "Length of a cycle", status.quantum);
        let period = f64::from(status.quantum) / f64::from(status.sample_rate_hz.max(1));
        page.one("period_seconds", "gauge", "Length of a cycle", period);
        page.one(
            "sync_mode",
            "gauge",
            "Whether the driver waits for the graph's end",
            u8::from(status.sync),
        );
        page.one(
            "freewheel",
            "gauge",
            "Whether cycles run as fast as the clients can",
            u8::from(status.freewheel),
        );
        let rolling = u8::from(transport == TransportState::Rolling);
        page.one("transport_rolling", "gauge", "Whether the transport rolls", rolling);
        page.one("ports", "gauge", "Ports in use", status.ports.0);
        page.one("ports_limit", "gauge", "Maximum number of ports", status.ports.1);
        page.one("connections", "gauge", "Connections between ports", status.connections);
        page.one("clients", "gauge", "Clients", status.clients.len());
        page.one("browsers", "gauge", "Browsers that watch the server's page", browsers);
        page.one(
            "recording_lost_records_total",
            "counter",
            "Records overwritten before they were counted here",
            self.lost,
        );
        page.histograms(
            "driver_wakeup_latency_seconds",
            "From a cycle's due time to the driver's wake-up",
            &[(None, &self.wakeup)],
        );
        page.histograms(
            "driver_end_seconds",
            "From the driver's wake-up until it has done its part",
            &[(None, &self.end)],
        );
        self.put_clients(&mut page, status);
        page.head("xrun_verdicts_total", "counter", "Xruns by cause");
        for (verdict, count) in &self.verdicts {
            page.sample("xrun_verdicts_total", &[("verdict", verdict)], count);
        }
        page.text
    }

    fn put_clients(&self, page: &mut Page, status: &Status) {
        type Value = fn(&proto::status::ClientStatus) -> u64;
        let metrics: [(&str, &str, &str, Value); 4] = [
            ("client_active", "gauge", "Whether the client takes part in cycles", |client| {
                client.active.into()
            }),
            (
                "client_bypassed",
                "gauge",
                "Whether the client is left out because it did not answer",
                |client| client.bypassed.into(),
            ),
            ("client_bypasses_total", "counter", "Times that the client was left out", |client| {
                client.bypasses
            }),
            (
                "client_late_cycles_total",
                "counter",
                "Cycles in which the client was late",
                |client| client.late_cycles,
            ),
        ];
        for (name, kind, help, value) in metrics {
            page.head(name, kind, help);
            for client in &status.clients {
                page.sample(name, &[("client", &client.name)], value(client));
            }
        }
        let known = status.clients.iter().filter_map(|client| {
            self.clients.get(&client.id).map(|counted| (client.name.as_str(), counted))
        });
        let known: Vec<(&str, &Client)> = known.collect();
        page.head("client_wakeups_total", "counter", "Cycles that the client began");
        for (name, client) in &known {
            page.sample("client_wakeups_total", &[("client", name)], client.wakeups);
        }
        let of = |part: fn(&Client) -> &Histogram| -> Vec<(Option<&str>, &Histogram)> {
            known.iter().map(|(name, client)| (Some(*name), part(client))).collect()
        };
        let scheduling = of(|client| &client.scheduling);
        page.histograms("client_scheduling_latency_seconds", "From signaled to awake", &scheduling);
        page.histograms(
            "client_duration_seconds",
            "From awake to finished",
            &of(|client| &client.duration),
        );
    }
}

/// Returns the text while there is no server.
pub(crate) fn without_server() -> String {
    let mut page = Page::default();
    page.one("up", "gauge", "Whether the server answers", 0);
    page.text
}

#[derive(Debug, Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "# HELP consort_{name} {help}.\n# TYPE consort_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "consort_{name}");
        for (number, (label, value)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(value));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }

    fn histograms(&mut self, name: &str, help: &str, histograms: &[(Option<&str>, &Histogram)]) {
        self.head(name, "histogram", help);
        for (client, histogram) in histograms {
            let labels: Vec<(&str, &str)> =
                client.iter().map(|client| ("client", *client)).collect();
            let mut total = 0;
            for (bucket, count) in histogram.counts.iter().enumerate() {
                total += count;
                let end = BUCKETS_NS
                    .get(bucket)
                    .map_or_else(|| "+Inf".into(), |end_ns| seconds(*end_ns).to_string());
                let labels = [&labels[..], &[("le", end.as_str())]].concat();
                self.sample(&format!("{name}_bucket"), &labels, total);
            }
            self.sample(&format!("{name}_sum"), &labels, seconds(histogram.sum_ns));
            self.sample(&format!("{name}_count"), &labels, total);
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Client names come from arbitrary programs and must be escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use proto::status::ClientStatus;

    use super::*;

    fn status(name: &str) -> Status {
        let client = ClientStatus {
            id: 2,
            name: name.into(),
            process: 1,
            active: true,
            bypassed: false,
            bypasses: 3,
            late_cycles: 7,
            cpu: None,
            place: None,
            timing: None,
        };
        Status {
            name: "default".into(),
            version: "1".into(),
            process: 1,
            driver: "timer".into(),
            sample_rate_hz: 48_000,
            quantum: 48,
            sync: true,
            freewheel: false,
            realtime_priority: None,
            cycles: 5_000_000_000,
            xruns: 2,
            load: 0.25,
            placement: None,
            clients: vec![client],
            ports: (4, 2048),
            connections: 1,
        }
    }

    #[test]
    fn times_are_seconds_in_buckets_that_include_all_below_them() {
        let mut metrics = Metrics::default();
        metrics.name(2, "synth");
        for (cycle, duration_ns) in [(1, 100_000), (2, 100_001), (3, 60_000_000)] {
            metrics.add(Record::Cycle(CycleRecord { cycle, ..CycleRecord::default() }));
            let (awake_ns, finished_ns) = (20_000, 20_000 + duration_ns);
            let record = ClientRecord {
                cycle,
                client: 2,
                signaled_ns: 10_000,
                awake_ns,
                finished_ns,
                ..ClientRecord::default()
            };
            metrics.add(Record::Client(record));
        }
        metrics.judged(&Verdict::Busy);
        let text = metrics.text(&status("synth"), TransportState::Rolling, 4);
        for line in [
            "consort_cycles_total 5000000000",
            "consort_dsp_load_ratio 0.25",
            "consort_period_seconds 0.001",
            "consort_sync_mode 1",
            "consort_transport_rolling 1",
            "consort_browsers 4",
            "consort_client_bypasses_total{client=\"synth\"} 3",
            "consort_client_late_cycles_total{client=\"synth\"} 7",
            "consort_client_wakeups_total{client=\"synth\"} 3",
            "consort_client_duration_seconds_bucket{client=\"synth\",le=\"0.00005\"} 0",
            "consort_client_duration_seconds_bucket{client=\"synth\",le=\"0.0001\"} 1",
            "consort_client_duration_seconds_bucket{client=\"synth\",le=\"0.0002\"} 2",
            "consort_client_duration_seconds_bucket{client=\"synth\",le=\"0.05\"} 2",
            "consort_client_duration_seconds_bucket{client=\"synth\",le=\"+Inf\"} 3",
            "consort_client_duration_seconds_sum{client=\"synth\"} 0.060200001",
            "consort_client_duration_seconds_count{client=\"synth\"} 3",
            "consort_client_scheduling_latency_seconds_sum{client=\"synth\"} 0.00003",
            "consort_xrun_verdicts_total{verdict=\"busy\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing:\n{text}");
        }
    }

    #[test]
    fn every_sample_follows_its_type() {
        let mut metrics = Metrics::default();
        metrics.judged(&Verdict::Busy);
        let text = metrics.text(&status("a\"b\\c\nd} 1"), TransportState::Stopped, 0);
        assert!(text.contains("{client=\"a\\\"b\\\\c\\nd} 1\"} 1\n"), "{text}");
        let mut announced = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                announced.push(rest.split(' ').next().unwrap().to_owned());
            } else if !line.starts_with("# HELP consort_") {
                let name = line.split(['{', ' ']).next().unwrap();
                let base =
                    ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                let newest = announced.last().expect("announced");
                assert!(newest == name || base == Some(newest), "{line}");
                assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
            }
        }
        let mut once = announced.clone();
        once.dedup();
        assert_eq!(once, announced, "each once");
    }

    #[test]
    fn a_client_that_reuses_an_id_starts_from_zero() {
        let mut metrics = Metrics::default();
        metrics.name(2, "synth");
        metrics.add(Record::Cycle(CycleRecord::default()));
        metrics.add(Record::Client(ClientRecord {
            client: 2,
            awake_ns: 1,
            ..ClientRecord::default()
        }));
        metrics.name(2, "reverb");
        let text = metrics.text(&status("reverb"), TransportState::Stopped, 0);
        assert!(!text.contains("client_wakeups_total{"), "{text}");
    }
}
