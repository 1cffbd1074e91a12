//! Modules that process sound: what is heard through a plug-in, and what is left of an echo.

use std::f64::consts::TAU;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use harness::{Program, Sound, eventually, in_three_attempts, noise, tone};

use crate::modules::{has_levels, recorded};
use crate::{RATE_HZ, Scene, path};

/// Rate of what is said far away.
const SPEECH_HZ: u32 = 8_000;

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

    /// Plays on a sink.
    fn play_on(&self, sink: &str, name: &str, rate_hz: u32, samples: Vec<f32>) -> Program {
        let file = self.file(name, &Sound::of(rate_hz, &[samples]));
        self.spawn("paplay", &[&format!("--device={sink}"), path(&file)])
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

fn power_db(samples: &[f32]) -> f64 {
    let power = samples.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>();
    10.0 * (power / samples.len() as f64).max(1e-12).log10()
}

/// The level of a tone, dB of its power.
fn tone_db(samples: &[f32], hz: f64) -> f64 {
    let turn = TAU * hz / f64::from(RATE_HZ);
    let part = |function: fn(f64) -> f64| {
        let all = samples.iter().enumerate();
        all.map(|(at, sample)| f64::from(*sample) * function(turn * at as f64)).sum::<f64>()
    };
    let peak = 2.0 * part(f64::sin).hypot(part(f64::cos)) / samples.len() as f64;
    10.0 * (peak * peak / 2.0).max(1e-12).log10()
}

/// Seconds of a recording after its sound has begun.
fn part(sound: &Sound, seconds: std::ops::Range<f64>) -> Result<&[f32], String> {
    let channel = &sound.channels[0];
    let begin = channel.iter().position(|sample| sample.abs() > 1e-3).ok_or("it is silent")?;
    let frame = |second: f64| begin + (second * f64::from(RATE_HZ)) as usize;
    channel.get(frame(seconds.start)..frame(seconds.end)).ok_or_else(|| "it is short".into())
}

#[test]
fn an_echo_is_20_db_quieter_and_what_is_said_as_loud() {
    in_three_attempts(|| {
        let scene = Scene::new();
        // What the speaker plays arrives at the microphone 40 ms later, and quieter.
        for name in ["speaker", "microphone"] {
            scene.load(&["module-null-sink", &format!("sink_name={name}")]);
        }
        let room = ["source=speaker.monitor", "sink=microphone", "latency_msec=40"];
        scene.load(&[&["module-loopback"], &room[..]].concat());
        scene.pactl(&["set-sink-volume", "speaker", "60%"]);
        let masters = ["source_master=microphone.monitor", "sink_master=speaker"];
        let names = ["source_name=clean", "sink_name=far"];
        // Without what takes a steady tone for noise.
        let plain = "aec_args=\"agc=0 denoise=0 echo_suppress=0\"";
        scene.load(&[&["module-echo-cancel"], &masters[..], &names, &[plain]].concat());
        let captured = scene.record_all("microphone.monitor", 2);
        let clean = scene.record_all("clean", 1);
        // As high as speech is.
        let far = noise(1, 24 * SPEECH_HZ as usize);
        let far = scene.play_on("far", "far.wav", SPEECH_HZ, far);
        // Meanwhile the echo becomes known.
        std::thread::sleep(Duration::from_secs(12));
        let near = tone(1_000.0, RATE_HZ, 8 * RATE_HZ as usize);
        let near = near.iter().map(|sample| 0.2 * sample).collect();
        let near = scene.play_on("microphone", "near.wav", RATE_HZ, near);
        near.finish().expect_success();
        far.finish().expect_success();
        let (captured, clean) = (recorded(captured), recorded(clean));
        let before = power_db(part(&captured, 9.0..11.0)?);
        let after = power_db(part(&clean, 9.0..11.0)?);
        if before < -40.0 || after > before - 20.0 {
            return Err(format!("an echo of {before} dB is {after} dB"));
        }
        let said = tone_db(part(&captured, 17.0..18.0)?, 1_000.0);
        let heard = tone_db(part(&clean, 17.0..18.0)?, 1_000.0);
        if said < -30.0 || (heard - said).abs() > 1.0 {
            return Err(format!("what is said at {said} dB is heard at {heard} dB"));
        }
        Ok(())
    });
}
