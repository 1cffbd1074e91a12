//! `consort latency`: how many samples later a sound comes out of a system than it went in.

use std::process::ExitCode;

use clap::{Args, Subcommand};

mod alsa;
mod analyse;
mod findings;
mod load;
mod measure;
mod memory;
mod pair;
mod portaudio;
mod pulse;
mod report;
mod run;
mod sdl;
mod search;
mod subject;
mod systems;
mod table;
mod tape;

use measure::Single;

/// Measure latency in recorded samples
///
/// As in "Audio Latency Measurements of Desktop Operating Systems" (MacMillan, Droettboom, Fujinaga, 2001): a sound is
/// recorded directly on one channel and through the system under test on another, and the samples between the two
/// are counted. Only recorded samples enter the result.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort latency run
  consort latency alsa --playback hw:0 --capture hw:0
  consort latency report --out latency
  consort latency analyse recording.wav")]
pub(crate) struct Latency {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure a running server through a client of it
    ///
    /// The client sends a signal from an output port, records what comes back at an input port beside what it sent in
    /// the same frames, and counts the frames between them. What it sends goes where --playback says, and what it
    /// hears comes from where --capture says: a cable, a snd-aloop card or `consort run --loop` has to close the way.
    #[command(after_help = "Examples:
  consort run -n loop --loop --quantum 64 &
  consort latency run -n loop
  consort latency run -n loop --graph --json
  consort latency run --start '--loop --sync' --quantum 64
  consort latency run --libjack /usr/lib/x86_64-linux-gnu/libjack.so.0 --graph")]
    Run(Single<run::Run>),
    /// Measure a sound card directly through ALSA, without a server
    ///
    /// Copies what it records and what it plays through the interface named, one period at a time, in a thread of its
    /// own, as plain as a program can. What lies between the two devices is yours to provide: a cable, or a snd-aloop
    /// card.
    #[command(after_help = "Examples:
  consort latency alsa --playback hw:Loopback,0 --capture hw:Loopback,1
  consort latency alsa --playback hw:0 --capture hw:0 --access mmap --period 64 --periods 2")]
    Alsa(Single<alsa::Alsa>),
    /// Measure PulseAudio, or what speaks its protocol, through its own library
    ///
    /// Plays on a sink and records a source; by default the monitor of the sink closes the way.
    #[command(after_help = "Examples:
  consort latency pulse
  consort latency pulse --sink null --source null.monitor --buffer 64")]
    Pulse(Single<pulse::Pulse>),
    /// Measure PortAudio, through whatever it uses
    #[command(after_help = "Examples:
  consort latency portaudio
  consort latency portaudio --host ALSA --playback 'Loopback PCM (hw:1,0)' --capture 'Loopback PCM (hw:1,1)'")]
    Portaudio(Single<portaudio::PortAudio>),
    /// Measure SDL, through whatever it uses
    ///
    /// SDL_AUDIODRIVER says what that is: alsa, pulseaudio, pipewire, jack.
    #[command(after_help = "Example:
  SDL_AUDIODRIVER=pulseaudio consort latency sdl --capture 'Monitor of Null Output'")]
    Sdl(Single<sdl::Sdl>),
    /// Measure a loop in memory, without any audio system: the baseline
    #[command(after_help = "Example:
  consort latency memory --buffer 64")]
    Memory(Single<memory::Memory>),
    Report(Box<report::Report>),
    Analyse(analyse::Analyse),
}

impl Latency {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        match self.task {
            Task::Run(task) => task.run(server),
            Task::Alsa(task) => task.run(server),
            Task::Pulse(task) => task.run(server),
            Task::Portaudio(task) => task.run(server),
            Task::Sdl(task) => task.run(server),
            Task::Memory(task) => task.run(server),
            Task::Report(task) => task.run(server),
            Task::Analyse(task) => task.run(),
        }
    }
}
