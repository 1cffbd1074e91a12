//! A program that maps a signal page takes the client that sleeps there away from it.

use loom::thread;

use crate::explore;
use crate::stage::{Chair, Client, Stage, memory};

#[test]
fn a_follower_that_was_taken_off_its_page_runs_again() {
    explore(2, || {
        let (stage, follower) = (Stage::new(), Client::new());
        follower.assign(1, Some(1));
        let seats = [Chair::new(&follower, 1)];
        stage.begin(&seats, 1, 1, true);
        let process = {
            let (stage, follower) = (stage.clone(), follower.clone());
            thread::spawn(move || {
                let mut memory = memory();
                while stage.await_turn(&follower, &mut memory) != 2 {}
            })
        };
        let thief = {
            let (stage, follower) = (stage.clone(), follower.clone());
            thread::spawn(move || stage.futex.steal(follower.signals.wake_word()))
        };
        stage.begin(&seats, 2, 1, false);
        stage.signal(&follower, 1, 0, 2);
        stage.futex.let_time_pass();
        thief.join().expect("thief");
        process.join().expect("follower");
    });
}
