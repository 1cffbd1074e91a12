//! Several sinks: devices that come and go, streams that move between them, modules that add some.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use harness::{Program, Sound, eventually, in_three_attempts};
use rustix::process::Signal;

use crate::bad_input::{connect, packet};
use crate::{RATE_HZ, Scene, compare, path, ramps, same_frames};

impl Scene {
    /// `pactl subscribe`, once it has subscribed.
    pub(crate) fn subscribed(&self) -> Program {
        let mut events = self.spawn("pactl", &["subscribe"]);
        eventually("it has subscribed", || {
            self.pactl(&["info"]);
            events.stdout().contains("client").then_some(())
        });
        events
    }

    fn add_device(&self, name: &str, options: &[&str]) {
        let add = [&["device", "add", "null", "--name", name], options].concat();
        self.server.consort(&add).expect_success();
    }

    /// Waits for these lines of a list of `pactl`, each cut after its second column.
    fn await_list(&self, what: &str, expected: &[&str]) {
        eventually(what, || {
            let list = self.pactl(&["list", "short", what]);
            let names =
                list.lines().map(|line| line.split('\t').take(2).collect::<Vec<_>>().join(" "));
            names.eq(expected.iter().copied()).then_some(())
        });
    }

    /// Waits until a stream plays on a sink of this index.
    fn await_input_on(&self, sink: &str) -> String {
        eventually("a stream is there", || {
            let list = self.pactl(&["list", "short", "sink-inputs"]);
            let mut columns = list.split_whitespace();
            let (input, on) = (columns.next()?.to_owned(), columns.next()?);
            (on == sink).then_some(input)
        })
    }

    /// Starts to record a source as it is.
    fn record(&self, source: &str, name: &str) -> (Program, std::path::PathBuf) {
        let file = self.server.directory().join(name);
        let format = ["--format=float32le", "--rate=48000", "--channels=2", "--file-format=wav"];
        let source_option = format!("--device={source}");
        let options = [&[&*source_option][..], &format, &[path(&file)]].concat();
        let before = self.pactl(&["list", "short", "source-outputs"]).lines().count();
        let recorder = self.spawn("parecord", &options);
        eventually("it records", || {
            let list = self.pactl(&["list", "short", "source-outputs"]);
            (list.lines().count() > before).then_some(())
        });
        (recorder, file)
    }
}

/// Ends a recording, after what was just heard.
fn recorded(recorder: Program, file: &std::path::Path) -> Sound {
    std::thread::sleep(Duration::from_secs(3));
    recorder.signal(Signal::INT);
    recorder.finish();
    Sound::read(file)
}

#[test]
fn a_device_that_anybody_adds_and_removes_is_a_sink_meanwhile() {
    let scene = Scene::new();
    let mut events = scene.subscribed();
    scene.add_device("other", &["--rate", "44100"]);
    for event in ["'new' on source #2", "'new' on sink #1"] {
        eventually(event, || events.stdout().contains(event).then_some(()));
    }
    scene.await_list("sinks", &["0 consort", "1 other"]);
    scene.await_list("sources", &["0 consort.monitor", "2 other.monitor"]);
    let list = scene.pactl(&["list", "sinks"]);
    for line in ["Name: other", "float32le 2ch 44100Hz", "Monitor Source: other.monitor"] {
        assert!(list.contains(line), "{line}: {list}");
    }
    scene.server.consort(&["device", "remove", "other"]).expect_success();
    for event in ["'remove' on source #2", "'remove' on sink #1"] {
        eventually(event, || events.stdout().contains(event).then_some(()));
    }
    scene.await_list("sinks", &["0 consort"]);
}

#[test]
fn a_file_on_a_sink_is_what_its_monitor_records_sample_for_sample_and_nowhere_else() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.pactl(&["load-module", "module-null-sink", "sink_name=other"]);
        let (recorder, heard) = scene.record("other.monitor", "heard.wav");
        let (beside, nothing) = scene.record("@DEFAULT_SOURCE@", "nothing.wav");
        let sound = ramps(2 * RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        scene.run("paplay", &["--device=other", path(&file)]).expect_success();
        compare(&recorded(recorder, &heard), &sound.channels)?;
        let nothing = recorded(beside, &nothing);
        assert!(nothing.channels.iter().flatten().all(|sample| *sample == 0.0), "nowhere else");
        Ok(())
    });
}

/// The frame of a sound from which on a recording has it to its end, without its beginning.
fn heard_from(recorded: &Sound, sound: &Sound) -> Result<usize, String> {
    const WINDOW: usize = 1000;
    let (heard, played) = (&recorded.channels[0], &sound.channels[0]);
    let end = heard.iter().rposition(|sample| *sample != 0.0).ok_or("nothing was heard")?;
    let pairs = heard[..=end].iter().rev().zip(played.iter().rev());
    let same = pairs.take_while(|(heard, played)| heard == played).count();
    if same < WINDOW { Err(format!("{same} frames are the end")) } else { Ok(played.len() - same) }
}

