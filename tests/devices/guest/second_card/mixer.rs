//! The mixer of a card, as programs of PulseAudio see and set it. The dummy card has one whose
//! volume changes no sound.

use super::super::run;
use super::*;

/// The level of the dummy card's mixer, dB.
fn level() -> f64 {
    let shown = run("amixer", &["-c", "2", "sget", "Master"]).expect_success().stdout;
    let level = shown.split("[").find_map(|word| word.split_once("dB]"));
    level.expect("a level in dB").0.parse().expect("a number")
}

fn set_level(level: &str) {
    run("amixer", &["-c", "2", "sset", "Master", "--", level]).expect_success();
}

/// What the server adds to that, dB.
fn server_level(server: &Server) -> f64 {
    let factor = server.consort_json(&["status"])["device_volume"].as_f64().expect("a volume");
    20.0 * factor.log10()
}

/// The volume of the sink that drives, dB.
fn shown_level(server: &Server) -> f64 {
    let shown = pulse(server, "pactl", &["get-sink-volume", "consort"]);
    let shown = shown.finish().expect_success().stdout;
    let level = shown.split_whitespace().zip(shown.split_whitespace().skip(1));
    let level = level.into_iter().find(|(_, unit)| unit.starts_with("dB"));
    level.expect("a level").0.parse().expect("a number of dB")
}

#[test]
#[ignore = "in the virtual machine"]
fn the_volume_of_a_sink_is_its_cards_mixers_and_the_remainder_is_the_servers() {
    set_level("0dB");
    let server = server_on("hw:2,0", &STEREO);
    let front_end = front_end_of(&server);
    let cards = pulse(&server, "pactl", &["list", "cards"]).finish().expect_success().stdout;
    assert!(cards.contains("alsa.card_name = \"Dummy\""), "{cards}");
    let sinks = pulse(&server, "pactl", &["list", "sinks"]).finish().expect_success().stdout;
    assert!(sinks.contains("HARDWARE HW_VOLUME_CTRL"), "{sinks}");
    let mut events = pulse(&server, "pactl", &["subscribe"]);
    awaited("it has subscribed", || {
        let clients = listed(&server, "clients");
        (clients.iter().filter(|words| words.iter().any(|word| word == "pactl")).count() > 1)
            .then_some(())
    });
    for (volume, expected) in [("50%", -18.06), ("90%", -2.75), ("33%", -28.89)] {
        let set = pulse(&server, "pactl", &["set-sink-volume", "consort", volume]);
        set.finish().expect_success();
        let (mixer, left) = (level(), server_level(&server));
        assert!((mixer + left - expected).abs() < 0.01, "{volume}: {mixer} and {left} dB");
        // The mixer's steps are of 0.3 dB.
        assert!((-0.31..=0.001).contains(&left), "{volume}: {left} dB is left");
        assert!((shown_level(&server) - expected).abs() < 0.01);
    }
    let mut count = || events.stdout().matches("'change' on sink #0").count();
    let before = count();
    set_level("-12dB");
    awaited("programs are notified", || (count() > before).then_some(()));
    let left = server_level(&server);
    assert!((shown_level(&server) - level() - left).abs() < 0.01);
    // What it had is remembered, also with a server that knows nothing of it.
    let expected = shown_level(&server);
    drop(front_end);
    server.consort(&["volume", "device", "0dB"]).expect_success();
    set_level("-1.5dB");
    let _front_end = front_end_of(&server);
    awaited("it is restored", || ((shown_level(&server) - expected).abs() < 0.01).then_some(()));
    assert!(level() < -11.0);
    set_level("0dB");
}
