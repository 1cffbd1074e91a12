//! From the model to a plan and every client's orders.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rt::cycle::Follower;
use rt::rouser::Rouser;
use rt::shm::{
    Edges, FIXED_WORDS, FOLLOWER_WORDS, FollowerOrder, InputSource, ORDERS_WORDS, OrdersWriter, OwnPage,
    absent, group_words,
};
use sys::memory::{PeerSlab, Shared};

use super::{Plan, PlanSeat, PlaybackSource, Pulse};
use crate::model::{Model, Port};
use crate::order::Order;
use crate::signal_pages::SignalPages;

/// Where a client slept in a plan, which decides who must wake it into the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sleep {
    /// It was in no plan: on its signal page.
    #[default]
    Absent,
    /// It waited for the driver only: on the cycle's word.
    Group,
    /// It waited for predecessors: on its signal page.
    Signals,
}

impl From<Edges> for Sleep {
    fn from(edges: Edges) -> Self {
        if edges == Edges::NONE { Self::Group } else { Self::Signals }
    }
}

/// What the builder needs of a client that runs.
#[derive(Debug)]
pub struct ClientView<'a> {
    /// Its own page.
    pub own: &'a Arc<Shared<OwnPage>>,
    /// Its signal pages.
    pub signals: &'a SignalPages,
    /// How it keeps up.
    pub pulse: &'a Arc<Pulse>,
    /// Where it sleeps in the plan in force.
    pub sleep: Sleep,
    /// It may change the transport.
    pub controls: bool,
}

/// How to reach an output port's samples.
#[derive(Debug)]
pub enum SourceView {
    /// The client's own slab.
    Own,
    /// The reader has mapped the slab under this index.
    Mapped(u32),
    /// Not (yet): silence.
    Silent,
}

/// What the builder asks of the control thread's books.
pub trait Books {
    /// A client that runs.
    fn client(&self, id: u32) -> ClientView<'_>;
    /// Index under which `writer` has mapped the signal page of `reader`.
    fn signal_page(&self, writer: u32, reader: u32) -> Option<u32>;
    /// How `reader` reaches the slab of an output port.
    fn source(&self, reader: u32, port: &Port) -> SourceView;
    /// The slab of an output port as the server itself reads it.
    fn slab(&self, port: &Port) -> Option<Arc<PeerSlab>>;
    /// The CPU that a client is to run on, unless the kernel decides.
    fn cpu(&self, client: u32) -> Option<u32>;
    /// The driver's own, if clients are told where to run.
    fn driver_cpu(&self) -> Option<u32>;
    /// The thread that wakes so many clients of a CPU in the driver's place, if there is one and they are enough.
    fn rouser(&self, cpu: u32, clients: usize) -> Option<&Arc<Rouser>>;
    /// Whether clients must wake a driver that waits for the graph's end.
    fn driver_waits(&self) -> bool;
}

/// Id of the server's own client, whose ports are the driver's channels.
pub const SYSTEM: u32 = 1;

/// Fills `plan` and gives the orders of every client in it.
///
/// An edge is in the plan only if the writer can signal the reader and the reader can read the writer: as
/// long as one of the two has not mapped the other's memory, the reader hears silence and does not wait.
pub fn build(plan: &mut Plan, model: &Model, order: &Order, books: &impl Books) -> HashMap<u32, Vec<u32>> {
    let usable = |writer: u32, reader: u32| books.signal_page(writer, reader).is_some();
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
    let count = |client: u32| Edges::new(in_edges.get(&client).copied().unwrap_or(0)).unwrap_or(Edges::NONE);

    let edges: HashSet<(u32, u32)> = edges.into_iter().collect();
    let mut words = vec![0; ORDERS_WORDS];

    plan.clear();
    let mut heard_by_clients = false;
    let mut all_orders = HashMap::new();
    for client in &order.clients {
        let view = books.client(*client);
        let follows = followers.get(client).map_or(&[][..], Vec::as_slice);
        let sleep = Sleep::from(count(*client));
        plan.seats.push(PlanSeat {
            client: *client,
            own: Arc::clone(view.own),
            signals: Arc::clone(&view.signals.current().shared),
            left: view.signals.left().cloned(),
            edges: count(*client),
            followers: follows
                .iter()
                .map(|(reader, edge)| Follower { seat: seat_of[reader], edge: *edge })
                .collect(),
            enters: view.sleep != Sleep::Group && view.sleep != sleep,
            pulse: Arc::clone(view.pulse),
            controls: view.controls,
        });
        let follower_orders = follows.iter().filter_map(|(reader, edge)| {
            let page = books.signal_page(*client, *reader)?;
            Some(FollowerOrder { page, edge: *edge, edges: count(*reader).count() })
        });
        let groups = input_groups(model, order, *client, books, &edges);
        heard_by_clients |= hears_system(model, *client, books);
        let place = view.signals.current().place();
        let mut writer =
            OrdersWriter::new(&mut words, books.cpu(*client), count(*client), books.driver_waits());
        writer.page(place);
        // Connections are refused before they can exceed the orders' room: see `has_room`.
        let orders = orders_words(writer, follower_orders, &groups).unwrap_or_else(|| absent(place).to_vec());
        all_orders.insert(*client, orders);
    }
    plan.playback = playback(model, order, books);
    plan.heard = heard(model);
    super::wakes::settle(plan, books);
    plan.has_audience = has_audience(model, plan, heard_by_clients);
    all_orders
}

