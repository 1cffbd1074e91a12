//! Connections among 50 clients: how long the call takes, when others see it, when the sound
//! follows; and how much memory the server uses with those clients.

use std::time::Duration;

use anyhow::{Context, Result};

use crate::client::{Node, Patcher, Request};
use crate::measure::stream::Stream;
use crate::measure::{Bench, subject, us};
use crate::proc;
use crate::recording::{Record, Recording};
use crate::report::{Report, Subject};
use crate::server::{PERIOD_NS, Server, Settings};

const CLIENTS: usize = 50;
const GROUP: usize = 10;
/// Cycles that each lane holds: 87 seconds at 64 frames.
const CAPACITY: usize = 1 << 16;
/// Between two requests, at least: seven cycles, more than any of the servers takes to follow.
const PAUSE: Duration = Duration::from_millis(10);
/// Chains use port 0; what is measured runs between ports 1.
const MEASURED_INPUT: u32 = 1 << 1;

pub fn run(bench: Bench) -> Result<()> {
    let Bench { candidate, programs, workplace, arguments, report, .. } = bench;
    let (server, mut patcher) =
        Server::start(candidate, programs, workplace, &Settings::new(arguments.sync))?;
    let recording = Recording::new(workplace, CLIENTS, CAPACITY)?;
    let nodes = start_clients(&server, &mut patcher, &recording)?;
    let mut stream = Stream::start(&server, &mut patcher)?;
    let subject = subject(&server, &nodes[0])?;
    report.spread(
        &subject,
        "server memory, 50 clients: PSS",
        "KiB",
        [proc::pss_kib(server.pid)? as f64],
    );
    report.spread(
        &subject,
        "server memory, 50 clients: RSS",
        "KiB",
        [proc::rss_kib(server.pid)? as f64],
    );

    let mut observer = server.patcher("observer")?;
    let span = stream.begin()?;
    let mut connected = Vec::new();
    for number in 0..arguments.connections_per_round() as usize {
        let pair = pair(number);
        let (source, target) = (format!("c{}:out_1", pair.0), format!("c{}:in_1", pair.1));
        // Every second connection is not watched, so that watching cannot be what takes the time.
        let watched = number % 2 == 0;
        if watched {
            observer.watch(&source, &target)?;
        }
        let request = patcher.connect(&source, &target)?;
        report_request(&request, watched.then_some(&observer), &subject, report)?;
        std::thread::sleep(pause(2 * number));
        connected.push((pair.1, request));
        let undone = patcher.disconnect(&source, &target)?;
        report.spread(
            &subject,
            "jack_disconnect, 50 clients",
            "µs",
            [us(undone.returned_ns - undone.called_ns)],
        );
        std::thread::sleep(pause(2 * number + 1));
    }
    stream.end(&span, "connects", &subject, report)?;
    report_sound(&connected, &recording, &subject, report)?;

    stream.stop()?;
    for node in nodes {
        node.close()?;
    }
    observer.close()?;
    patcher.close()?;
    server.stop()
}

/// 50 active clients, in chains of ten.
fn start_clients(
    server: &Server,
    patcher: &mut Patcher,
    recording: &Recording,
) -> Result<Vec<Node>> {
    let mut nodes = Vec::with_capacity(CLIENTS);
    for lane in 0..CLIENTS {
        let mut arguments = vec!["tone".into(), "2".into(), "2".into()];
        arguments.extend(recording.arguments(lane));
        let node = server.node(&format!("c{lane}"), &arguments)?;
        node.ready()?;
        nodes.push(node);
    }
    for target in (0..CLIENTS).filter(|client| client % GROUP != 0) {
        patcher.connect(&format!("c{}:out_0", target - 1), &format!("c{target}:in_0"))?;
    }
    Ok(nodes)
}

/// The clients of the nth measured connection: always from a lower number to a higher one, so that
/// no cycle closes.
fn pair(number: usize) -> (usize, usize) {
    let source = number * 7 % (CLIENTS - 1);
    (source, source + 1 + number * 11 % (CLIENTS - 1 - source))
}

