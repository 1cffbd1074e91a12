//! How soon a change is heard although two seconds are queued.

use std::iter::repeat_n;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::leashed::Leashed;
use crate::measure::desktop::Scene;
use crate::measure::desktop::change::{Asked, delay_ns, frames_of, typical};
use crate::measure::desktop::player::{Player, Song, paplay, write_wav};
use crate::server::RATE_HZ;

/// Until the device is rendered far ahead again.
const DEEP: Duration = Duration::from_secs(3);
/// How long a change lasts.
const LASTS: Duration = Duration::from_millis(700);
/// How often the server is asked about its clock before a change, and how long apart: together more
/// than PipeWire's longest cycle.
const CLOCK_READINGS: usize = 12;
const CLOCK_PAUSE: Duration = Duration::from_millis(23);
/// Until the last frame is in the recording: what is queued, a fragment, and time to write it.
const RECORDED: Duration = Duration::from_secs(6);
/// A tone of 0.25, which the ramp does not have as its change.
const LEVEL: i16 = 8192;

/// What is changed, the player's command for it, and how it is undone. What cannot be undone comes
/// last: the recording's frames have other numbers afterwards.
const CHANGES: [(&str, &str, Option<&str>); 5] = [
    ("volume", "quiet", Some("loud")),
    ("mute", "mute", Some("unmute")),
    ("pause", "pause", Some("resume")),
    (NEW_STREAM, "another", Some("one")),
    ("seek", "seek", None),
];
const NEW_STREAM: &str = "new stream";

/// A frame, and when it is heard, as the server states it.
fn clock(player: &mut Player) -> Result<(u64, u64)> {
    let reading = |_| {
        std::thread::sleep(CLOCK_PAUSE);
        player.clock()
    };
    let readings = (0..CLOCK_READINGS).map(reading).collect::<Result<Vec<_>>>()?;
    typical(&readings, RATE_HZ).context("the clock says nothing")
}

pub fn measure(scene: &mut Scene) -> Result<()> {
    let level = write_wav(&scene.desktop.directory, "level.wav", 1, |_| [LEVEL; 2])?;
    let recording = scene.desktop.directory.join("recording");
    let (_, monitor) = scene.desktop.installed.system.sink_and_monitor();
    let mut player = Player::start(&scene.desktop, &Song { sound: "ramp", ..Song::PATIENT })?;
    player.record(monitor, &recording)?;
    let mut asked = Vec::new();

    // When the programs that take part in a beginning have a CPU differs more than the systems.
    let beginnings = scene.arguments.beginnings as usize;
    for _ in 0..beginnings {
        std::thread::sleep(DEEP);
        let (frame, heard_ns) = clock(&mut player)?;
        let asked_ns = player.change("nothing")?;
        let started: Leashed = paplay(&scene.desktop, &level)?;
        asked.push(("paplay, from its start", Asked { frame, heard_ns, asked_ns }));
        std::thread::sleep(LASTS);
        drop(started);
    }

    let repeated = CHANGES
        .iter()
        .flat_map(|change| repeat_n(*change, if change.0 == NEW_STREAM { beginnings } else { 1 }));
    for (what, change, undo) in repeated {
        std::thread::sleep(DEEP);
        let (frame, heard_ns) = clock(&mut player)?;
        let asked_ns = player.change(change)?;
        asked.push((what, Asked { frame, heard_ns, asked_ns }));
        std::thread::sleep(LASTS);
        if let Some(undo) = undo {
            player.change(undo)?;
        }
    }
    std::thread::sleep(RECORDED);
    let bytes = std::fs::read(&recording).context("there is no recording")?;
    let frames = frames_of(&bytes);
    let pid = Some(player.pid());
    for (what, asked) in asked {
        match delay_ns(&frames, &asked, RATE_HZ) {
            Ok(delay_ns) => {
                let target = if what.starts_with("paplay") { "" } else { "≤ 10" };
                scene.figure(pid, what, "ms", target, delay_ns as f64 / 1_000_000.0)?;
            }
            Err(error) => {
                let system = scene.desktop.installed.system.name();
                scene.report.fail(system, format!("{}: {what}: {error:#}", scene.row));
            }
        }
    }
    player.stop()
}
