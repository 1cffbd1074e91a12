//! Modules that say what happens of itself, as it is heard: streams that hold others or turn them
//! down, devices that become the default, and silence where there is no device.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use harness::{Program, Server, eventually};

use crate::desktop::long;
use crate::{Scene, listens_at, path};

/// Frames in a row at one level that are heard as that level: a tenth of a second.
const HEARD_FRAMES: usize = 4800;

/// One channel of a source, which is written to a file while it is recorded.
pub(crate) struct Ear {
    file: PathBuf,
    // Ends with the test.
    _recorder: Program,
}

impl Ear {
    pub(crate) fn new(scene: &Scene, source: &str) -> Self {
        let file = scene.server.directory().join(format!("{source}.raw"));
        let device = format!("--device={source}");
        let format = ["--raw", "--format=float32le", "--rate=48000", "--channels=1"];
        let options = [&[&*device, "--latency-msec=20"], &format[..], &[path(&file)]].concat();
        Self { _recorder: scene.spawn("parec", &options), file }
    }

    /// The latest frames, once there are as many as are heard as a level.
    fn latest(&self) -> Option<Vec<f32>> {
        let mut file = File::open(&self.file).ok()?;
        let frames = file.metadata().ok()?.len() / 4;
        let first = frames.checked_sub(HEARD_FRAMES as u64)?;
        file.seek(SeekFrom::Start(4 * first)).ok()?;
        let mut bytes = vec![0; 4 * HEARD_FRAMES];
        file.read_exact(&mut bytes).ok()?;
        let samples = bytes.as_chunks::<4>().0.iter();
        Some(samples.map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Waits until this level and nothing else is heard.
    pub(crate) fn await_level(&self, level: f32) {
        let is_level = |sample: &f32| (sample - level).abs() < 1e-5;
        let mut latest = None;
        let is_heard = || {
            latest = self.latest();
            latest.as_ref().is_some_and(|latest| latest.iter().all(is_level)).then_some(())
        };
        eventually(&format!("{level} is heard"), is_heard);
    }
}

/// Starts a stream of a role that is silent, so that what it does to others is heard alone.
fn silent(scene: &Scene, role: &str) -> Program {
    let file = scene.file("silence.wav", &long(0.0));
    let before = scene.pactl(&["list", "short", "sink-inputs"]).lines().count();
    let role = format!("--property=media.role={role}");
    let player = scene.spawn("paplay", &[&role, path(&file)]);
    eventually("it plays", || {
        let after = scene.pactl(&["list", "short", "sink-inputs"]).lines().count();
        (after > before).then_some(())
    });
    player
}

/// The index of the sink that a stream is on.
pub(crate) fn sink_of(scene: &Scene, stream: &str) -> Option<String> {
    let shown = scene.stream(stream);
    shown.lines().find_map(|line| line.strip_prefix("\tSink: ")).map(str::to_owned)
}

/// The index of the sink of this name.
pub(crate) fn sink_named(scene: &Scene, name: &str) -> Option<String> {
    let list = scene.pactl(&["list", "short", "sinks"]);
    let mut sinks = list.lines().map(|line| line.split('\t'));
    sinks.find_map(|mut words| {
        let index = words.next()?;
        (words.next() == Some(name)).then(|| index.to_owned())
    })
}

#[test]
fn music_is_held_while_a_stream_is_heard_for_which_a_module_holds_it() {
    let scene = Scene::new();
    let ear = Ear::new(&scene, "consort.monitor");
    // Phone calls hold music without a module.
    let roles = ["trigger_roles=game", "cork_roles=music"];
    let module = scene.load(&[&["module-role-cork"], &roles[..]].concat());
    let (mut music, index) = scene.play(&["-v", "--property=media.role=music"]);
    ear.await_level(0.5);
    let game = silent(&scene, "game");
    let shown = scene.stream(&index);
    assert!(shown.contains("Mute: yes"), "{shown}");
    ear.await_level(0.0);
    eventually("its program is asked to hold it", || {
        music.stderr().contains("request-cork").then_some(())
    });
    game.terminate();
    ear.await_level(0.5);
    assert!(scene.stream(&index).contains("Mute: no"));
    eventually("its program is asked to go on", || {
        music.stderr().contains("request-uncork").then_some(())
    });
    scene.pactl(&["unload-module", &module]);
    let game = silent(&scene, "game");
    assert!(scene.stream(&index).contains("Mute: no"), "nothing holds it any more");
    drop((game, music));
}

#[test]
fn music_is_quieter_while_a_stream_is_heard_for_which_a_module_turns_it_down() {
    let scene = Scene::new();
    let ear = Ear::new(&scene, "consort.monitor");
    let roles = ["trigger_roles=game", "ducking_roles=music", "volume=-20dB"];
    let module = scene.load(&[&["module-role-ducking"], &roles[..]].concat());
    let (_music, index) = scene.play(&["--property=media.role=music"]);
    ear.await_level(0.5);
    for _ in 0..2 {
        let game = silent(&scene, "game");
        ear.await_level(0.05);
        // The user's wish is as before.
        let shown = scene.stream(&index);
        assert!(shown.contains("65536 / 100% / 0.00 dB") && shown.contains("Mute: no"), "{shown}");
        game.terminate();
        ear.await_level(0.5);
    }
    let _game = silent(&scene, "game");
    ear.await_level(0.05);
    scene.pactl(&["unload-module", &module]);
    ear.await_level(0.5);
}

#[test]
fn a_new_sink_becomes_the_default_and_streams_follow_it_if_a_module_says_so() {
    let scene = Scene::new();
    let (_follows, index) = scene.play(&[]);
    let (_stays, stays) = scene.play(&[]);
    let load = |name: &str| {
        scene.load(&["module-null-sink", &format!("sink_name={name}")]);
    };
    load("before");
    // A user has put this one there.
    scene.pactl(&["move-sink-input", &stays, "before"]);
    assert_eq!(scene.pactl(&["get-default-sink"]), "consort\n");
    let module = scene.load(&["module-switch-on-connect", "ignore_virtual=no"]);
    assert_eq!(scene.pactl(&["get-default-sink"]), "consort\n", "no sink is new");
    load("new");
    assert_eq!(scene.pactl(&["get-default-sink"]), "new\n");
    Ear::new(&scene, "new.monitor").await_level(0.5);
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "new"));
    assert_eq!(sink_of(&scene, &stays), sink_named(&scene, "before"));
    scene.pactl(&["unload-module", &module]);
    load("after");
    assert_eq!(scene.pactl(&["get-default-sink"]), "new\n");
}