/// The nth pause. Requests at equal distances would meet all cycles at the same point, and measure
/// that point: the golden section spreads them over the cycle.
fn pause(number: usize) -> Duration {
    const GOLDEN_SECTION: f64 = 0.618_033_988_749_894_8;
    PAUSE + Duration::from_nanos(PERIOD_NS).mul_f64((number as f64 * GOLDEN_SECTION).fract())
}

fn report_request(
    request: &Request,
    observer: Option<&Patcher>,
    subject: &Subject,
    report: &mut Report,
) -> Result<()> {
    let took = us(request.returned_ns - request.called_ns);
    let Some(observer) = observer else {
        report.spread(subject, "jack_connect, 50 clients", "µs", [took]);
        return Ok(());
    };
    let seen_ns = observer.seen().context("the connection was never seen")?;
    report.spread(subject, "jack_connect, 50 clients, while watched", "µs", [took]);
    let after_call = us(seen_ns.saturating_sub(request.called_ns));
    report.spread(subject, "  until another process sees it", "µs", [after_call]);
    Ok(())
}

/// The target's records say when the sound came.
fn report_sound(
    connected: &[(usize, Request)],
    recording: &Recording,
    subject: &Subject,
    report: &mut Report,
) -> Result<()> {
    let lanes = (0..CLIENTS).map(|lane| recording.records(lane, 0)).collect::<Result<Vec<_>>>()?;
    let mut never_heard = 0;
    for (target, request) in connected {
        match cycles_until_heard(&lanes[*target], request.returned_ns, PAUSE) {
            Some(cycles) => report.spread(
                subject,
                "sound after jack_connect returned",
                "cycles",
                [cycles as f64],
            ),
            None => never_heard += 1,
        }
    }
    report.total(subject, "  never heard within 10 ms", "connections", never_heard);
    Ok(())
}

/// How many cycles the target began after `returned_ns`, up to and with the first that heard the
/// source; 0 if it already heard it in its last cycle before. `None` if it did not hear it within
/// `limit`.
fn cycles_until_heard(records: &[Record], returned_ns: u64, limit: Duration) -> Option<usize> {
    let next = records.partition_point(|record| record.entry_ns <= returned_ns);
    let hears = |record: &Record| record.heard & MEASURED_INPUT != 0;
    if next > 0 && hears(&records[next - 1]) {
        return Some(0);
    }
    let end_ns = returned_ns + limit.as_nanos() as u64;
    let in_time = records[next..].iter().take_while(|record| record.entry_ns <= end_ns);
    in_time.enumerate().find(|(_, record)| hears(record)).map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_counted_from_the_return_to_the_first_with_sound() {
        let hearing = [false, false, false, true, true];
        let records: Vec<Record> = (0u64..)
            .zip(hearing)
            .map(|(number, hears)| Record {
                entry_ns: 1000 * (number + 1),
                heard: if hears { MEASURED_INPUT | 1 } else { 1 },
                ..Record::default()
            })
            .collect();
        let limit = Duration::from_micros(3);
        let cases = [
            ("returned three cycles before the sound", 1500, Some(3)),
            ("returned just before it", 3999, Some(1)),
            ("returned after it", 4000, Some(0)),
            ("returned before the limit reaches it", 500, None),
            ("returned after the recording's end", 9000, Some(0)),
        ];
        for (case, returned_ns, expected) in cases {
            assert_eq!(cycles_until_heard(&records, returned_ns, limit), expected, "{case}");
        }
        assert_eq!(cycles_until_heard(&records[..3], 1500, limit), None);
        assert_eq!(cycles_until_heard(&[], 0, limit), None);
    }

    #[test]
    fn measured_connections_never_close_a_cycle() {
        for number in 0..5000 {
            let (source, target) = pair(number);
            assert!(source < target && target < CLIENTS);
            assert_ne!(pair(number), pair(number + 1));
        }
    }
}
