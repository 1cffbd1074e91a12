//! Programs that show what they hear: `jack_meter`, `meterbridge`.

use harness::{Program, Server, Sound, eventually, tone};

#[test]
fn jack_meter_shows_the_level_of_what_it_hears_in_decibels() {
    // Half the full scale is -6.02 dB, a sixteenth of it -30.10 dB; a period of 48 frames has its
    // peak on a frame.
    let loud = tone(1000.0, 48_000, 10 * 48_000);
    let soft: Vec<f32> = loud.iter().map(|sample| sample / 16.0).collect();
    let server = Server::playing(&Sound::of(48_000, &[loud, soft]), &["--quantum", "256"]);
    for (port, expected) in [("system:capture_1", "-6.0"), ("system:capture_2", "-30.1")] {
        let mut meter = server.spawn("jack_meter", &["-n", port]);
        eventually(&format!("{port} shows {expected}"), || {
            assert!(meter.is_running(), "{}", meter.stderr());
            let shown =
                meter.stdout().split(['\r', '\n']).filter(|line| line.trim() == expected).count();
            (shown >= 3).then_some(())
        });
    }
}

#[test]
fn meterbridge_hears_the_port_that_it_is_given() {
    let server = Server::timer(256);
    let mut command = server.command("meterbridge");
    command.env("SDL_VIDEODRIVER", "dummy").args(["-t", "dpm", "-n", "bridge", "system:capture_1"]);
    let bridge = Program::start(command);
    server.await_connection("system:capture_1", "bridge:meter_1");
    assert!(server.lsp(&[]).lines().any(|port| port == "bridge:monitor_1"));
    bridge.terminate();
    eventually("its ports go", || (!server.has_ports("bridge")).then_some(()));
}
