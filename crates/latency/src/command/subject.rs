//! The systems that can be measured.

use clap::{Parser, Subcommand};
use cli::{UsageError, in_one_line};

use super::probe::Plan;
use super::systems::System;
use super::{alsa, memory, portaudio, pulse, run, sdl};

/// Returns the plan for a sample rate.
pub(crate) type Planner<'a> = &'a dyn Fn(u32) -> Plan;
/// A description of the system, and the two recorded channels: direct, and through it.
pub(crate) type Recorded = (System, [Vec<f32>; 2]);

/// A system that can be measured.
pub(crate) trait Subject {
    /// Sends and records once, with buffers of `frames`, or according to its own options. `server`
    /// is the consort server's name, if the subject is one.
    ///
    /// # Errors
    /// There is no such system, it refuses the length, or it disappears during the measurement.
    fn record(
        &self,
        server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded>;
}

/// A subject as it is written on the command line.
#[derive(Debug, Clone, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
pub(crate) struct Words {
    #[arg(short = 'n', long, global = true)]
    server: Option<String>,
    #[command(subcommand)]
    subject: Subjects,
}

#[derive(Debug, Clone, Subcommand)]
enum Subjects {
    Run(run::Run),
    Alsa(alsa::Alsa),
    Pulse(pulse::Pulse),
    Portaudio(portaudio::PortAudio),
    Sdl(sdl::Sdl),
    Memory(memory::Memory),
}

impl Words {
    /// Parses a subject, quoted as for a shell, such as `alsa --playback hw:0 --capture hw:0`.
    pub(crate) fn parse_text(words: &str) -> Result<Self, UsageError> {
        let split = shlex::split(words)
            .ok_or_else(|| UsageError(format!("{words}: a quote is not closed")))?;
        Self::try_parse_from(split)
            .map_err(|error| UsageError(format!("system '{words}': {}", in_one_line(&error))))
    }
}

impl Subject for Words {
    fn record(
        &self,
        server: &str,
        frames: Option<u32>,
        plan: Planner<'_>,
    ) -> anyhow::Result<Recorded> {
        let subject: &dyn Subject = match &self.subject {
            Subjects::Run(subject) => subject,
            Subjects::Alsa(subject) => subject,
            Subjects::Pulse(subject) => subject,
            Subjects::Portaudio(subject) => subject,
            Subjects::Sdl(subject) => subject,
            Subjects::Memory(subject) => subject,
        };
        subject.record(self.server.as_deref().unwrap_or(server), frames, plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_each_command_name_a_subject() {
        for words in [
            "run --start '--loop --sync'",
            "run -n loop --libjack /x/libjack.so.0 --graph",
            "alsa --playback hw:1,0 --capture hw:1,1 --access mmap",
            "pulse --sink null",
            "portaudio --host JACK",
            "sdl",
            "memory",
        ] {
            assert!(Words::parse_text(words).is_ok(), "{words}");
        }
        for (words, part) in
            [("oss", "oss"), ("", "system ''"), ("pulse 'a", "quote"), ("alsa", "--playback")]
        {
            let error = Words::parse_text(words).expect_err(words).0;
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
