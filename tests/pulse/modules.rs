//! Modules that connect sinks and sources: what is heard through them, and that they go again.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Sound, eventually, in_three_attempts};
use rustix::process::Signal;

use crate::{RATE_HZ, Scene, compare, path, ramps};

impl Scene {
    /// Loads a module; returns its index.
    pub(crate) fn load(&self, arguments: &[&str]) -> String {
        self.pactl(&[&["load-module"], arguments].concat()).trim().to_owned()
    }

    /// Starts to record a source, in its own channels.
    pub(crate) fn record_all(&self, source: &str, channels: u32) -> (Program, PathBuf) {
        let file = self.server.directory().join(format!("{source}.wav"));
        let (device, channels) = (format!("--device={source}"), format!("--channels={channels}"));
        let format = ["--format=float32le", "--rate=48000", "--file-format=wav", "--no-remap"];
        let options = [&[&*device, &*channels][..], &format, &[path(&file)]].concat();
        let before = self.pactl(&["list", "short", "source-outputs"]).lines().count();
        let recorder = self.spawn("parecord", &options);
        eventually("it records", || {
            let list = self.pactl(&["list", "short", "source-outputs"]);
            (list.lines().count() > before).then_some(())
        });
        (recorder, file)
    }

    /// What processes of links the server sees.
    pub(crate) fn links(&self) -> Vec<String> {
        let list = self.server.consort(&["device", "list"]).expect_success().stdout;
        let links = list.lines().skip_while(|line| !line.starts_with("From device to device"));
        let links = links.skip(1).take_while(|line| line.starts_with("    "));
        links.map(|line| line.trim().to_owned()).collect()
    }

    /// Plays two seconds of a constant level for each channel on a sink.
    pub(crate) fn play_levels(&self, sink: &str, levels: &[f32]) {
        let planes: Vec<Vec<f32>> =
            levels.iter().map(|level| vec![*level; 2 * RATE_HZ as usize]).collect();
        let file = self.file("levels.wav", &Sound::of(RATE_HZ, &planes));
        let device = format!("--device={sink}");
        self.run("paplay", &[&*device, path(&file)]).expect_success();
    }
}

/// Ends a recording, after what was just heard.
pub(crate) fn recorded((recorder, file): (Program, PathBuf)) -> Sound {
    std::thread::sleep(Duration::from_secs(3));
    recorder.signal(Signal::INT);
    recorder.finish();
    Sound::read(&file)
}

/// Checks that each channel of a recording has its level for more than a second, and is silent if
/// that is 0.
pub(crate) fn has_levels(sound: &Sound, levels: &[f32]) -> Result<(), String> {
    assert_eq!(sound.channels.len(), levels.len());
    for (number, (channel, level)) in sound.channels.iter().zip(levels).enumerate() {
        let is_there = |sample: &&f32| (**sample - level).abs() < 1e-3;
        let there = channel.iter().filter(is_there).count();
        // A resampler swings about a step.
        let most = level.abs() * 1.15 + 1e-3;
        let beyond = channel.iter().filter(|sample| sample.abs() > most).count();
        if there < RATE_HZ as usize || beyond > 0 {
            let peak = channel.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
            return Err(format!(
                "channel {number} has its level {level} in {there} frames, more in {beyond}, at \
                 most {peak}"
            ));
        }
    }
    Ok(())
}

#[test]
fn a_loopback_is_heard_on_its_sink_with_channels_by_position() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.load(&["module-null-sink", "sink_name=one", "channels=1"]);
        scene.load(&["module-null-sink", "sink_name=two"]);
        scene.load(&["module-loopback", "source=one.monitor", "sink=two", "latency_msec=100"]);
        let heard = scene.record_all("two.monitor", 2);
        scene.play_levels("one", &[0.25]);
        has_levels(&recorded(heard), &[0.25, 0.25])
    });
}

