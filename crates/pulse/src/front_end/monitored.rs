//! Streams that record what one other stream plays, instead of all that leaves a device: the meters
//! of single streams (`pa_stream_set_monitor_stream`).

use std::ffi::CStr;

use client::stream::Gains;
use convert::MAX_CHANNELS;
use pulseaudio::protocol::PulseError;

use super::FrontEnd;
use super::source_outputs::product;
use super::sources::Source;
use crate::output::{Devices, Output as _};
use crate::recording::{Recorded, Tap};

impl<D: Devices> FrontEnd<D> {
    /// Returns the source of a stream that records what one sink input plays: the monitor of its
    /// sink, and no other.
    ///
    /// # Errors
    /// There is no such sink input, or the program has named another source, by index or name,
    /// which PulseAudio refuses likewise.
    pub(super) fn source_of_input(
        &self,
        input: u32,
        (index, name): (Option<u32>, Option<&CStr>),
    ) -> Result<Source, PulseError> {
        let input = self.inputs.get(input).ok_or(PulseError::NoEntity)?;
        let source = Source::Monitor(input.sink);
        let names_one = index.is_some() || name.is_some();
        if names_one && self.find_source(index, name)? != source {
            return Err(PulseError::Invalid);
        }
        Ok(source)
    }

    /// Takes what was heard of all sink inputs that are recorded alone: something may be done to
    /// one of them.
    pub(super) fn take_all_heard(&mut self, now_ns: u64) {
        let recording = self.outputs.iter().filter(|(_, output)| output.monitors.is_some());
        let recording: Vec<u32> = recording.map(|(index, _)| *index).collect();
        recording.into_iter().for_each(|output| self.take_heard(output, now_ns));
    }

    /// Takes what was heard of a sink input, for all streams that record it.
    pub(super) fn take_heard_of(&mut self, input: u32, now_ns: u64) {
        for output in self.recordings_of(input) {
            self.take_heard(output, now_ns);
        }
    }

    /// Takes what was heard of the sink input that a stream records. Where its sink has another
    /// format now, it goes on with that.
    pub(super) fn take_heard(&mut self, index: u32, now_ns: u64) {
        let Some(output) = self.outputs.get(&index) else { return };
        let Some(monitored) = output.monitors else { return };
        let sleeps = self.is_sink_asleep(output.source.sink());
        let gains = self.heard_gains(monitored);
        let Some(input) = self.inputs.get(monitored) else { return };
        let stream = *input.playback.stream();
        if *output.recording.source() != stream {
            let tap = Recorded::Stream(Box::new(Tap::new(stream.rate_hz, stream.map.channels())));
            let Some(output) = self.outputs.get_mut(&index) else { return };
            if output.recording.go_on_with(tap, stream, now_ns).is_err() {
                return self.kill_output(index);
            }
            self.apply_output_gains(index);
        }
        let Some(input) = self.inputs.untouched(monitored) else { return };
        let Some(output) = self.outputs.get_mut(&index) else { return };
        if let Some(tap) = output.recording.input_mut().tap_mut() {
            tap.follow(&mut input.playback, gains, sleeps, now_ns);
        }
    }

    /// Ends the streams that record a sink input alone, which ends or goes to another sink, as
    /// PulseAudio does: with all that was taken of it.
    pub(super) fn end_recordings_of(&mut self, input: u32) {
        for output in self.recordings_of(input) {
            if let Some(output) = self.outputs.get_mut(&output) {
                output.recording.read_all();
            }
            // Also to a program that has not taken what was sent before: it is the last.
            self.send_pieces(output);
            self.kill_output(output);
        }
    }

    /// A sink input has found its place on another server: asks the policy of that whether this
    /// process may hear what streams record of it.
    pub(super) fn check_recordings_of(&mut self, input: u32) {
        for index in self.recordings_of(input) {
            let Some(listening) = self.listening_of(index) else { continue };
            if self.listen_to(listening).is_err() {
                self.kill_output(index);
            }
        }
    }

    fn recordings_of(&self, input: u32) -> Vec<u32> {
        let of_input = self.outputs.iter().filter(|(_, output)| output.monitors == Some(input));
        of_input.map(|(index, _)| *index).collect()
    }

    /// Returns the gains that a sink input is heard with.
    fn heard_gains(&self, input: u32) -> Gains {
        let Some(input) = self.inputs.get(input) else { return Gains::default() };
        let gains = input.gains(&input.playback.stream().map);
        let factor = input.playback.output().volume().factor();
        product(&gains, &Gains::new([factor; MAX_CHANNELS]).unwrap_or_default())
    }
}