#[test]
fn a_stream_that_is_moved_goes_on_where_it_left_and_its_program_is_told() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.pactl(&["load-module", "module-null-sink", "sink_name=other"]);
        let (recorder, heard) = scene.record("other.monitor", "heard.wav");
        let mut events = scene.subscribed();
        let sound = ramps(4 * RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        let mut player = scene.spawn("paplay", &["--verbose", path(&file)]);
        let input = scene.await_input_on("0");
        std::thread::sleep(Duration::from_millis(500));
        scene.pactl(&["move-sink-input", &input, "other"]);
        scene.await_input_on("1");
        eventually("its program has the message", || {
            player
                .stderr()
                .contains("Stream moved to device other (1, not suspended)")
                .then_some(())
        });
        let changed = format!("'change' on sink-input #{input}\n");
        eventually(&changed, || events.stdout().contains(&changed).then_some(()));
        player.finish().expect_success();
        let moved_at = heard_from(&recorded(recorder, &heard), &sound)?;
        let before = same_frames(&scene.recorded(), &sound.channels)?;
        // The fades are heard on both, each at its level.
        if before.abs_diff(moved_at) > 480 || before < 4800 {
            return Err(format!("it left after {before} frames and went on after {moved_at}"));
        }
        Ok(())
    });
}

#[test]
fn a_stream_goes_on_at_a_sink_of_another_rate_without_a_gap() {
    in_three_attempts(|| {
        let scene = Scene::new();
        let arguments = ["sink_name=slow", "rate=24000", "channels=1"];
        scene.pactl(&[&["load-module", "module-null-sink"], &arguments[..]].concat());
        let file = scene.server.directory().join("heard.wav");
        let format = ["--format=float32le", "--rate=24000", "--channels=1", "--file-format=wav"];
        let options = [&["--device=slow.monitor"][..], &format, &[path(&file)]].concat();
        let recorder = scene.spawn("parecord", &options);
        eventually("it records", || {
            scene.pactl(&["list", "short", "sources"]).contains("RUNNING").then_some(())
        });
        let level = Sound::of(RATE_HZ, &[vec![0.5; 192_000], vec![0.5; 192_000]]);
        let played = scene.file("played.wav", &level);
        let player = scene.spawn("paplay", &["--verbose", path(&played)]);
        let input = scene.await_input_on("0");
        std::thread::sleep(Duration::from_millis(500));
        scene.pactl(&["move-sink-input", &input, "slow"]);
        scene.await_input_on("1");
        let finished = player.finish().expect_success();
        assert!(finished.stderr.contains("Stream moved to device slow"), "{}", finished.stderr);
        let second = recorded(recorder, &file);
        let first = scene.recorded();
        let sounding = |sound: &Sound| {
            let loud = sound.channels[0].iter().filter(|sample| **sample > 0.25).count();
            loud as f64 / f64::from(sound.sample_rate_hz)
        };
        let (before, after) = (sounding(&first), sounding(&second));
        // Both play for the time of a fade and of the device's safety.
        if (3.98..4.1).contains(&(before + after)) && before > 0.1 {
            return Ok(());
        }
        Err(format!("{before} s on one, {after} s on the other"))
    });
}

/// A connection that speaks version 13 of the protocol.
struct Raw(UnixStream);

impl Raw {
    fn open(scene: &Scene) -> Self {
        let mut raw = Self(connect(scene));
        raw.ask(8, &[&b"L\0\0\0\x0dx\0\0\x01\0"[..], &[0; 256]].concat());
        raw
    }

    /// Sends a packet; returns the values of its answer.
    fn ask(&mut self, command: u32, values: &[u8]) -> Vec<u8> {
        self.0.write_all(&packet(command, values)).expect("sent");
        loop {
            let mut head = [0; 20];
            self.0.read_exact(&mut head).expect("an answer");
            let length = u32::from_be_bytes(*head.first_chunk().expect("a length"));
            let mut content = vec![0; length as usize];
            self.0.read_exact(&mut content).expect("an answer");
            // Events answer nothing.
            if content[6..10] == [0, 0, 0, 7] {
                assert_eq!(content[..5], *b"L\0\0\0\x02", "done");
                return content.split_off(10);
            }
        }
    }