#[test]
fn the_streams_of_a_loopback_have_a_volume_and_a_mute_that_are_heard_and_kept() {
    in_three_attempts(|| {
        let mut scene = Scene::new();
        for name in ["one", "two"] {
            scene.load(&["module-null-sink", &format!("sink_name={name}")]);
        }
        let link = ["source=one.monitor", "sink=two", "latency_msec=100"];
        let module = scene.load(&[&["module-loopback"], &link[..]].concat());
        let [inputs, outputs] =
            ["sink-inputs", "source-outputs"].map(|kind| scene.pactl(&["list", kind]));
        let owner = format!("Owner Module: {module}\n");
        for line in [&owner, "Client: n/a", "Mute: no", "Loopback from Monitor of Null Output"] {
            assert!(inputs.contains(line), "{line}: {inputs}");
        }
        for line in [&owner, "Client: n/a", "Loopback to Null Output"] {
            assert!(outputs.contains(line), "{line}: {outputs}");
        }
        let index = |kind: &str| {
            let short = scene.pactl(&["list", "short", kind]);
            short.split_whitespace().next().expect("an index").to_owned()
        };
        let [input, output] = ["sink-inputs", "source-outputs"].map(index);
        // Elsewhere, and back.
        let refused = scene.run("pactl", &["move-sink-input", &input, "one"]);
        assert!(refused.stderr.contains("Invalid argument"), "into itself: {refused:?}");
        for (sink, device) in [("consort", "system"), ("two", "two")] {
            scene.pactl(&["move-sink-input", &input, sink]);
            eventually("it goes there", || {
                let links = scene.links();
                let is_there = links.len() == 1 && links[0].contains(&format!("one to {device}"));
                is_there.then_some(())
            });
            eventually("it is shown there", || {
                let short = scene.pactl(&["list", "short", "sink-inputs"]);
                let sinks = scene.pactl(&["list", "short", "sinks"]);
                let at = sinks.lines().find(|line| line.split('\t').nth(1) == Some(sink))?;
                (short.split('\t').nth(1) == at.split('\t').next()).then_some(())
            });
        }
        scene.pactl(&["set-sink-input-volume", &input, "50%"]);
        let hear = |scene: &Scene, levels: [f32; 2]| {
            assert!(scene.pactl(&["list", "sink-inputs"]).contains("32768 /  50% / -18.06 dB"));
            let heard = scene.record_all("two.monitor", 2);
            scene.play_levels("one", &[0.5, 0.25]);
            has_levels(&recorded(heard), &levels)
        };
        hear(&scene, [0.0625, 0.031_25])?;
        // While a program is connected, the next server is looked for.
        let _events = scene.spawn("pactl", &["subscribe"]);
        scene.server.kill();
        scene.server.start_again();
        eventually("it passes frames on", || (scene.links().len() == 1).then_some(()));
        hear(&scene, [0.0625, 0.031_25])?;
        scene.pactl(&["set-source-output-mute", &output, "1"]);
        let heard = scene.record_all("two.monitor", 2);
        scene.play_levels("one", &[0.5, 0.25]);
        let sound = recorded(heard);
        let frames = sound.channels[0].iter().filter(|sample| sample.abs() > 1e-3).count();
        // What the device begins with after it has slept fades out.
        if frames <= 480 { Ok(()) } else { Err(format!("{frames} frames are heard")) }
    });
}

#[test]
fn a_loopback_without_a_sink_is_heard_on_the_default_one_wherever_that_is() {
    in_three_attempts(|| {
        let scene = Scene::new();
        for name in ["one", "two"] {
            scene.load(&["module-null-sink", &format!("sink_name={name}")]);
        }
        scene.load(&["module-loopback", "source=one.monitor"]);
        scene.pactl(&["set-default-sink", "two"]);
        eventually("it goes there", || {
            let links = scene.links();
            (links.len() == 1 && links[0].contains("one to two")).then_some(())
        });
        let heard = scene.record_all("two.monitor", 2);
        scene.play_levels("one", &[0.5, 0.25]);
        has_levels(&recorded(heard), &[0.5, 0.25])?;
        scene.server.consort(&["device", "remove", "two"]).expect_success();
        eventually("it returns", || {
            let links = scene.links();
            (links.len() == 1 && links[0].contains("one to system")).then_some(())
        });
        assert_eq!(scene.pactl(&["list", "short", "modules"]).matches("loopback").count(), 1);
        Ok(())
    });
}

#[test]
fn a_combined_sink_is_heard_on_all_of_its_sinks() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.load(&["module-null-sink", "sink_name=one", "rate=44100"]);
        scene.load(&["module-null-sink", "sink_name=two", "channel_map=mono"]);
        scene.load(&["module-combine-sink", "sink_name=all", "slaves=one,two"]);
        let one = scene.record_all("one.monitor", 2);
        let two = scene.record_all("two.monitor", 1);
        scene.play_levels("all", &[0.5, -0.25]);
        has_levels(&recorded(one), &[0.5, -0.25])?;
        has_levels(&recorded(two), &[0.125])?;
        // With the other one alone.
        scene.server.consort(&["device", "remove", "two"]).expect_success();
        eventually("it goes on", || {
            let links = scene.links();
            (links.len() == 1 && links[0].contains("all to one") && !links[0].contains("two"))
                .then_some(())
        });
        let one = scene.record_all("one.monitor", 2);
        scene.play_levels("all", &[0.5, -0.25]);
        has_levels(&recorded(one), &[0.5, -0.25])
    });
}

