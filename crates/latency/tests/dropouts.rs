//! Breaks that a test makes, and the analysis must find.

mod support;

use consort_latency::{Continuity, Dropout, Fault, Recording, Signal, analyse};
use proptest::prelude::*;
use support::{delayed, direct};

const RATE_HZ: u32 = 48_000;

/// What is done to the delayed channel at a frame.
#[derive(Debug, Clone, Copy)]
enum Break {
    Cut(usize),
    Twice(usize),
    SilenceInstead(usize),
    SilenceBetween(usize),
    Foreign(usize),
    Insert,
}

impl Break {
    fn apply(self, right: &mut Vec<f32>, at: usize) {
        let length = right.len();
        match self {
            Self::Cut(frames) => drop(right.drain(at..at + frames)),
            Self::Twice(frames) => {
                let again: Vec<f32> = right[at - frames..at].to_vec();
                right.splice(at..at, again);
            }
            Self::SilenceInstead(frames) => right[at..at + frames].fill(0.0),
            Self::SilenceBetween(frames) => drop(right.splice(at..at, vec![0.0; frames])),
            Self::Foreign(frames) => {
                right[at..at + frames]
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, sample)| *sample = 0.011 * (1 + i % 3) as f32);
            }
            Self::Insert => right.insert(at, 0.0123),
        }
        right.resize(length, 0.0);
    }

    /// The expected fault, frames and shift.
    fn expected(self) -> (Fault, usize, i64) {
        match self {
            Self::Cut(frames) => (Fault::Missing, frames, -(frames as i64)),
            Self::Twice(frames) => (Fault::Repeated, frames, frames as i64),
            Self::SilenceInstead(frames) => (Fault::Silent, frames, 0),
            Self::SilenceBetween(frames) => (Fault::Silent, frames, frames as i64),
            Self::Foreign(frames) => (Fault::Foreign, frames, 0),
            Self::Insert => (Fault::Foreign, 1, 1),
        }
    }
}

fn any_break() -> impl Strategy<Value = Break> {
    let frames = || prop_oneof![1..4_usize, 4..3_000_usize];
    prop_oneof![
        frames().prop_map(Break::Cut),
        (64..3_000_usize).prop_map(Break::Twice),
        frames().prop_map(Break::SilenceInstead),
        frames().prop_map(Break::SilenceBetween),
        frames().prop_map(Break::Foreign),
        Just(Break::Insert),
    ]
}

fn dropouts(left: &[f32], right: &[f32]) -> (Vec<Dropout>, usize) {
    let found = analyse(&Recording::new(&[left, right], RATE_HZ).unwrap()).unwrap();
    match found.continuity {
        Continuity::Compared { dropouts, frames } => (dropouts, frames),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_break_is_found_with_its_kind_length_and_position(
        signal in prop::sample::select(&[Signal::Sequence, Signal::Marked][..]),
        first in any_break(),
        second in any_break(),
        at in 20_000..40_000_usize,
        delay in 6_000..8_000_usize,
    ) {
        let left = direct(signal, 200, 96_000, 16_000, RATE_HZ);
        let mut right = delayed(&left, delay);
        // The later one first, so that the earlier one does not move.
        let second_at = at + 30_000;
        second.apply(&mut right, second_at);
        first.apply(&mut right, at);
        let moved = first.expected().2;
        let (found, _) = dropouts(&left, &right);
        let figures: Vec<_> = found.iter().map(|found| (found.fault, found.frames, found.shift_frames)).collect();
        prop_assert_eq!(&figures, &[first.expected(), second.expected()]);
        for (found, expected) in found.iter().zip([at as i64, second_at as i64 + moved]) {
            // Samples on both sides of a cut may agree by chance; in a two-valued sequence half of
            // them do.
            let off = found.at_frame as i64 - expected;
            prop_assert!((0..40).contains(&off), "{off} frames off: {found:?}");
        }
    }
}

#[test]
fn an_intact_copy_has_no_break() {
    let left = direct(Signal::Marked, 200, 480_000, 3_000, RATE_HZ);
    assert_eq!(dropouts(&left, &delayed(&left, 2_500)), (vec![], 480_000));
}

#[test]
fn the_delays_around_a_break_are_exact() {
    let left = direct(Signal::Marked, 200, 96_000, 3_000, RATE_HZ);
    let mut right = delayed(&left, 256);
    Break::Insert.apply(&mut right, 50_000);
    let found = analyse(&Recording::new(&[left, right], RATE_HZ).unwrap()).unwrap();
    assert_eq!((found.distribution.minimum, found.distribution.maximum), (256.0, 257.0));
    assert_eq!((found.steps.len(), found.drift), (1, None));
    assert_eq!(found.steps[0].frames, 1.0);
    assert!((found.steps[0].after_frame..found.steps[0].before_frame).contains(&(50_000 - 256)));
    assert!(!found.is_unbroken());
}

#[test]
fn an_impulse_that_does_not_come_back_is_lost() {
    let left = direct(Signal::Impulses, 200, 96_000, 3_000, RATE_HZ);
    let mut right = delayed(&left, 700);
    let third = right
        .iter()
        .enumerate()
        .filter(|(_, sample)| **sample != 0.0)
        .map(|(frame, _)| frame)
        .nth(2)
        .unwrap();
    right[third] = 0.0;
    let found = analyse(&Recording::new(&[left, right], RATE_HZ).unwrap()).unwrap();
    assert_eq!((found.frames(), found.lost), (700.0, vec![third - 700]));
}
