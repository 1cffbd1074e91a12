//! `consort sync`: the transport follows MIDI clock, MIDI time code or linear time code, or is sent
//! as one of them.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use client::{
    Active, Client, Control, CycleScope, Inactive, Position, Transport, TransportState, valid,
};

use crate::Wish;
use crate::clock::ClockFollower;
use crate::clock_sender::{ClockSender, Place};
use crate::ltc::{LtcEncoder, LtcFollower};
use crate::time_code::VideoRate;
use crate::time_code_follower::TimeCodeFollower;
use crate::time_code_sender::TimeCodeSender;

/// Let the transport follow MIDI clock, MIDI time code or linear time code, or send it
///
/// Runs until the server ends or the program is terminated.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort sync follow clock --from 'a2j:Drum machine'
  consort sync follow mtc --from 'a2j:Tape machine'
  consort sync send clock --tempo 96 --to 'a2j:Drum machine'
  consort sync send mtc --rate 25
  consort sync follow ltc --from system:capture_8
  consort sync send ltc --rate 29.97 --to system:playback_8")]
pub struct Sync {
    #[command(subcommand)]
    direction: Direction,
}

#[derive(Debug, Subcommand)]
enum Direction {
    /// Let the transport follow what arrives at the port 'in'
    Follow {
        #[command(subcommand)]
        what: Followed,
        /// An output port to connect to it
        #[arg(long, value_name = "PORT", global = true)]
        from: Option<String>,
        /// The client's name
        #[arg(long, value_name = "NAME", default_value = "sync", global = true)]
        client_name: String,
    },
    /// Send what the transport does to the port 'out'
    Send {
        #[command(subcommand)]
        what: Sent,
        /// An input port to connect to it
        #[arg(long, value_name = "PORT", global = true)]
        to: Option<String>,
        /// The client's name
        #[arg(long, value_name = "NAME", default_value = "sync", global = true)]
        client_name: String,
    },
}

#[derive(Debug, Subcommand)]
enum Followed {
    /// MIDI clock: start, stop, song position; as the timebase master, bar and beat are the clock's
    Clock {
        /// Beats per minute assumed for song positions until clock messages arrive
        #[arg(long, value_name = "BPM", default_value_t = 120.0, value_parser = tempo)]
        tempo: f64,
        /// Quarter notes per bar
        #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
        beats_per_bar: u32,
    },
    /// MIDI time code: quarter frames and full frames
    Mtc,
    /// Linear time code (SMPTE 12M): sound
    Ltc {
        /// Frames of video per second [default: what their length says]
        #[arg(long, value_enum)]
        rate: Option<VideoRate>,
    },
}

#[derive(Debug, Subcommand)]
enum Sent {
    /// MIDI clock
    Clock {
        /// Beats per minute if there is no timebase master
        #[arg(long, value_name = "BPM", default_value_t = 120.0, value_parser = tempo)]
        tempo: f64,
    },
    /// MIDI time code
    Mtc {
        /// Frames of video per second
        #[arg(long, value_enum, default_value = "25")]
        rate: VideoRate,
    },
    /// Linear time code (SMPTE 12M): sound while the transport rolls, silence while it stands
    Ltc {
        /// Frames of video per second
        #[arg(long, value_enum, default_value = "25")]
        rate: VideoRate,
        /// Level of the peaks, dB relative to full scale
        #[arg(long, value_name = "DB", default_value_t = -18.0, allow_negative_numbers = true, value_parser = level)]
        level: f32,
    },
}

/// Beats per minute; a client that claims more or less is mistaken.
const TEMPO: std::ops::RangeInclusive<f64> = 1.0..=1000.0;
/// Quarter notes from the start; a position beyond makes no sense.
const LAST_BEAT: f64 = 1e7;
const TICKS_PER_BEAT: f64 = 960.0;
/// Longest message about time; longer ones are ignored.
const MESSAGE_BYTES: usize = 16;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