/// The inputs of a client that have sources: (sources, the client's numbers of the ports that share them).
type Groups = Vec<(Vec<InputSource>, Vec<u32>)>;

fn input_groups(
    model: &Model,
    order: &Order,
    reader: u32,
    books: &impl Books,
    edges: &HashSet<(u32, u32)>,
) -> Groups {
    let all_usable = edges.len() == order.edges.len();
    let mut groups = Groups::new();
    for input in model.ports_of(reader).filter(|port| port.is_input()) {
        let sources: Vec<InputSource> = input
            .links
            .iter()
            .filter_map(|link| {
                let output = model.port(link.other)?;
                let writer = output.owner;
                // The reader runs before the writer because of the edges between them: all must be there.
                let feedback = all_usable && order.feedback.contains(&(writer, reader));
                // A writer that is in no plan is not heard, nor is one that cannot signal.
                if writer != SYSTEM && writer != reader && !feedback && !edges.contains(&(writer, reader)) {
                    return None;
                }
                let (slab, own) = match books.source(reader, output) {
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

/// Whether a client hears one of the driver's ports.
fn hears_system(model: &Model, client: u32, books: &impl Books) -> bool {
    let inputs = model.ports_of(client).filter(|port| port.is_input());
    let outputs = inputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
    let mut of_system = outputs.filter(|output| output.owner == SYSTEM);
    of_system.any(|output| matches!(books.source(client, output), SourceView::Mapped(_)))
}

fn has_audience(model: &Model, plan: &Plan, heard_by_clients: bool) -> bool {
    let played_into = plan.playback.iter().any(|sources| !sources.is_empty());
    let can_capture = model.ports_of(SYSTEM).any(Port::is_output);
    heard_by_clients || (played_into && !can_capture)
}

fn orders_words(
    mut writer: OrdersWriter<'_>,
    followers: impl Iterator<Item = FollowerOrder>,
    groups: &Groups,
) -> Option<Vec<u32>> {
    followers.for_each(|order| writer.follower(order));
    groups.iter().for_each(|(sources, inputs)| writer.group(sources, inputs));
    writer.finish().map(<[u32]>::to_vec)
}

/// Whether the orders of `client` have room for one more connection.
///
/// Counts as if no two inputs shared their sources and each connection had a follower of its own.
pub fn has_room(model: &Model, client: u32) -> bool {
    if client == SYSTEM {
        return true;
    }
    let words = model.ports_of(client).map(|port| match port.links.len() {
        0 => 0,
        links if port.is_output() => links * FOLLOWER_WORDS,
        links => group_words(links, 1),
    });
    words.sum::<usize>() + FIXED_WORDS + FOLLOWER_WORDS + group_words(1, 1) <= ORDERS_WORDS
}

fn heard(model: &Model) -> Vec<bool> {
    model.ports_of(SYSTEM).filter(|port| port.is_output()).map(|output| !output.links.is_empty()).collect()
}

fn playback(model: &Model, order: &Order, books: &impl Books) -> Vec<Vec<PlaybackSource>> {
    let inputs = model.ports_of(SYSTEM).filter(|port| port.is_input());
    inputs
        .map(|input| {
            let outputs = input.links.iter().filter_map(|link| model.port(link.other));
            outputs
                .filter(|output| output.owner == SYSTEM || order.clients.contains(&output.owner))
                .filter_map(|output| Some(PlaybackSource::new(books.slab(output)?, output.slot?.slot)))
                .collect()
        })
        .collect()
}
