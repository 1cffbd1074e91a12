//! The server's end of a stream, as a device's thread uses it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rt::shm::{RingShape, StreamPage, WishPage};
use sys::memory::{OwnRing, PeerRing, PeerStream, Shared};

use crate::stream::control::OwnWishes;
use crate::stream::{StreamControl, StreamReader, StreamWriter};

/// A device that plays one stream.
pub(super) struct Player {
    pub(super) stream: PeerStream,
    pub(super) position: u64,
}

/// A device that records one stream.
pub(super) struct Recorder {
    pub(super) ring: OwnRing,
    pub(super) page: Shared<StreamPage>,
    pub(super) position: u64,
}

/// The pages of a stream that records.
pub(super) struct StreamPages {
    pub(super) wishes: OwnWishes,
    pub(super) page: Shared<StreamPage>,
}

fn page() -> (Shared<StreamPage>, OwnedFd) {
    Shared::for_readers("consort-stream-page").expect("a page")
}

pub(super) fn copy(ring: &OwnRing) -> OwnedFd {
    ring.segment().fd().try_clone_to_owned().expect("a descriptor")
}

/// Returns both ends of a playback stream.
pub(super) fn playback(shape: RingShape) -> (StreamWriter, Player) {
    let own = OwnRing::create(shape).expect("a ring");
    let (player, page) = Player::receive(shape, copy(&own));
    let page = Shared::receive(page).expect("a page of the server's");
    (StreamWriter::new(own, page), player)
}

/// Returns both ends of a record stream.
pub(super) fn record(shape: RingShape) -> (StreamReader, Recorder) {
    let (recorder, ring, StreamPages { wishes, page }) = recorder(shape, 0);
    (StreamReader::new(ring, StreamControl::new(wishes, page)), recorder)
}

/// Returns a device that records from `position` on, and what the program has of it.
pub(super) fn recorder(shape: RingShape, position: u64) -> (Recorder, PeerRing, StreamPages) {
    let ring = OwnRing::create(shape).expect("a ring");
    ring.header().publish(position);
    let (page, memfd) = page();
    let (wishes, _) = Shared::<WishPage>::for_readers("consort-wishes").expect("a page");
    let wishes = OwnWishes::OnPage(wishes);
    let received = PeerRing::receive(copy(&ring), shape).expect("a ring of the server's");
    let pages = StreamPages { wishes, page: Shared::receive(memfd).expect("a page") };
    (Recorder { ring, page, position }, received, pages)
}

impl Player {
    pub(super) fn receive(shape: RingShape, ring: OwnedFd) -> (Self, OwnedFd) {
        let (page, memfd) = page();
        let stream =
            PeerStream::receive(shape, ring, Arc::new(page)).expect("memory of the program's");
        (Self { stream, position: 0 }, memfd)
    }

    /// Takes at most `frames` frames of what is written, as a device that cannot rewind; returns
    /// one vector for each channel.
    pub(super) fn play(&mut self, frames: usize) -> Vec<Vec<f32>> {
        let written = self.stream.written() - self.position;
        let frames = frames.min(usize::try_from(written).expect("at most a ring"));
        let planes = (0..self.stream.shape().channels()).map(|channel| {
            let mut plane = vec![0.0; frames];
            self.stream.read(channel, self.position, &mut plane);
            plane
        });
        let planes = planes.collect();
        self.position += frames as u64;
        self.stream.set_lowest(self.position);
        planes
    }
}

impl Recorder {
    /// Records frames, without waiting for the program.
    pub(super) fn record(&mut self, frames: usize) {
        self.record_with(frames, super::sample);
    }

    /// The same, with these samples, by position and channel.
    pub(super) fn record_with(&mut self, frames: usize, sample: impl Fn(u64, u32) -> f32) {
        let end = self.position + frames as u64;
        self.ring.header().begin(end);
        for channel in 0..self.ring.shape().channels() {
            let pieces = self.ring.samples_mut(channel, self.position, frames).expect("a channel");
            for (position, place) in (self.position..).zip(pieces.into_iter().flatten()) {
                *place = sample(position, channel);
            }
        }
        self.ring.header().publish(end);
        self.position = end;
    }
}
