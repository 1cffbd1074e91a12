//! From the model to a plan and every client's assignments. Thread: control.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rt::cycle::Follower;
use rt::shm::{
    ASSIGNMENT_WORDS, AssignmentWriter, Edges, FIXED_WORDS, FOLLOWER_WORDS, FollowerEdge,
    InputSource, absent, group_words,
};

use super::view::SourceView;
use super::{GraphView, Plan, PlanSeat, PlaybackSource, Sleep, wakes};
use crate::model::{Model, Port};

/// Fills `plan` and gives the assignments of every client in it.
///
/// An edge is in the plan only if the writer can signal the reader and the reader can read the
/// writer: as long as one of the two has not mapped the other's memory, the reader hears silence
/// and does not wait.
pub fn build(plan: &mut Plan, graph: &GraphView<'_>) -> HashMap<u32, Vec<u32>> {
    let (model, order) = (graph.model, graph.order);
    let usable = |writer: u32, reader: u32| graph.signal_page(writer, reader).is_some();
    let edges: Vec<(u32, u32)> =
        order.edges.iter().copied().filter(|(writer, reader)| usable(*writer, *reader)).collect();
    let seat_of: HashMap<u32, usize> =
        order.clients.iter().enumerate().map(|(seat, client)| (*client, seat)).collect();
    let mut in_edges: HashMap<u32, u32> = HashMap::new();
    let mut followers: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
    for (writer, reader) in &edges {
        let edge = in_edges.entry(*reader).or_default();
        followers.entry(*writer).or_default().push((*reader, *edge));
        *edge += 1;
    }
    let count = |client: u32| {
        Edges::new(in_edges.get(&client).copied().unwrap_or(0)).unwrap_or(Edges::NONE)
    };

    let edges: HashSet<(u32, u32)> = edges.into_iter().collect();
    let early = wakes::early(graph, |client| count(client) == Edges::NONE);
    let mut words = vec![0; ASSIGNMENT_WORDS];

    plan.clear();
    let mut heard_by_clients = false;
    let mut assignments = HashMap::new();
    for client in &order.clients {
        let Some(view) = graph.clients.get(client) else { continue };
        let mut follows = followers.remove(client).unwrap_or_default();
        wakes::order_followers(graph, *client, &mut follows);
        let sleep = Sleep::from(count(*client));
        plan.seats.push(PlanSeat {
            client: *client,
            own: Arc::clone(view.own),
            assignments: Arc::clone(view.assignments),
            signals: Arc::clone(&view.signals.current().shared),
            left: view.signals.left().cloned(),
            edges: count(*client),
            followers: follows
                .iter()
                .map(|(reader, edge)| Follower { seat: seat_of[reader], edge: *edge })
                .collect(),
            enters: view.sleep != sleep,
            health: Arc::clone(view.health),
            thread: view.thread.map(Arc::clone),
            controls: view.controls,
            feeds_playback: false,
        });
        let follower_edges = follows.iter().filter_map(|(reader, edge)| {
            let page = graph.signal_page(*client, *reader)?;
            Some(FollowerEdge { page, edge: *edge, edges: count(*reader).count() })
        });
        let groups = input_groups(graph, *client, &edges);
        heard_by_clients |= hears_driver(graph, *client);
        let place = view.signals.current().place();
        let mut writer = AssignmentWriter::new(
            &mut words,
            graph.cpu(*client),
            count(*client),
            graph.driver_waits,
        );
        writer.page(place);
        if early.contains(client) {
            writer.wake_early();
        }
        // Connections are refused before they can exceed the assignments' room: see `has_room`.
        let assignment = assignment_words(writer, follower_edges, &groups)
            .unwrap_or_else(|| absent(place).to_vec());
        assignments.insert(*client, assignment);
    }
    plan.playback = playback(graph);
    plan.recorded = recorded(graph);
    note_feeders(plan, model);
    plan.connected = connected(model);
    wakes::settle(plan, graph, &early);
    plan.has_listeners = has_listeners(model, plan, heard_by_clients);
    assignments
}

/// The inputs of a client that have sources: (sources, the client's numbers of the ports that share
/// them).
type Groups = Vec<(Vec<InputSource>, Vec<u32>)>;

fn input_groups(graph: &GraphView<'_>, reader: u32, edges: &HashSet<(u32, u32)>) -> Groups {
    let (model, order) = (graph.model, graph.order);
    let all_usable = edges.len() == order.edges.len();
    let mut groups = Groups::new();
    for input in model.ports_of(reader).filter(|port| port.is_input()) {
        let sources: Vec<InputSource> = input
            .links
            .iter()
            .filter_map(|link| {
                let output = model.port(link.other)?;
                let writer = output.owner;
                // The reader runs before the writer because of the edges between them: all must be
                // there.
                let feedback = all_usable && order.feedback.contains(&(writer, reader));
                // A writer that is in no plan is silent, and so is one that cannot signal.
                if !model.is_server_written(writer)
                    && writer != reader
                    && !feedback
                    && !edges.contains(&(writer, reader))
                {
                    return None;
                }
                let (slab, own) = match graph.source(reader, output) {
                    SourceView::Own => (output.slot?.slab, true),
                    SourceView::Mapped(index) => (index, false),
                    SourceView::Silent => return None,
                };
                Some(InputSource { slab, slot: output.slot?.slot, feedback, own })
            })
            .collect();
        if sources.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|(known, _)| *known == sources) {
            Some((_, inputs)) => inputs.push(input.number),
            None => groups.push((sources, vec![input.number])),
        }
    }
    groups
}

