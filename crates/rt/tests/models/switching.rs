//! The driver goes on to another plan while a client sleeps, falls asleep or is late.

use std::sync::Arc;

use loom::thread;

use crate::explore;
use crate::stage::{Chair, Client, Stage, memory};

/// What a client waits for in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The driver only: it sleeps on the cycle's word.
    Group,
    /// One predecessor: it sleeps on its own page.
    Follower,
    /// Nothing: it sleeps on its own page until a plan includes it.
    Absent,
}

impl Role {
    fn edges(self) -> Option<u32> {
        match self {
            Self::Group => Some(0),
            Self::Follower => Some(1),
            Self::Absent => None,
        }
    }

    fn seats(self, client: &Arc<Client>, before: Self) -> Vec<Chair> {
        let seat = self.edges().map(|edges| Chair::new(client, edges));
        let moved = (self == Self::Group) != (before == Self::Group);
        seat.into_iter().map(|seat| if moved { seat.entering() } else { seat }).collect()
    }
}

/// Starts the client's process thread, which ends when it has run cycle 2.
fn running_cycle_2(stage: &Arc<Stage>, client: &Arc<Client>) -> thread::JoinHandle<()> {
    let (stage, client) = (Arc::clone(stage), Arc::clone(client));
    thread::spawn(move || {
        let mut memory = memory();
        while stage.await_turn(&client, &mut memory) != 2 {}
    })
}

/// A client sleeps as `before` in cycle 1 of plan 1, or is about to; in cycle 2, the first of plan
/// 2, it runs as `after`, and hears what was written before its turn.
fn switch(before: Role, after: Role) {
    explore(2, move || {
        let (stage, client, source) = (Stage::new(), Client::new(), Client::new());
        client.assign(1, before.edges());
        client.assign(2, after.edges());
        stage.begin(&before.seats(&client, before), 1, 1, true);
        let process = {
            let (stage, client, source) = (stage.clone(), client.clone(), source.clone());
            thread::spawn(move || {
                let mut memory = memory();
                while stage.await_turn(&client, &mut memory) != 2 {}
                assert_eq!(source.read(), 2, "{before:?} to {after:?}");
            })
        };
        if after == Role::Group {
            source.write(2);
        }
        stage.begin(&after.seats(&client, before), 2, 2, true);
        if after == Role::Follower {
            source.write(2);
            stage.signal(&client, 1, 0, 2);
        }
        stage.futex.let_time_pass();
        process.join().expect("client");
    });
}

#[test]
fn a_client_without_predecessors_that_gets_one_misses_no_cycle() {
    switch(Role::Group, Role::Follower);
}

#[test]
fn a_client_that_loses_its_predecessors_misses_no_cycle() {
    switch(Role::Follower, Role::Group);
}

#[test]
fn a_client_that_was_in_no_plan_misses_no_cycle_of_its_first() {
    switch(Role::Absent, Role::Group);
    switch(Role::Absent, Role::Follower);
}

#[test]
fn a_client_that_waits_for_the_same_in_both_plans_misses_no_cycle() {
    switch(Role::Group, Role::Group);
    switch(Role::Follower, Role::Follower);
}

/// Like [`switch`], and the client's signal page is replaced with plan 2.
fn switch_pages(before: Role, after: Role) {
    explore(2, move || {
        let (stage, client, source) = (Stage::new(), Client::new(), Client::new());
        client.assign(1, before.edges());
        client.assign_on(2, after.edges(), 1);
        stage.begin(&before.seats(&client, before), 1, 1, true);
        let process = {
            let (stage, client, source) = (stage.clone(), client.clone(), source.clone());
            thread::spawn(move || {
                let mut memory = memory();
                while stage.await_turn(&client, &mut memory) != 2 {}
                assert_eq!(source.read(), 2, "{before:?} to {after:?}");
            })
        };
        if after == Role::Group {
            source.write(2);
        }
        let seats: Vec<Chair> =
            after.seats(&client, before).into_iter().map(Chair::moving).collect();
        stage.begin(&seats, 2, 2, true);
        if after == Role::Follower {
            source.write(2);
            stage.signal_on(&client.fresh, 1, 0, 2);
        }
        stage.futex.let_time_pass();
        process.join().expect("client");
    });
}

#[test]
fn a_client_whose_signal_page_is_replaced_misses_no_cycle() {
    switch_pages(Role::Follower, Role::Follower);
    switch_pages(Role::Follower, Role::Group);
    switch_pages(Role::Group, Role::Follower);
    switch_pages(Role::Absent, Role::Follower);
}

/// The client has read the cycle's plan, and its assignment for that plan is gone before it copies
/// it.
#[test]
fn a_very_late_client_obeys_the_assignment_that_replaced_its_own() {
    for role in [Role::Group, Role::Follower] {
        explore(2, move || {
            let (stage, client) = (Stage::new(), Client::new());
            client.assign(1, role.edges());
            client.assign(2, role.edges());
            let seats = role.seats(&client, role);
            stage.begin(&seats, 1, 1, true);
            let process = running_cycle_2(&stage, &client);
            // The driver has taken plan 2 and given plan 1 back: the control thread prepares plan
            // 3.
            client.assign(3, role.edges());
            stage.begin(&seats, 2, 2, true);
            if role == Role::Follower {
                stage.signal(&client, 1, 0, 2);
            }
            stage.futex.let_time_pass();
            process.join().expect("client");
        });
    }
}

/// A poll while a cycle's info is being written puts the client to sleep on the cycle's word.
#[test]
fn a_follower_that_polls_while_a_cycle_is_written_misses_no_cycle() {
    explore(3, || {
        let (stage, client) = (Stage::new(), Client::new());
        client.assign(1, Some(1));
        let seats = [Chair::new(&client, 1)];
        stage.begin(&seats, 1, 1, true);
        let process = running_cycle_2(&stage, &client);
        stage.begin(&seats, 2, 1, false);
        stage.signal(&client, 1, 0, 2);
        stage.futex.let_time_pass();
        process.join().expect("client");
    });
}
