//! How a stream is opened: granted by the server, and begun with the memory that was made for it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use proto::request::{Reply, Request};
use proto::stream::{Direction, NewStream, StreamReply, StreamRequest};
use rt::shm::{RingSamples, RingShape, StreamPage, WishPage};
use sys::memory::{OwnRing, PeerRing, Shared};

use super::returning::close;
use crate::Error;
use crate::requests::{Answer, Requests};

/// The answer does not belong to the request.
const OTHER_REPLY: Error = Error::OTHER_REPLY;

/// A stream that the server has granted.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) stream: u32,
    pub(super) shape: RingShape,
    /// It plays, so its ports are outputs.
    pub(super) plays: bool,
    /// Ids of its ports, by channel.
    pub(super) ports: Vec<u32>,
    /// The server's page.
    pub(super) page: Shared<StreamPage>,
}

impl Grant {
    /// Takes the answer to a request for a stream, which ends if its page cannot be mapped.
    fn of(
        requests: &Requests,
        answer: Answer,
        kept: (usize, RingSamples),
        plays: bool,
    ) -> Result<Self, Error> {
        let (Reply::Stream(reply), descriptors) = answer else { return Err(OTHER_REPLY) };
        let (stream, shape, ports) = granted(reply, kept)?;
        let page = received(descriptors).and_then(|page| Ok(Shared::receive(page)?));
        if page.is_err() {
            close(requests, stream);
        }
        Ok(Self { stream, shape, plays, ports, page: page? })
    }

    /// The server can only take this smaller ring.
    fn shrink(&mut self, reply: StreamReply) -> Result<(), Error> {
        (_, self.shape, _) = granted(reply, kept(self.shape))?;
        Ok(())
    }
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
    let answer = requests.ask_for_memory(Request::Stream(StreamRequest::Open(new)), &[])?;
    Grant::of(requests, answer, (channels, samples), plays)
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
        let request = requests.start(Request::Stream(StreamRequest::Open(new)), &[])?;
        Ok(Self { request, shape })
    }

    /// Waits for the answer.
    pub(super) fn answer(self, requests: &Requests) -> Result<Grant, Error> {
        Grant::of(requests, requests.finish(self.request)?, kept(self.shape), true)
    }
}

fn granted(
    reply: StreamReply,
    (channels, samples): (usize, RingSamples),
) -> Result<(u32, RingShape, Vec<u32>), Error> {
    let StreamReply::Granted { stream, capacity_frames, ports } = reply else {
        return Err(OTHER_REPLY);
    };
    let channels = u32::try_from(channels).unwrap_or(u32::MAX);
    let shape = RingShape::new(channels, capacity_frames)
        .and_then(|shape| shape.holding(samples))
        .ok_or(Error::Protocol("it granted a ring that cannot be"))?;
    Ok((stream, shape, ports))
}

/// Returns the descriptor that the server has sent.
fn received(mut descriptors: Vec<OwnedFd>) -> Result<OwnedFd, Error> {
    let none = "this process can open no more descriptors: raise its limit (ulimit -n)";
    descriptors.pop().ok_or_else(|| Error::System(io::Error::other(none)))
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
) -> Result<(Grant, OwnRing), Error> {
    loop {
        let ring = make(grant.shape)?;
        let request = start_playback(requests, &grant, &ring, position)?;
        match requests.finish(request)? {
            (Reply::Stream(StreamReply::Begun), _) => return Ok((grant, ring)),
            (Reply::Stream(reply), _) => grant.shrink(reply)?,
            _ => return Err(OTHER_REPLY),
        }
    }
}

/// Sends the server the ring of a playback stream, and does not wait for the answer; returns the
/// number of the request.
pub(super) fn start_playback(
    requests: &Requests,
    grant: &Grant,
    ring: &OwnRing,
    position: u64,
) -> Result<u32, Error> {
    let begin = StreamRequest::Begin { stream: grant.stream, position };
    requests.start(Request::Stream(begin), &[ring.segment().fd().as_fd()])
}

/// What the server has said of a playback stream that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Beginning {
    /// Nothing so far.
    Unanswered,
    /// It has begun.
    Begun,
    /// Memory has become short: it does not begin. Another one, with a smaller ring, may.
    TooLarge,
    /// It does not begin, as was said before.
    Refused,
}

/// Returns what the server has said of the request by which a playback stream was started.
pub(super) fn beginning(requests: &Requests, request: u32) -> Result<Beginning, Error> {
    match requests.try_finish(request, false)? {
        None => Ok(Beginning::Unanswered),
        Some((Reply::Stream(StreamReply::Begun), _)) => Ok(Beginning::Begun),
        Some((Reply::Stream(StreamReply::Granted { .. }), _)) => Ok(Beginning::TooLarge),
        Some(_) => Err(OTHER_REPLY),
    }
}

/// Begins a stream that records, at `position`.
pub(super) fn begin_recording(
    requests: &Requests,
    mut grant: Grant,
    position: u64,
) -> Result<(Grant, PeerRing, Shared<WishPage>), Error> {
    loop {
        let (wishes, memfd) = Shared::<WishPage>::for_readers("consort-wishes")?;
        let begin = StreamRequest::Begin { stream: grant.stream, position };
        match requests.ask_for_memory(Request::Stream(begin), &[memfd.as_fd()])? {
            (Reply::Stream(StreamReply::Begun), descriptors) => {
                let ring = PeerRing::receive(received(descriptors)?, grant.shape)?;
                return Ok((grant, ring, wishes));
            }
            (Reply::Stream(reply), _) => grant.shrink(reply)?,
            _ => return Err(OTHER_REPLY),
        }
    }
}

#[cfg(test)]
mod tests {
    use proto::encode;
    use proto::request::{Numbered, RequestError};
    use sys::socket::Connection;

    use super::*;

    #[test]
    fn a_stream_that_was_started_begins_or_is_too_large_or_is_refused() {
        let (socket, server) = Connection::pair().unwrap();
        let requests = Requests::new(socket);
        let smaller = StreamReply::Granted { stream: 1, capacity_frames: 64, ports: vec![] };
        for (message, expected) in [
            (Reply::Stream(StreamReply::Begun), Some(Beginning::Begun)),
            (Reply::Stream(smaller), Some(Beginning::TooLarge)),
            (Reply::Error(RequestError::Failed("no memory".into())), None),
            (Reply::Done, None),
        ] {
            let number = requests.start(Request::Status, &[]).unwrap();
            requests.take_answers().unwrap();
            assert_eq!(beginning(&requests, number).unwrap(), Beginning::Unanswered);
            server.try_send(&encode(&Numbered { number, message }), &[]).unwrap();
            requests.take_answers().unwrap();
            assert_eq!(beginning(&requests, number).ok(), expected);
        }
    }
}
