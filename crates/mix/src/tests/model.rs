//! What a stream sounds like, straight from the list of its wishes: every change is kept, and every
//! frame is computed by itself.

use rt::stream::{Gains, Wish};

use crate::{MAX_LEVEL, Routes};

/// A stretch of the stream: what it does from a device frame on.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: u64,
    position: u64,
    runs: bool,
    end: u64,
    fades_in: bool,
    /// How long the stretch before fades out.
    fade_out: u64,
}

/// Returns a stream's samples of `channel`, for each device frame below `frames`, from the wishes
/// and the frames that they were acknowledged for.
pub(super) fn sounds(
    wishes: &[(u64, Wish)],
    frames: u64,
    fade: u64,
    channel: usize,
    sample: impl Fn(u64) -> f32,
) -> Vec<f32> {
    let stretches = stretches(wishes, fade);
    let mut sum = vec![0.0; frames as usize];
    for (index, stretch) in stretches.iter().enumerate().filter(|(_, stretch)| stretch.runs) {
        let next = stretches.get(index + 1).map(|next| (next.start, next.fade_out));
        for frame in stretch.start..frames {
            let position = stretch.position + (frame - stretch.start);
            if position >= stretch.end || next.is_some_and(|(next, fade)| frame >= next + fade) {
                break;
            }
            let rises = if stretch.fades_in { level(frame, stretch.start, fade) } else { 1.0 };
            let falls = next.filter(|(next, _)| frame >= *next);
            let falls = falls.map_or(1.0, |(next, fade)| 1.0 - level(frame, next, fade));
            let gain = gain_at(wishes, channel, frame);
            let raw = sample(position);
            let raw = if raw.is_finite() { raw.clamp(-MAX_LEVEL, MAX_LEVEL) } else { 0.0 };
            sum[frame as usize] += raw * (rises * falls * gain);
        }
    }
    sum
}

/// Returns how loud a stream's channel is on one of the device's, in each device frame, from the
/// changes of its routes.
pub(super) fn levels(
    routed: &[(u64, Routes)],
    fade: u64,
    (from, to): (usize, usize),
) -> impl Iterator<Item = f32> {
    let changes = routed.to_vec();
    let has = move |routes: &Routes| if routes.of(from).has(to) { 1.0 } else { 0.0 };
    (0..).map(move |frame| {
        let mut now = has(&changes[0].1);
        for (start, routes) in changes.iter().skip(1).filter(|(start, _)| *start <= frame) {
            now += (has(routes) - now) * level(frame, *start, fade);
        }
        now
    })
}

fn level(frame: u64, start: u64, fade: u64) -> f32 {
    if frame - start >= fade { 1.0 } else { (frame - start + 1) as f32 / (fade + 1) as f32 }
}

fn stretches(wishes: &[(u64, Wish)], fade: u64) -> Vec<Stretch> {
    let (mut all, mut is_fresh) = (Vec::<Stretch>::new(), true);
    let mut now =
        Stretch { start: 0, position: 0, runs: false, end: u64::MAX, fades_in: false, fade_out: 0 };
    for (at, wish) in wishes {
        let passed = if now.runs { at - now.start } else { 0 };
        let position = (now.position + passed).min(now.end.max(now.position));
        let left = fade.min(now.end.saturating_sub(position));
        let fade_out = if *at == now.start { now.fade_out } else { left };
        let mut next = Stretch { start: *at, position, fades_in: false, fade_out, ..now };
        match wish {
            Wish::Run if !now.runs => {
                (next.runs, next.fades_in) = (true, !is_fresh);
                is_fresh = false;
            }
            Wish::Hold if now.runs => next.runs = false,
            Wish::Splice { position } => {
                (next.position, next.end, next.fades_in) = (*position, u64::MAX, now.runs);
                is_fresh |= !now.runs;
            }
            Wish::Drain { end } if now.runs && position == now.end => {
                (next.end, next.runs) = ((*end).max(position), true);
            }
            Wish::Drain { end } => {
                now.end = (*end).max(position);
                continue;
            }
            _ => continue,
        }
        all.push(now);
        now = next;
    }
    all.push(now);
    // Of changes at one frame, the last one counts.
    let starts: Vec<u64> = all.iter().skip(1).map(|stretch| stretch.start).collect();
    let is_kept = |index: usize, stretch: &Stretch| starts.get(index) != Some(&stretch.start);
    all.iter()
        .enumerate()
        .filter(|(index, stretch)| is_kept(*index, stretch))
        .map(|(_, stretch)| *stretch)
        .collect()
}

/// Returns the gain of a channel in each device frame below `frames`.
pub(super) fn gains(
    changes: &[(u64, Wish)],
    channel: usize,
    frames: u64,
) -> impl Iterator<Item = f32> + '_ {
    (0..frames).map(move |frame| gain_at(changes, channel, frame))
}

fn gain_at(wishes: &[(u64, Wish)], channel: usize, frame: u64) -> f32 {
    let (mut from, mut to, mut start, mut ramp) = (1.0, 1.0, 0, 0);
    let value = |from: f32, to: f32, start: u64, ramp: u32, frame: u64| {
        if frame - start >= u64::from(ramp) {
            to
        } else {
            from + (to - from) * ((frame - start + 1) as f32 / (ramp + 1) as f32)
        }
    };
    let mut before = Gains::default().of(channel);
    for (at, wish) in wishes.iter().filter(|(at, _)| *at <= frame) {
        if let Wish::Gain { gains, ramp_frames } = wish {
            // A change at the same frame replaces the one before, which had no frame of its own.
            if *at != start {
                before = value(from, to, start, ramp, *at);
            }
            (from, to, start, ramp) = (before, gains.of(channel), *at, *ramp_frames);
        }
    }
    value(from, to, start, ramp, frame)
}