/// Returns whether a client hears one of the driver's ports.
fn hears_driver(graph: &GraphView<'_>, client: u32) -> bool {
    let model = graph.model;
    let inputs = model.ports_of(client).filter(|port| port.is_input());
    let outputs = inputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
    let mut of_driver = outputs.filter(|output| model.is_driver(output.owner));
    of_driver.any(|output| matches!(graph.source(client, output), SourceView::Mapped(_)))
}

fn has_listeners(model: &Model, plan: &Plan, heard_by_clients: bool) -> bool {
    let can_capture = model.driver_ports().any(Port::is_output);
    heard_by_clients || (plan.plays() && !can_capture)
}

fn assignment_words(
    mut writer: AssignmentWriter<'_>,
    followers: impl Iterator<Item = FollowerEdge>,
    groups: &Groups,
) -> Option<Vec<u32>> {
    followers.for_each(|order| writer.follower(order));
    groups.iter().for_each(|(sources, inputs)| writer.group(sources, inputs));
    writer.finish().map(<[u32]>::to_vec)
}

/// Whether the assignments of `client` have room for one more connection.
///
/// Devices and programs with streams have none. Assumes the worst case: no two inputs share their
/// sources, and each connection has a follower of its own.
pub fn has_room(model: &Model, client: u32) -> bool {
    if model.is_server_written(client) {
        return true;
    }
    let words = model.ports_of(client).map(|port| match port.links.len() {
        0 => 0,
        links if port.is_output() => links * FOLLOWER_WORDS,
        links => group_words(links, 1),
    });
    words.sum::<usize>() + FIXED_WORDS + FOLLOWER_WORDS + group_words(1, 1) <= ASSIGNMENT_WORDS
}

fn connected(model: &Model) -> Vec<bool> {
    let outputs = || model.driver_ports().filter(|port| port.is_output());
    let mut connected =
        vec![false; outputs().map(|port| port.number as usize + 1).max().unwrap_or(0)];
    for output in outputs() {
        connected[output.number as usize] = !output.links.is_empty();
    }
    connected
}

/// Notes from which clients a path leads to what the driver mixes. Each seat comes after those that
/// it follows.
fn note_feeders(plan: &mut Plan, model: &Model) {
    let inputs = model.inputs_of_server();
    let outputs = inputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
    let played: HashSet<u32> = outputs.map(|output| output.owner).collect();
    for index in (0..plan.seats.len()).rev() {
        let seat = &plan.seats[index];
        let feeds = |follower: &Follower| plan.seats[follower.seat].feeds_playback;
        plan.seats[index].feeds_playback =
            played.contains(&seat.client) || seat.followers.iter().any(feeds);
    }
}

fn playback(graph: &GraphView<'_>) -> Vec<Vec<PlaybackSource>> {
    let (model, order) = (graph.model, graph.order);
    let is_written =
        |output: &Port| model.is_device(output.owner) || order.clients.contains(&output.owner);
    let inputs = model.driver_ports().filter(|port| port.is_input());
    // What streams play there is rendered, and not mixed in cycles.
    inputs.map(|input| sources(graph, input, is_written)).collect()
}

/// The streams that record something else than silence: without those, a stream needs no cycles.
fn recorded(graph: &GraphView<'_>) -> Vec<(u32, Vec<Vec<PlaybackSource>>)> {
    let (model, order) = (graph.model, graph.order);
    let is_written = |output: &Port| {
        let is_silence = model.is_driver(output.owner) && !graph.driver_captures;
        (model.is_server_written(output.owner) && !is_silence)
            || order.clients.contains(&output.owner)
    };
    let of_stream = |(number, ports): &(u32, Vec<u32>)| {
        let inputs = ports.iter().filter_map(|port| model.port(*port));
        let channels: Vec<_> = inputs.map(|input| sources(graph, input, is_written)).collect();
        let is_fed = channels.iter().any(|sources| !sources.is_empty());
        is_fed.then_some((*number, channels))
    };
    graph.recorders.iter().filter_map(of_stream).collect()
}

/// The buffers that the driver mixes for an input port.
fn sources(
    graph: &GraphView<'_>,
    input: &Port,
    is_written: impl Fn(&Port) -> bool,
) -> Vec<PlaybackSource> {
    let outputs = input.links.iter().filter_map(|link| graph.model.port(link.other));
    let source = |output: &Port| Some(PlaybackSource::new(graph.slab(output)?, output.slot?.slot));
    outputs.filter(|output| is_written(output)).filter_map(source).collect()
}
