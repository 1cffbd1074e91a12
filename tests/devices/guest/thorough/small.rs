//! Small quanta, for minutes.

use std::time::Duration;

use harness::Program;

use super::duplex::demand_reported_latency;
use crate::guest::{server_on, xruns_and_cycles};

const SECONDS: u64 = 300;
const RATE_HZ: u64 = 48_000;

/// Five programs in a row, from the card's input to its output: no cycle is lost or late.
fn demand_no_xrun(device: &str, quantum: u64, periods: &str) {
    let frames = quantum.to_string();
    let channels = ["--capture", "2", "--playback", "2"];
    let server =
        server_on(device, &[&["--quantum", &frames, "--periods", periods][..], &channels].concat());
    let _clients: Vec<Program> = (1..=5)
        .map(|number| {
            let name = format!("thru{number}");
            let from = if number == 1 {
                "system:capture_1".into()
            } else {
                format!("thru{}:out", number - 1)
            };
            server.probe(&["thru", &name, "--from", &from])
        })
        .collect();
    server.run("jack_connect", &["thru5:out", "system:playback_1"]).expect_success();
    let begin = xruns_and_cycles(&server);
    std::thread::sleep(Duration::from_secs(SECONDS));
    let end = xruns_and_cycles(&server);
    let cycles = end.1 - begin.1;
    println!("{device}, {quantum} × {periods}: {cycles} cycles, {} xruns", end.0 - begin.0);
    assert_eq!(end.0, begin.0, "{device}, {quantum} × {periods}: xruns in {cycles} cycles");
    assert!(
        cycles >= SECONDS * RATE_HZ / quantum,
        "{device}, {quantum} × {periods}: {cycles} cycles only"
    );
}

#[test]
#[ignore = "in the virtual machine"]
fn five_minutes_at_32_frames_lose_nothing_on_a_card_with_a_fine_clock() {
    demand_no_xrun("hw:2", 32, "2");
}

#[test]
#[ignore = "in the virtual machine"]
fn five_minutes_at_64_frames_lose_nothing_on_a_card_with_a_fine_clock() {
    demand_no_xrun("hw:2", 64, "2");
}

#[test]
#[ignore = "in the virtual machine"]
fn five_minutes_at_128_frames_lose_nothing_on_a_card_with_a_fine_clock() {
    demand_no_xrun("hw:2", 128, "2");
}

#[test]
#[ignore = "in the virtual machine"]
fn five_minutes_at_256_frames_lose_nothing_on_a_coarse_clock() {
    demand_no_xrun("hw:1,0", 256, "3");
}

/// Eight channels are converted at a time, which takes too long in an unoptimised build.
#[test]
#[ignore = "in the virtual machine"]
fn ten_channels_side_by_side_pass_through_a_server_to_the_frame() {
    demand_reported_latency(10, &["--quantum", "256", "--periods", "3"]);
}
