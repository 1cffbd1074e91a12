//! The order of the clients: who runs before whom, and which connections are feedback.

use std::collections::{HashMap, HashSet};

use crate::model::Model;

/// Which client feeds which, in an order in which all could run one after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The clients; each one after those that it waits for.
    pub clients: Vec<u32>,
    /// (Predecessor, follower) pairs that make the follower wait, each once.
    pub edges: Vec<(u32, u32)>,
    /// (Writer, reader) pairs where the reader runs first and hears the cycle before.
    pub feedback: HashSet<(u32, u32)>,
}

/// Orders `members`; connections with other clients do not count.
///
/// A loop is cut at its youngest connection, as the 2004 paper and JACK2 do: what was connected
/// first keeps its timing. A client that is connected with itself never waits for itself.
pub fn order(model: &Model, members: &[u32]) -> Order {
    let edges = edges_by_age(model, members);
    if let Some(clients) = sorted(members, &edges) {
        return Order { clients, edges, feedback: HashSet::new() };
    }
    let mut followers: HashMap<u32, Vec<u32>> = HashMap::new();
    let (mut kept, mut feedback) = (Vec::new(), HashSet::new());
    for (source, destination) in edges {
        if reaches(&followers, destination, source) {
            feedback.insert((source, destination));
        } else {
            followers.entry(source).or_default().push(destination);
            kept.push((source, destination));
        }
    }
    let clients = sorted(members, &kept).unwrap_or_else(|| members.to_vec());
    Order { clients, edges: kept, feedback }
}

/// Returns whether sound from `reader` reaches `writer`, so that a connection the other way closes
/// a loop. No loop passes through a device or a program with streams.
pub fn would_close_loop(model: &Model, writer: u32, reader: u32) -> bool {
    let is_passed = |client: &u32| !model.is_server_written(*client);
    let members: Vec<u32> = model.programs().filter(is_passed).collect();
    let mut followers: HashMap<u32, Vec<u32>> = HashMap::new();
    for (source, destination) in edges_by_age(model, &members) {
        followers.entry(source).or_default().push(destination);
    }
    let both = [writer, reader].iter().all(is_passed);
    both && reaches(&followers, reader, writer)
}

/// Each pair of connected clients once, by the age of its oldest connection.
fn edges_by_age(model: &Model, members: &[u32]) -> Vec<(u32, u32)> {
    let set: HashSet<u32> = members.iter().copied().collect();
    let mut ages: HashMap<(u32, u32), u64> = HashMap::new();
    for &source in members {
        for port in model.ports_of(source).filter(|port| port.is_output()) {
            for link in &port.links {
                let Some(destination) = model.port(link.other).map(|port| port.owner) else {
                    continue;
                };
                if destination != source && set.contains(&destination) {
                    let age = ages.entry((source, destination)).or_insert(link.age);
                    *age = link.age.min(*age);
                }
            }
        }
    }
    let mut edges: Vec<_> = ages.into_iter().collect();
    edges.sort_unstable_by_key(|(_, age)| *age);
    edges.into_iter().map(|(edge, _)| edge).collect()
}

/// Kahn's algorithm, in the order of `members` where the edges leave a choice; `None` if there is a
/// loop.
fn sorted(members: &[u32], edges: &[(u32, u32)]) -> Option<Vec<u32>> {
    let mut waiting: HashMap<u32, usize> = members.iter().map(|client| (*client, 0)).collect();
    let mut followers: HashMap<u32, Vec<u32>> = HashMap::new();
    for (source, destination) in edges {
        *waiting.get_mut(destination)? += 1;
        followers.entry(*source).or_default().push(*destination);
    }
    let mut ready: Vec<u32> =
        members.iter().rev().copied().filter(|client| waiting[client] == 0).collect();
    let mut order = Vec::with_capacity(members.len());
    while let Some(client) = ready.pop() {
        order.push(client);
        for follower in followers.get(&client).into_iter().flatten().rev() {
            let left = waiting.get_mut(follower)?;
            *left -= 1;
            if *left == 0 {
                ready.push(*follower);
            }
        }
    }
    (order.len() == members.len()).then_some(order)
}

fn reaches(followers: &HashMap<u32, Vec<u32>>, from: u32, to: u32) -> bool {
    let (mut seen, mut stack) = (HashSet::from([from]), vec![from]);
    while let Some(client) = stack.pop() {
        if client == to {
            return true;
        }
        let next = followers.get(&client).into_iter().flatten();
        stack.extend(next.filter(|follower| seen.insert(**follower)));
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::port_flags;
    use proto::request::{NewPort, PortType};

    use super::*;
    use crate::model::Limits;

    /// `count` active clients, each with an input and an output, connected as `edges` says.
    fn graph(count: u32, edges: &[(u32, u32)]) -> Model {
        let mut model = Model::new(Limits { clients: 32, ports: 64, connections: 1024 });
        for client in 1..=count {
            let id = model.open_client(&client.to_string(), true).unwrap();
            for (name, flags) in [("in", port_flags::INPUT), ("out", port_flags::OUTPUT)] {
                let new = NewPort {
                    name: name.into(),
                    port_type: PortType::Audio,
                    flags,
                    number: 0,
                    slot: None,
                };
                model.register_port(id, &new).unwrap();
            }
            model.set_active(id, true);
        }
        for (source, destination) in edges {
            let _ = model.connect(&format!("{source}:out"), &format!("{destination}:in"));
        }
        model
    }

    #[test]
    fn the_youngest_connection_of_a_loop_is_the_feedback() {
        let model = graph(3, &[(1, 2), (2, 3), (3, 1), (2, 2)]);
        let order = order(&model, &[1, 2, 3]);
        assert_eq!(order.clients, [1, 2, 3]);
        assert_eq!(order.feedback, HashSet::from([(3, 1)]));
        assert_eq!(order.edges, [(1, 2), (2, 3)]);
    }

    #[test]
    fn a_connection_closes_a_loop_if_its_reader_reaches_its_writer() {
        let model = graph(4, &[(2, 3), (3, 4)]);
        for (writer, reader, closes) in
            [(4, 2, true), (4, 3, true), (2, 4, false), (3, 3, true), (1, 2, false)]
        {
            // The first client stands for the driver here, which no loop passes through.
            assert_eq!(would_close_loop(&model, writer, reader), closes, "{writer} → {reader}");
        }
    }

    #[test]
    fn no_client_waits_for_clients_that_are_left_out() {
        let order = order(&graph(3, &[(1, 2), (2, 3)]), &[1, 3]);
        assert_eq!((order.clients, order.edges), (vec![1, 3], vec![]));
    }

    proptest! {
        #[test]
        fn each_client_runs_once_after_its_predecessors(
            edges in prop::collection::vec((1..9_u32, 1..9_u32), 0..40),
        ) {
            let model = graph(8, &edges);
            let members: Vec<u32> = (1..=8).collect();
            let order = order(&model, &members);
            let place = |client: u32| order.clients.iter().position(|other| *other == client).unwrap();
            let mut clients = order.clients.clone();
            clients.sort_unstable();
            prop_assert_eq!(clients, members);
            for (source, destination) in &order.edges {
                prop_assert!(place(*source) < place(*destination));
            }
            for (writer, reader) in &order.feedback {
                prop_assert!(place(*reader) < place(*writer), "the reader hears the cycle before");
            }
            let pairs: HashSet<_> = edges.into_iter().filter(|(source, destination)| source != destination).collect();
            prop_assert_eq!(pairs.len(), order.edges.len() + order.feedback.len());
        }
    }
}
