//! How a stream begins, for a program or for a sample.

use client::stream::{RingSamples, Volume};
use convert::{Mixing, ProgramFormat, SampleFormat, StreamFormat};
use policy::Start;
use pulseaudio::protocol::{ChannelVolume, Props, PulseError};

use super::absence::or_later;
use super::playback_requests::media_name;
use super::samples::Feed;
use super::sink_inputs::{Owner, SinkInput};
use super::treatment::{Treatment, is_chosen, restored};
use super::{FrontEnd, MAX_STREAMS_OF_ONE};
use crate::output::{Devices, NewOutput, Output, Refusal};
use crate::playback::{Attributes, Pace, Playback, Requested, gains, most_us};

/// A stream to be begun.
#[derive(Debug)]
pub(super) struct NewInput {
    /// Whose it is; `None`: a sample that the server plays.
    pub owner: Option<Owner>,
    pub feed: Option<Feed>,
    /// The account that it counts for.
    pub account: u32,
    pub sink: u32,
    /// It must not be moved.
    pub stays: bool,
    /// Its program may change its rate.
    pub has_variable_rate: bool,
    /// Name of the program, for users.
    pub program_name: String,
    pub program: ProgramFormat,
    /// What its program and itself say about it.
    pub props: Props,
    /// For each of its own channels.
    pub volume: ChannelVolume,
    pub is_muted: bool,
    /// It ends when a user suspends its sink.
    pub fails_on_suspend: bool,
    pub requested: Requested,
    pub mixing: Mixing,
    /// How it begins, beside what its program has asked for.
    pub start: (Treatment, Start),
}

/// What of a stream is needed to open it on a device.
#[derive(Debug)]
pub(super) struct Opening {
    pub sink: u32,
    pub account: u32,
    /// Name of the program, for users.
    pub program_name: String,
    /// Name of what it plays, for users.
    pub name: String,
    pub program: ProgramFormat,
    pub has_variable_rate: bool,
    pub mixing: Mixing,
    pub requested: Requested,
    /// The server's volume that it begins with.
    pub volume: Volume,
}

impl NewInput {
    fn opening(&self) -> Opening {
        Opening {
            sink: self.sink,
            account: self.account,
            program_name: self.program_name.clone(),
            name: media_name(&self.props),
            program: self.program,
            has_variable_rate: self.has_variable_rate,
            mixing: self.mixing,
            requested: self.requested,
            volume: Volume::default(),
        }
    }
}

impl<D: Devices> FrontEnd<D> {
    /// Checks whether a program may have another stream.
    ///
    /// # Errors
    /// It has as many as one may have.
    pub(super) fn check_streams_of(&self, account: u32) -> Result<(), PulseError> {
        let plays = self.inputs.iter().filter(|(_, input)| input.account == account).count();
        let records = self.outputs.values().filter(|output| output.account == account).count();
        // MUTATION: open_input.streams_without_limit
        if plays + records >= MAX_STREAMS_OF_ONE { Err(PulseError::TooLarge) } else { Ok(()) }
    }

    /// Opens a stream, which holds; returns its index. Its program is answered before the stream
    /// [begins](Self::begin_streams): making its memory takes about as long as the program needs
    /// for its first frames, so both are done at once.
    ///
    /// # Errors
    /// There is no such sink, or the server refuses the stream, as far as that is known before it
    /// begins.
    pub(super) fn open_input(&mut self, new: NewInput) -> Result<u32, PulseError> {
        let opened = self.open_on(new.opening())?;
        let index = self.add_input(new, opened)?;
        self.beginning.push(index);
        Ok(index)
    }

    /// The same of a stream that begins at once.
    ///
    /// # Errors
    /// Those of [`open_input`](Self::open_input).
    pub(super) fn begin_input(&mut self, new: NewInput) -> Result<u32, PulseError> {
        let begun = self.begin_on(new.opening())?;
        self.add_input(new, begun)
    }

    fn add_input(
        &mut self,
        new: NewInput,
        (output, within): (D::Output, Attributes),
    ) -> Result<u32, PulseError> {
        let stream = self.sinks.get(new.sink).ok_or(PulseError::NoEntity)?.stream();
        let (treatment, start) = new.start;
        let volume = start.volume.value.map(|volume| restored(&volume, &new.program.map));
        let volume = volume.unwrap_or(new.volume);
        let is_muted = start.muted.value.unwrap_or(new.is_muted);
        let gains = gains(&volume, is_muted, &new.program.map, &stream.map);
        let playback = Playback::new(output, new.program, stream, new.mixing, within, gains)
            .map_err(|_| PulseError::NotSupported)?;
        let index = self.next_input;
        self.next_input = self.next_input.wrapping_add(1);
        let input = SinkInput {
            owner: new.owner,
            feed: new.feed,
            account: new.account,
            sink: new.sink,
            stays: start.may_move.map_or(new.stays, |may| !may),
            has_variable_rate: new.has_variable_rate,
            is_pinned: is_chosen(&treatment.device),
            treatment,
            program_name: new.program_name,
            requested: new.requested,
            props: new.props,
            volume,
            is_muted,
            adrift: None,
            is_suspended: false,
            fails_on_suspend: new.fails_on_suspend,
            playback,
        };
        self.inputs.insert(index, input);
        self.desktop.is_stale = true;
        Ok(index)
    }

