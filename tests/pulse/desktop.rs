//! What is remembered of programs, rules, and streams that hold others.

use std::path::PathBuf;
use std::time::Duration;

use harness::{Program, Sound, eventually, in_three_attempts};
use rustix::process::Signal;

use crate::{RATE_HZ, Scene, path};

impl Scene {
    /// The file of what is remembered.
    fn kept(&self) -> PathBuf {
        self.server.directory().join(".local/state/consort/desktop-under-test.json")
    }

    pub(crate) fn await_kept(&self, part: &str) {
        eventually("it is written", || {
            let text = std::fs::read_to_string(self.kept()).unwrap_or_default();
            text.contains(part).then_some(())
        });
    }

    /// Starts another front end in the place of one that was killed.
    pub(crate) fn front_end_again(&mut self) {
        self.front_end.signal(Signal::KILL);
        eventually("it has ended", || (!self.front_end.is_running()).then_some(()));
        self.front_end = self.server.spawn_consort(&["pulse"]);
        eventually("another one listens", || {
            self.run("pactl", &["info"]).code.filter(|code| *code == 0)
        });
    }

    /// Plays a level for longer than any test takes.
    pub(crate) fn play(&self, options: &[&str]) -> (Program, String) {
        let file = self.file("level.wav", &long(0.5));
        let before = self.pactl(&["list", "short", "sink-inputs"]);
        let player = self.spawn("paplay", &[options, &[path(&file)]].concat());
        let index = eventually("a stream plays", || {
            let after = self.pactl(&["list", "short", "sink-inputs"]);
            let is_new = |line: &&str| !before.lines().any(|known| index(known) == index(line));
            after.lines().find(is_new).map(index).map(str::to_owned)
        });
        (player, index)
    }

    /// What `pactl` prints of one stream.
    pub(crate) fn stream(&self, index: &str) -> String {
        let list = self.pactl(&["list", "sink-inputs"]);
        let begin = format!("Sink Input #{index}\n");
        let mut all = list.split_inclusive("\n\n");
        all.find(|text| text.contains(&begin)).unwrap_or_default().to_owned()
    }

    fn mixer(&self, arguments: &[&str]) -> Program {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pulse/remembered.py");
        self.spawn("/usr/bin/python3", &[&[path(&script)], arguments].concat())
    }
}

/// A level for a minute.
pub(crate) fn long(level: f32) -> Sound {
    let channel = vec![level; 60 * RATE_HZ as usize];
    Sound::of(RATE_HZ, &[channel.clone(), channel])
}

fn index(line: &str) -> &str {
    line.split('\t').next().unwrap_or_default()
}

#[test]
fn a_program_is_as_loud_and_where_it_was_after_the_front_end_was_killed() {
    in_three_attempts(|| {
        let mut scene = Scene::new();
        scene.server.consort(&["device", "add", "null", "--name", "other"]).expect_success();
        eventually("it is a sink", || {
            scene.pactl(&["list", "short", "sinks"]).contains("other").then_some(())
        });
        let (player, index) = scene.play(&["--client-name=loud"]);
        scene.pactl(&["set-sink-input-volume", &index, "50%"]);
        player.terminate();
        let (player, index) = scene.play(&["--client-name=far"]);
        scene.pactl(&["move-sink-input", &index, "other"]);
        scene.pactl(&["set-sink-input-mute", &index, "1"]);
        player.terminate();
        scene.await_kept("\"muted\": true");
        scene.front_end_again();
        let (player, index) = scene.play(&["--client-name=far"]);
        let shown = scene.stream(&index);
        assert!(shown.contains("Mute: yes") && !shown.contains("Sink: 0"), "{shown}");
        assert!(
            shown.contains("consort.why.device = \"it was moved there the last time"),
            "{shown}"
        );
        player.terminate();
        scene.await_no_stream();
        let (player, index) = scene.play(&["--client-name=loud"]);
        let shown = scene.stream(&index);
        assert!(shown.contains("32768 /  50% / -18.06 dB") && shown.contains("Sink: 0"), "{shown}");
        std::thread::sleep(Duration::from_millis(500));
        player.terminate();
        let recorded = scene.recorded();
        // The last stream is never louder than it is to be.
        let loud = recorded.channels[0].iter().rposition(|sample| *sample > 0.0626);
        let last = &recorded.channels[0][loud.map_or(0, |loud| loud + 1)..];
        let heard = last.iter().filter(|sample| **sample == 0.0625).count();
        if heard >= 4800 { Ok(()) } else { Err(format!("{heard} frames are heard")) }
    });
}

