//! A client that overwrites every byte of shared memory that it can write.

use harness::eventually;

use crate::stage::{MODES, Stage, expect_undisturbed, withstand};

#[test]
fn a_client_that_scribbles_over_all_its_shared_memory_disturbs_nobody_that_it_does_not_feed() {
    for mode in [MODES[1], MODES[3]] {
        withstand(mode, || {
            let mut stage = Stage::new(mode, "scribble");
            stage.strike();
            eventually("it has begun", || stage.victim.stdout().contains("scribbling over").then_some(()));
            stage.expect_new_clients_to_work();
            eventually("it is done", || {
                let done = stage.victim.stdout().contains("scribbled\n");
                (done || !stage.victim.is_running()).then_some(())
            });
            stage.expect_new_clients_to_work();
            assert!(stage.server.program().is_running(), "{}", stage.server.program().stderr());
            stage.await_cycles(100);
            let (beside, _) = stage.counts();
            expect_undisturbed(&format!("{mode:?}"), beside)
        });
    }
}
