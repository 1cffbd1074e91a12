//! What a program wants of its stream, as the sum of its wishes: what another server gets.
//! Pure.

use rt::shm::{Acknowledgement, Timing};
use rt::stream::{Gains, Wish};

/// The sum of the wishes so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Wished {
    runs: bool,
    /// Where it ends exactly.
    end: Option<u64>,
    gains: Option<Gains>,
    depth_frames: Option<u32>,
    seek: Option<Seek>,
}

/// The newest splice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seek {
    /// Number of the wish.
    wish: u64,
    position: u64,
}

impl Wished {
    /// Notes the wish of this number.
    pub(super) fn note(&mut self, number: u64, wish: Wish) {
        match wish {
            Wish::Run => self.runs = true,
            Wish::Hold => self.runs = false,
            Wish::Drain { end } => self.end = Some(end),
            Wish::Splice { position } => {
                // As for the device: what was to end elsewhere goes on.
                (self.seek, self.end) = (Some(Seek { wish: number, position }), None);
            }
            Wish::Gain { gains, .. } => self.gains = Some(gains),
            Wish::Depth { frames } => self.depth_frames = Some(frames),
        }
    }

    /// Returns whether the stream plays or records.
    pub(super) fn runs(&self) -> bool {
        self.runs
    }

    /// Returns the position that is to be heard at `at_ns`, by the last times of a device that has
    /// gone, and by what it has acknowledged of the wishes.
    pub(super) fn position_at(
        &self,
        at_ns: u64,
        timing: Timing,
        acknowledged: impl Fn(u64) -> Option<Acknowledgement>,
    ) -> u64 {
        let heard = timing.position_at(at_ns);
        let Some(seek) = self.seek else { return heard };
        match acknowledged(seek.wish) {
            None => seek.position,
            Some(Acknowledgement::At(frame)) if frame > timing.device_frame_at(at_ns) => {
                seek.position
            }
            Some(_) => heard,
        }
    }

    /// Forgets the newest splice: the stream is where that led.
    pub(super) fn arrive(&mut self) {
        self.seek = None;
    }

    /// Returns the wishes that a stream needs which holds at the right position, in their order.
    pub(super) fn wishes(&self) -> impl Iterator<Item = Wish> + use<> {
        let depth = self.depth_frames.map(|frames| Wish::Depth { frames });
        let gains = self.gains.map(|gains| Wish::Gain { gains, ramp_frames: 0 });
        let drain = self.end.map(|end| Wish::Drain { end });
        let run = self.runs.then_some(Wish::Run);
        [depth, gains, drain, run].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wished(wishes: &[Wish]) -> Wished {
        let mut wished = Wished::default();
        (1..).zip(wishes).for_each(|(number, wish)| wished.note(number, *wish));
        wished
    }

    #[test]
    fn another_server_is_told_the_newest_of_each_kind() {
        let gains = |gain| Wish::Gain { gains: Gains::all(gain).unwrap(), ramp_frames: 480 };
        let at_once = Wish::Gain { gains: Gains::all(0.25).unwrap(), ramp_frames: 0 };
        for (wishes, expected) in [
            (&[][..], &[][..]),
            (&[Wish::Run], &[Wish::Run]),
            (&[Wish::Run, Wish::Hold], &[]),
            (&[Wish::Hold, Wish::Run, Wish::Run], &[Wish::Run]),
            (&[gains(0.5), Wish::Run, gains(0.25)], &[at_once, Wish::Run]),
            (
                &[Wish::Run, Wish::Drain { end: 7 }, Wish::Depth { frames: 480 }],
                &[Wish::Depth { frames: 480 }, Wish::Drain { end: 7 }, Wish::Run],
            ),
            (&[Wish::Drain { end: 7 }, Wish::Splice { position: 9 }], &[]),
        ] {
            assert_eq!(wished(wishes).wishes().collect::<Vec<_>>(), expected, "{wishes:?}");
        }
    }

    #[test]
    fn a_stream_goes_on_at_the_frame_that_was_heard_or_where_it_was_sent_to() {
        // 50 kHz.
        let timing = Timing {
            at_ns: 1_000_000,
            device_frame: 500,
            position: 100,
            until: 140,
            frame_ps: 20_000_000,
            latency_ns: 0,
        };
        let at =
            |wishes: &[Wish], outcome| wished(wishes).position_at(1_200_000, timing, |_| outcome);
        assert_eq!(at(&[Wish::Run], None), 110);
        let seek = [Wish::Run, Wish::Splice { position: 9000 }];
        for (outcome, position) in [
            (None, 9000),
            (Some(Acknowledgement::At(511)), 9000),
            (Some(Acknowledgement::At(510)), 110),
            (Some(Acknowledgement::Refused), 110),
            (Some(Acknowledgement::Forgotten), 110),
        ] {
            assert_eq!(at(&seek, outcome), position, "{outcome:?}");
        }
        let mut arrived = wished(&seek);
        arrived.arrive();
        assert_eq!(arrived.position_at(1_200_000, timing, |_| None), 110);
    }
}
