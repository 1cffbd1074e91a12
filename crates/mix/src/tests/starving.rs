//! Streams whose programs write late, or no more.

use proptest::prelude::*;
use rt::shm::Miss;
use rt::stream::Wish;

use super::card::{Faults, SimulatedCard};
use super::scenario::{CHANNELS, FADE, MS, RATE_HZ, Scenario, sample};
use crate::MAX_LEVEL;

/// A tone: its steps are small, so that other ones show.
fn tone(_seed: u64, position: u64, _channel: usize) -> f32 {
    0.5 * (position as f32 % 480.0 / 480.0 * std::f32::consts::TAU).sin()
}

/// The largest step of a tone, and of its fade over the frames of a few milliseconds.
const MOST_STEP: f32 = 0.5 * std::f32::consts::TAU / 480.0 + 0.5 / 80.0;

/// How long the last frames fade out, at least: the device knows before that a stream runs out.
const LEAST_FADE: u64 = 88;

fn frames_in(duration_ns: u64) -> u64 {
    duration_ns * u64::from(RATE_HZ) / 1_000_000_000
}

/// What a program does: it writes some frames, and lets some time pass.
fn writings() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let some = (0..2000_u64, 0..30_000_u64);
    let few = (0..50_u64, 0..2000_u64);
    let none = (Just(0), 0..300_000_u64);
    prop::collection::vec(prop_oneof![4 => some, 4 => few, 1 => none], 1..80)
}

/// A stream that runs with this depth, frames, while its program writes.
fn play(
    writings: &[(u64, u64)],
    depth: u32,
    faults: Faults,
    sound: fn(u64, u64, usize) -> f32,
) -> Scenario {
    let mut scenario = Scenario::new(1, 0, faults);
    scenario.streams[0].borrow_mut().sound = sound;
    scenario.wish(0, Wish::Depth { frames: depth });
    scenario.wish(0, Wish::Run);
    for (frames, pause_us) in writings {
        scenario.streams[0].borrow_mut().written += frames;
        // The program notices that nothing is left.
        if scenario.device.is_parked() {
            scenario.call();
        }
        scenario.pass(pause_us * 1000);
    }
    scenario.pass(3000 * MS);
    scenario
}

/// Returns the largest step between two frames that leave the card, before silence.
fn largest_step(scenario: &Scenario) -> f32 {
    let heard = scenario.card.written.iter().step_by(CHANNELS).copied();
    let heard: Vec<f32> = heard.chain([0.0]).collect();
    heard.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max)
}

/// A stretch of the stream that was heard without a gap.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// The device frame at which it begins, and the position.
    start: u64,
    position: u64,
    /// The position at which nothing more was there.
    end: u64,
    fades_in: bool,
}

impl Stretch {
    /// Returns all stretches of a scenario's stream.
    fn all(scenario: &Scenario) -> Vec<Self> {
        let memory = scenario.streams[0].borrow();
        let (start, Wish::Run) = memory.acknowledged[memory.acknowledged.len() - 1] else {
            panic!("it runs")
        };
        let resumes = memory.misses.iter().map(|miss| {
            let Miss { position, device_frame, frames } = *miss;
            (device_frame + frames, position)
        });
        let starts: Vec<(u64, u64)> = [(start, 0)].into_iter().chain(resumes).collect();
        let ends = starts.iter().skip(1).map(|(_, position)| *position).chain([memory.written]);
        let stretches = starts.iter().zip(ends);
        let stretches = stretches.enumerate().map(|(index, ((start, position), end))| {
            let (start, position, fades_in) = (*start, *position, index > 0);
            Self { start, position, end, fades_in }
        });
        stretches.collect()
    }

    fn ends_at(self) -> u64 {
        self.start + self.end - self.position
    }

