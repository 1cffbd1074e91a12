//! `consort latency`: drives the systems under test.

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
mod probe;
mod pulse;
mod report;
mod run;
mod sdl;
mod search;
mod subject;
mod systems;
mod table;

use measure::Single;

/// Measure latency in recorded samples
///
/// A sound is recorded directly on one channel and through the system under test on another, and
/// the samples between the two are counted. Only recorded samples enter the result. The method is
/// that of "Audio Latency Measurements of Desktop Operating Systems" (MacMillan, Droettboom,
/// Fujinaga, 2001).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort latency run
  consort latency alsa --playback hw:0 --capture hw:0
  consort latency report --out latency
  consort latency analyse recording.wav")]
pub struct Latency {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure a running server through a client of it
    ///
    /// The client sends a signal from an output port, records it together with what comes back at
    /// an input port, and counts the frames between the two. The output is connected to --playback
    /// and the input to --capture: a cable, a snd-aloop card or `consort run --loop` must connect
    /// the two.
    #[command(after_help = "Examples:
  consort run -n loop --loop --quantum 64 &
  consort latency run -n loop
  consort latency run -n loop --graph --json
  consort latency run --start '--loop --sync' --quantum 64
  consort latency run --libjack /usr/lib/x86_64-linux-gnu/libjack.so.0 --graph")]
    Run(Single<run::Run>),
    /// Measure a sound card directly through ALSA, without a server
    ///
    /// Records and plays one period at a time in its own thread, as simply as a program can. A
    /// cable or a snd-aloop card must connect the two devices.
    #[command(after_help = "Examples:
  consort latency alsa --playback hw:Loopback,0 --capture hw:Loopback,1
  consort latency alsa --playback hw:0 --capture hw:0 --access mmap --period 64 --periods 2")]
    Alsa(Single<alsa::Alsa>),
    /// Measure PulseAudio, or a server with its protocol, through its client library
    ///
    /// Plays on a sink and records a source. The default source is the monitor of the sink.
    #[command(after_help = "Examples:
  consort latency pulse
  consort latency pulse --sink null --source null.monitor --buffer 64")]
    Pulse(Single<pulse::Pulse>),
    /// Measure PortAudio, through the host API that it chooses
    #[command(after_help = "Examples:
  consort latency portaudio
  consort latency portaudio --host ALSA --playback 'Loopback PCM (hw:1,0)' --capture 'Loopback PCM (hw:1,1)'")]
    Portaudio(Single<portaudio::PortAudio>),
    /// Measure SDL, through the backend that it chooses
    ///
    /// SDL_AUDIODRIVER chooses the backend: alsa, pulseaudio, pipewire, jack.
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
    /// Runs the subcommand. `server` is the consort server to measure, where one is measured.
    ///
    /// # Errors
    /// The system under test cannot be reached, or nothing can be measured in the recording.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
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
