//! Applications in Flatpak's own sandboxes, with a runtime of programs of this machine.

use harness::{Program, eventually, in_three_attempts, library_directory, not_run};
use serde_json::Value;

use crate::confined::expect_refusals;
use crate::{RATE_HZ, Scene, is_installed, listens_at, path, ramps, same_frames};

const PLAYER: &str = "org.consort.Player";
/// Has not been given PulseAudio's socket.
const MUTE: &str = "org.consort.Mute";
const PROGRAMS: [&str; 6] = ["sh", "sleep", "pactl", "paplay", "parec", "jack_lsp"];

/// A scene whose user has installed the applications.
struct Flatpaks(Scene);

impl Flatpaks {
    /// `None` where there is no Flatpak, or it can make no sandbox.
    fn install() -> Option<Self> {
        if !is_installed("flatpak") {
            return None;
        }
        let this = Self(Scene::new());
        std::fs::create_dir(this.0.server.directory().join("home")).expect("a directory");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/pulse/flatpak.sh");
        let place = this.0.server.directory().join("made");
        let arguments = [&[script, path(&place)][..], &PROGRAMS].concat();
        this.run("sh", &arguments).finish().expect_success();
        let tried = this.start(MUTE, &[], &["sh", "-c", ":"]).finish();
        if tried.code != Some(0) {
            not_run(&format!("Flatpak can make no sandbox here: {}", tried.stderr));
            return None;
        }
        Some(this)
    }

    /// Starts a program with a home of its own: a sandbox hides that, and what is in it, from its
    /// program, but not a directory for sockets that it is given.
    fn run(&self, program: &str, arguments: &[&str]) -> Program {
        let mut command = self.0.command(program, arguments);
        command.env("HOME", self.0.server.directory().join("home"));
        Program::start(command)
    }

    /// Starts a program in the sandbox of an application, with further options for that.
    fn start(&self, application: &str, options: &[&str], words: &[&str]) -> Program {
        let command = format!("--command={}", words[0]);
        let run = ["run", &command];
        let arguments = [&run[..], options, &[application], &words[1..]].concat();
        self.run("flatpak", &arguments)
    }

    /// What a program prints in the sandbox of the application that has been given the socket.
    fn printed(&self, words: &[&str]) -> String {
        self.start(PLAYER, &[], words).finish().expect_success().stdout
    }

    /// What the doctor says about Flatpaks: its verdict, and the rest.
    fn examined(&self) -> (String, String) {
        let found = self.0.server.consort(&["doctor", "--json"]).stdout;
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let list = found.as_array().expect("a list");
        let about = list.iter().find(|finding| finding["subject"] == "flatpak");
        let about = about.expect("a line about Flatpaks");
        (about["verdict"].as_str().expect("text").to_owned(), about.to_string())
    }
}

#[test]
fn an_application_of_flatpak_plays_sample_for_sample_and_records_nothing() {
    in_three_attempts(|| {
        let Some(flatpaks) = Flatpaks::install() else { return Ok(()) };
        let scene = &flatpaks.0;
        let sound = ramps(2 * RATE_HZ as usize);
        let file = scene.file("short.wav", &sound);
        let visible = format!("--filesystem={}:ro", path(&file));
        flatpaks.start(PLAYER, &[&visible], &["paplay", path(&file)]).finish().expect_success();
        let long = scene.file("long.wav", &ramps(60 * RATE_HZ as usize));
        let player = scene.spawn("paplay", &[path(&long)]);
        let inside = |program: &str, arguments: &[&str]| {
            flatpaks.start(PLAYER, &[], &[&[program], arguments].concat())
        };
        expect_refusals(scene, inside);
        let mut listener = inside("pactl", &["subscribe"]);
        eventually("it is shown as confined", || {
            let clients = scene.pactl(&["list", "clients"]);
            clients.contains("consort.confined = \"it has other mounts").then_some(())
        });
        assert!(listener.is_running());
        drop((listener, player));
        let Flatpaks(scene) = flatpaks;
        match same_frames(&scene.recorded(), &sound.channels)? {
            same if same == sound.channels[0].len() => Ok(()),
            same => Err(format!("{same} frames are heard as they are")),
        }
    });
}

#[test]
fn the_doctor_tells_applications_with_a_replaced_socket_from_others() {
    let Some(flatpaks) = Flatpaks::install() else { return };
    let (verdict, text) = flatpaks.examined();
    assert!(verdict == "good" && text.contains("play here\""), "{text}");
    let refused = flatpaks.start(MUTE, &[], &["pactl", "info"]).finish();
    assert!(refused.stderr.contains("Connection refused"), "{refused:?}");
    let running = [PLAYER, MUTE].map(|application| {
        let mut program = flatpaks.start(application, &[], &["sh", "-c", "echo; exec sleep 600"]);
        eventually("it runs", || (!program.stdout().is_empty()).then_some(()));
        program
    });
    let (verdict, text) = flatpaks.examined();
    assert_eq!(verdict, "good", "{text}");
    assert!(text.contains(&format!("without sound: {MUTE}\"")), "{text}");

    let Flatpaks(scene) = flatpaks;
    let socket = scene.socket();
    let Scene { front_end, server } = scene;
    // Another one has that name from now on.
    front_end.terminate().expect_success();
    let front_end = server.spawn_consort(&["pulse"]);
    eventually("it listens", || listens_at(&socket).then_some(()));
    let flatpaks = Flatpaks(Scene { front_end, server });
    let (verdict, text) = flatpaks.examined();
    assert_eq!(verdict, "note", "{text}");
    assert!(text.contains(&format!("no longer there: {PLAYER}\"")), "{text}");
    assert!(text.contains(&format!("flatpak kill {PLAYER}\"")), "{text}");
    drop(running);
    let server = flatpaks.printed(&["pactl", "info"]);
    assert!(server.contains("Server Name: consort\n"), "{server}");
}

#[test]
fn an_application_of_flatpak_joins_the_graph_with_the_socket_and_the_library() {
    let Some(flatpaks) = Flatpaks::install() else { return };
    // The runtime has JACK2's library.
    let library = flatpaks.0.server.directory().join("library");
    std::fs::create_dir(&library).expect("a directory");
    let file = "libjack.so.0";
    std::fs::copy(library_directory().join(file), library.join(file)).expect("copied");
    let library = path(&library);
    let (socket, files) = ("--filesystem=xdg-run/consort", format!("--filesystem={library}:ro"));
    let environment = format!("--env=LD_LIBRARY_PATH={library}");
    // Unlike a user's, this one is elsewhere in the sandbox.
    let directory = path(flatpaks.0.server.directory());
    let directory = format!("--env=XDG_RUNTIME_DIR={directory}");
    let run = |options: &[&str]| {
        flatpaks.start(PLAYER, &[options, &[&directory]].concat(), &["jack_lsp"]).finish()
    };
    let listed = run(&[socket, &files, &environment]).expect_success().stdout;
    assert!(listed.contains("system:playback_1\n"), "{listed}");
    for missing in [&[socket][..], &[&files, &environment]] {
        let alone = run(missing);
        assert!(alone.code != Some(0) && alone.stdout.is_empty(), "{alone:?}");
    }
}
