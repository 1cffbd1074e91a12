//! Ports that come where others were.

use harness::{Counts, Server, eventually};

/// Some of them in the short time that a plan needs.
const SWAPS: usize = 30;

#[test]
fn who_heard_a_port_that_is_gone_never_hears_the_port_that_comes_next() {
    let server = Server::timer(128);
    let mut check = server.probe(&["check", "check"]);
    let mut swap = server.probe(&["swap", "swap", "--to", "check:in"]);
    for swaps in 1..=SWAPS {
        eventually(&format!("ports were swapped {swaps} times"), || {
            assert!(
                check.is_running(),
                "it heard a port that it is not connected with: {}",
                check.stderr()
            );
            assert!(swap.is_running(), "{}", swap.stderr());
            (swap.stdout().matches("swapped").count() >= swaps).then_some(())
        });
    }
    let counts = Counts::of(check);
    assert!(counts.good > 10, "{counts:?}");
}
