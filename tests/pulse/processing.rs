//! Modules that process sound: what is heard through a plug-in.

use std::path::PathBuf;
use std::process::Command;

use harness::{eventually, in_three_attempts};

use crate::modules::{has_levels, recorded};
use crate::{Scene, path};

/// A plug-in of one channel that has something done with its first frames, or before them.
const PLUG_IN: &str = r#"
#include <ladspa.h>
#include <stdlib.h>
#include <unistd.h>
static const LADSPA_PortDescriptor kinds[] = {
    LADSPA_PORT_INPUT | LADSPA_PORT_AUDIO, LADSPA_PORT_OUTPUT | LADSPA_PORT_AUDIO};
static const char *const names[] = {"In", "Out"};
static const LADSPA_PortRangeHint hints[2];
static LADSPA_Handle instantiate(const LADSPA_Descriptor *descriptor, unsigned long rate) {
    BEFORE;
    return malloc(1);
}
static void connect_port(LADSPA_Handle instance, unsigned long port, LADSPA_Data *data) {}
static void run(LADSPA_Handle instance, unsigned long frames) { DURING; }
static void cleanup(LADSPA_Handle instance) { free(instance); }
static const LADSPA_Descriptor plug_in = {
    .Label = "bad", .Name = "Bad", .Maker = "", .Copyright = "", .PortCount = 2,
    .PortDescriptors = kinds, .PortNames = names, .PortRangeHints = hints,
    .instantiate = instantiate, .connect_port = connect_port, .run = run, .cleanup = cleanup};
const LADSPA_Descriptor *ladspa_descriptor(unsigned long index) {
    return index == 0 ? &plug_in : NULL;
}
"#;

impl Scene {
    /// Compiles a plug-in that does this in `instantiate`, and that in `run`.
    fn bad_plug_in(&self, before: &str, during: &str) -> PathBuf {
        let source = self.server.directory().join("bad.c");
        std::fs::write(&source, PLUG_IN).expect("written");
        let library = self.server.directory().join("bad.so");
        let mut compiler = Command::new("gcc");
        compiler.args(["-shared", "-fPIC", "-w", "-o", path(&library), path(&source)]);
        compiler.args([format!("-DBEFORE={before}"), format!("-DDURING={during}")]);
        assert!(compiler.status().expect("gcc runs").success());
        library
    }
}

#[test]
fn a_ladspa_sink_is_heard_on_its_master_through_an_instance_for_each_channel() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.load(&["module-null-sink", "sink_name=two"]);
        let amplifier = ["plugin=amp", "label=amp_mono", "control=0.5"];
        let sink = ["module-ladspa-sink", "sink_name=quiet", "master=two"];
        scene.load(&[&sink[..], &amplifier].concat());
        let heard = scene.record_all("two.monitor", 2);
        scene.play_levels("quiet", &[0.5, -0.25]);
        has_levels(&recorded(heard), &[0.25, -0.125])
    });
}

#[test]
fn a_plug_in_that_does_not_suit_is_refused_as_by_pulseaudio_and_the_reason_is_left() {
    let mut scene = Scene::new();
    for (arguments, reason) in [
        (&["plugin=none", "label=a"][..], "there is no plug-in 'none'"),
        (&["plugin=amp", "label=a"], "no plug-in with the label 'a': it has amp_mono, amp_stereo"),
        (&["plugin=amp", "label=amp_stereo", "channels=3"], "does not suit 3 channels"),
        (&["plugin=amp", "label=amp_mono", "control=-1"], "-1 is out of bounds: 'Gain'"),
    ] {
        let load = ["load-module", "module-ladspa-sink"];
        let refused = scene.run("pactl", &[&load[..], arguments].concat());
        assert_eq!(refused.stderr, "Failure: Module initialization failed\n", "{arguments:?}");
        eventually(reason, || scene.front_end.stderr().contains(reason).then_some(()));
    }
    assert_eq!(scene.pactl(&["list", "short", "modules"]), "");
    assert_eq!(scene.pactl(&["list", "short", "sinks"]).lines().count(), 1);
}

#[test]
fn a_plug_in_that_crashes_takes_nothing_with_it_but_its_module() {
    in_three_attempts(|| {
        let mut scene = Scene::new();
        scene.load(&["module-null-sink", "sink_name=two"]);
        let library = scene.bad_plug_in("", "abort()");
        let plugin = format!("plugin={}", path(&library));
        scene.load(&["module-ladspa-sink", "sink_name=bad", "master=two", &plugin, "label=bad"]);
        // It begins to play there, and goes on elsewhere.
        scene.play_levels("bad", &[0.5, 0.5]);
        eventually("it is said why", || {
            scene.front_end.stderr().contains("its plug-in has crashed").then_some(())
        });
        let modules = scene.pactl(&["list", "short", "modules"]);
        assert!(!modules.contains("ladspa") && modules.contains("null-sink"), "{modules}");
        let heard = scene.record_all("two.monitor", 2);
        scene.play_levels("two", &[0.5, 0.25]);
        has_levels(&recorded(heard), &[0.5, 0.25])
    });
}

#[test]
fn a_plug_in_that_hangs_keeps_nobody_waiting_and_leaves_no_process() {
    let mut scene = Scene::new();
    // Nothing of it is there when it has said that it is.
    let begun = scene.server.directory().join("begun");
    let library = scene.bad_plug_in(
        &format!(
            "{{ char *file = \"{}\"; close(creat(file, 0600)); for (;;) pause(); }}",
            path(&begun)
        ),
        "",
    );
    let plugin = format!("plugin={}", path(&library));
    let load = ["load-module", "module-ladspa-sink", &plugin, "label=bad"];
    let loading = scene.spawn("pactl", &load);
    eventually("it hangs", || begun.exists().then_some(()));
    scene.pactl(&["list", "short", "sinks"]);
    let hanging = processes_with(path(&library));
    assert_eq!(hanging.len(), 2, "pactl, and the one that hangs: {hanging:?}");
    let refused = loading.finish();
    assert_eq!(refused.stderr, "Failure: Module initialization failed\n");
    eventually("it is said why", || {
        scene.front_end.stderr().contains("does not begin").then_some(())
    });
    eventually("its process has gone", || processes_with(path(&library)).is_empty().then_some(()));
    // One that hangs when the front end is killed ends as well.
    std::fs::remove_file(&begun).expect("removed");
    let _loading = scene.spawn("pactl", &load);
    eventually("it hangs", || begun.exists().then_some(()));
    scene.front_end.signal(rustix::process::Signal::KILL);
    eventually("its process has gone", || processes_with(path(&library)).is_empty().then_some(()));
}

/// The processes whose command lines have this word.
fn processes_with(word: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("a directory");
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has_word = |process: &u32| {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    };
    numbers.filter(has_word).collect()
}
