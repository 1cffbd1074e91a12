//! Hydrogen without a screen: it is a client of the server, and exports its song.

use harness::{Program, Server, Sound};

const SONG: &str = "/usr/share/hydrogen/data/demo_songs/TR808kit-demo.h2song";

#[test]
fn hydrogen_exports_a_song_while_it_is_a_client() {
    let server = Server::timer(512);
    let mut monitor = server.spawn("jack_evmon", &[]);
    server.await_active("event-monitor");
    let mut command = server.command("h2cli");
    // It looks for Qt's screen, and writes its settings.
    command
        .args(["-s", SONG, "-d", "jack", "-o", "export.wav"])
        .env("QT_QPA_PLATFORM", "offscreen");
    Program::start(command).finish().expect_success();
    let count = |line: &str| monitor.stdout().lines().filter(|found| *found == line).count();
    let counts: Vec<usize> = ["Client Hydrogen registered"].into_iter().map(count).collect();
    assert!(counts[0] > 0, "{}", monitor.stdout());
    let exported = Sound::read(&server.directory().join("export.wav"));
    assert_eq!(exported.channels.len(), 2);
    // 12 bars in 4/4 at 120 beats per minute and more: the song's own length, however busy the
    // machine was.
    assert!(exported.channels[0].len() > 10 * 44_100, "{}", exported.channels[0].len());
    assert!(
        exported.rms(0) > 0.01 && exported.peak(0) <= 1.0,
        "{} {}",
        exported.rms(0),
        exported.peak(0)
    );
}
