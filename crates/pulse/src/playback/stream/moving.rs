//! Going on at another device.

use client::stream::{Gains, Wish};
use convert::{ConvertError, Options, PlaybackConverter, StreamFormat};

use super::sent::SentBytes;
use super::{Attributes, HeardBytes, Playback, RAMP_MS, filter};
use crate::output::Output;

impl<O: Output> Playback<O> {
    /// Goes on with another stream, at the byte that is heard: what its program has written and
    /// nobody has heard is converted again. It fades in there, while the stream before fades out.
    ///
    /// # Errors
    /// There is no conversion between the rates; nothing has changed.
    pub fn go_on_with(
        &mut self,
        output: O,
        device: StreamFormat,
        attributes: Attributes,
        gains: Gains,
        now_ns: u64,
    ) -> Result<(), ConvertError> {
        let options = Options { filter: filter(attributes), ..self.options };
        let converter = PlaybackConverter::new(&self.program, &device, options)?;
        let unheard = self.unheard(now_ns);
        let begin = self.write_index.saturating_sub(unheard.len() as i64);
        let (frame_bytes, rate_hz) = (self.pace().frame_bytes, self.program.rate_hz);
        self.heard = HeardBytes::new(frame_bytes, rate_hz, device.rate_hz);
        self.heard.begin(0, begin, rate_hz);
        self.backlog = unheard;
        self.sent = SentBytes::new(&converter, &self.program, &device, options.mixing, 0);
        (self.output, self.converter, self.device) = (output, converter, device);
        (self.options, self.attributes) = (options, attributes);
        (self.runs, self.begins_at, self.drain_end) = (false, None, None);
        (self.went_on, self.former_rings) = ((0, false), self.former_rings.wrapping_add(1));
        self.follows_since_ns = None;
        self.wish_depth();
        let silence = Gains::new([0.0; convert::MAX_CHANNELS]).unwrap_or_default();
        self.output.wish(Wish::Gain { gains: silence, ramp_frames: 0 });
        let ramp_frames = device.rate_hz * RAMP_MS / 1000;
        self.output.wish(Wish::Gain { gains, ramp_frames });
        self.update(now_ns);
        Ok(())
    }
}