    /// Begins the streams that were opened, and notes which ones the server has taken since;
    /// returns whether there may be effects. Called once their programs have been answered, or
    /// before the next packet of a program, and when the server has answered.
    pub fn begin_streams(&mut self, now_ns: u64) -> bool {
        let (opened, awaited) =
            (std::mem::take(&mut self.beginning), std::mem::take(&mut self.awaited));
        let mut are_some = !opened.is_empty();
        for index in opened {
            let Some(input) = self.inputs.get_mut(index) else { continue };
            let answered_us = input.playback.most_us();
            let started = input.playback.start();
            if started.is_ok() {
                self.awaited.push(index);
            }
            if started.is_ok() && input.playback.most_us() != answered_us {
                // Memory is shorter than was expected: its program is notified of what it has.
                let (pace, most_us) = (input.playback.pace(), input.playback.most_us());
                input.playback.set_attributes(input.requested.grant_within(pace, most_us));
                let sink = input.sink;
                self.input_has_moved(index, sink, now_ns);
            }
            self.note_beginning(index, started, now_ns);
        }
        for index in awaited {
            let Some(input) = self.inputs.untouched(index) else { continue };
            match input.playback.has_begun() {
                None => self.awaited.push(index),
                Some(begun) => {
                    are_some |= begun.is_err();
                    self.note_beginning(index, begun, now_ns);
                }
            }
        }
        are_some
    }

    fn note_beginning(&mut self, index: u32, beginning: Result<(), Refusal>, now_ns: u64) {
        match beginning {
            Ok(()) => {}
            Err(Refusal::NotNow) => self.set_adrift(index, now_ns),
            Err(Refusal::Never) => self.kill_input(index),
        }
    }

    /// Opens a stream of the server, and begins it; returns it with what its program is granted.
    ///
    /// # Errors
    /// Those of [`open_on`](Self::open_on).
    pub(super) fn begin_on(
        &mut self,
        opening: Opening,
    ) -> Result<(D::Output, Attributes), PulseError> {
        let sink = self.sinks.get(opening.sink).ok_or(PulseError::NoEntity)?;
        let rate_hz = sink.format.rate_hz;
        let (requested, pace) = (opening.requested, Pace::of(&opening.program));
        let (mut output, _) = self.open_on(opening)?;
        output.begin().map_err(or_later(PulseError::TooLarge))?;
        let within = requested.grant_within(pace, most_us(&output, rate_hz));
        Ok((output, within))
    }

    /// Opens a stream of the server; returns it with what its program is granted.
    ///
    /// # Errors
    /// There is no such sink, or the server refuses the stream.
    fn open_on(&mut self, opening: Opening) -> Result<(D::Output, Attributes), PulseError> {
        let sink = self.sinks.get(opening.sink).ok_or(PulseError::NoEntity)?;
        let rate_hz = sink.format.rate_hz;
        let pace = Pace::of(&opening.program);
        let granted = opening.requested.grant(pace);
        let samples = ring_samples(&opening, &sink.stream());
        let new = NewOutput {
            device: sink.device.clone(),
            channels: sink.format.channels,
            program: opening.program_name,
            name: opening.name,
            depth_frames: granted.most_depth_frames(pace, rate_hz),
            samples,
            account: opening.account,
            volume: opening.volume,
        };
        let output = self.devices.open(new).map_err(or_later(PulseError::TooLarge))?;
        let within = opening.requested.grant_within(pace, most_us(&output, rate_hz));
        Ok((output, within))
    }
}

/// Returns how a stream's samples are to lie in its ring: in frames of 16 bits, if they come so and
/// nothing is to be done to them but to decode them.
fn ring_samples(opening: &Opening, device: &StreamFormat) -> RingSamples {
    let Opening { program, mixing, .. } = opening;
    let is_16 = program.format == SampleFormat::Linear(dsp::Format::S16Le);
    let are_few = program.map.channels() <= RingSamples::Frames16.most_channels() as usize;
    let may_change = opening.has_variable_rate || !program.is_unchanged_on(device, *mixing);
    if is_16 && are_few && !may_change { RingSamples::Frames16 } else { RingSamples::Planes }
}