    /// Returns what is heard of it at a device frame, if its last frames fade out backwards over
    /// `fade` frames.
    fn sample(self, frame: u64, channel: usize, fade: u64) -> f32 {
        let Some(passed) = frame.checked_sub(self.start) else { return 0.0 };
        let level = |passed: u64, fade: u64| ((passed + 1) as f32 / (fade + 1) as f32).min(1.0);
        let rises = if self.fades_in { level(passed, FADE.into()) } else { 1.0 };
        let (position, falls) = match frame.checked_sub(self.ends_at()) {
            None => (self.position + passed, 1.0),
            Some(beyond) if beyond < fade => (self.end - 1 - beyond, 1.0 - level(beyond, fade)),
            Some(_) => return 0.0,
        };
        let raw = sample(0, position, channel);
        let raw = if raw.is_finite() { raw.clamp(-MAX_LEVEL, MAX_LEVEL) } else { 0.0 };
        raw * (rises * falls)
    }
}

/// Compares everything that was heard with the stretches; returns how long each fades out.
fn fades(card: &SimulatedCard, stretches: &[Stretch]) -> Vec<u64> {
    let mut fades = Vec::<u64>::new();
    for (index, stretch) in stretches.iter().enumerate() {
        let next = stretches.get(index + 1);
        let end = next.map_or_else(|| card.frames(), |next| next.ends_at());
        // Those before have faded out.
        let near = stretches
            .partition_point(|other| other.ends_at() + u64::from(FADE) <= stretch.start)
            .min(index);
        let matches = |fade: &u64| {
            (stretch.start..end.min(stretch.ends_at() + 2 * u64::from(FADE))).all(|frame| {
                (0..CHANNELS).all(|channel| {
                    let before = stretches[near..index].iter().zip(&fades[near..]);
                    let others = before.chain(next.map(|next| (next, &0)));
                    let all = others.chain([(stretch, fade)]);
                    let expected: f32 =
                        all.map(|(stretch, fade)| stretch.sample(frame, channel, *fade)).sum();
                    let heard = card.written[frame as usize * CHANNELS + channel];
                    (heard - expected).abs() <= 1e-5 * expected.abs().max(1.0)
                })
            })
        };
        let most = u64::from(FADE).min(stretch.end - stretch.position);
        let fade = (0..=most).rev().find(matches);
        fades.push(fade.unwrap_or_else(|| panic!("{stretch:?} is something else")));
    }
    fades
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_plays_every_frame_once_and_fades_out_over_its_last_ones(
        writings in writings(),
        depth in 128..4000_u32,
        refused in prop::sample::select(vec![0_u64, 0, 128, 256]),
    ) {
        let scenario = play(&writings, depth, Faults { refused, ..Faults::default() }, sample);
        prop_assert_eq!(scenario.card.underruns, 0);
        let memory = scenario.streams[0].borrow();
        prop_assert_eq!(memory.timing.position, memory.written, "all was heard");
        let stretches = Stretch::all(&scenario);
        for (stretch, miss) in stretches.iter().zip(&memory.misses) {
            prop_assert_eq!(stretch.ends_at(), miss.device_frame, "no frame is lost");
        }
        for (stretch, fade) in stretches.iter().zip(fades(&scenario.card, &stretches)) {
            let least = LEAST_FADE.min(stretch.end - stretch.position);
            prop_assert!(fade >= least, "{} frames of fade after {:?}", fade, stretch);
        }
    }

    #[test]
    fn a_stream_runs_dry_and_goes_on_alike_where_nothing_is_heard(
        writings in writings(),
        depth in 128..4000_u32,
    ) {
        let [heard, unheard] = [false, true].map(|is_unheard| {
            play(&writings, depth, Faults { is_unheard, ..Faults::default() }, sample)
        });
        let [there, here] = [&heard, &unheard].map(|scenario| scenario.streams[0].borrow());
        prop_assert_eq!(&here.misses, &there.misses);
        prop_assert_eq!((here.timing, here.schedule), (there.timing, there.schedule));
        prop_assert_eq!(unheard.wake_ups, heard.wake_ups);
        prop_assert_eq!(unheard.card.frames(), heard.card.frames());
        prop_assert!(unheard.card.written.iter().all(|sample| *sample == 0.0), "not mixed");
    }

    #[test]
    fn a_stream_that_runs_dry_makes_no_step(
        writings in writings(),
        depth in 128..4000_u32,
        refused in prop::sample::select(vec![0_u64, 0, 128, 256]),
    ) {
        let scenario = play(&writings, depth, Faults { refused, ..Faults::default() }, tone);
        let step = largest_step(&scenario);
        prop_assert!(step <= MOST_STEP, "{}", step);
    }

    #[test]
    fn a_stream_that_is_fed_before_its_last_frames_are_heard_never_starves(
        delays_us in prop::collection::vec(-2500..2000_i64, 50..200),
    ) {
        // 20 ms are kept, of which the device renders seven eighths.
        let kept = frames_in(20 * MS);
        let mut scenario = Scenario::new(1, kept, Faults::default());
        scenario.wish(0, Wish::Depth { frames: (kept * 7 / 8) as u32 });
        scenario.wish(0, Wish::Run);
        for delay_us in delays_us {
            let memory = scenario.streams[0].borrow();
            let due = memory.schedule.due(memory.written).expect("it plays");
            drop(memory);
            let at_ns = due.at_ns.saturating_add_signed(delay_us * 1000);
            scenario.pass(at_ns.saturating_sub(scenario.now_ns));
            let mut memory = scenario.streams[0].borrow_mut();
            memory.written = memory.timing.position_at(scenario.now_ns) + kept;
        }
        scenario.pass(5 * MS);
        prop_assert!(scenario.streams[0].borrow().misses.is_empty());
        scenario.check();
    }
}