#[test]
fn a_damaged_file_is_set_aside_and_programs_are_served() {
    let mut scene = Scene::new();
    let (player, index) = scene.play(&[]);
    scene.pactl(&["set-sink-input-volume", &index, "50%"]);
    scene.await_kept("32768");
    player.terminate();
    let kept = scene.kept();
    std::fs::write(&kept, "{\"consort_desktop\": 1, \"streams\": [{").expect("written");
    scene.front_end_again();
    let told = eventually("it is reported", || {
        scene.front_end.stderr().lines().find(|line| line.contains("damaged")).map(str::to_owned)
    });
    assert!(told.contains(path(&kept)), "{told}");
    let (player, index) = scene.play(&[]);
    assert!(scene.stream(&index).contains("65536 / 100% / 0.00 dB"));
    scene.pactl(&["set-sink-input-volume", &index, "25%"]);
    scene.await_kept("16384");
    let aside = std::fs::read_to_string(format!("{}.damaged", path(&kept))).expect("set aside");
    assert!(aside.ends_with("[{"));
    player.terminate();
}

#[test]
fn a_rule_decides_for_programs_that_connect_after_it_was_written() {
    let scene = Scene::new();
    scene.pactl(&["load-module", "module-null-sink", "sink_name=other"]);
    let directory = scene.server.directory().join(".config/consort");
    std::fs::create_dir_all(&directory).expect("made");
    let rules = "# loud programs\nvolume=25% device=other name=loud*\n";
    std::fs::write(directory.join("desktop-under-test.rules"), rules).expect("written");
    let (player, index) = scene.play(&["--client-name=loud and far"]);
    let shown = scene.stream(&index);
    assert!(shown.contains("16384 /  25%"), "{shown}");
    let explained = scene.server.consort(&["why", "loud"]).expect_success().stdout;
    for line in ["on other: line 2 of the rules says so", "at 25%: line 2 of the rules says so"] {
        assert!(explained.contains(line), "{explained}");
    }
    player.terminate();
}

#[test]
fn modules_of_the_rules_are_there_before_a_program_connects_and_as_long_as_their_lines() {
    let mut scene = Scene::new();
    let directory = scene.server.directory().join(".config/consort");
    std::fs::create_dir_all(&directory).expect("made");
    let write = |text: &str| {
        std::fs::write(directory.join("desktop-under-test.rules"), text).expect("written");
    };
    write(
        "load-module module-null-sink sink_name=stage channels=1  # for the band\n\
         load-module module-loopback source=stage.monitor latency_msec=50\n",
    );
    scene.front_end.signal(Signal::KILL);
    eventually("it has ended", || (!scene.front_end.is_running()).then_some(()));
    scene.front_end = scene.server.spawn_consort(&["pulse"]);
    eventually("both are there, and no program was", || {
        let list = scene.server.consort(&["device", "list"]).expect_success().stdout;
        (list.contains("stage") && !scene.links().is_empty()).then_some(())
    });
    let modules = scene.pactl(&["list", "short", "modules"]);
    assert!(modules.contains("module-null-sink\tsink_name=stage channels=1\t"), "{modules}");
    write("muted=yes name=nobody\nload-module module-null-sink sink_name=stage channels=1\n");
    eventually("what has no line has gone", || {
        let modules = scene.pactl(&["list", "short", "modules"]);
        (modules.lines().count() == 1 && scene.links().is_empty()).then_some(())
    });
    assert!(scene.pactl(&["list", "short", "sinks"]).contains("stage"));
}

