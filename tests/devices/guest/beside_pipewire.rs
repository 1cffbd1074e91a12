//! PipeWire with what the packages set for it: it has the cameras, and the server has the cards.

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::{Program, Server};
use tempfile::TempDir;

use super::thorough::start_bus;
use super::{awaited, far, xruns_and_cycles};

/// The settings that the package `consort-pulse` puts below `/usr/share/wireplumber`.
const SETTINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../debian/wireplumber");

/// A camera's picture: red, small and in bytes, so that each frame can be compared.
const PICTURE: &str = "video/x-raw,format=RGB,width=64,height=48,framerate=10/1";
const RED: [u8; 3] = [255, 0, 0];
const PICTURE_BYTES: usize = 64 * 48 * RED.len();

/// Pictures that a program takes from the camera.
const PICTURES: usize = 20;

/// PipeWire and its session manager, in a runtime directory of their own.
struct PipeWire {
    // Before the directory: they end, then it goes.
    _programs: [Program; 2],
    directory: TempDir,
    bus: String,
}

impl PipeWire {
    /// Starts it as Debian has it; with the settings of the packages, if `is_ours` says so.
    fn start(bus: &str, is_ours: bool) -> Self {
        let directory = TempDir::with_prefix("consort-pipewire-").expect("a temporary directory");
        for part in ["main.lua.d", "bluetooth.lua.d"] {
            let place = directory.path().join("config/wireplumber").join(part);
            fs::create_dir_all(&place).expect("a directory");
            if is_ours {
                let file = "51-consort.lua";
                fs::copy(Path::new(SETTINGS).join(part).join(file), place.join(file))
                    .expect("a setting of the packages");
            }
        }
        let pipewire = Program::start(Self::command_in(&directory, bus, "pipewire"));
        awaited("PipeWire answers", || directory.path().join("pipewire-0").exists().then_some(()));
        let session = Program::start(Self::command_in(&directory, bus, "wireplumber"));
        let this = Self { _programs: [pipewire, session], directory, bus: bus.to_owned() };
        // What follows the modules that its settings name, the monitors of cards among them.
        awaited("its session manager has begun", || {
            this.run("pw-metadata", &[]).contains("default").then_some(())
        });
        this
    }

    fn command_in(directory: &TempDir, bus: &str, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_RUNTIME_DIR", directory.path()).env("HOME", directory.path());
        command.env("XDG_CONFIG_HOME", directory.path().join("config"));
        command.env("DBUS_SESSION_BUS_ADDRESS", bus);
        command
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Self::command_in(&self.directory, &self.bus, program);
        command.args(arguments);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        Program::start(self.command(program, arguments)).finish().expect_success().stdout
    }

    /// The classes of all nodes and devices, such as `Audio/Sink`.
    fn classes(&self) -> Vec<String> {
        let dump: serde_json::Value =
            serde_json::from_str(&self.run("pw-dump", &[])).expect("pw-dump prints JSON");
        let class = |object: &serde_json::Value| {
            Some(object["info"]["props"]["media.class"].as_str()?.to_owned())
        };
        dump.as_array().expect("a list").iter().filter_map(class).collect()
    }

    fn offers_sound(&self) -> bool {
        self.classes().iter().any(|class| class.contains("Audio") || class.contains("Midi"))
    }

    /// Offers a camera.
    fn camera(&self) -> Program {
        let node = "stream-properties=p,media.class=Video/Source,node.name=camera";
        let source = ["-q", "videotestsrc", "is-live=true", "pattern=red", "!", PICTURE, "!"];
        let sink = ["pipewiresink", "mode=provide", node];
        let camera = Program::start(self.command("gst-launch-1.0", &[&source[..], &sink].concat()));
        awaited("there is a camera", || {
            self.classes().contains(&"Video/Source".to_owned()).then_some(())
        });
        camera
    }

    /// What a program takes from the camera.
    fn pictures(&self) -> Vec<u8> {
        let file = self.directory.path().join("pictures.raw");
        let (count, location) =
            (format!("num-buffers={PICTURES}"), format!("location={}", file.display()));
        let source = ["-q", "pipewiresrc", "target-object=camera", &count, "!", PICTURE, "!"];
        self.run("gst-launch-1.0", &[&source[..], &["filesink", &location]].concat());
        fs::read(file).expect("pictures")
    }
}

/// What PipeWire's processes have open of the kernel's sound.
fn open_sound_devices() -> Vec<String> {
    let is_pipewires = |process: &Path| {
        fs::read_to_string(process.join("comm"))
            .is_ok_and(|name| ["pipewire", "wireplumber"].contains(&name.trim()))
    };
    let processes = fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    let descriptors = processes
        .filter(|process| is_pipewires(process))
        .filter_map(|process| fs::read_dir(process.join("fd")).ok())
        .flat_map(Iterator::flatten);
    let files = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    files
        .map(|file| file.to_string_lossy().into_owned())
        .filter(|file| file.starts_with("/dev/snd/"))
        .collect()
}

#[test]
#[ignore = "in the virtual machine"]
fn pipewire_passes_video_and_leaves_cards_to_a_server_that_plays() {
    for kind in ["seats", "sessions", "users", "machines"] {
        fs::create_dir_all(format!("/run/systemd/{kind}")).expect("what logind would make");
    }
    let place = TempDir::new().expect("a temporary directory");
    let (_daemon, bus) = start_bus(&place);
    let otherwise = PipeWire::start(&bus, false);
    awaited("without the settings it has the cards", || otherwise.offers_sound().then_some(()));
    assert_ne!(open_sound_devices(), Vec::<String>::new());
    drop(otherwise);

    let pipewire = PipeWire::start(&bus, true);
    let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let options = ["--driver", "alsa", "--device", "hw:1,0", "--capture", "2", "--playback", "2"];
    let options = [&options[..], &["--quantum", "1024", "--periods", "3"]].concat();
    let server = Server::start_with(directory, &options, |command| {
        command.env("DBUS_SESSION_BUS_ADDRESS", &bus);
    });
    let _source = server.probe(&["source", "numbers"]);
    server.run("jack_connect", &["numbers:out", "system:playback_1"]).expect_success();
    let _camera = pipewire.camera();
    let recording = far::record(&server, 4);
    let pictures = pipewire.pictures();
    let [heard, _] = recording.finish();

    assert_eq!(pictures.len(), PICTURES * PICTURE_BYTES);
    assert!(pictures.chunks(RED.len()).all(|pixel| pixel == RED), "every picture is as it was");
    let heard: Vec<f64> = heard.into_iter().map(f64::from).collect();
    far::demand_consecutive(&heard, 150_000, 0);
    assert_eq!(xruns_and_cycles(&server).0, 0);
    assert!(!pipewire.offers_sound(), "{:?}", pipewire.classes());
    assert_eq!(open_sound_devices(), Vec::<String>::new());
}
