//! The master volume of a card, if its mixer has one.

use alsa_rs::mixer::{MilliBel, Mixer, Selem, SelemChannelId};

/// Names of mixer controls for everything that a card plays, best first.
const NAMES: [&str; 6] = ["Master", "PCM", "Speaker", "Headphone", "Front", "Digital"];

/// The volume of a card.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    /// The mixer's name of the control.
    pub control: String,
    /// Fraction of the way from the lowest to the highest step, 0 to 1.
    pub level: f64,
    /// The same in dB, if the mixer knows it.
    pub decibels: Option<f32>,
    /// Whether it is muted; `None` if the mixer cannot do that.
    pub muted: Option<bool>,
}

/// A change of the volume.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Set this fraction of the way, 0 to 1.
    Level(f64),
    /// Change by this fraction of the way.
    By(f64),
    /// Set this many dB.
    Decibels(f32),
    /// Mute or unmute.
    Mute(bool),
}

/// Why a volume could not be read or set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// The card has no mixer, or one without any of the usual controls.
    #[error("the card has no volume of its own: use one on the way to it, or the amplifier's")]
    None,
    /// The control cannot do this.
    #[error("'{0}' cannot be {1}")]
    Unable(String, &'static str),
    /// The error of the mixer.
    #[error("{0}")]
    Mixer(String),
}

impl From<alsa_rs::Error> for VolumeError {
    fn from(error: alsa_rs::Error) -> Self {
        Self::Mixer(error.to_string())
    }
}

/// Applies the changes to the volume of card number `card`, and returns it.
///
/// # Errors
/// [`VolumeError`].
pub fn volume(card: u32, changes: &[Change]) -> Result<Volume, VolumeError> {
    crate::messages::report();
    let mixer = Mixer::new(&format!("hw:{card}"), false).map_err(|_| VolumeError::None)?;
    let (control, name) = control_of(&mixer).ok_or(VolumeError::None)?;
    for change in changes {
        apply(&control, name, *change)?;
    }
    mixer.handle_events()?;
    read(&control, name)
}

/// Returns the control for everything that a card plays, with its name.
pub(crate) fn control_of(mixer: &Mixer) -> Option<(Selem<'_>, &'static str)> {
    let named = |name: &str| {
        let mut controls = mixer.iter().filter_map(Selem::new);
        controls.find(|control| {
            control.has_playback_volume()
                && control.get_id().get_name().is_ok_and(|found| found == name)
        })
    };
    NAMES.iter().find_map(|name| Some((named(name)?, *name)))
}

const CHANNEL: SelemChannelId = SelemChannelId::FrontLeft;

fn read(control: &Selem<'_>, name: &str) -> Result<Volume, VolumeError> {
    let range = control.get_playback_volume_range();
    let muted =
        control.has_playback_switch().then(|| control.get_playback_switch(CHANNEL)).transpose()?;
    Ok(Volume {
        control: name.to_owned(),
        level: part_of(range, control.get_playback_volume(CHANNEL)?),
        decibels: control.get_playback_vol_db(CHANNEL).ok().map(MilliBel::to_db),
        muted: muted.map(|switch| switch == 0),
    })
}

fn apply(control: &Selem<'_>, name: &str, change: Change) -> Result<(), VolumeError> {
    let range = control.get_playback_volume_range();
    match change {
        Change::Level(level) => control.set_playback_volume_all(step_at(range, level))?,
        Change::By(part) => {
            control.set_playback_volume_all(step_by(
                range,
                control.get_playback_volume(CHANNEL)?,
                part,
            ))?;
        }
        Change::Decibels(decibels) => {
            let wanted = MilliBel::from_db(decibels);
            let step = control.ask_playback_db_vol(wanted, alsa_rs::Round::Floor);
            let step = step.map_err(|_| VolumeError::Unable(name.to_owned(), "set in dB"))?;
            control.set_playback_volume_all(step.clamp(range.0, range.1))?;
        }
        Change::Mute(_) if !control.has_playback_switch() => {
            return Err(VolumeError::Unable(name.to_owned(), "muted"));
        }
        Change::Mute(muted) => control.set_playback_switch_all(i32::from(!muted))?,
    }
    Ok(())
}

/// Returns the fraction of the way at which a step of the mixer lies.
fn part_of((softest, loudest): (i64, i64), step: i64) -> f64 {
    if loudest > softest { (step - softest) as f64 / (loudest - softest) as f64 } else { 1.0 }
}

/// Returns the step that is nearest to a fraction of the way.
fn step_at((softest, loudest): (i64, i64), part: f64) -> i64 {
    softest + (part.clamp(0.0, 1.0) * (loudest - softest) as f64).round() as i64
}

/// Returns the step that is this fraction of the way from `step`, or the next one if steps are
/// coarser than that, so that repeated changes reach every step.
fn step_by(range: (i64, i64), step: i64, part: f64) -> i64 {
    match step_at(range, part_of(range, step) + part) {
        nearest if nearest != step => nearest,
        _ if part > 0.0 => (step + 1).min(range.1),
        _ if part < 0.0 => (step - 1).max(range.0),
        nearest => nearest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixer_steps_survive_conversion_to_a_level_and_back() {
        for range in [(0, 74), (-50, 100), (0, 1)] {
            for step in range.0..=range.1 {
                assert_eq!(step_at(range, part_of(range, step)), step, "{range:?}");
            }
            assert_eq!((step_at(range, -1.0), step_at(range, 7.0)), range);
        }
        assert_eq!(part_of((3, 3), 3), 1.0);
    }

    #[test]
    fn the_smallest_change_moves_the_coarsest_control_by_one_step() {
        assert_eq!(step_by((0, 20), 7, 0.01), 8);
        assert_eq!(step_by((0, 20), 7, -0.01), 6);
        assert_eq!(step_by((0, 20), 7, 0.25), 12);
        assert_eq!((step_by((0, 20), 20, 0.01), step_by((0, 20), 0, -0.01)), (20, 0));
        assert_eq!((step_by((0, 20), 7, 0.0), step_by((3, 3), 3, 0.5)), (7, 3));
    }

    #[test]
    fn a_card_that_is_not_there_has_no_volume() {
        assert_eq!(volume(31, &[]), Err(VolumeError::None));
    }
}