fn tempo(text: &str) -> Result<f64, String> {
    let tempo = text.parse().map_err(|error: std::num::ParseFloatError| error.to_string())?;
    if TEMPO.contains(&tempo) {
        Ok(tempo)
    } else {
        Err("a tempo is 1 to 1000 beats per minute".into())
    }
}

fn level(text: &str) -> Result<f32, String> {
    let level = text.parse().map_err(|error: std::num::ParseFloatError| error.to_string())?;
    if (-60.0..=0.0).contains(&level) { Ok(level) } else { Err("a level is -60 to 0 dB".into()) }
}

impl Sync {
    /// Runs until the server ends or the program is terminated.
    ///
    /// # Errors
    /// There is no server, a port cannot be connected, or the server has ended.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let open = |name: &str| {
            let options = client::OpenOptions { server: Some(server.into()), ..Default::default() };
            Client::open_with(name, &options)
        };
        match self.direction {
            Direction::Follow { what, from, client_name } => {
                let client = open(&client_name)?;
                let client = match what {
                    Followed::Clock { tempo, beats_per_bar } => {
                        follow_clock(client, tempo, beats_per_bar)?
                    }
                    Followed::Mtc => follow_time_code(client)?,
                    Followed::Ltc { rate } => follow_ltc(client, rate)?,
                };
                from.map_or(Ok(()), |from| {
                    client.connect(&from, &format!("{}:in", client.name()))
                })?;
                wait_for_server_end(&client)
            }
            Direction::Send { what, to, client_name } => {
                let client = open(&client_name)?;
                let client = match what {
                    Sent::Clock { tempo } => send_clock(client, tempo)?,
                    Sent::Mtc { rate } => send_time_code(client, rate)?,
                    Sent::Ltc { rate, level } => send_ltc(client, rate, level)?,
                };
                to.map_or(Ok(()), |to| client.connect(&format!("{}:out", client.name()), &to))?;
                wait_for_server_end(&client)
            }
        }
    }
}

fn wait_for_server_end(client: &Client<Active>) -> anyhow::Result<ExitCode> {
    while client.is_running() {
        std::thread::sleep(POLL_INTERVAL);
    }
    bail!("the server has ended");
}

/// The frame time of a cycle's first frame. Thread: cycle.
fn first_frame_time(cycle: &CycleScope<'_>) -> u32 {
    // Frame times wrap: the low half is enough.
    cycle.info().frames as u32
}

/// Thread: cycle.
fn obey(cycle: &CycleScope<'_>, wish: Wish) {
    match wish {
        Wish::Start => cycle.start_transport(),
        Wish::Stop => cycle.stop_transport(),
        Wish::Locate(frame) => {
            // Only this thread sends such requests, so there is always room for one.
            cycle.locate_transport(&Position::at(frame));
        }
    }
}

/// Tempo and position, passed from the process callback to the timebase callback, which follows it
/// on the same thread.
#[derive(Debug, Default)]
struct Beats {
    /// Quarter notes from the start, at the beginning of the next cycle; the bits of an `f64`.
    place: AtomicU64,
    /// Beats per minute; the bits of an `f64`.
    tempo: AtomicU64,
}

impl Beats {
    fn store(&self, place: f64, tempo: f64) {
        // Relaxed: one thread writes and reads.
        self.place.store(place.to_bits(), Ordering::Relaxed);
        self.tempo.store(tempo.to_bits(), Ordering::Relaxed);
    }

    fn complete(&self, position: &mut Position, beats_per_bar: u32) {
        let (place, tempo) =
            (self.place.load(Ordering::Relaxed), self.tempo.load(Ordering::Relaxed));
        let (place, beats_per_minute) = (f64::from_bits(place), f64::from_bits(tempo));
        let beats = place as u32;
        let bar = beats / beats_per_bar;
        *position = Position {
            valid: valid::BBT,
            bar: bar.cast_signed() + 1,
            beat: (beats % beats_per_bar).cast_signed() + 1,
            tick: ((place - f64::from(beats)) * TICKS_PER_BEAT) as i32,
            bar_start_tick: f64::from(bar) * f64::from(beats_per_bar) * TICKS_PER_BEAT,
            beats_per_bar: beats_per_bar as f32,
            beat_type: 4.0,
            ticks_per_beat: TICKS_PER_BEAT,
            beats_per_minute,
            ..Position::at(position.frame)
        };
    }
}

