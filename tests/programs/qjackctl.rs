//! QjackCtl, which starts the server by the name and with the options of JACK's own.

use std::path::Path;

use harness::{Program, binary, command_in, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// Its settings: no dialogs, and a server that differs from the default.
const SETTINGS: &str = "\
[Options]
AlsaSeqEnabled=false
DBusEnabled=false
JackDBusEnabled=false
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
Server=jackd
";

/// The connections that it has to make as soon as it starts.
const PATCHBAY: &str = r#"<!DOCTYPE patchbay>
<patchbay name="bay" version="0.9.9">
 <output-sockets>
  <socket name="clicks" client="metro" type="jack-audio" exclusive="off"><plug>120_bpm</plug></socket>
 </output-sockets>
 <input-sockets>
  <socket name="ears" client="system" type="jack-audio" exclusive="off"><plug>playback_2</plug></socket>
 </input-sockets>
 <slots/>
 <cables><cable type="jack-audio" output="clicks" input="ears"/></cables>
</patchbay>
"#;

/// What `consort COMMAND --json` prints; `None` while there is no server.
fn asked(directory: &Path, command: &str) -> Option<Value> {
    let mut consort = command_in(directory, &binary("consort"));
    consort.args([command, "--json"]);
    let finished = Program::start(consort).finish();
    (finished.code == Some(0)).then(|| serde_json::from_str(&finished.stdout).expect("JSON"))
}

fn has_client(status: &Value, name: &str) -> bool {
    let clients = status["clients"].as_array().expect("clients");
    clients.iter().any(|client| client["name"] == name && client["active"] == true)
}

#[test]
fn qjackctl_starts_and_stops_jackd_with_its_settings() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let directory = directory.path();
    let settings = directory.join(".config/rncbc.org");
    std::fs::create_dir_all(&settings).expect("a directory");
    std::fs::create_dir(directory.join("bin")).expect("a directory");
    std::fs::write(settings.join("QjackCtl.conf"), SETTINGS).expect("settings");
    std::fs::write(directory.join("bay.xml"), PATCHBAY).expect("a patchbay");
    std::os::unix::fs::symlink(binary("consort"), directory.join("bin/jackd")).expect("a link");

    let mut screen = command_in(directory, Path::new("Xvfb"));
    screen.args(["-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp"]);
    let mut screen = Program::start(screen);
    let display = eventually("a screen", || {
        assert!(screen.is_running(), "{}", screen.stderr());
        screen.stdout().strip_suffix('\n').map(|number| format!(":{number}"))
    });

    let path = format!("{}:/usr/bin:/bin", directory.join("bin").display());
    let mut command = command_in(directory, Path::new("qjackctl"));
    command.args(["--start", "-a"]).arg(directory.join("bay.xml"));
    command.env("DISPLAY", display).env("PATH", path).env_remove("XDG_CONFIG_HOME");
    let mut qjackctl = Program::start(command);
    let status = eventually("QjackCtl has a server and is its client", || {
        assert!(qjackctl.is_running(), "{}", qjackctl.stderr());
        asked(directory, "status").filter(|status| has_client(status, "qjackctl"))
    });
    assert_eq!((&status["sample_rate_hz"], &status["quantum"]), (&44_100.into(), &512.into()));

    let mut metro = command_in(directory, Path::new("jack_metro"));
    metro.args(["-b", "120"]);
    let _metro = Program::start(metro);
    eventually("the patchbay's cable is connected", || {
        let ports = asked(directory, "ls").expect("a server");
        let metro =
            ports.as_array().expect("ports").iter().find(|port| port["name"] == "metro:120_bpm")?;
        (metro["connections"] == Value::from(vec!["system:playback_2"])).then_some(())
    });
    // It keeps how it started the server, for programs that start one themselves.
    let line =
        std::fs::read_to_string(directory.join(".jackdrc")).expect("QjackCtl has written it");
    assert!(
        line.contains("/bin/jackd ") && line.trim_end().ends_with(" -ddummy -r44100 -p512"),
        "{line}"
    );

    qjackctl.signal(Signal::TERM);
    qjackctl.finish();
    eventually("the server has gone with it", || {
        asked(directory, "status").is_none().then_some(())
    });
}