    /// Creates a stream of 16-bit stereo at 48 kHz, its first, on the default sink.
    fn play(&mut self) {
        let word = |value: u32| [&b"L"[..], &value.to_be_bytes()].concat();
        let lengths = [u32::MAX, u32::MAX, 19_200, u32::MAX, 0].map(word);
        let [most, target, prebuffer, request, group] = lengths;
        let values = [
            &b"a\x03\x02\0\0\xbb\x80"[..],
            b"m\x02\x01\x02",
            &word(u32::MAX),
            b"N",
            &most,
            b"0",
            &target,
            &prebuffer,
            &request,
            &group,
            b"v\x02\0\x01\0\0\0\x01\0\0",
            b"000000000",
            b"PN",
        ];
        let answer = self.ask(3, &values.concat());
        assert_eq!(answer[..5], *b"L\0\0\0\0", "its number");
    }

    fn write(&mut self, bytes: &[u8]) {
        let head = [&(bytes.len() as u32).to_be_bytes()[..], &[0; 16]].concat();
        self.0.write_all(&[&head, bytes].concat()).expect("sent");
    }

    /// The byte at which the next one is written, and the one that is heard.
    fn indices(&mut self) -> (i64, i64) {
        let answer = self.ask(14, b"L\0\0\0\0T\0\0\0\0\0\0\0\0");
        // Behind two latencies, a flag and two times.
        let index = |at: usize| {
            assert_eq!(answer[at], b'r');
            i64::from_be_bytes(*answer[at + 1..].first_chunk().expect("a number"))
        };
        (index(37), index(46))
    }
}

#[test]
fn time_never_goes_back_however_a_stream_is_moved() {
    let scene = Scene::new();
    scene.pactl(&["load-module", "module-null-sink", "sink_name=other"]);
    scene.pactl(&["load-module", "module-null-sink", "sink_name=slow", "rate=24000"]);
    let mut raw = Raw::open(&scene);
    raw.play();
    // Ten seconds.
    for _ in 0..30 {
        raw.write(&[1; 64_000]);
    }
    let mut last = 0;
    for sink in ["other", "slow", "consort", "slow", "other", "consort"] {
        let (moved_at, least) = (last, 20);
        scene.pactl(&["move-sink-input", "0", sink]);
        let mut looks = 0;
        // It goes on there: a tenth of a second is heard.
        eventually("it is heard there", || {
            let (written, heard) = raw.indices();
            assert!(heard >= last, "{heard} after {last}, at {sink}");
            assert!(heard <= written, "{heard} of {written}");
            (last, looks) = (heard, looks + 1);
            (looks >= least && heard > moved_at + 19_200).then_some(())
        });
    }
}

#[test]
fn the_default_sink_is_chosen_and_streams_follow_it() {
    let scene = Scene::new();
    scene.add_device("other", &[]);
    scene.await_list("sinks", &["0 consort", "1 other"]);
    let mut events = scene.subscribed();
    let file = scene.file("long.wav", &ramps(20 * RATE_HZ as usize));
    let player = scene.spawn("paplay", &[path(&file)]);
    scene.await_input_on("0");
    scene.pactl(&["set-default-sink", "other"]);
    scene.await_input_on("1");
    eventually("programs are notified", || {
        events.stdout().contains("'change' on server").then_some(())
    });
    assert_eq!(scene.pactl(&["get-default-sink"]), "other\n");
    assert_eq!(scene.pactl(&["get-default-source"]), "other.monitor\n");
    scene.pactl(&["set-sink-volume", "@DEFAULT_SINK@", "50%"]);
    let status = scene.server.consort_json(&["status"]);
    let volume = status["further_devices"][0]["volume"].clone();
    assert_eq!((&volume, &status["device_volume"]), (&0.125.into(), &1.0.into()));
    player.terminate();
    let later = scene.spawn("paplay", &[path(&file)]);
    scene.await_input_on("1");
    scene.pactl(&["set-default-source", "consort.monitor"]);
    assert_eq!(scene.pactl(&["get-default-source"]), "consort.monitor\n");
    later.terminate();
}

#[test]
fn streams_of_a_device_that_is_removed_go_on_at_the_servers_own() {
    let scene = Scene::new();
    scene.add_device("other", &[]);
    scene.await_list("sinks", &["0 consort", "1 other"]);
    let file = scene.file("long.wav", &ramps(4 * RATE_HZ as usize));
    let mut player = scene.spawn("paplay", &["--verbose", "--device=other", path(&file)]);
    let input = scene.await_input_on("1");
    eventually("it plays", || player.stderr().contains("Stream started").then_some(()));
    scene.server.consort(&["device", "remove", "other"]).expect_success();
    assert_eq!(scene.await_input_on("0"), input);
    let finished = player.finish().expect_success();
    assert!(finished.stderr.contains("Stream moved to device consort"), "{}", finished.stderr);
    let heard = scene.recorded();
    assert!(heard.sounding(0).channels[0].len() > RATE_HZ as usize, "it is heard there");
}