fn follow_clock(
    client: Client<Inactive>,
    tempo: f64,
    beats_per_bar: u32,
) -> anyhow::Result<Client<Active>> {
    let mut input = client.midi_input_port("in")?;
    let mut follower = ClockFollower::new(client.sample_rate_hz(), tempo);
    let beats = Arc::new(Beats::default());
    let stored = Arc::clone(&beats);
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        let begin = first_frame_time(cycle);
        for event in input.buffer(cycle).events() {
            let mut room = [0; MESSAGE_BYTES];
            let Some(message) = event.copy_to(&mut room) else { continue };
            follower.hear(begin.wrapping_add(event.time()), message, |wish| obey(cycle, wish));
        }
        let next = begin.wrapping_add(cycle.frames());
        stored.store(follower.beats(next), follower.beats_per_minute());
        Control::Continue
    })?;
    // An existing timebase master keeps its role, and bar and beat are then its own.
    if client
        .become_timebase_master(true, move |_, position, _| beats.complete(position, beats_per_bar))
        .is_err()
    {
        eprintln!(
            "consort: another client is the timebase master, so bar and beat do not follow the clock"
        );
    }
    Ok(client)
}

fn follow_time_code(client: Client<Inactive>) -> anyhow::Result<Client<Active>> {
    let mut input = client.midi_input_port("in")?;
    let mut follower = TimeCodeFollower::new(client.sample_rate_hz());
    Ok(client.activate(move |cycle: &CycleScope<'_>| {
        let begin = first_frame_time(cycle);
        for event in input.buffer(cycle).events() {
            let mut room = [0; MESSAGE_BYTES];
            let Some(message) = event.copy_to(&mut room) else { continue };
            follower.hear(begin.wrapping_add(event.time()), message, |wish| obey(cycle, wish));
        }
        follower.end_cycle(begin, cycle.frames(), rolling(cycle), |wish| obey(cycle, wish));
        Control::Continue
    })?)
}

/// Returns the transport's frame, if it rolls. Thread: cycle.
fn rolling(cycle: &CycleScope<'_>) -> Option<u32> {
    let transport = cycle.transport();
    (transport.state == TransportState::Rolling).then_some(transport.position.frame)
}

fn follow_ltc(client: Client<Inactive>, rate: Option<VideoRate>) -> anyhow::Result<Client<Active>> {
    let mut input = client.input_port("in")?;
    let mut follower = LtcFollower::new(client.sample_rate_hz(), rate);
    Ok(client.activate(move |cycle: &CycleScope<'_>| {
        let samples = input.buffer(cycle);
        let begin = first_frame_time(cycle);
        follower.cycle(begin, &samples, rolling(cycle), |wish| obey(cycle, wish));
        Control::Continue
    })?)
}

/// The transport's position according to its timebase master, or else by `tempo`.
fn place(transport: &Transport, sample_rate_hz: u32, tempo: f64) -> Place {
    let position = &transport.position;
    let rolls = transport.state == TransportState::Rolling;
    let minute = f64::from(sample_rate_hz) * 60.0;
    let of_frame = |frames_per_beat: f64| f64::from(position.frame) / frames_per_beat;
    let (has_bbt, quarters) =
        (position.valid & valid::BBT != 0, 4.0 / f64::from(position.beat_type));
    let beats = f64::from(position.bar - 1) * f64::from(position.beats_per_bar)
        + f64::from(position.beat - 1)
        + f64::from(position.tick) / position.ticks_per_beat;
    let frames_per_beat = minute / (position.beats_per_minute * quarters);
    let makes_sense = (0.0..LAST_BEAT).contains(&(beats * quarters))
        && TEMPO.contains(&(position.beats_per_minute * quarters));
    if has_bbt && makes_sense {
        return Place { rolls, beats: beats * quarters, frames_per_beat };
    }
    let frames_per_beat = minute / tempo;
    Place { rolls, beats: of_frame(frames_per_beat).min(LAST_BEAT), frames_per_beat }
}

