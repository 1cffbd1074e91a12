//! A volume that changes all the time, as while a slider is dragged.

use std::f64::consts::TAU;
use std::time::Duration;

use client::stream::{ChannelGains, Gain};
use harness::{Sound, in_three_attempts};

use crate::RATE_HZ;
use crate::programs::{FADE, Player, assert_continuous};

const CHANGES: usize = 100;
const LEVEL: f32 = 0.5;
const TONE_HZ: f64 = 100.0;

/// A constant level on the left, of which a step is seen best, and a tone on the right.
fn level_and_tone(frames: usize) -> Sound {
    let tone = |frame: usize| (TAU * TONE_HZ * frame as f64 / f64::from(RATE_HZ)).sin() as f32;
    Sound::of(RATE_HZ, &[vec![LEVEL; frames], (0..frames).map(|at| LEVEL * tone(at)).collect()])
}

/// Gains from 0 to 1 that jump further than any hand moves a slider.
fn gains() -> impl Iterator<Item = f32> {
    (1..=CHANGES).map(|change| (change * 37 % 101) as f32 / 100.0)
}

/// Has a stream and the device change their volume in turn; what is heard is their product.
#[test]
fn a_slider_that_is_dragged_is_heard_without_a_step_and_ends_where_it_is_left() {
    in_three_attempts(|| {
        let mut player = Player::start(&level_and_tone(5 * RATE_HZ as usize));
        player.await_deep();
        let stream = player.stream.number();
        let mut left = [1.0; 2];
        for (change, factor) in gains().enumerate() {
            let is_device = change % 4 == 3;
            left[usize::from(is_device)] = factor;
            let gain = Gain::new(factor).expect("a gain");
            let connection = &player.connection;
            if is_device {
                let gains = Some(ChannelGains::all(gain));
                connection.set_device_volume(None, gains, None).expect("it may");
            } else {
                connection.set_volume(stream, Some(gain), None).expect("it may");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let last = player.heard();
        player.await_heard(last + u64::from(RATE_HZ) / 5);
        let recorded = player.recorded()?;
        let [level, tone] = &recorded.channels[..] else { panic!("two channels") };
        let begin = level.iter().position(|sample| *sample != 0.0).expect("sound");
        if last as usize + RATE_HZ as usize / 5 > begin + 5 * RATE_HZ as usize {
            return Err("the changes took longer than the sound".into());
        }
        // Both volumes may be on their way at once.
        assert_continuous(&level[begin..], 2.0 * LEVEL);
        let of_tone = (f64::from(LEVEL) * TAU * TONE_HZ / f64::from(RATE_HZ)) as f32;
        let most = 1.01 * (2.0 * LEVEL / FADE as f32 + of_tone);
        for (frame, pair) in tone[begin..].windows(2).enumerate() {
            assert!((pair[1] - pair[0]).abs() <= most, "a step at frame {frame}: {pair:?}");
        }
        let changes = level[begin..].windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes > CHANGES, "{changes} frames differ from the one before");
        let end = LEVEL * left[0] * left[1];
        let heard = level[last as usize + RATE_HZ as usize / 10];
        assert!((heard - end).abs() < 1e-6, "{heard} in the end, not {end}");
        Ok(())
    });
}
