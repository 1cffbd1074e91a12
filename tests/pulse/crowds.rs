//! More of everything than a desktop has: listeners, connections, and bytes on a disk.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Program, eventually, in_three_attempts, not_run};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::bad_input::{auth, beside_a_player, connect, frame, packet};
use crate::{RATE_HZ, Scene, compare, path, ramps};

#[test]
fn fifty_listeners_stay_current_in_a_storm_of_changes() {
    const LISTENERS: usize = 50;
    const CHANGES: usize = 2000;
    let scene = Scene::new();
    let listen = || scene.spawn("pactl", &["subscribe"]);
    let mut listeners: Vec<Program> = (0..LISTENERS).map(|_| listen()).collect();
    let mut stopped = listen();
    eventually("all have subscribed", || {
        scene.pactl(&["info"]);
        let mut all = listeners.iter_mut().chain([&mut stopped]);
        all.all(|listener| listener.stdout().contains("client")).then_some(())
    });
    // One that reads nothing meanwhile holds up no other.
    stopped.signal(Signal::STOP);
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pulse/storm.py");
    let changes = CHANGES.to_string();
    scene.run("/usr/bin/python3", &[path(&script), &changes]).expect_success();
    scene.pactl(&["load-module", "module-null-sink", "sink_name=after"]);
    for listener in &mut listeners {
        eventually("it knows the last change", || {
            listener.stdout().contains("Event 'new' on sink #1").then_some(())
        });
        let seen = listener.stdout();
        assert!(seen.contains("Event 'change' on sink #0"), "{seen}");
    }
    stopped.signal(Signal::CONT);
    eventually("it reads on", || stopped.stdout().contains("on sink #1").then_some(()));
}

/// The descriptors that the front end has open.
fn descriptors(scene: &Scene) -> usize {
    let directory = format!("/proc/{}/fd", scene.front_end.id());
    std::fs::read_dir(directory).expect("a process").count()
}

#[test]
fn ten_thousand_connections_cost_a_player_nothing_and_leave_nothing_behind() {
    const CONNECTIONS: usize = 10_000;
    const AT_ONCE: usize = 100;
    beside_a_player(|scene| {
        let before = descriptors(scene);
        for round in 0..CONNECTIONS / AT_ONCE {
            let each = |number: usize| {
                let mut socket = connect(scene);
                // Silent, half of the first packet, all of it, or that and half of the next one.
                let bytes = match number % 4 {
                    0 => Vec::new(),
                    1 => auth()[..40 + round].to_vec(),
                    2 => auth(),
                    _ => [auth(), packet(9, b"P")[..10].to_vec()].concat(),
                };
                // One too many is ended already.
                let _ = socket.write_all(&bytes);
                socket
            };
            drop((0..AT_ONCE).map(each).collect::<Vec<UnixStream>>());
        }
        eventually("all are gone", || (descriptors(scene) <= before + 8).then_some(()));
    });
}

#[test]
fn samples_for_a_stream_that_is_not_there_are_left_out_and_the_connection_stays() {
    let scene = Scene::new();
    let mut socket = connect(&scene);
    socket.write_all(&auth()).expect("sent");
    for channel in [0, 7, u32::MAX - 1] {
        socket.write_all(&frame(64, channel, &[1; 64])).expect("sent");
    }
    let refused = b"L\0\0\0\0L\0\0\0\x07L\0\0\0\x13";
    for _ in 0..2 {
        // A command that there is not.
        socket.write_all(&packet(200, b"")).expect("sent");
        let mut answers = Vec::new();
        eventually("it is answered", || {
            let mut some = [0; 4096];
            let count = socket.read(&mut some).expect("it stays");
            assert_ne!(count, 0, "it stays");
            answers.extend_from_slice(&some[..count]);
            answers.windows(refused.len()).any(|answer| answer == refused).then_some(())
        });
    }
}

/// A file system without room, until it is dropped.
struct FullDisk(PathBuf);

impl FullDisk {
    /// Mounts a small one; `None` if that is not permitted here.
    fn at(directory: &Path) -> Option<Self> {
        std::fs::create_dir_all(directory).expect("made");
        let words = ["-t", "tmpfs", "-o", "size=64k", "none", path(directory)];
        let mounted = Command::new("mount").args(words).output();
        let is_there = mounted.is_ok_and(|output| output.status.success());
        if !is_there {
            not_run("a file system cannot be mounted here");
        }
        is_there.then(|| Self(directory.to_owned()))
    }

    fn fill(&self) {
        let mut filler = std::fs::File::create(self.0.join("filler")).expect("made");
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("filler")).expect("removed");
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l", path(&self.0)]).status();
    }
}

#[test]
fn a_full_disk_keeps_what_was_remembered_and_nobody_from_playing() {
    in_three_attempts(|| {
        let directory = TempDir::with_prefix("consort-test-").expect("a temporary directory");
        let state = directory.path().join(".local/state");
        let Some(disk) = FullDisk::at(&state) else { return Ok(()) };
        let mut scene =
            Scene::in_directory(directory, &["--driver", "timer", "--quantum", "1024"], &[]);
        let kept = state.join("consort/desktop-under-test.json");
        let text = || std::fs::read_to_string(&kept).unwrap_or_default();
        scene.pactl(&["set-default-sink", "consort"]);
        let before = eventually("it is written", || Some(text()).filter(|text| !text.is_empty()));
        disk.fill();
        scene.pactl(&["set-sink-mute", "consort", "1"]);
        scene.pactl(&["set-sink-mute", "consort", "0"]);
        eventually("it is reported", || {
            scene.front_end.stderr().contains("No space left on device").then_some(())
        });
        assert_eq!(text(), before, "what was written is whole");
        let sound = ramps(RATE_HZ as usize);
        let file = scene.file("played.wav", &sound);
        scene.run("paplay", &[path(&file)]).expect_success();
        disk.empty();
        scene.await_no_stream();
        scene.pactl(&["set-sink-volume", "consort", "50%"]);
        eventually("it is written again", || text().contains("32768").then_some(()));
        let files = std::fs::read_dir(state.join("consort")).expect("a directory").count();
        assert_eq!(files, 1, "nothing is left of what could not be written");
        compare(&scene.recorded(), &sound.channels)
    });
}
