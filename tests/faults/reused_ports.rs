//! Ports that take the place of removed ones.

use harness::{Counts, Server, eventually};

/// Enough swaps that some fall into the short time that a plan needs.
const SWAPS: usize = 30;

#[test]
fn a_reader_of_a_removed_port_never_hears_its_successor() {
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
