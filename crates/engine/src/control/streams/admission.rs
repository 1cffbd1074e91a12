//! Which streams are granted: what a program asks for is checked, and its memory counted.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use mix::{ROUTED_CHANNELS, Routes};
use proto::limits::{
    DEVICE_NAME_BYTES, STREAM_NAME_BYTES, STREAMS, STREAMS_OF_PROCESS, STREAMS_OF_PROGRAM,
};
use proto::request::RequestError;
use proto::stream::{Direction, NewStream, UNCONNECTED, Volume, VolumeSource, VolumeSources};
use rt::shm::{MAX_STREAM_CHANNELS, RingSamples, RingShape};

use super::device_end::{DeviceFacts, check_driver};
use super::devices::DRIVER;
use super::feeds::Feed;
use super::{OpenStream, State, Streams, refused};
use crate::device_stream::SharedGain;
use crate::opening::DriverFacts;
use crate::stream_budget::Account;

/// A stream that was granted.
#[derive(Debug)]
pub(in crate::control) struct Granted {
    pub(in crate::control) stream: u32,
    /// Of the ring to make.
    pub(in crate::control) shape: RingShape,
    /// The stream page, for the program.
    pub(in crate::control) page: OwnedFd,
}

impl Streams {
    /// Grants a peer a stream on a device, by default on the `driver`.
    pub(in crate::control) fn open(
        &mut self,
        peer: u64,
        process: u32,
        new: NewStream,
        driver: &DriverFacts,
    ) -> Result<Granted, RequestError> {
        check_request(&new)?;
        let device = self.devices.find(new.device.as_deref())?;
        let account = Account::of(process, new.account);
        if device == DRIVER {
            check_driver(driver)?;
        }
        if new.direction != Direction::Record {
            self.devices.check_plays(device)?;
        }
        let facts = self.devices.facts(device, driver);
        check_channels(&new, facts)?;
        self.check_kept(new.direction, device, facts)?;
        self.check_count(account)?;
        let channels = u32::try_from(new.channels.len()).unwrap_or(u32::MAX);
        let ring = (channels, ring_samples(&new)?);
        let page = self.spare_page.take();
        let (page, memfd) =
            page.map_err(|error| refused(format!("no memory for a stream: {error}")))?;
        let Some(grant) = self.budget.grant(account, ring, new.depth_frames) else {
            let advice = "end other programs that play, or let this server lock more memory";
            return Err(refused(format!("no memory is left for another stream: {advice}")));
        };
        let shape = grant.shape();
        let number = self.next_number();
        let volume = self.kept_volume_of(account, &new);
        let begun = (Volume::default(), volume);
        let stream = OpenStream {
            peer,
            process,
            account,
            program: new.program,
            name: new.name,
            device,
            sample_rate_hz: facts.sample_rate_hz,
            direction: new.direction,
            // On the device that drives, they are those of its ports.
            routes: if device == DRIVER { Routes::default() } else { routes_of(&new.channels) },
            channels: new.channels,
            ports: None,
            ordered: Routes::default(),
            feed: Feed::default(),
            depth_frames: new.depth_frames.clamp(1, shape.depth_frames()),
            lets_sleep: new.lets_sleep,
            reopens: new.reopens && new.direction != Direction::Record,
            wanted: None,
            grant,
            volume,
            volume_sources: VolumeSources::default().changed(begun, VolumeSource::State),
            gain: Arc::new(SharedGain::new(volume.factor())),
            is_cut: false,
            state: State::Granted(Arc::new(page)),
        };
        self.streams.insert(number, stream);
        self.publish_state(number);
        Ok(Granted { stream: number, shape, page: memfd })
    }

    /// Checks whether a program, its process and all programs together may have another stream.
    fn check_count(&self, account: Account) -> Result<(), RequestError> {
        // Those that cannot be seen are one process here, however many connections they have.
        let is_of_process = |old: &&OpenStream| old.account.process == account.process;
        let of_process = || self.streams.values().filter(is_of_process);
        let own = of_process().filter(|old| old.account == account).count();
        // MUTATION: check.accounts_without_limit
        let all = of_process().count();
        let advice = "close one of its streams";
        for (what, used, limit, advice) in [
            ("stream of one program", own, STREAMS_OF_PROGRAM, advice),
            ("stream of one process for others", all, STREAMS_OF_PROCESS, advice),
            ("stream", self.streams.len(), STREAMS, "end other programs that play"),
        ] {
            if used >= limit {
                let limit = u32::try_from(limit).unwrap_or(u32::MAX);
                return Err(RequestError::Full { what: what.into(), limit, advice: advice.into() });
            }
        }
        Ok(())
    }

    fn next_number(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last > 0 && !self.streams.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

/// Checks what a program asks for, as far as no device has to be known for that. What passes is
/// small.
pub(super) fn check_request(new: &NewStream) -> Result<(), RequestError> {
    check_name("program", &new.program)?;
    check_name("stream", &new.name)?;
    if new.device.as_ref().is_some_and(|name| name.len() > DEVICE_NAME_BYTES) {
        return Err(refused(format!(
            "no device has a name of more than {DEVICE_NAME_BYTES} bytes"
        )));
    }
    let (channels, most) = (new.channels.len(), MAX_STREAM_CHANNELS as usize);
    if channels == 0 || channels > most {
        return Err(refused(format!("a stream of {channels} channels: use 1 to {most}")));
    }
    Ok(())
}

/// Checks the name of a program or a stream; `what` says which.
fn check_name(what: &str, name: &str) -> Result<(), RequestError> {
    let has_length = (1..=STREAM_NAME_BYTES).contains(&name.len());
    if has_length && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(refused(format!(
        "the {what}'s name must have 1 to {STREAM_NAME_BYTES} bytes, and no control characters"
    )))
}

/// Checks whether a device has the channels that a stream is opened for.
fn check_channels(new: &NewStream, device: DeviceFacts) -> Result<(), RequestError> {
    let routed = u32::try_from(ROUTED_CHANNELS).unwrap_or(u32::MAX);
    let (there, does) = match new.direction {
        Direction::Playback => (device.playback.min(routed), "plays"),
        Direction::Monitor => (device.playback, "plays"),
        Direction::Record => (device.capture, "captures"),
    };
    let is_free = |channel: u32| channel == UNCONNECTED && new.direction == Direction::Record;
    let is_missing = |channel: &&u32| **channel >= there && !is_free(**channel);
    new.channels.iter().find(is_missing).map_or(Ok(()), |channel| {
        Err(refused(format!(
            "the device has no channel {channel} for streams: it {does} {there} channels, counted \
             from 0"
        )))
    })
}

/// Returns how the samples are to lie in a stream's ring.
fn ring_samples(new: &NewStream) -> Result<RingSamples, RequestError> {
    let channels = u32::try_from(new.channels.len()).unwrap_or(u32::MAX);
    let shape = RingShape::for_depth(channels, 0);
    let fits = |samples: RingSamples| shape.and_then(|shape| shape.holding(samples)).is_some();
    let plays = new.direction == Direction::Playback;
    let samples = RingSamples::from_code(new.samples);
    let samples = samples.filter(|samples| *samples == RingSamples::default() || plays);
    samples.filter(|samples| fits(*samples)).ok_or_else(|| {
        refused(format!(
            "no ring of such a stream, of {channels} channels, has samples that lie like number {}",
            new.samples
        ))
    })
}

/// Each channel of a stream is heard on the device's channel that it was opened for.
pub(super) fn routes_of(channels: &[u32]) -> Routes {
    channels.iter().map(|channel| *channel as usize).enumerate().collect()
}