#[test]
fn a_remapped_sink_plays_on_the_channels_that_it_names_and_no_other() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.load(&["module-null-sink", "sink_name=four", "channel_map=surround-40"]);
        let remap = ["module-remap-sink", "sink_name=rear", "master=four", "channels=2"];
        // In the other order.
        let map = "master_channel_map=rear-right,rear-left";
        scene.load(&[&remap[..], &[map, "remix=no"]].concat());
        let heard = scene.record_all("four.monitor", 4);
        scene.play_levels("rear", &[0.5, 0.25]);
        has_levels(&recorded(heard), &[0.0, 0.0, 0.25, 0.5])
    });
}

#[test]
fn a_remapped_source_has_the_channel_that_it_names() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.load(&["module-null-sink", "sink_name=two"]);
        let remap = ["module-remap-source", "source_name=right", "master=two.monitor"];
        let map = ["channel_map=mono", "master_channel_map=front-right", "remix=no"];
        scene.load(&[&remap[..], &map].concat());
        let sources = scene.pactl(&["list", "short", "sources"]);
        assert!(sources.contains("\tright\t"), "{sources}");
        let sinks = scene.pactl(&["list", "short", "sinks"]);
        assert!(!sinks.contains("right"), "{sinks}");
        let heard = scene.record_all("right", 1);
        scene.play_levels("two", &[0.5, 0.25]);
        has_levels(&recorded(heard), &[0.25])
    });
}

#[test]
fn what_is_written_to_a_pipe_source_is_recorded_sample_for_sample() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let fifo = scene.server.directory().join("in");
        let file = format!("file={}", path(&fifo));
        let index = scene.load(&["module-pipe-source", "source_name=in", &file]);
        let heard = scene.record_all("in", 2);
        let sound = ramps(2 * RATE_HZ as usize);
        let frames = sound.channels[0].iter().zip(&sound.channels[1]);
        let bytes: Vec<u8> = frames
            .flat_map(|(left, right)| [*left, *right])
            .flat_map(|sample| ((sample * 32_768.0) as i16).to_le_bytes())
            .collect();
        let mut writer = std::fs::File::options().write(true).open(&fifo).expect("a FIFO");
        writer.write_all(&bytes).expect("written");
        drop(writer);
        compare(&recorded(heard), &sound.channels)?;
        scene.pactl(&["unload-module", &index]);
        eventually("its FIFO has gone", || (!fifo.exists()).then_some(()));
        Ok(())
    });
}

#[test]
fn what_is_played_on_a_pipe_sink_is_read_from_its_fifo_sample_for_sample() {
    in_three_attempts(|| {
        let scene = Scene::new();
        // Where PulseAudio has it.
        scene.load(&["module-pipe-sink", "format=float32le"]);
        let fifo = scene.server.directory().join("pulse/fifo_output");
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            std::fs::File::open(fifo).expect("a FIFO").read_to_end(&mut bytes).expect("read");
            bytes
        });
        let sound = ramps(RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        scene.run("paplay", &["--device=fifo_output", path(&file)]).expect_success();
        std::thread::sleep(Duration::from_secs(2));
        scene.pactl(&["unload-module", "module-pipe-sink"]);
        let bytes = reader.join().expect("bytes");
        let samples = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let samples: Vec<f32> = samples.collect();
        let channel = |number| samples.iter().skip(number).step_by(2).copied().collect();
        compare(&Sound::of(RATE_HZ, &[channel(0), channel(1)]), &sound.channels)
    });
}

