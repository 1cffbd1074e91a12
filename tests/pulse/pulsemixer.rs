//! pulsemixer on a terminal, as its users see it.

use harness::{Terminal, eventually};

use crate::{Scene, is_installed};

#[test]
fn pulsemixer_shows_a_stream_and_keys_change_its_volume() {
    if !is_installed("pulsemixer") || !is_installed("tmux") {
        return;
    }
    let scene = Scene::new();
    let (_player, index) = scene.play(&["--client-name=a player"]);
    let own_server = "exec env --unset=PULSE_SERVER --unset=PULSE_COOKIE pulsemixer --no-mouse";
    let terminal = Terminal::running(&scene.server, own_server);
    let has_line = |part: &str, volume: &str| {
        let screen = terminal.screen();
        screen.lines().any(|line| line.contains(part) && line.contains(volume)).then_some(screen)
    };
    let screen = eventually("the stream is shown", || has_line("a player", "100"));
    assert!(screen.contains("Output") && screen.contains("Input"), "{screen}");
    // Below the sink.
    terminal.press("Down");
    terminal.press("Left");
    eventually("its volume has changed", || scene.stream(&index).contains(" 99% ").then_some(()));
    eventually("the volume is shown", || has_line("a player", "99"));
    let sink = scene.pactl(&["get-sink-volume", "consort"]);
    assert!(sink.contains("65536 / 100%"), "{sink}");
    // What another mixer changes is seen.
    scene.pactl(&["set-sink-input-volume", &index, "40%"]);
    eventually("that volume is shown", || has_line("a player", "40"));
    terminal.press("m");
    eventually("it is muted", || scene.stream(&index).contains("Mute: yes").then_some(()));
    terminal.press("q");
    eventually("the window is closed", || (!terminal.is_there()).then_some(()));
}
