//! The bell of an X server is a sample that is heard.

use harness::{Program, eventually, in_three_attempts};
use x11rb::protocol::xkb::{BoolCtrl, ConnectionExt, ID};
use x11rb::rust_connection::RustConnection;

use crate::programs::screen;
use crate::{RATE_HZ, Scene, compare, is_installed, path, ramps};

const MODULE: &str = "module-x11-bell";
/// Streams of one program, at most.
const MAX_STREAMS: usize = 64;

/// Rings the bell of a display; a volume of 0 is that which is usual there, 50 %.
fn ring(scene: &Scene, display: &str, volume: &str) {
    let mut command = scene.command("xkbbell", &["-v", volume]);
    command.env("DISPLAY", display);
    Program::start(command).finish().expect_success();
}

/// Returns whether an X server rings its bell itself.
fn rings_itself(display: &RustConnection) -> bool {
    let controls = display.xkb_get_controls(ID::USE_CORE_KBD.into()).expect("asked");
    controls.reply().expect("an answer").enabled_controls.contains(BoolCtrl::AUDIBLE_BELL_MASK)
}

fn has_module(scene: &Scene) -> bool {
    scene.pactl(&["list", "short", "modules"]).contains(MODULE)
}

#[test]
fn a_bell_is_heard_as_the_sample_of_its_name() {
    if !is_installed("Xvfb") {
        return;
    }
    let sound = ramps(RATE_HZ as usize);
    in_three_attempts(|| {
        let scene = Scene::new();
        let (_screen, display) = screen(&scene);
        let (sample, shown) = ("sample=ding", format!("display={display}"));
        scene.load(&[MODULE, sample, &shown]);
        ring(&scene, &display, "100");
        assert!(has_module(&scene), "the sample may come later");
        let file = scene.file("ramps.wav", &sound);
        scene.pactl(&["upload-sample", path(&file), "ding"]);
        ring(&scene, &display, "100");
        let stream = eventually("it plays", || {
            let list = scene.pactl(&["list", "sink-inputs"]);
            list.contains("media.name = \"ding\"").then_some(list)
        });
        assert!(stream.contains("application.name = \"X11 bell\""), "{stream}");
        compare(&scene.recorded(), &sound.channels)
    });
}

#[test]
fn a_bell_is_as_loud_as_the_x_server_says_on_the_sink_that_was_named() {
    if !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let shown = format!("display={display}");
    scene.load(&["module-null-sink", "sink_name=other"]);
    let file = scene.file("ramps.wav", &ramps(3 * RATE_HZ as usize));
    scene.pactl(&["upload-sample", path(&file), "bell-window-system"]);
    scene.load(&[MODULE, "sink=other", &shown]);
    ring(&scene, &display, "0");
    let stream = eventually("it plays", || {
        let list = scene.pactl(&["list", "sink-inputs"]);
        list.contains("bell-window-system").then_some(list)
    });
    assert!(stream.contains("front-left: 32768 /  50%"), "{stream}");
    let sinks = scene.pactl(&["list", "short", "sinks"]);
    let other = sinks.lines().find(|line| line.contains("other")).expect("the sink");
    let index = other.split('\t').next().expect("its number");
    assert!(stream.contains(&format!("Sink: {index}\n")), "{sinks}{stream}");
}

#[test]
fn an_x_server_rings_its_bell_itself_again_without_the_module() {
    if !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let (other, _) = RustConnection::connect(Some(&display)).expect("an X server");
    other.xkb_use_extension(1, 0).expect("asked").reply().expect("an answer");
    assert!(rings_itself(&other), "as it begins");
    let module = scene.load(&[MODULE, &format!("display={display}")]);
    assert!(!rings_itself(&other), "both would be heard");
    scene.pactl(&["unload-module", &module]);
    eventually("it rings itself", || rings_itself(&other).then_some(()));
    drop(other);
}

#[test]
fn a_bell_module_needs_an_x_server_that_lets_it_in_and_ends_with_that() {
    if !is_installed("Xvfb") || !is_installed("xauth") {
        return;
    }
    let mut scene = Scene::new();
    scene.refused(&[MODULE, "display=nonsense"], "cannot connect to the X server");
    let known = scene.server.directory().join("known");
    let authority = path(&known).to_owned();
    // For the number that the X server is about to choose, so for all.
    let cookie = "0123456789abcdef0123456789abcdef";
    let numbers = (0..100).map(|number| format!("add :{number} . {cookie}\n"));
    let script = scene.server.directory().join("script");
    std::fs::write(&script, numbers.collect::<String>()).expect("written");
    scene.run("xauth", &["-q", "-f", &authority, "source", path(&script)]).expect_success();
    let options = ["-displayfd", "1", "-auth", &authority];
    let mut screen = scene.spawn("Xvfb", &options);
    let number = eventually("a screen", || screen.stdout().lines().next().map(str::to_owned));
    let shown = format!("display=:{number}");
    scene.refused(&[MODULE, &shown, "xauthority=/nowhere"], "cannot connect to the X server");
    scene.load(&[MODULE, &shown, &format!("xauthority={authority}")]);
    screen.terminate();
    eventually("it is unloaded", || (!has_module(&scene)).then_some(()));
    scene.says("the X server has gone");
}

#[test]
fn bells_without_end_have_the_streams_that_any_program_may_have() {
    if !is_installed("Xvfb") {
        return;
    }
    let scene = Scene::new();
    let (_screen, display) = screen(&scene);
    let file = scene.file("ramps.wav", &ramps(20 * RATE_HZ as usize));
    scene.pactl(&["upload-sample", path(&file), "bell-window-system"]);
    scene.load(&[MODULE, &format!("display={display}")]);
    let (other, _) = RustConnection::connect(Some(&display)).expect("an X server");
    other.xkb_use_extension(1, 0).expect("asked").reply().expect("an answer");
    let [keyboard, class, id] =
        [ID::USE_CORE_KBD, ID::DFLT_XI_CLASS, ID::DFLT_XI_ID].map(u16::from);
    for _ in 0..2 * MAX_STREAMS {
        let rung = other.xkb_bell(keyboard, class, id, 0, false, false, 0, 0, 0, 0);
        rung.expect("rung").check().expect("a bell");
    }
    let streams = || scene.pactl(&["list", "short", "sink-inputs"]).lines().count();
    eventually("it has all", || (streams() == MAX_STREAMS).then_some(()));
    scene.pactl(&["play-sample", "bell-window-system"]);
    assert_eq!(streams(), MAX_STREAMS + 1, "others have theirs");
    assert!(has_module(&scene));
}
