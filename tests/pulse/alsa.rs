//! Programs of ALSA, on the default device that the package `consort-alsa` makes.

use harness::Finished;

use crate::Scene;

/// What the package installs, and nothing else of this machine's settings.
const SETTINGS: &str =
    concat!("ALSA_CONFIG_PATH=", env!("CARGO_MANIFEST_DIR"), "/../debian/99-consort-default.conf");

fn run(scene: &Scene, words: &[&str]) -> Finished {
    scene.run("env", &[&[SETTINGS], words].concat()).expect_success()
}

#[test]
fn speaker_test_is_heard_on_the_side_that_it_names() {
    for (speaker, sounding, silent) in [("1", 0, 1), ("2", 1, 0)] {
        let scene = Scene::new();
        let tone = ["-t", "sine", "-f", "440", "-c", "2", "-s", speaker];
        run(&scene, &[&["speaker-test"], &tone[..]].concat());
        let heard = scene.recorded();
        assert_eq!(heard.peak(silent), 0.0, "the other side than {speaker}");
        assert!(heard.peak(sounding) > 0.5, "side {speaker}: {}", heard.peak(sounding));
        let frequency_hz = heard.sounding(sounding).frequency_hz(0);
        assert!((frequency_hz - 440.0).abs() < 1.0, "side {speaker}: {frequency_hz} Hz");
    }
}

#[test]
fn amixer_and_pactl_set_one_volume() {
    let scene = Scene::new();
    let amixer = |arguments: &[&str]| run(&scene, &[&["amixer"], arguments].concat()).stdout;
    assert!(amixer(&["get", "Master"]).contains("Front Left: Playback 65536 [100%] [on]"));
    amixer(&["set", "Master", "50%"]);
    let volume = || scene.pactl(&["get-sink-volume", "@DEFAULT_SINK@"]);
    assert!(volume().contains("front-left: 32768 /  50%"), "{}", volume());
    amixer(&["set", "Master", "mute"]);
    assert_eq!(scene.pactl(&["get-sink-mute", "@DEFAULT_SINK@"]), "Mute: yes\n");
    scene.pactl(&["set-sink-volume", "@DEFAULT_SINK@", "30%"]);
    scene.pactl(&["set-sink-mute", "@DEFAULT_SINK@", "0"]);
    let shown = amixer(&["get", "Master"]);
    assert!(shown.contains("Front Right: Playback 19660 [30%] [on]"), "{shown}");
}
