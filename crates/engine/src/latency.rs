//! Latencies: how long the paths from the capture side and to the playback side are.
//!
//! One pass goes over the clients in topological order (backwards for playback). A client with a
//! latency callback is asked once everything before it is known. For all others, the rule of
//! `jack.h` holds: outputs have the smallest and the largest latency of the inputs.

use rt::shm::LatencyRange;

use crate::model::{Model, Port};

/// Returns the range that covers all of `ranges`; zero if there is no path.
fn widest(ranges: impl Iterator<Item = LatencyRange>) -> LatencyRange {
    ranges
        .reduce(|left, right| LatencyRange {
            min: left.min.min(right.min),
            max: left.max.max(right.max),
        })
        .unwrap_or_default()
}

/// Returns whether paths of this direction enter the client at `port`.
fn enters(port: &Port, capture: bool) -> bool {
    port.is_input() == capture
}

/// Recomputes the latencies of the ports where paths enter `client` from the ports that are
/// connected to them. Returns the ports whose latency has changed.
pub fn enter(model: &mut Model, client: u32, capture: bool) -> Vec<u32> {
    let ranges: Vec<(u32, LatencyRange)> = model
        .ports_of(client)
        .filter(|port| enters(port, capture))
        .map(|port| {
            let others = port.links.iter().filter_map(|link| model.port(link.other));
            (port.id, widest(others.map(|other| other.latency(capture))))
        })
        .collect();
    set(model, capture, ranges)
}

/// Carries the latencies through `client` by the default rule. Returns the ports whose latency has
/// changed. What a program with streams plays has nothing to do with what it records.
pub fn pass_through(model: &mut Model, client: u32, capture: bool) -> Vec<u32> {
    if model.is_stream_client(client) {
        return Vec::new();
    }
    let entering = model.ports_of(client).filter(|port| enters(port, capture));
    let range = widest(entering.map(|port| port.latency(capture)));
    let leaving = model.ports_of(client).filter(|port| !enters(port, capture));
    let ranges: Vec<_> = leaving.map(|port| (port.id, range)).collect();
    set(model, capture, ranges)
}

fn set(model: &mut Model, capture: bool, ranges: Vec<(u32, LatencyRange)>) -> Vec<u32> {
    ranges
        .into_iter()
        .filter(|(port, range)| model.set_latency(*port, capture, *range))
        .map(|(port, _)| port)
        .collect()
}