#[test]
fn a_module_is_unloaded_by_index_and_by_name_and_its_process_ends() {
    let mut scene = Scene::new();
    let loopback = ["module-loopback", "source=consort.monitor", "sink=other"];
    scene.load(&["module-null-sink", "sink_name=other"]);
    let first = scene.load(&loopback);
    scene.load(&loopback);
    let remap = scene.load(&["module-remap-sink", "master=other"]);
    assert_eq!(scene.links().len(), 3, "{:?}", scene.links());
    let modules = scene.pactl(&["list", "short", "modules"]);
    let expected = format!("{first}\tmodule-loopback\tsource=consort.monitor sink=other");
    assert!(modules.contains(&expected), "{modules}");
    scene.pactl(&["unload-module", &first]);
    eventually("its process ends", || (scene.links().len() == 2).then_some(()));
    scene.pactl(&["unload-module", "module-loopback"]);
    eventually("so does the other's", || (scene.links().len() == 1).then_some(()));
    // A module whose master is removed goes with it.
    scene.pactl(&["unload-module", "module-null-sink"]);
    eventually("nothing is left", || {
        let modules = scene.pactl(&["list", "short", "modules"]);
        (modules.is_empty() && scene.links().is_empty()).then_some(())
    });
    eventually("it is said why", || {
        scene.front_end.stderr().contains("unloads 'module-remap-sink").then_some(())
    });
    let gone = scene.run("pactl", &["unload-module", &remap]);
    assert!(gone.stderr.contains("No such entity"), "{}", gone.stderr);
}

#[test]
fn a_module_that_cannot_be_is_refused_as_by_pulseaudio_and_the_reason_is_left() {
    let mut scene = Scene::new();
    for (arguments, reason) in [
        (&["module-none"][..], "there is no such module"),
        (&["module-loopback", "bogus=1"], "there is no argument 'bogus'"),
        (&["module-pipe-sink", "file=/nonexistent/f"], "cannot use /nonexistent/f"),
        (&["module-combine-sink", "slaves=none"], "there is no sink 'none'"),
    ] {
        let refused = scene.run("pactl", &[&["load-module"], arguments].concat());
        assert_eq!(refused.stderr, "Failure: Module initialization failed\n", "{arguments:?}");
        eventually(reason, || scene.front_end.stderr().contains(reason).then_some(()));
    }
    let short = |what| scene.pactl(&["list", "short", what]);
    assert_eq!(short("modules"), "");
    assert_eq!(short("sinks").lines().count(), 1, "{}", short("sinks"));
}

#[test]
fn what_modules_connect_ends_with_the_front_end_however_it_ends() {
    for signal in [Signal::TERM, Signal::KILL] {
        let mut scene = Scene::new();
        scene.load(&["module-remap-sink"]);
        scene.load(&["module-pipe-source"]);
        // Between devices that stay.
        let add = ["device", "add", "null", "--name", "stays"];
        scene.server.consort(&add).expect_success();
        scene.load(&["module-loopback", "source=consort.monitor", "sink=stays"]);
        assert_eq!(scene.links().len(), 3);
        let fifo = scene.server.directory().join("pulse/fifo_input");
        assert!(fifo.exists());
        scene.front_end.signal(signal);
        eventually("it has ended", || (!scene.front_end.is_running()).then_some(()));
        eventually("nothing is left", || {
            (scene.links().is_empty() && !fifo.exists()).then_some(())
        });
    }
}

/// Connects sinks, has the server ended and followed by another one, and listens.
fn hear_after(end: impl Fn(&mut Scene)) {
    in_three_attempts(|| {
        let mut scene = Scene::new();
        scene.load(&["module-null-sink", "sink_name=four", "channel_map=surround-40"]);
        let remap = ["module-remap-sink", "sink_name=rear", "master=four", "channels=2"];
        let map = "master_channel_map=rear-right,rear-left";
        scene.load(&[&remap[..], &[map, "remix=no"]].concat());
        scene.load(&["module-pipe-source", "source_name=in"]);
        let modules = scene.pactl(&["list", "short", "modules"]);
        // While a program is connected, the next server is looked for.
        let _events = scene.spawn("pactl", &["subscribe"]);
        end(&mut scene);
        scene.server.start_again();
        eventually("all of them pass frames on", || (scene.links().len() == 2).then_some(()));
        assert_eq!(scene.pactl(&["list", "short", "modules"]), modules);
        assert!(scene.server.directory().join("pulse/fifo_input").exists());
        let heard = scene.record_all("four.monitor", 4);
        scene.play_levels("rear", &[0.5, 0.25]);
        has_levels(&recorded(heard), &[0.0, 0.0, 0.25, 0.5])
    });
}

#[test]
fn what_modules_connect_is_heard_again_after_the_server_was_killed() {
    hear_after(|scene| scene.server.kill());
}

#[test]
fn what_modules_connect_is_heard_again_after_the_server_was_stopped() {
    hear_after(|scene| {
        scene.server.program().signal(Signal::TERM);
        eventually("it has ended", || (!scene.server.program().is_running()).then_some(()));
    });
}