#[test]
fn a_mixer_of_libpulse_reads_and_changes_what_is_remembered() {
    let scene = Scene::new();
    let name = "sink-input-by-application-name:a player";
    let mut follower = scene.mixer(&["follow"]);
    eventually("it follows", || follower.stdout().contains("following").then_some(()));
    let (player, index) = scene.play(&["--client-name=a player"]);
    scene.mixer(&["write", name, "32768", "1"]).finish().expect_success();
    let shown = scene.stream(&index);
    assert!(shown.contains("32768 /  50%") && shown.contains("Mute: yes"), "{shown}");
    eventually("it is notified", || follower.stdout().contains("changed").then_some(()));
    let read = scene.mixer(&["read"]).finish().expect_success().stdout;
    assert_eq!(read, format!("{name} [32768] 1 -\n"));
    scene.mixer(&["delete", name]).finish().expect_success();
    assert_eq!(scene.mixer(&["read"]).finish().expect_success().stdout, "");
    player.terminate();
}

#[test]
fn music_is_silent_while_a_phone_call_is_heard() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let wait = || std::thread::sleep(Duration::from_millis(500));
        let (mut music, index) = scene.play(&["-v", "--property=media.role=music"]);
        wait();
        let file = scene.file("silence.wav", &long(0.0));
        let phone = scene.spawn("paplay", &["--property=media.role=phone", path(&file)]);
        let held = || scene.server.consort(&["why", "paplay"]).expect_success().stdout;
        eventually("it is held", || scene.stream(&index).contains("Mute: yes").then_some(()));
        eventually("its program is asked to hold it", || {
            music.stderr().contains("request-cork").then_some(())
        });
        let explained = held();
        assert!(explained.contains("a phone call holds music and video"), "{explained}");
        wait();
        phone.terminate();
        eventually("it is heard", || scene.stream(&index).contains("Mute: no").then_some(()));
        wait();
        music.terminate();
        let recorded = scene.recorded();
        // As long as each of them lasted: heard, silent, heard again.
        let mut runs: Vec<(f32, usize)> = Vec::new();
        for sample in &recorded.channels[0] {
            match runs.last_mut() {
                Some((level, frames)) if level == sample => *frames += 1,
                _ => runs.push((*sample, 1)),
            }
        }
        let long = runs.iter().filter(|(_, frames)| *frames >= 4800).map(|(level, _)| *level);
        let long: Vec<f32> = long.skip_while(|level| *level == 0.0).collect();
        match long[..] {
            [0.5, 0.0, 0.5] | [0.5, 0.0, 0.5, 0.0] => Ok(()),
            _ => Err(format!("{long:?}")),
        }
    });
}

#[test]
fn music_is_held_while_a_jack_client_says_that_it_is_a_phone_call() {
    let scene = Scene::new();
    let (mut music, index) = scene.play(&["-v", "--property=media.role=music"]);
    let call = scene.server.spawn("jack_metro", &["--bpm", "60", "--name", "call"]);
    let await_mute = |mute: &str| {
        eventually(mute, || scene.stream(&index).contains(mute).then_some(()));
    };
    let property = |words: &[&str]| {
        let words = [&["--client"], words].concat();
        eventually("the client is there", || {
            let finished = scene.server.run("jack_property", &words);
            (finished.code == Some(0) && finished.stderr.is_empty()).then_some(())
        });
    };
    let phone = ["--set", "call", "media.role", "phone", "text/plain"];
    property(&phone);
    await_mute("Mute: yes");
    eventually("its program is asked to hold it", || {
        music.stderr().contains("request-cork").then_some(())
    });
    let explained = scene.server.consort(&["why", "paplay"]).expect_success().stdout;
    assert!(explained.contains("the JACK client 'call' is active"), "{explained}");
    property(&["--delete", "call", "media.role"]);
    await_mute("Mute: no");
    property(&phone);
    await_mute("Mute: yes");
    call.terminate();
    await_mute("Mute: no");
    music.terminate();
}