#[test]
fn a_stream_plays_on_a_silent_sink_that_a_module_adds_while_there_is_no_other() {
    // Its device plays nothing, so there is nothing that could be recorded into a file.
    let server = Server::start(&["--driver", "timer", "--playback", "0"]);
    let scene = Scene { front_end: server.spawn_consort(&["pulse"]), server };
    eventually("the front end listens", || listens_at(&scene.socket()).then_some(()));
    let sinks = || {
        let list = scene.pactl(&["list", "short", "sinks"]);
        let names = list.lines().filter_map(|line| line.split('\t').nth(1));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(sinks(), [""; 0]);
    let module = scene.load(&["module-always-sink", "sink_name=nowhere"]);
    assert_eq!(sinks(), ["nowhere"]);
    scene.load(&["module-null-source"]);
    assert_eq!(sinks(), ["nowhere"], "a source is no sink");
    let again = scene.run("pactl", &["load-module", "module-always-sink"]);
    assert_eq!(again.stderr, "Failure: Module initialization failed\n");
    let (_player, index) = scene.play(&[]);
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "nowhere"));
    scene.server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
    eventually("the other one is enough", || (sinks() == ["other"]).then_some(()));
    Ear::new(&scene, "other.monitor").await_level(0.5);
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "other"), "its stream goes on");
    scene.server.consort(&["device", "remove", "other"]).expect_success();
    eventually("there is none but a silent one", || (sinks() == ["nowhere"]).then_some(()));
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "nowhere"), "it goes on there");
    // As with the device of another module, which goes at once.
    let null = scene.load(&["module-null-sink", "sink_name=another"]);
    assert_eq!(sinks(), ["another"]);
    scene.pactl(&["unload-module", &null]);
    assert_eq!(sinks(), ["nowhere"]);
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "nowhere"), "and once more");
    scene.pactl(&["unload-module", &module]);
    assert_eq!(sinks(), [""; 0]);
    let modules = scene.pactl(&["list", "short", "modules"]);
    assert!(!modules.contains("module-always-sink"), "{modules}");
}

#[test]
fn a_null_source_is_silent_beside_what_is_heard_until_it_is_unloaded() {
    let scene = Scene::new();
    let module = scene.load(&["module-null-source", "source_name=quiet", "description=Nothing"]);
    let list = scene.pactl(&["list", "sources"]);
    let source = list.split("\n\n").find(|text| text.contains("\tName: quiet\n"));
    let source = source.unwrap_or_else(|| panic!("it is not there: {list}"));
    for line in ["Description: Nothing", "Monitor of Sink: n/a", &format!("Module: {module}\n")] {
        assert!(source.contains(line), "{line}: {source}");
    }
    let sinks = scene.pactl(&["list", "short", "sinks"]);
    assert!(!sinks.contains("quiet"), "{sinks}");
    let (_player, _) = scene.play(&[]);
    Ear::new(&scene, "consort.monitor").await_level(0.5);
    let ear = Ear::new(&scene, "quiet");
    eventually("it is recorded", || ear.latest());
    let bytes = std::fs::read(&ear.file).expect("recorded");
    assert_eq!(bytes.iter().position(|byte| *byte != 0), None, "a sample that is not silent");
    scene.pactl(&["unload-module", &module]);
    let sources = scene.pactl(&["list", "short", "sources"]);
    assert!(!sources.contains("quiet"), "{sources}");
    assert_eq!(scene.pactl(&["list", "short", "modules"]), "");
}