#[test]
fn a_recording_goes_on_at_the_source_that_it_is_moved_to() {
    let scene = Scene::new();
    scene.add_device("other", &[]);
    scene.await_list("sinks", &["0 consort", "1 other"]);
    let (recorder, file) = scene.record("consort.monitor", "heard.wav");
    let list = scene.pactl(&["list", "short", "source-outputs"]);
    let output = list.split_whitespace().next().expect("one");
    scene.pactl(&["move-source-output", output, "other.monitor"]);
    let moved = scene.pactl(&["list", "short", "source-outputs"]);
    assert_eq!(moved.split_whitespace().nth(1), Some("2"), "{moved}");
    let sound = ramps(RATE_HZ as usize);
    let played = scene.file("played.wav", &sound);
    scene.run("paplay", &["--device=other", path(&played)]).expect_success();
    let heard = recorded(recorder, &file);
    assert!(heard.sounding(0).channels[0].len() > RATE_HZ as usize / 2, "of the other sink");
}

#[test]
fn what_another_program_of_the_server_moves_is_seen_where_it_is() {
    let scene = Scene::new();
    scene.add_device("other", &[]);
    let file = scene.file("long.wav", &ramps(20 * RATE_HZ as usize));
    let mut player = scene.spawn("paplay", &["--verbose", path(&file)]);
    scene.await_input_on("0");
    let number = scene.server.consort_json(&["status"])["streams"][0]["number"].to_string();
    scene.server.consort(&["move", &number, "other"]).expect_success();
    scene.await_input_on("1");
    eventually("its program has the message", || {
        player.stderr().contains("Stream moved to device other").then_some(())
    });
    player.terminate();
}

#[test]
fn modules_are_listed_and_unloaded_by_index_and_by_name() {
    let scene = Scene::new();
    let mut events = scene.subscribed();
    let properties = "sink_properties=device.description='Two\\ Words'";
    let load = ["load-module", "module-null-sink", "sink_name=two", "rate=22050", properties];
    let first = scene.pactl(&load).trim().to_owned();
    eventually("programs are notified", || {
        events.stdout().contains(&format!("'new' on module #{first}\n")).then_some(())
    });
    let short = scene.pactl(&["list", "short", "modules"]);
    let expected = format!("{first}\tmodule-null-sink\tsink_name=two rate=22050 {properties}");
    assert!(short.starts_with(&expected), "{short}");
    let sinks = scene.pactl(&["list", "sinks"]);
    for line in [&*format!("Owner Module: {first}"), "Description: Two Words", "2ch 22050Hz"] {
        assert!(sinks.contains(line), "{line}: {sinks}");
    }
    for _ in 0..2 {
        scene.pactl(&["load-module", "module-null-sink"]);
    }
    scene.await_list("sinks", &["0 consort", "1 two", "2 null", "3 null.2"]);
    scene.pactl(&["unload-module", &first]);
    scene.await_list("sinks", &["0 consort", "2 null", "3 null.2"]);
    scene.pactl(&["unload-module", "module-null-sink"]);
    scene.await_list("sinks", &["0 consort"]);
    scene.await_list("modules", &[]);
    let devices = scene.server.consort_json(&["status"])["further_devices"].clone();
    assert_eq!(devices, serde_json::json!([]));
}

#[test]
fn devices_of_modules_end_with_the_front_end_however_it_ends() {
    for signal in [Signal::TERM, Signal::KILL] {
        let mut scene = Scene::new();
        scene.add_device("stays", &[]);
        scene.pactl(&["load-module", "module-null-sink", "sink_name=goes"]);
        let devices =
            |scene: &Scene| scene.server.consort(&["device", "list"]).expect_success().stdout;
        assert!(devices(&scene).contains("goes"), "{}", devices(&scene));
        scene.front_end.signal(signal);
        eventually("it has ended", || (!scene.front_end.is_running()).then_some(()));
        eventually("its device has gone", || (!devices(&scene).contains("goes")).then_some(()));
        assert!(devices(&scene).contains("stays"));
    }
}

#[test]
fn a_front_end_that_has_nothing_to_do_does_not_wake() {
    in_three_attempts(|| {
        let scene = Scene::new();
        scene.pactl(&["load-module", "module-null-sink"]);
        let _subscribed = scene.subscribed();
        std::thread::sleep(Duration::from_millis(500));
        let sleeps = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", scene.front_end.id()));
            let status = status.expect("a process");
            let line =
                status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.and_then(|count| count.trim().parse::<u64>().ok()).expect("a count")
        };
        let before = sleeps();
        std::thread::sleep(Duration::from_secs(3));
        let woken = sleeps() - before;
        if woken == 0 { Ok(()) } else { Err(format!("it woke {woken} times")) }
    });
}
