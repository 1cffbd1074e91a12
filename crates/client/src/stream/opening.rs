//! How a stream is opened: granted by the server, and begun with the memory that was made for it.

use std::os::fd::{AsFd, OwnedFd};

use proto::request::{Reply, Request};
use proto::stream::{Direction, NewStream, StreamReply, StreamRequest};
use rt::shm::{RingSamples, RingShape, StreamPage, WishPage};
use sys::memory::{OwnRing, PeerRing, Shared};

use super::connection::ask;
use super::control::OwnWishes;
use crate::Error;
use crate::requests::Requests;

/// The answer does not belong to the request.
const OTHER_REPLY: Error = Error::OTHER_REPLY;

/// A stream that the server has granted.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    pub(super) stream: u32,
    pub(super) shape: RingShape,
    /// It plays, so its ports are outputs.
    pub(super) plays: bool,
    /// Ids of its ports, by channel.
    pub(super) ports: Vec<u32>,
}

/// The pages of a stream that records, and has begun.
#[derive(Debug)]
pub(super) struct StreamPages {
    pub(super) wishes: OwnWishes,
    pub(super) page: Shared<StreamPage>,
}

/// Returns the shape of the ring that a stream asks for; `None`: no stream can have it.
pub(super) fn wanted_shape(new: &NewStream) -> Option<RingShape> {
    let channels = u32::try_from(new.channels.len()).ok()?;
    let shape = RingShape::for_depth(channels, new.depth_frames)?;
    shape.holding(RingSamples::from_code(new.samples)?)
}

/// Asks for a stream.
pub(super) fn open(requests: &Requests, new: NewStream) -> Result<Grant, Error> {
    let (channels, plays) = (new.channels.len(), new.direction == Direction::Playback);
    let samples = RingSamples::from_code(new.samples).unwrap_or_default();
    granted(ask(requests, StreamRequest::Open(new))?, (channels, samples), plays)
}

/// A playback stream that was asked for; the answer is not read yet.
#[derive(Debug)]
pub(super) struct AskedPlayback {
    request: u32,
    /// The ring that is expected.
    shape: RingShape,
}

impl AskedPlayback {
    /// Asks for it, and does not wait.
    pub(super) fn ask(
        requests: &Requests,
        new: NewStream,
        shape: RingShape,
    ) -> Result<Self, Error> {
        let request = requests.start(Request::Stream(StreamRequest::Open(new)))?;
        Ok(Self { request, shape })
    }

    /// Waits for the answer.
    pub(super) fn answer(self, requests: &Requests) -> Result<Grant, Error> {
        match requests.finish(self.request)? {
            Reply::Stream(reply) => granted(reply, kept(self.shape), true),
            _ => Err(OTHER_REPLY),
        }
    }
}

fn granted(
    reply: StreamReply,
    (channels, samples): (usize, RingSamples),
    plays: bool,
) -> Result<Grant, Error> {
    let StreamReply::Granted { stream, capacity_frames, ports } = reply else {
        return Err(OTHER_REPLY);
    };
    let channels = u32::try_from(channels).unwrap_or(u32::MAX);
    let shape = RingShape::new(channels, capacity_frames)
        .and_then(|shape| shape.holding(samples))
        .ok_or(Error::Protocol("it granted a ring that cannot be"))?;
    Ok(Grant { stream, shape, plays, ports })
}

/// What stays the same if another ring is granted: the number of channels, and how samples lie.
fn kept(shape: RingShape) -> (usize, RingSamples) {
    (shape.channels() as usize, shape.samples())
}

/// Begins a playback stream at `position` with the ring that `make` makes: again if the server can
/// only take a smaller one.
pub(super) fn begin_playback(
    requests: &Requests,
    mut grant: Grant,
    position: u64,
    mut make: impl FnMut(RingShape) -> Result<OwnRing, Error>,
) -> Result<(Grant, OwnRing, Shared<StreamPage>), Error> {
    loop {
        let ring = make(grant.shape)?;
        let begin = StreamRequest::Begin { stream: grant.stream, position };
        let segment = ring.segment().fd();
        let (answer, mut descriptors) =
            requests.ask_for_memory(Request::Stream(begin), &[segment.as_fd()])?;
        let Reply::Stream(answer) = answer else { return Err(OTHER_REPLY) };
        if answer != StreamReply::Begun {
            grant = granted(answer, kept(grant.shape), true)?;
            continue;
        }
        let page = descriptors.pop().ok_or(Error::Protocol("it did not send its page"))?;
        return Ok((grant, ring, Shared::receive(page)?));
    }
}

/// Begins a stream that records, at `position`.
pub(super) fn begin_recording(
    requests: &Requests,
    mut grant: Grant,
    position: u64,
) -> Result<(Grant, PeerRing, StreamPages), Error> {
    loop {
        let (wishes, memfd) = Shared::<WishPage>::for_readers("consort-wishes")?;
        let begin = StreamRequest::Begin { stream: grant.stream, position };
        let (answer, descriptors) =
            requests.ask_for_memory(Request::Stream(begin), &[memfd.as_fd()])?;
        let Reply::Stream(answer) = answer else { return Err(OTHER_REPLY) };
        if answer != StreamReply::Begun {
            grant = granted(answer, kept(grant.shape), false)?;
            continue;
        }
        let [page, ring] = <[OwnedFd; 2]>::try_from(descriptors)
            .map_err(|_| Error::Protocol("it did not send its page and its ring"))?;
        let ring = PeerRing::receive(ring, grant.shape)?;
        let wishes = OwnWishes::OnPage(wishes);
        return Ok((grant, ring, StreamPages { wishes, page: Shared::receive(page)? }));
    }
}
