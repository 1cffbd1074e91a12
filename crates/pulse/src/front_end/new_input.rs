//! How a stream begins, for a program or for a sample.

use client::stream::Gains;
use convert::{Mixing, ProgramFormat, StreamFormat};
use pulseaudio::protocol::{ChannelVolume, Props, PulseError};

use super::playback_requests::media_name;
use super::samples::Feed;
use super::sink_inputs::{Owner, SinkInput};
use super::{FrontEnd, MAX_STREAMS_OF_ONE, format};
use crate::output::{Device, NewOutput};
use crate::playback::{Pace, Playback, Requested, gains, most_us};

/// A stream to be begun.
#[derive(Debug)]
pub(super) struct NewInput {
    /// Whose it is; `None`: a sample that the server plays.
    pub owner: Option<Owner>,
    pub feed: Option<Feed>,
    /// The account that it counts for.
    pub account: u32,
    /// Name of the program, for users.
    pub program_name: String,
    pub program: ProgramFormat,
    /// What its program and itself say about it.
    pub props: Props,
    /// For each of its own channels.
    pub volume: ChannelVolume,
    pub is_muted: bool,
    pub requested: Requested,
    pub mixing: Mixing,
}

impl<D: Device> FrontEnd<D> {
    /// Checks whether a program may have another stream.
    ///
    /// # Errors
    /// It has as many as one may have.
    pub(super) fn check_streams_of(&self, account: u32) -> Result<(), PulseError> {
        let plays = self.inputs.values().filter(|input| input.account == account).count();
        let records = self.outputs.values().filter(|output| output.account == account).count();
        // MUTATION: open_input.streams_without_limit
        if plays + records >= MAX_STREAMS_OF_ONE { Err(PulseError::TooLarge) } else { Ok(()) }
    }

    /// Begins a stream, which holds; returns its index.
    ///
    /// # Errors
    /// There is no device, or the server refuses the stream.
    pub(super) fn begin_input(&mut self, new: NewInput) -> Result<u32, PulseError> {
        let device = self.device.format().and_then(format::device).ok_or(PulseError::NoEntity)?;
        let pace = Pace::of(&new.program);
        let granted = new.requested.grant(pace);
        let output = self.device.open(NewOutput {
            program: new.program_name,
            name: media_name(&new.props),
            depth_frames: granted.depth_frames(pace, device.rate_hz),
            account: new.account,
        });
        let output = output.ok_or(PulseError::TooLarge)?;
        let gains: Gains = gains(&new.volume, new.is_muted, &new.program.map, &device.map);
        let stream = StreamFormat { rate_hz: device.rate_hz, map: device.map };
        let within = new.requested.grant_within(pace, most_us(&output, stream.rate_hz));
        let playback = Playback::new(output, new.program, stream, new.mixing, within, gains)
            .map_err(|_| PulseError::NotSupported)?;
        let index = self.next_input;
        self.next_input = self.next_input.wrapping_add(1);
        let input = SinkInput {
            owner: new.owner,
            feed: new.feed,
            account: new.account,
            props: new.props,
            volume: new.volume,
            is_muted: new.is_muted,
            playback,
        };
        self.inputs.insert(index, input);
        Ok(index)
    }
}
