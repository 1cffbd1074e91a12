//! Cards beside the server's own.

use harness::Server;

use crate::guest::{awaited, count, device_state, far};

#[test]
#[ignore = "in the virtual machine"]
fn a_further_card_plays_what_the_graph_says_and_leaves_when_it_is_told_to() {
    let server = Server::timer(512);
    let added = server.consort(&["device", "add", "hw:1,0", "--capture", "2", "--playback", "2"]);
    assert!(added.expect_success().stdout.starts_with("Loopback: alsa hw:CARD=Loopback,DEV=0 (capture 2"));
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "Loopback:playback_1"]).expect_success();
    awaited("the card is at its place", || {
        device_state(&server, "Loopback")
            .filter(|state| state.contains("runs, ") && count(state, "starts") > 0)
    });
    // A ramp stays a ramp, at whatever place of the card's frames it is read.
    let heard = far::recorded_of(&server, 2, "FLOAT_LE", "48000", 2);
    let is_one = |pair: &&[f64]| {
        let step = (pair[1] - pair[0]) * 2_097_152.0;
        // Two samples of a float's precision, whose last digit is an eighth of the step where the ramp ends.
        (step - 1.0).abs() < 0.01 + 0.5 * pair[1].abs()
    };
    let steady = heard.windows(2).filter(is_one).count();
    assert!(steady > 80_000, "{steady} of {} steps are one", heard.len() - 1);
    server.consort(&["device", "remove", "Loopback"]).expect_success();
    assert_eq!(device_state(&server, "Loopback"), None);
    let again = server.consort(&["device", "remove", "Loopback"]);
    assert!(again.stderr.contains("no device is called 'Loopback'"), "{}", again.stderr);
}
