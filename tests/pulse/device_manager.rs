//! `module-device-manager`, as mixers on libpulse use it, and as its routing is heard.

use harness::{Finished, Program, c_program_with, eventually};

use crate::Scene;
use crate::policies::{Ear, sink_named, sink_of};

impl Scene {
    /// What a mixer asks the extension.
    fn manage(&self, arguments: &[&str]) -> Finished {
        self.mixer_of_devices(arguments).finish()
    }

    fn mixer_of_devices(&self, arguments: &[&str]) -> Program {
        let program = c_program_with("pulse", "pulse/clients/device_manager.c");
        self.spawn(&program, arguments)
    }

    /// Description, index and places of a device that is known.
    fn known(&self, device: &str) -> Option<[String; 3]> {
        let read = self.manage(&["read"]).expect_success().stdout;
        let mut lines = read.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        lines.find_map(|line| match line[..] {
            [name, description, index, order] if name == device => {
                Some([description, index, order].map(str::to_owned))
            }
            _ => None,
        })
    }
}

const STAGE: [&str; 2] = ["module-null-sink", "sink_name=stage"];

#[test]
fn a_mixer_of_libpulse_names_orders_and_forgets_devices_over_restarts_of_the_front_end() {
    let mut scene = Scene::new();
    let refused = scene.manage(&["read"]);
    assert!(refused.stderr.contains("No such extension"), "{}", refused.stderr);
    let manager = ["module-device-manager"];
    scene.load(&manager);
    let stage = scene.load(&STAGE);
    let mut follower = scene.mixer_of_devices(&["follow"]);
    eventually("it follows", || follower.stdout().contains("following").then_some(()));
    scene.manage(&["rename", "sink:stage", "The stage"]).expect_success();
    eventually("it is notified", || follower.stdout().contains("changed").then_some(()));
    let is_renamed = |scene: &Scene| {
        let sinks = scene.pactl(&["list", "sinks"]);
        sinks.contains("Description: The stage\n")
            && sinks.contains("device.description = \"The stage\"")
    };
    assert!(is_renamed(&scene), "pactl shows it");
    scene.manage(&["reorder", "phone", "sink:stage", "sink:consort"]).expect_success();
    scene.pactl(&["unload-module", &stage]);
    let absent = || {
        let order = "none=2 video=2 music=2 game=2 event=2 phone=1 animation=2 production=2 \
                     a11y=2 ";
        ["The stage", "-", order].map(str::to_owned)
    };
    assert_eq!(scene.known("sink:stage"), Some(absent()));
    scene.await_kept("\"renamed\": true");
    scene.await_kept("\"phone\": 2");
    scene.front_end_again();
    scene.load(&manager);
    assert_eq!(scene.known("sink:stage"), Some(absent()));
    scene.load(&STAGE);
    assert!(is_renamed(&scene), "it has come back");
    let [_, index, _] = scene.known("sink:stage").expect("known");
    assert_eq!(Some(index), sink_named(&scene, "stage"));
    scene.manage(&["delete", "sink:stage"]).expect_success();
    assert_eq!(scene.known("sink:stage"), None);
    assert!(!is_renamed(&scene), "it has its own name");
    let unknown = scene.manage(&["reorder", "phone", "sink:nowhere"]);
    assert!(unknown.stderr.contains("Invalid argument"), "{}", unknown.stderr);
}

#[test]
fn music_is_heard_on_the_first_sink_of_its_role_that_is_there_and_why_says_so() {
    let scene = Scene::new();
    scene.load(&["module-device-manager", "do_routing=1"]);
    let stage = scene.load(&STAGE);
    scene.manage(&["reorder", "music", "sink:stage"]).expect_success();
    let (_music, index) = scene.play(&["--client-name=player", "--property=media.role=music"]);
    Ear::new(&scene, "stage.monitor").await_level(0.5);
    let why = scene.server.consort(&["why", "player"]).expect_success().stdout;
    let reason = "on stage: of the devices that are there, it comes first for the role 'music'";
    assert!(why.contains(reason), "{why}");
    let (_video, other) = scene.play(&["--property=media.role=video"]);
    assert_eq!(sink_of(&scene, &other), sink_named(&scene, "consort"));
    scene.pactl(&["unload-module", &stage]);
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "consort"));
    Ear::new(&scene, "consort.monitor").await_level(1.0);
    scene.load(&STAGE);
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "stage"), "it is back");
    Ear::new(&scene, "stage.monitor").await_level(0.5);
    // Where a user has moved it, it stays.
    scene.pactl(&["move-sink-input", &index, "consort"]);
    scene.manage(&["reorder", "music", "sink:consort"]).expect_success();
    scene.manage(&["reorder", "music", "sink:stage"]).expect_success();
    assert_eq!(sink_of(&scene, &index), sink_named(&scene, "consort"));
    scene.manage(&["routing", "0"]).expect_success();
    let (_next, next) = scene.play(&["--property=media.role=music"]);
    assert_eq!(sink_of(&scene, &next), sink_named(&scene, "consort"), "nothing is routed");
}
