//! QjackCtl, configured to use the D-Bus service: it sets a server up, starts it, shows it, and
//! stops it.

use std::path::Path;

use harness::{Program, eventually};
use serde_json::Value;

use crate::bus::{Bus, on_bus};

/// Settings: no dialogs, and a server that differs from the default.
const SETTINGS: &str = "\
[Options]
AlsaSeqEnabled=false
DBusEnabled=false
JackDBusEnabled=true
QueryClose=false
QueryShutdown=false
Singleton=false
StartJack=true
StopJack=true
SystemTray=false
[Geometry]
qjackctlGraphForm\\visible=true
[Settings]
Driver=dummy
Frames=512
Realtime=true
SampleRate=44100
Server=jackdbus
";

/// The screen as an X window dump: a header whose first word is its length in bytes, colours, then
/// pixels.
fn pixels(directory: &Path) -> Vec<u32> {
    let file = std::fs::read(directory.join("Xvfb_screen0")).expect("the screen");
    let word = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes"));
    // The sizes of the header and of the colours, 12 bytes each.
    let begin = word(0) as usize + word(19 * 4) as usize * 12;
    file[begin..]
        .chunks_exact(4)
        .map(|pixel| u32::from_le_bytes([pixel[0], pixel[1], pixel[2], 0]))
        .collect()
}

fn asked(bus: &Bus, command: &str) -> Option<Value> {
    let consort = harness::binary("consort");
    let shown = bus.run(&consort.to_string_lossy(), &[command, "--json"]);
    (shown.code == Some(0)).then(|| serde_json::from_str(&shown.stdout).expect("JSON"))
}

#[test]
fn qjackctl_controls_a_server_over_the_bus() {
    let bus = Bus::that_starts_it();
    let directory = bus.directory();
    let settings = directory.join("rncbc.org");
    std::fs::create_dir_all(&settings).expect("a directory");
    std::fs::write(settings.join("QjackCtl.conf"), SETTINGS).expect("settings");
    let mut screen = on_bus(directory, Path::new("Xvfb"));
    screen
        .args(["-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-fbdir"])
        .arg(directory);
    let mut screen = Program::start(screen);
    let display = eventually("a screen", || {
        assert!(screen.is_running(), "{}", screen.stderr());
        screen.stdout().strip_suffix('\n').map(|number| format!(":{number}"))
    });
    let mut command = bus.command("qjackctl");
    command.arg("--start").env("DISPLAY", display);
    let mut qjackctl = Program::start(command);
    let status = eventually("QjackCtl has a server and is its client", || {
        assert!(qjackctl.is_running(), "{}", qjackctl.stderr());
        let status = asked(&bus, "status")?;
        let clients = status["clients"].as_array().cloned().unwrap_or_default();
        clients
            .iter()
            .any(|client| client["name"] == "qjackctl" && client["active"] == true)
            .then_some(status)
    });
    assert_eq!(
        (&status["sample_rate_hz"], &status["quantum"]),
        (&44_100.into(), &512.into()),
        "{status}"
    );
    assert_eq!(bus.run("jack_control", &["status"]).code, Some(0));
    let parameters = bus.run("jack_control", &["ep", "dp"]).expect_success().stdout;
    assert!(parameters.contains("(uint:set:48000:44100)"), "{parameters}");

    // It draws windows with many colours; before, the screen had one.
    eventually("windows are drawn", || {
        let mut colours = pixels(directory);
        colours.sort_unstable();
        colours.dedup();
        (colours.len() > 50).then_some(())
    });
    qjackctl.signal(rustix::process::Signal::TERM);
    qjackctl.finish();
    eventually("the server has gone with it", || asked(&bus, "status").is_none().then_some(()));
    bus.run("jack_control", &["exit"]).expect_success();
}
