//! Streams that record what one other stream plays, instead of all that leaves a device: the meters
//! of single streams (`pa_stream_set_monitor_stream`).

use std::ffi::CStr;

use client::stream::Gains;
use convert::MAX_CHANNELS;
use pulseaudio::protocol::PulseError;

use super::FrontEnd;
use super::sources::Source;
use crate::output::{Devices, Output as _};

impl<D: Devices> FrontEnd<D> {
    /// Returns the source that a program records which asks for what a sink input plays:
    /// the monitor of its sink, and no other.
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

    /// Takes what a sink input plays for all streams that record it: it is about to write into its
    /// ring.
    pub(super) fn note_heard(&mut self, input: u32, now_ns: u64) {
        if self.outputs.is_empty() {
            return;
        }
        let of_input = self.outputs.iter().filter(|(_, output)| output.monitors == Some(input));
        let of_input: Vec<u32> = of_input.map(|(index, _)| *index).collect();
        of_input.into_iter().for_each(|output| self.follow_input(output, now_ns));
    }

    /// Takes what a stream's sink input has played, with the volume of that. It ends with the sink
    /// input, and when that goes on at another sink or for other samples, as with PulseAudio.
    pub(super) fn follow_input(&mut self, index: u32, now_ns: u64) {
        let Some(output) = self.outputs.get(&index) else { return };
        let Some(monitored) = output.monitors else { return };
        let sleeps = self.is_sink_asleep(output.source.sink());
        let Some(output) = self.outputs.get_mut(&index) else { return };
        let is_same = self.inputs.get(monitored).is_some_and(|input| {
            output.source == Source::Monitor(input.sink)
                && output.recording.source() == input.playback.stream()
        });
        let input = self.inputs.get_mut(monitored).filter(|_| is_same);
        let (Some(input), Some(tap)) = (input, output.recording.input_mut().tap_mut()) else {
            return self.kill_output(index);
        };
        tap.follow(&mut input.playback, sleeps, now_ns);
        self.apply_output_gains(index);
    }

    /// Returns the gains that a sink input is heard with.
    pub(super) fn heard_gains(&self, input: u32) -> Gains {
        let Some(input) = self.inputs.get(input) else { return Gains::default() };
        let gains = input.gains(&input.playback.stream().map);
        let factor = input.playback.output().volume().factor();
        let of = |channel| gains.of(channel) * factor;
        Gains::new(std::array::from_fn::<_, MAX_CHANNELS, _>(of)).unwrap_or_default()
    }
}
