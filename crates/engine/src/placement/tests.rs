use std::collections::HashMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::simulation::{Simulation, Tasks};
use super::*;

const COSTS: Costs = Costs {
    same_cpu: HopCost { hop_ns: 5_000, wake_ns: 1_000 },
    cross_cpu: HopCost { hop_ns: 25_000, wake_ns: 3_000 },
    further_wake_ns: 1_000,
};
const CPUS: [u32; 4] = [4, 0, 7, 2];

/// Clients 10, 11, ... with these durations; edges count them from zero.
fn renamed(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    edges.iter().map(|(source, destination)| (source + 10, destination + 10)).collect()
}

fn graph<'a>(durations_ns: &[u64], edges: &'a [(u32, u32)]) -> Graph<'a> {
    Graph { driver_ns: 0, clients: (10..).zip(durations_ns.iter().copied()).collect(), edges }
}

fn assigned(cpus: &[u32]) -> HashMap<u32, u32> {
    (10..).zip(cpus.iter().copied()).collect()
}

fn cpus_used(assignment: &HashMap<u32, u32>) -> Vec<u32> {
    let mut cpus: Vec<u32> = assignment.values().copied().collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The makespan of the best assignment.
fn best_makespan(graph: &Graph, cpus: usize) -> u64 {
    let tasks = Tasks::new(graph);
    let mut simulation = Simulation::new(&tasks, COSTS, cpus);
    let mut cpu_of = vec![0; tasks.count()];
    let mut best_ns = simulation.run(&cpu_of).makespan_ns;
    // Counts through all assignments, as numbers in base `cpus`.
    while let Some(digit) = cpu_of.iter().position(|cpu| cpu + 1 < cpus) {
        cpu_of[..digit].fill(0);
        cpu_of[digit] += 1;
        best_ns = simulation.run(&cpu_of).makespan_ns.min(best_ns);
    }
    best_ns
}

/// Durations and edges of a graph of at most `most` clients: light, middling or heavy ones.
fn any_graph(most: usize) -> impl Strategy<Value = (Vec<u64>, Vec<(u32, u32)>)> {
    let heaviest_ns = prop::sample::select(vec![1_000_u64, 10_000, 50_000, 200_000]);
    (heaviest_ns, 0..=100_u32).prop_flat_map(move |(heaviest_ns, dense)| {
        let durations = prop::collection::vec(0..heaviest_ns, 1..=most);
        let draws = prop::collection::vec(0..100_u32, most * most);
        (durations, draws).prop_map(move |(durations_ns, draws)| {
            let count = durations_ns.len() as u32;
            let pairs =
                (0..count).flat_map(|source| (source + 1..count).map(move |other| (source, other)));
            let edges = pairs.zip(draws).filter(|(_, draw)| *draw < dense).map(|(pair, _)| pair);
            (durations_ns, renamed(&edges.collect::<Vec<_>>()))
        })
    })
}

#[test]
fn the_makespan_counts_work_hops_and_waiting() {
    for (case, durations_ns, edges, cpus, awaited_ns) in [
        ("no client", &[][..], &[][..], &[][..], 0),
        ("one on the driver's CPU", &[7], &[], &[4], 5_007),
        ("one elsewhere", &[7], &[], &[0], 25_007),
        ("a chain on one CPU", &[1, 2], &[(0, 1)], &[4, 4], 10_003),
        ("a chain over two CPUs", &[1, 2], &[(0, 1)], &[4, 0], 30_003),
        ("two that must take turns", &[100, 200], &[], &[4, 4], 10_300),
        ("two side by side, the far one woken first", &[100, 200], &[], &[4, 0], 25_200),
        ("on another CPU, too, the second is switched to", &[100, 200], &[], &[0, 0], 29_300),
        ("a further one there is woken more cheaply", &[1, 1, 20_010], &[], &[0, 0, 4], 29_010),
        ("but runs no sooner than the first", &[1, 1, 1], &[], &[0, 0, 4], 29_002),
        ("followers elsewhere are woken first", &[1, 1, 1], &[(0, 1), (0, 2)], &[4, 4, 0], 30_002),
        ("by each waker", &[1, 1, 1, 20_010], &[(0, 1), (0, 2), (0, 3)], &[4, 0, 0, 4], 34_011),
        ("a join waits for the later", &[90_000, 1, 10], &[(0, 2), (1, 2)], &[4, 0, 0], 123_010),
        ("who comes first runs first", &[100, 50_000, 10], &[(0, 2)], &[0, 4, 4], 62_010),
        ("edges against the order count nothing", &[1, 2], &[(1, 0), (0, 9)], &[4, 4], 10_003),
        ("who has no CPU runs with the driver", &[1, 2], &[], &[], 10_003),
    ] {
        let edges = renamed(edges);
        let graph = graph(durations_ns, &edges);
        assert_eq!(expected_ns(&graph, COSTS, &CPUS, &assigned(cpus)), awaited_ns, "{case}");
    }
}

#[test]
fn clients_wake_early_only_where_another_cpu_takes_long_to_wake() {
    for (hop_ns, expected) in [(5_000, false), (16_999, false), (17_000, true)] {
        let cross_cpu = HopCost { hop_ns, ..COSTS.cross_cpu };
        let costs = Costs { cross_cpu, ..COSTS };
        assert_eq!(costs.justify_early_wakes(), expected, "{hop_ns} ns");
    }
}

#[test]
fn no_client_runs_on_the_drivers_cpu_before_it_sleeps() {
    for (case, durations_ns, cpus, awaited_ns) in [
        ("on its CPU", &[100][..], &[4][..], 25_100),
        ("on another", &[100], &[0], 25_100),
        ("one on each", &[100, 200], &[4, 0], 28_100),
        ("two on its CPU", &[100, 200], &[4, 4], 30_300),
    ] {
        let graph = Graph { driver_ns: 20_000, ..graph(durations_ns, &[]) };
        assert_eq!(expected_ns(&graph, COSTS, &CPUS, &assigned(cpus)), awaited_ns, "{case}");
    }
}

#[test]
fn the_longer_the_driver_works_the_fewer_run_on_its_cpu() {
    let on_driver_cpu = |driver_ns: u64| {
        let graph = Graph { driver_ns, ..graph(&[3_000; 20], &[]) };
        let assignment = schedule(&graph, COSTS, &CPUS[..2], &HashMap::new());
        assignment.values().filter(|cpu| **cpu == CPUS[0]).count()
    };
    // On the driver's CPU, each client takes 7 µs, after the driver's own time, 1 µs for the
    // wake-up of each, and 3 µs for the first and 1 µs for each further client elsewhere. Elsewhere
    // each takes 7 µs, after the 21 µs that the first needs beyond that.
    assert_eq!([0, 20_000, 52_000, 500_000].map(on_driver_cpu), [10, 9, 6, 0]);
}

#[test]
fn light_clients_woken_together_share_the_cost_of_waking_a_cpu() {
    // Measured on a machine whose CPUs are slow to wake each other.
    let costs = Costs {
        same_cpu: HopCost { hop_ns: 2_000, wake_ns: 700 },
        cross_cpu: HopCost { hop_ns: 37_000, wake_ns: 3_000 },
        further_wake_ns: 500,
    };
    let graph = Graph { driver_ns: 8_000, ..graph(&[1_000; 20], &[]) };
    let assignment = schedule(&graph, costs, &CPUS[..2], &HashMap::new());
    assert_eq!(assignment.values().filter(|cpu| **cpu != CPUS[0]).count(), 7, "{assignment:?}");
}

#[test]
fn branches_spread_only_where_the_work_is_worth_the_hop() {
    for (case, durations_ns, edges, expected_cpus) in [
        ("a chain of heavy clients", vec![100_000; 4], vec![(0, 1), (1, 2), (2, 3)], 1),
        ("two heavy clients", vec![100_000; 2], vec![], 2),
        ("two heavy chains", vec![60_000; 4], vec![(0, 1), (2, 3)], 2),
        ("a fan of light clients", vec![500; 4], vec![(0, 1), (0, 2), (0, 3)], 1),
        ("light clients that the driver wakes", vec![500; 4], vec![], 1),
        (
            "a heavy fan for more CPUs than there are",
            vec![300_000; 9],
            (1..9).map(|to| (0, to)).collect(),
            4,
        ),
    ] {
        let edges = renamed(&edges);
        let assignment = schedule(&graph(&durations_ns, &edges), COSTS, &CPUS, &HashMap::new());
        assert_eq!(assignment.len(), durations_ns.len(), "{case}");
        let used = cpus_used(&assignment);
        assert_eq!(used.len(), expected_cpus, "{case}: {assignment:?}");
        assert!(used.contains(&CPUS[0]), "{case}: the driver's CPU is awake anyway");
    }
}

#[test]
fn the_two_ends_of_a_chain_share_a_cpu_even_next_to_another_chain() {
    let edges = renamed(&[(0, 1), (2, 3)]);
    let assignment = schedule(&graph(&[60_000; 4], &edges), COSTS, &CPUS, &HashMap::new());
    assert_eq!(assignment[&10], assignment[&11]);
    assert_eq!(assignment[&12], assignment[&13]);
}

#[test]
fn with_a_single_cpu_all_clients_are_placed_there() {
    let graph = graph(&[100_000; 3], &[]);
    assert_eq!(schedule(&graph, COSTS, &[], &HashMap::new()), HashMap::new());
    assert_eq!(schedule(&graph, COSTS, &[3], &HashMap::new()), assigned(&[3, 3, 3]));
    let empty = Graph { driver_ns: 9_000, clients: vec![], edges: &[] };
    assert_eq!(schedule(&empty, COSTS, &CPUS, &HashMap::new()), HashMap::new());
}

#[test]
fn clients_move_only_for_a_gain_that_is_worth_it() {
    for (case, durations_ns, before, stays) in [
        ("as good as the best, elsewhere", [100_000, 100_000], [0, 7], true),
        ("a gain of no more than a hop", [20_000, 20_000], [4, 4], true),
        ("a gain of less than a tenth", [1_000_000, 100_000], [4, 4], true),
        ("a gain worth the move", [100_000, 100_000], [4, 4], false),
        ("a CPU that is no longer ours", [100_000, 100_000], [4, 9], false),
    ] {
        let assignment = schedule(&graph(&durations_ns, &[]), COSTS, &CPUS, &assigned(&before));
        assert_eq!(assignment == assigned(&before), stays, "{case}: {assignment:?}");
        assert!(assignment.values().all(|cpu| CPUS.contains(cpu)), "{case}: {assignment:?}");
    }
}

#[test]
fn a_chain_whose_clients_were_placed_one_by_one_is_brought_together() {
    let edges = renamed(&[(0, 1), (1, 2), (2, 3), (3, 4)]);
    let chain = schedule(&graph(&[1_000; 5], &edges), COSTS, &CPUS, &assigned(&[0, 4, 4, 4, 4]));
    assert_eq!(cpus_used(&chain).len(), 1, "{chain:?}");
}

#[test]
fn a_long_chain_leaves_the_cpu_that_gains_it_nothing() {
    let edges: Vec<(u32, u32)> = (1..20).map(|client| (client - 1, client)).collect();
    let mut before = [CPUS[1]; 20];
    before[12..].fill(CPUS[0]);
    let edges = renamed(&edges);
    let chain = schedule(&graph(&[100_000; 20], &edges), COSTS, &CPUS, &assigned(&before));
    assert_eq!(cpus_used(&chain), [CPUS[0]], "{chain:?}");
}

#[test]
fn a_newcomer_finds_a_place_around_those_who_run() {
    let before = assigned(&[7, 4]);
    for choose in [schedule, keep] {
        let assignment = choose(&graph(&[100_000; 3], &[]), COSTS, &CPUS, &before);
        assert_eq!((assignment[&10], assignment[&11]), (7, 4));
        assert!([0, 2].contains(&assignment[&12]), "a CPU of its own: {assignment:?}");
    }
}

#[test]
fn without_a_search_no_client_moves_whatever_the_gain() {
    let before = assigned(&[4, 4]);
    assert_eq!(keep(&graph(&[100_000; 2], &[]), COSTS, &CPUS, &before), before);
    let elsewhere = keep(&graph(&[100_000; 2], &[]), COSTS, &CPUS, &assigned(&[4, 9]));
    assert_eq!(elsewhere[&10], 4);
    assert!(CPUS.contains(&elsewhere[&11]), "a CPU that is no longer ours: {elsewhere:?}");
}

#[test]
fn the_costs_of_this_machine_serve_to_schedule() {
    let allowed = sys::thread::affinity().unwrap();
    let cpus: Vec<u32> = allowed.iter().map(|cpu| cpu as u32).collect();
    let edges = renamed(&[(0, 1), (1, 2)]);
    let chain = schedule(&graph(&[1_000; 3], &edges), calibrate(&cpus), &cpus, &HashMap::new());
    assert_eq!(cpus_used(&chain), [cpus[0]]);
}

/// The same cases in every run: the search is bounded, and one in some thousands of small graphs
/// misses the bound below.
fn same_cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(2004),
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(same_cases(400))]

    #[test]
    fn small_graphs_end_within_a_twentieth_of_the_best(
        (durations_ns, edges) in any_graph(7),
        cpus in 2..=3_usize,
    ) {
        let graph = graph(&durations_ns, &edges);
        let assignment = schedule(&graph, COSTS, &CPUS[..cpus], &HashMap::new());
        let (found_ns, best_ns) = (expected_ns(&graph, COSTS, &CPUS, &assignment), best_makespan(&graph, cpus));
        prop_assert!(found_ns >= best_ns);
        prop_assert!(found_ns <= best_ns + best_ns / 20, "{found_ns} ns, not {best_ns}: {assignment:?}");
    }

    #[test]
    fn fluctuating_durations_move_no_client(
        (durations_ns, edges) in any_graph(7),
        percent in prop::collection::vec(95..=105_u64, 7),
    ) {
        let before = schedule(&graph(&durations_ns, &edges), COSTS, &CPUS[..3], &HashMap::new());
        let trembling: Vec<u64> =
            durations_ns.iter().zip(percent).map(|(duration_ns, percent)| duration_ns * percent / 100).collect();
        prop_assert_eq!(schedule(&graph(&trembling, &edges), COSTS, &CPUS[..3], &before), before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_graph_ends_later_than_on_one_cpu(
        (durations_ns, edges) in any_graph(60),
        cpus in 1..=4_usize,
    ) {
        let graph = graph(&durations_ns, &edges);
        let assignment = schedule(&graph, COSTS, &CPUS[..cpus], &HashMap::new());
        prop_assert_eq!(assignment.len(), durations_ns.len());
        prop_assert!(assignment.values().all(|cpu| CPUS[..cpus].contains(cpu)));
        let alone_ns = expected_ns(&graph, COSTS, &CPUS, &HashMap::new());
        prop_assert!(expected_ns(&graph, COSTS, &CPUS, &assignment) <= alone_ns);
    }
}