fn send_clock(client: Client<Inactive>, tempo: f64) -> anyhow::Result<Client<Active>> {
    let mut output = client.midi_output_port("out")?;
    let sample_rate_hz = client.sample_rate_hz();
    let mut sender = ClockSender::default();
    Ok(client.activate(move |cycle: &CycleScope<'_>| {
        let mut out = output.buffer(cycle);
        sender.cycle(
            place(&cycle.transport(), sample_rate_hz, tempo),
            cycle.frames(),
            |time, message| {
                // A message that does not fit is lost; the server counts it.
                let _ = out.write(time, message);
            },
        );
        Control::Continue
    })?)
}

fn send_time_code(client: Client<Inactive>, rate: VideoRate) -> anyhow::Result<Client<Active>> {
    let mut output = client.midi_output_port("out")?;
    let mut sender = TimeCodeSender::new(rate, client.sample_rate_hz());
    Ok(client.activate(move |cycle: &CycleScope<'_>| {
        let mut out = output.buffer(cycle);
        let transport = cycle.transport();
        let rolls = transport.state == TransportState::Rolling;
        sender.cycle(rolls, transport.position.frame, cycle.frames(), |time, message| {
            let _ = out.write(time, message);
        });
        Control::Continue
    })?)
}

fn send_ltc(
    client: Client<Inactive>,
    rate: VideoRate,
    level_db: f32,
) -> anyhow::Result<Client<Active>> {
    let mut output = client.output_port("out")?;
    let amplitude = 10_f32.powf(level_db / 20.0);
    let mut encoder = LtcEncoder::new(rate, client.sample_rate_hz(), amplitude);
    Ok(client.activate(move |cycle: &CycleScope<'_>| {
        let transport = cycle.transport();
        let rolls = transport.state == TransportState::Rolling;
        encoder.cycle(rolls, transport.position.frame, &mut output.buffer(cycle));
        Control::Continue
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_the_timebase_masters_if_it_makes_sense() {
        let given = Position {
            valid: valid::BBT,
            bar: 3,
            beat: 2,
            tick: 480,
            beats_per_bar: 6.0,
            beat_type: 8.0,
            ticks_per_beat: 960.0,
            beats_per_minute: 240.0,
            ..Position::at(96_000)
        };
        let at = |position| {
            let transport =
                Transport { state: TransportState::Rolling, position, ..Transport::default() };
            place(&transport, 48_000, 120.0)
        };
        // Eighths are half as long: 13.5 of them.
        assert_eq!(at(given), Place { rolls: true, beats: 6.75, frames_per_beat: 24_000.0 });
        let own = Place { rolls: true, beats: 4.0, frames_per_beat: 24_000.0 };
        assert_eq!(at(Position::at(96_000)), own);
        for nonsense in [
            Position { beats_per_minute: 0.0, ..given },
            Position { beats_per_minute: f64::NAN, ..given },
            Position { ticks_per_beat: 0.0, ..given },
            Position { beat_type: 0.0, ..given },
            Position { bar: -5, ..given },
            Position { bar: i32::MAX, ..given },
        ] {
            assert_eq!(at(nonsense), own, "{nonsense:?}");
        }
    }

    #[test]
    fn bar_and_beat_follow_the_clock() {
        let beats = Beats::default();
        beats.store(13.5, 90.0);
        let mut position = Position::at(77);
        beats.complete(&mut position, 4);
        let Position { bar, beat, tick, beats_per_minute, frame, valid: is_valid, .. } = position;
        assert_eq!((bar, beat, tick, frame, is_valid), (4, 2, 480, 77, valid::BBT));
        assert_eq!((beats_per_minute, position.bar_start_tick), (90.0, 12.0 * TICKS_PER_BEAT));
    }
}