#[test]
fn frames_that_come_before_the_device_wakes_take_nothing_back() {
    let mut scenario = Scenario::new(2, frames_in(20 * MS), Faults::default());
    scenario.late_ns = MS / 2;
    scenario.wish(0, Wish::Depth { frames: frames_in(17 * MS) as u32 });
    scenario.wish(0, Wish::Run);
    scenario.wish(1, Wish::Run);
    let (rewinds, wake_ups) = (scenario.card.rewinds, scenario.wake_ups);
    for round in 0..500 {
        // Both have less than the device may render, and not the same.
        let wake_ns = scenario.wake_ns.expect("it plays");
        scenario.pass(wake_ns - scenario.now_ns);
        for (stream, kept_ms) in scenario.streams.iter().zip([15, 15 + round % 2]) {
            let mut memory = stream.borrow_mut();
            memory.written = memory.timing.position_at(scenario.now_ns) + frames_in(kept_ms * MS);
        }
        scenario.pass(MS);
    }
    assert_eq!(scenario.card.rewinds, rewinds);
    assert!(scenario.wake_ups - wake_ups <= 501, "{}", scenario.wake_ups - wake_ups);
    assert!(scenario.streams.iter().all(|stream| stream.borrow().misses.is_empty()));
    scenario.check();
}

#[test]
fn a_drain_while_the_last_frames_fade_out_cuts_nothing() {
    // The tone is at its peak there.
    let mut scenario = Scenario::new(1, 4800 + 120, Faults::default());
    scenario.streams[0].borrow_mut().sound = tone;
    scenario.wish(0, Wish::Run);
    scenario.pass(104 * MS);
    scenario.wish(0, Wish::Drain { end: 4800 + 120 });
    scenario.pass(200 * MS);
    assert!(largest_step(&scenario) <= MOST_STEP, "{}", largest_step(&scenario));
    assert_eq!(scenario.streams[0].borrow().timing.position, 4800 + 120);
    assert!(scenario.device.is_parked());
}

#[test]
fn what_is_written_before_a_wish_is_played_when_that_is_obeyed() {
    // The device has read the first wish when it looks how much is written, and takes the others
    // while it obeys that one.
    for wish in 1..=3 {
        let mut scenario = Scenario::new(1, 0, Faults::default());
        scenario.streams[0].borrow_mut().written_before = Some((wish, 48_000));
        let before = [Wish::Depth { frames: 9600 }, Wish::Hold];
        for before in before.into_iter().take(wish as usize - 1) {
            scenario.streams[0].borrow_mut().wish(before);
        }
        scenario.wish(0, Wish::Run);
        scenario.pass(3000 * MS);
        let memory = scenario.streams[0].borrow();
        assert_eq!((memory.written, &memory.misses[..]), (48_000, &[][..]), "wish {wish}");
        assert_eq!(memory.timing.position, 48_000, "wish {wish}");
    }
}
