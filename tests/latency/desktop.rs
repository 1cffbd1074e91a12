//! PulseAudio and PipeWire, each in a runtime directory of its own with a null sink, whose monitor
//! closes the loop.

use std::time::{Duration, Instant};

use harness::{Finished, PATIENCE, Program, binary, command_in, eventually, in_three_attempts};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// A sound server of a test's own.
struct Desktop {
    // Before the directory: the server ends, then its directory goes.
    program: Program,
    directory: TempDir,
}

/// PipeWire's parts: those that are its clients end at once where it does not answer yet.
const PIPEWIRE: &str = "pipewire & until pw-cli info 0 >/dev/null 2>&1; do sleep 0.1; done; \
                        wireplumber & pipewire-pulse & wait";
/// Where Debian has PipeWire's libjack.
const PIPEWIRE_LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/pipewire-0.3/jack/libjack.so.0";

impl Desktop {
    fn pulseaudio() -> Self {
        Self::start(&[
            "pulseaudio",
            "-n",
            "--daemonize=no",
            "--use-pid-file=no",
            "--exit-idle-time=-1",
            "-L",
            "module-native-protocol-unix auth-anonymous=1",
        ])
    }

    /// With a session bus, by which its parts find each other.
    fn pipewire() -> Self {
        Self::start(&["dbus-run-session", "--", "sh", "-c", PIPEWIRE])
    }

    /// A busy machine may keep one of its processes from answering in time.
    fn start(words: &[&str]) -> Self {
        in_three_attempts(|| Self::try_start(words))
    }

    fn try_start(words: &[&str]) -> Result<Self, String> {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let mut command = command_in(directory.path(), words[0].as_ref());
        // With the system's own libraries, not those under test.
        command.args(&words[1..]).env_remove("LD_LIBRARY_PATH").env_remove("PULSE_SERVER");
        let mut this = Self { program: Program::start(command), directory };
        let sink =
            ["load-module", "module-null-sink", "sink_name=null", "rate=48000", "format=float32le"];
        this.await_answer("the server takes programs in", |this| {
            this.pactl(&sink).code == Some(0)
        })?;
        this.await_answer("the sink's monitor is there", |this| {
            this.pactl(&["list", "short", "sources"]).stdout.contains("null.monitor")
        })?;
        Ok(this)
    }

    /// Asks until the answer is yes.
    fn await_answer(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while !is_so(self) {
            if Instant::now() >= end || !self.program.is_running() {
                return Err(format!("never happened: {what}: {}", self.program.stderr()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn run(&self, program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
        let mut command = command_in(self.directory.path(), program.as_ref());
        command.args(arguments).env_remove("LD_LIBRARY_PATH").env_remove("PULSE_SERVER");
        command.envs(environment.iter().copied());
        Program::start(command).finish()
    }

    fn pactl(&self, arguments: &[&str]) -> Finished {
        self.run("pactl", arguments, &[])
    }

    /// Starts a measurement of a minute; returns when its streams are there.
    fn start_to_measure(&self) -> Program {
        let mut command = command_in(self.directory.path(), &binary("consort"));
        command
            .args(["latency", "pulse", "--seconds", "60"])
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("PULSE_SERVER");
        let measuring = Program::start(command);
        eventually("the streams are there", || {
            let inputs = self.pactl(&["list", "sink-inputs"]).stdout;
            inputs.contains("application.name = \"consort latency\"").then_some(())
        });
        measuring
    }

    /// Returns what `consort latency` measures, which a busy machine may prevent.
    fn measure(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Value {
        let patient = ["--seconds", "2", "--longest", "8000", "--json"];
        let arguments = [&["latency"], arguments, &patient].concat();
        in_three_attempts(|| {
            let finished = self.run(&binary("consort").to_string_lossy(), &arguments, environment);
            if finished.code != Some(0) {
                return Err(finished.stderr);
            }
            serde_json::from_str(&finished.stdout).map_err(|error| error.to_string())
        })
    }
}

/// Asserts that the report has a row of this interface with a latency.
fn demand(found: &Value, interface: &str) {
    let named = found["system"]["interface"].as_str().expect("a name");
    assert!(named.contains(interface), "{named}");
    assert!(
        found["found"]["latency"]["frames"].as_f64().is_some_and(|frames| frames > 0.0),
        "{found}"
    );
    for field in ["device", "buffer", "format", "kernel", "scheduling"] {
        assert!(
            found["system"][field].as_str().is_some_and(|text| !text.is_empty()),
            "{field}: {found}"
        );
    }
}

#[test]
fn pulseaudio_is_measured_through_each_of_its_interfaces() {
    let mut desktop = Desktop::pulseaudio();
    let way = ["--sink", "null", "--source", "null.monitor", "--buffer", "4096"];
    demand(&desktop.measure(&[&["pulse"][..], &way].concat(), &[]), "pulseaudio 16");
    demand(
        &desktop.measure(&["sdl", "--buffer", "4096"], &[("SDL_AUDIODRIVER", "pulseaudio")]),
        "SDL 2",
    );
    let measuring = desktop.start_to_measure();
    desktop.program.signal(Signal::KILL);
    eventually("the server has ended", || (!desktop.program.is_running()).then_some(()));
    let finished = measuring.finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
    // libpulse 16 hangs if its server dies while `pa_simple_read` holds a fragment of which only a
    // part was read: its thread waits for that fragment, with the lock that every call takes.
    let says = ["failed: Connection terminated", "the system has stopped after "];
    let is_said = says.iter().any(|says| finished.stderr.contains(says));
    assert!(is_said, "{}", finished.stderr);
}

#[test]
fn a_measurement_ends_although_pulseaudio_hangs() {
    let desktop = Desktop::pulseaudio();
    let measuring = desktop.start_to_measure();
    desktop.program.signal(Signal::STOP);
    let finished = measuring.finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""));
    assert!(finished.stderr.contains("the system has stopped after "), "{}", finished.stderr);
}

#[test]
fn pipewire_is_measured_through_each_of_its_interfaces() {
    let desktop = Desktop::pipewire();
    let way = ["--sink", "null", "--source", "null.monitor", "--buffer", "4096"];
    demand(&desktop.measure(&[&["pulse"][..], &way].concat(), &[]), "on PipeWire");
    demand(
        &desktop.measure(&["sdl", "--buffer", "4096"], &[("SDL_AUDIODRIVER", "pipewire")]),
        "SDL 2",
    );
    let ports = [
        "--playback",
        "null Audio/Sink sink:playback_FL",
        "--capture",
        "null Audio/Sink sink:monitor_FL",
    ];
    // To PipeWire, a server of another name is another PipeWire.
    let options =
        [&["run", "-n", "default", "--libjack", PIPEWIRE_LIBRARY, "--quantum", "2048"][..], &ports]
            .concat();
    let found = desktop.measure(&options, &[]);
    demand(&found, "JACK");
    assert_eq!(found["system"]["buffer"], "2048 frames");
}
