//! Rings that are populated while their streams play: between events, a piece at a time, so that
//! nobody waits for a whole one.

use std::io;

use rt::rate::duration_ns;
use sys::memory::RingPopulation;

use super::{State, Streams};

/// How long this thread rests before a piece at least, ns, if nothing happens. The kernel tends to
/// wake it on the CPU of the program that asks, and leaves that one there, runnable, until this
/// thread sleeps.
const SHORTEST_REST_NS: u64 = 50_000;
/// And at most: while its program fills the ring, it populates that itself, and needs the CPU.
const LONGEST_REST_NS: u64 = 3_000_000;
/// Pieces that each ring could get before the first of them comes to its end.
const PIECES_IN_TIME: u64 = 32;

/// What is left to populate of the rings of streams that have begun.
#[derive(Debug, Default)]
pub(super) struct Populating {
    rings: Vec<Ring>,
    /// When the next piece is due; `None`: a rest begins.
    next_ns: Option<u64>,
}

#[derive(Debug)]
struct Ring {
    stream: u32,
    rate_hz: u32,
    population: RingPopulation,
    begun_ns: u64,
}

impl Ring {
    /// When its stream comes to the end of what is populated, if it plays from its beginning on.
    fn runs_out_ns(&self) -> u64 {
        self.begun_ns + duration_ns(self.population.populated_frames(), self.rate_hz)
    }
}

impl Populating {
    /// Populates the first piece of the ring of a stream that begins now, at a rate in Hz, so that
    /// it plays, and leaves the others to [`Streams::populate`].
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.14; `ENOMEM`.
    pub(super) fn begin(
        &mut self,
        (stream, rate_hz): (u32, u32),
        mut population: RingPopulation,
        begun_ns: u64,
    ) -> io::Result<()> {
        if !population.step()? {
            if self.rings.is_empty() {
                self.next_ns = None;
            }
            self.rings.push(Ring { stream, rate_hz, population, begun_ns });
        }
        Ok(())
    }

    /// When the next piece is due; `None`: there is none.
    fn due_ns(&mut self, now_ns: u64) -> Option<u64> {
        let runs_out_ns = self.rings.iter().map(Ring::runs_out_ns).min()?;
        let pieces = PIECES_IN_TIME * self.rings.len() as u64;
        let rest_ns = runs_out_ns.saturating_sub(now_ns) / pieces;
        let rest_ns = rest_ns.clamp(SHORTEST_REST_NS, LONGEST_REST_NS);
        Some(*self.next_ns.get_or_insert(now_ns + rest_ns))
    }

    /// The stream has ended, or fades out.
    pub(super) fn forget(&mut self, stream: u32) {
        self.rings.retain(|ring| ring.stream != stream);
    }

    /// Returns how many frames of a stream's ring are populated; `None`: all, or it has ended.
    #[cfg(test)]
    pub(super) fn populated_frames(&self, stream: u32) -> Option<u64> {
        let ring = self.rings.iter().find(|ring| ring.stream == stream)?;
        Some(ring.population.populated_frames())
    }

    /// Populates the next piece, of the ring that runs out first; returns its stream, and whether
    /// that is populated now.
    fn step(&mut self) -> Option<(u32, io::Result<bool>)> {
        let numbered = self.rings.iter_mut().enumerate();
        let (place, ring) = numbered.min_by_key(|(_, ring)| ring.runs_out_ns())?;
        let (stream, result) = (ring.stream, ring.population.step());
        if !matches!(result, Ok(false)) {
            self.rings.swap_remove(place);
        }
        Some((stream, result))
    }
}

impl Streams {
    /// Populates the next piece of what is left of rings, if it is due; returns when another one
    /// is. A stream for which there is no memory ends; the device of one whose ring is populated is
    /// called, as it may have played all that it could.
    pub(in crate::control) fn populate(&mut self, clock: impl Fn() -> u64) -> Option<u64> {
        let now_ns = clock();
        let due_ns = self.populating.due_ns(now_ns)?;
        if due_ns > now_ns {
            return Some(due_ns);
        }
        let (stream, result) = self.populating.step()?;
        match result {
            Ok(false) => {}
            Ok(true) => self.call_device_of(stream),
            Err(error) => {
                sys::report!("consort: a stream that has just begun ends: {error}");
                self.cut(stream);
            }
        }
        self.populating.next_ns = None;
        self.populating.due_ns(clock())
    }

    fn call_device_of(&mut self, number: u32) {
        let begun = self.streams.get(&number);
        let begun = begun.filter(|stream| matches!(stream.state, State::Begun(_)));
        if let Some(device) = begun.and_then(|stream| self.devices.get_mut(stream.device)) {
            device.shared.call();
        }
    }

    /// Ends a stream that its program has not ended.
    pub(super) fn cut(&mut self, number: u32) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.is_cut = true;
            self.end(number);
        }
    }
}
