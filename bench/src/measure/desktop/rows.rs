//! The rows of the desktop's table: what plays, and what is counted meanwhile.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::client::{Node, Patcher};
use crate::measure::desktop::player::{
    Events, Player, Song, consort_play, missed_ms, reported_latency_ms, write_wav,
};
use crate::measure::desktop::spent::{Spent, Who, memory_mb, rings_mb};
use crate::measure::desktop::system::{Role, System};
use crate::measure::desktop::{Scene, changes};
use crate::server::RATE_HZ;

/// How long a system has until it sleeps as it will for hours: consort's control thread polls for
/// 12 s after a request, the others suspend a device after 5 s.
const SETTLE: Duration = Duration::from_secs(15);
const OTHERS_SETTLE: Duration = Duration::from_secs(7);
/// How many writings are looked at for a latency, where it is short.
const SHORT_LATENCIES: usize = 50;
/// The quantum of consort's server.
const CYCLE_FRAMES: u32 = 64;
/// What a program with many streams has.
const STREAMS_PER_PROGRAM: u32 = 50;
/// Within this time each stream that is played is asked for more: twice what it has queued.
const TWO_QUEUES_SECONDS: u64 = 4;
/// Streams that play beside cycles together.
const STREAMS_IN_CYCLES: usize = 16;
/// How often they pause and play, where both are compared.
const TURNS: usize = 11;
/// How long what follows at once from a change of a player takes, and more.
const AFTER_A_CHANGE: Duration = Duration::from_millis(300);

/// What can be measured of each system by itself.
pub struct Row {
    /// Its name in the table.
    pub name: &'static str,
    /// Whether PulseAudio and PipeWire have it, too.
    is_for_all: bool,
    /// PipeWire's longest cycle, in frames.
    pub pipewires_most: u32,
    /// Measures it.
    pub measure: fn(&mut Scene) -> Result<()>,
}

impl Row {
    /// Whether the system has it.
    pub fn is_for(&self, system: System) -> bool {
        self.is_for_all || system == System::Consort
    }
}

const fn row(name: &'static str, measure: fn(&mut Scene) -> Result<()>) -> Row {
    Row { name, is_for_all: true, pipewires_most: PIPEWIRES_MOST, measure }
}

const fn own_row(name: &'static str, measure: fn(&mut Scene) -> Result<()>) -> Row {
    Row { is_for_all: false, ..row(name, measure) }
}

/// As long as there are: so it wakes as rarely as it can.
const PIPEWIRES_MOST: u32 = 8192;
/// Its default: with more, its players run empty when another one comes or leaves.
const PIPEWIRES_DEFAULT: u32 = 2048;

/// All rows, in the order of the table.
pub const ROWS: [Row; 14] = [
    row("player with 2 s queued", patient),
    own_row("consort play with 2 s queued", own_patient),
    row("the same player beside a program with 64 frames", beside),
    row("player at 20 ms", hasty),
    own_row("consort play at 20 ms", own_hasty),
    row("program of JACK with 64 frames, alone", neighbour_alone),
    own_row("a stream beside cycles of 64 frames", stream_in_cycles),
    row("nobody connected", nobody),
    row("connected, paused", paused),
    row("player with 2 s queued, 44.1 kHz", resampled),
    row("player with 2 s queued, recorded", recorded),
    row("100 streams", hundred),
    row("500 streams", five_hundred),
    Row { pipewires_most: PIPEWIRES_DEFAULT, ..row("changes with 2 s queued", changes::measure) },
];

