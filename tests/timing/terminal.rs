//! `consort top` on a terminal of 80 columns and 24 lines, which tmux plays.

use harness::{Server, Terminal, binary, eventually};

#[test]
fn top_shows_clients_load_and_xruns() {
    let server = Server::start(&["--quantum", "256"]);
    let _source = server.probe(&["source", "first"]);
    let _check = server.probe(&["check", "second", "--from", "first:out"]);
    let terminal = Terminal::running(&server, &format!("{} top", binary("consort").display()));
    let screen = eventually("both clients have bars", || {
        let screen = terminal.screen();
        let bar =
            |name: &str| screen.lines().any(|line| line.starts_with(name) && line.contains('█'));
        (bar("first ") && bar("second ")).then_some(screen)
    });
    for part in [
        "256 frames, 5.33 ms",
        "DSP load",
        "xruns in",
        "latest xruns",
        "transport stopped",
        "q quits",
    ] {
        assert!(screen.contains(part), "{part} is missing:\n{screen}");
    }
    assert!(
        screen.lines().count() <= 24 && screen.lines().all(|line| line.chars().count() <= 80),
        "{screen}"
    );
    terminal.press("q");
    eventually("the window is closed", || (!terminal.is_there()).then_some(()));
}

#[test]
fn top_without_a_terminal_says_what_to_use_instead() {
    let server = Server::timer(256);
    let finished = server.consort(&["top"]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""));
    assert!(finished.stderr.contains("terminal"), "{}", finished.stderr);
}