#[test]
fn what_a_user_has_set_on_the_server_is_explained_and_goes_along_to_another_sink() {
    let scene = Scene::new();
    scene.server.consort(&["device", "add", "null", "--name", "far", "--rate", "44100"]);
    let (player, index) = scene.play(&["--client-name=quiet"]);
    let why = |words: &[&str]| {
        let explained = scene.server.consort(&[&["why"], words].concat());
        explained.expect_success().stdout
    };
    assert!(!why(&["quiet"]).contains("on the server"), "nobody has changed anything there");
    scene.server.consort(&["volume", "quiet", "0.25"]).expect_success();
    scene.server.consort(&["mute", "quiet"]).expect_success();
    let explained = why(&["quiet"]);
    for line in [
        "  on the server at 25 % (-12.0 dB): set by a user or another program (consort volume, ",
        "  on the server muted: set by a user or another program (consort mute, ",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
    eventually("it is a sink", || {
        scene.pactl(&["list", "short", "sinks"]).contains("far").then_some(())
    });
    scene.pactl(&["move-sink-input", &index, "far"]);
    eventually("it plays there", || why(&["quiet"]).contains("  on far: ").then_some(()));
    let explained = why(&["quiet"]);
    for line in [
        "  on the server at 25 % (-12.0 dB): its program has set it, or had it on ",
        "  on the server muted: its program has set it, or had it on ",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
    player.terminate();
}

#[test]
fn streams_of_the_servers_own_api_are_explained_without_a_front_end() {
    let mut scene = Scene::new();
    let file = scene.file("level.wav", &long(0.5));
    let player = scene.server.spawn_consort(&["play", path(&file)]);
    eventually("it plays", || {
        let explained = scene.server.consort(&["why", "consort play"]);
        (explained.code == Some(0)).then_some(())
    });
    scene.front_end.signal(Signal::KILL);
    eventually("the front end has ended", || (!scene.front_end.is_running()).then_some(()));
    scene.server.consort(&["volume", "consort play", "0.5"]).expect_success();
    scene.server.consort(&["mute", "device"]).expect_success();
    let explained = scene.server.consort(&["why"]).expect_success().stdout;
    for line in [
        ": consort play, level.wav\n  plays on system\n  at 50 % (-6.0 dB): set by a user or ",
        "  not muted: the default\n  all of the device 'system' at 100 % (0.0 dB), muted\n",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
    let unknown = scene.server.consort(&["why", "paplay"]);
    assert_eq!(unknown.code, Some(1));
    let reasons = ["there is no stream 'paplay'", "no server for programs of PulseAudio"];
    assert!(reasons.iter().all(|reason| unknown.stderr.contains(reason)), "{}", unknown.stderr);
    player.terminate();
}

#[test]
fn a_stream_that_records_is_explained_as_well() {
    let scene = Scene::new();
    scene.pactl(&["load-module", "module-null-sink", "sink_name=other"]);
    let recorder = scene.spawn("parec", &["--client-name=an ear", "--device=other.monitor"]);
    let explained = eventually("it records", || {
        let explained = scene.server.consort(&["why", "an ear"]);
        (explained.code == Some(0)).then_some(explained.stdout)
    });
    let begin = explained.starts_with("stream 1 (source output 0): an ear, ");
    let on = "\n  on other.monitor: its program has named it\n";
    assert!(begin && explained.contains(on), "{explained}");
    let nobody = scene.server.consort(&["why", "nobody"]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("'nobody'"), "{}", nobody.stderr);
    recorder.terminate();
}