impl Scene<'_> {
    fn settle(&self) {
        let is_consort = self.desktop.installed.system == System::Consort;
        std::thread::sleep(if is_consort { SETTLE } else { OTHERS_SETTLE });
    }

    fn count(&self, programs: &[u32], neighbours: &[u32]) -> Result<Spent> {
        let length = Duration::from_secs(self.arguments.seconds);
        Spent::during(length, &self.desktop, programs, neighbours)
    }

    /// Switches of all but neighbours, and those of each process.
    fn switches(&mut self, spent: &Spent, player: Option<u32>, target: &'static str) -> Result<()> {
        let all = spent.switches_per_second(|who| who != Who::Neighbour);
        self.figure(player, "context switches", "/s", target, all)?;
        self.shares(spent, player)
    }

    fn shares(&mut self, spent: &Spent, player: Option<u32>) -> Result<()> {
        for who in spent.parties() {
            let value = spent.switches_per_second(|other| other == who);
            self.figure(player, &format!("of these, {}", who.name()), "/s", "", value)?;
        }
        Ok(())
    }

    fn cpu(&mut self, spent: &Spent, player: Option<u32>, target: &'static str) -> Result<()> {
        let value = spent.cpu_percent(|who| who != Who::Neighbour);
        self.figure(player, "CPU", "%", target, value)
    }

    /// A program of JACK whose sound goes to the null device.
    fn neighbour(&self) -> Result<Option<Node>> {
        let Some(ports) = self.desktop.installed.system.jack_ports() else { return Ok(None) };
        let command = |program: &PathBuf| {
            let mut command = Command::new(program);
            self.desktop.set_jack(&mut command);
            command.stderr(std::process::Stdio::null());
            command
        };
        let programs = self.desktop.programs;
        let mut patcher = Patcher::spawn("patcher", &mut command(&programs.patcher))?;
        let words = ["neighbour", "tone", "0", "2"];
        let node = Node::spawn("neighbour", command(&programs.node).args(words))?;
        node.ready()?;
        for (output, port) in ports.iter().enumerate() {
            patcher.connect(&format!("neighbour:out_{output}"), port)?;
        }
        patcher.close()?;
        Ok(Some(node))
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn patient(scene: &mut Scene) -> Result<()> {
    let mut player = Player::start(&scene.desktop, &Song::PATIENT)?;
    scene.settle();
    let pid = Some(player.pid());
    let spent = scene.count(&[player.pid()], &[])?;
    scene.switches(&spent, pid, "≤ 3")?;
    scene.cpu(&spent, pid, "PulseAudio's")?;
    let memory = memory_mb(&scene.desktop)?;
    scene.figure(pid, "memory (PSS) without the program", "MB", "", memory)?;
    let rings = rings_mb(&scene.desktop)?;
    scene.figure(pid, "of these, without the stream's ring", "MB", "< 12", memory - rings)?;
    let latency = player.latencies_ms(1)?[0];
    scene.figure(pid, "latency, as stated", "ms", "", latency)?;
    player.stop()
}

fn resampled(scene: &mut Scene) -> Result<()> {
    let song = Song { rate_hz: 44_100, ..Song::PATIENT };
    let player = Player::start(&scene.desktop, &song)?;
    scene.settle();
    let pid = Some(player.pid());
    let spent = scene.count(&[player.pid()], &[])?;
    scene.cpu(&spent, pid, "PulseAudio's")?;
    let without_rings =
        |scene: &Scene| anyhow::Ok(memory_mb(&scene.desktop)? - rings_mb(&scene.desktop)?);
    // The first of several has the front end take memory that others use as well.
    let second = Player::start(&scene.desktop, &song)?;
    scene.settle();
    let before = without_rings(scene)?;
    let third = Player::start(&scene.desktop, &song)?;
    scene.settle();
    let memory = without_rings(scene)? - before;
    scene.figure(pid, "memory (PSS) of a third one, without its ring", "MB", "< 0.3", memory)?;
    [player, second, third].into_iter().try_for_each(Player::stop)
}

/// Somebody hears the device: no system can leave out what nobody would notice.
fn recorded(scene: &mut Scene) -> Result<()> {
    let (_, monitor) = scene.desktop.installed.system.sink_and_monitor();
    let mut player = Player::start(&scene.desktop, &Song::PATIENT)?;
    player.record(monitor, Path::new("/dev/null"))?;
    scene.settle();
    let spent = scene.count(&[player.pid()], &[])?;
    scene.cpu(&spent, Some(player.pid()), "")?;
    player.stop()
}

fn beside(scene: &mut Scene) -> Result<()> {
    let player = Player::start(&scene.desktop, &Song::PATIENT)?;
    let node = scene.neighbour()?;
    // PulseAudio has no programs of JACK: instead, the least latency that it grants.
    let hasty = Song { latency_ms: 5, ..Song::PATIENT };
    let other = node.is_none().then(|| Player::start(&scene.desktop, &hasty)).transpose()?;
    scene.settle();
    let neighbour = node.as_ref().map(Node::pid).or_else(|| other.as_ref().map(Player::pid));
    let pid = Some(player.pid());
    let spent = scene.count(&[player.pid()], neighbour.as_slice())?;
    let own = spent.switches_per_second(|who| who == Who::Program);
    scene.figure(pid, "context switches of the player", "/s", "≤ 3", own)?;
    for role in [Role::Server, Role::FrontEnd] {
        let who = Who::Desktop(role);
        let value = spent.switches_per_second(|other| other == who);
        if spent.parties().any(|party| party == who) {
            scene.figure(pid, &format!("{}'s", who.name()), "/s", "", value)?;
        }
    }
    scene.cpu(&spent, pid, "")?;
    if let Some(node) = node {
        node.close()?;
    }
    player.stop()
}

fn hasty(scene: &mut Scene) -> Result<()> {
    let mut player = Player::start(&scene.desktop, &Song { latency_ms: 20, ..Song::PATIENT })?;
    scene.settle();
    let pid = Some(player.pid());
    player.events()?;
    let spent = scene.count(&[player.pid()], &[])?;
    let Events { underflows, .. } = player.events()?;
    scene.switches(&spent, pid, "≤ 330")?;
    scene.cpu(&spent, pid, "")?;
    let latency = median(player.latencies_ms(SHORT_LATENCIES)?).context("no latency")?;
    scene.figure(pid, "latency, as stated", "ms", "20", latency)?;
    scene.figure(pid, "times the player ran empty", "", "0", underflows as f64)?;
    player.stop()
}

/// `consort play` with this latency; returns the report that it prints at its end.
fn own(scene: &mut Scene, latency_ms: u32, target: &'static str) -> Result<String> {
    let seconds = u32::try_from(scene.arguments.seconds + 2 * SETTLE.as_secs())?;
    let music = |frame: u32| {
        let wave = |hz: f64| (f64::from(frame) * hz * std::f64::consts::TAU / 48_000.0).sin();
        let both = [wave(220.0) + wave(330.0), wave(277.0) + wave(440.0)];
        both.map(|sum| (sum * 8000.0) as i16)
    };
    let file = write_wav(&scene.desktop.directory, "music.wav", seconds, music)?;
    let mut player = consort_play(&scene.desktop, &file, latency_ms)?;
    scene.settle();
    let spent = scene.count(&[player.pid], &[])?;
    scene.switches(&spent, Some(player.pid), target)?;
    scene.cpu(&spent, Some(player.pid), "")?;
    // It says so as an error if it ran empty, and the report counts that.
    let ended = player.stop();
    let said = player.said();
    let missed = missed_ms(&said);
    scene.figure(None, "silence because it ran empty, all the time", "ms", "0", missed)?;
    if missed == 0.0 {
        ended?;
    }
    Ok(said)
}

fn own_patient(scene: &mut Scene) -> Result<()> {
    own(scene, 2000, "≤ 3").map(drop)
}

fn own_hasty(scene: &mut Scene) -> Result<()> {
    let said = own(scene, 20, "≤ 160")?;
    let latency = reported_latency_ms(&said).with_context(|| format!("no latency in:\n{said}"))?;
    scene.figure(None, "latency, longest", "ms", "20", latency)
}

fn neighbour_alone(scene: &mut Scene) -> Result<()> {
    let Some(node) = scene.neighbour()? else { return Ok(()) };
    scene.settle();
    let spent = scene.count(&[node.pid()], &[])?;
    let pid = Some(node.pid());
    let value = spent.switches_per_second(|who| who == Who::Desktop(Role::Server));
    scene.figure(pid, "context switches of the server", "/s", "≤ 750", value)?;
    let value = spent.switches_per_second(|who| who == Who::Program);
    scene.figure(pid, "of the program", "/s", "", value)?;
    scene.cpu(&spent, pid, "")?;
    node.close().map(drop)
}

/// What a stream that only goes to the device adds to the server's part of a cycle, while it plays:
/// one of several, as what else the machine does changes the cycle by more than one stream does.
/// They pause and play in turns. A program records the device all the time, which would not be
/// mixed otherwise.
fn stream_in_cycles(scene: &mut Scene) -> Result<()> {
    let Some(node) = scene.neighbour()? else { return Ok(()) };
    let cycles_per_second = f64::from(RATE_HZ / CYCLE_FRAMES);
    let (_, monitor) = scene.desktop.installed.system.sink_and_monitor();
    let players = (0..STREAMS_IN_CYCLES).map(|_| Player::start(&scene.desktop, &Song::PATIENT));
    let mut players = players.collect::<Result<Vec<_>>>()?;
    players[0].record(monitor, Path::new("/dev/null"))?;
    scene.settle();
    let pids: Vec<u32> = players.iter().map(Player::pid).collect();
    let mut per_cycle_us = |change| {
        players.iter_mut().try_for_each(|player| player.change(change).map(drop))?;
        std::thread::sleep(AFTER_A_CHANGE);
        let length = Duration::from_secs(scene.arguments.seconds) / 4;
        let spent = Spent::during(length, &scene.desktop, &pids, &[node.pid()])?;
        let percent = spent.cpu_percent(|who| who == Who::Desktop(Role::Server));
        anyhow::Ok(percent / 100.0 / cycles_per_second * 1e6)
    };
    let turns = (0..TURNS).map(|_| Ok((per_cycle_us("pause")?, per_cycle_us("resume")?)));
    let turns = turns.collect::<Result<Vec<_>>>()?;
    let of_all = |value: fn(&(f64, f64)) -> f64| {
        median(turns.iter().map(value).collect()).context("there were turns")
    };
    let (paused, plays) = (of_all(|(paused, _)| *paused)?, of_all(|(_, plays)| *plays)?);
    let more = of_all(|(paused, plays)| plays - paused)? / STREAMS_IN_CYCLES as f64;
    let pid = pids.first().copied();
    scene.figure(pid, "CPU of the server per cycle, paused", "µs", "", paused)?;
    scene.figure(pid, "CPU of the server per cycle, with 16 streams", "µs", "", plays)?;
    scene.figure(pid, "more than paused, for each stream", "µs", "< 1", more)?;
    players.into_iter().try_for_each(Player::stop)?;
    node.close().map(drop)
}

fn nobody(scene: &mut Scene) -> Result<()> {
    scene.settle();
    let spent = scene.count(&[], &[])?;
    scene.switches(&spent, None, "0")
}

fn paused(scene: &mut Scene) -> Result<()> {
    let mut player = Player::start(&scene.desktop, &Song::PATIENT)?;
    std::thread::sleep(Duration::from_secs(1));
    player.change("pause")?;
    scene.settle();
    let spent = scene.count(&[player.pid()], &[])?;
    scene.switches(&spent, Some(player.pid()), "0")?;
    player.stop()
}

fn many(scene: &mut Scene, wanted: u32) -> Result<()> {
    ensure!(
        scene.arguments.seconds >= TWO_QUEUES_SECONDS,
        "too short to see that each stream plays"
    );
    let song = Song { streams: STREAMS_PER_PROGRAM, ..Song::PATIENT };
    let programs = 0..wanted / STREAMS_PER_PROGRAM;
    let players = programs.map(|_| Player::start_some(&scene.desktop, &song));
    let mut players = players.collect::<Result<Vec<_>>>()?;
    scene.settle();
    let pids: Vec<u32> = players.iter().map(Player::pid).collect();
    let taken: u64 = players.iter().map(|player| player.streams).sum();
    ensure!(taken > 0, "no stream was taken");
    players.iter_mut().try_for_each(|player| player.events().map(drop))?;
    let spent = scene.count(&pids, &[])?;
    let events = players.iter_mut().map(Player::events).collect::<Result<Vec<_>>>()?;
    let underflows: u64 = events.iter().map(|events| events.underflows).sum();
    let played: u64 = events.iter().map(|events| events.asked).sum();
    ensure!(played > 0, "no stream is played");
    let pid = pids.first().copied();
    scene.figure(pid, "taken", "", "all", taken as f64)?;
    scene.figure(pid, "played", "", "all", played as f64)?;
    // What is taken and never asked for anything costs next to nothing, and is not heard.
    let played = played as f64;
    let value = spent.cpu_percent(|who| who != Who::Program) / played;
    scene.figure(pid, "CPU per played stream without the programs", "%", "PulseAudio's", value)?;
    let value = spent.cpu_percent(|_| true) / played;
    scene.figure(pid, "CPU per played stream with the programs", "%", "PulseAudio's", value)?;
    let value = spent.switches_per_second(|_| true) / played;
    scene.figure(pid, "context switches per played stream", "/s", "", value)?;
    let value = memory_mb(&scene.desktop)? / taken as f64;
    scene.figure(pid, "memory (PSS) per stream", "MB", "PulseAudio's", value)?;
    scene.figure(pid, "times a stream ran empty", "", "0", underflows as f64)?;
    players.into_iter().try_for_each(Player::stop)
}

fn hundred(scene: &mut Scene) -> Result<()> {
    many(scene, 100)
}

fn five_hundred(scene: &mut Scene) -> Result<()> {
    many(scene, 500)
}
