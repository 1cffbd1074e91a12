//! The volume in a sound card's own mixer.

use alsa::{Change, Volume};
use anyhow::{Context, bail};
use client::Observer;

/// Changes the volume of a card, by default the one that the server plays on; returns it as text.
pub(super) fn change_and_show(
    server: &str,
    card: Option<String>,
    changes: &[Change],
) -> anyhow::Result<String> {
    let name = match card {
        Some(name) => name,
        None => card_of(&Observer::open(Some(server))?.status()?.driver)?,
    };
    let located = alsa::locate(&name).or_else(|| alsa::locate(&format!("hw:{name}")));
    let (card, _) = located.with_context(|| format!("there is no card '{name}'"))?;
    let volume = alsa::volume(card, changes).with_context(|| format!("'{name}'"))?;
    Ok(as_text(&volume))
}

/// The card in a driver's description; of two, the one that plays.
pub(super) fn card_of(driver: &str) -> anyhow::Result<String> {
    let mut devices = driver.split_whitespace().filter(|word| alsa::locate(word).is_some());
    match devices.next_back() {
        Some(device) => Ok(device.to_owned()),
        None => bail!("the server does not play on a sound card ({driver}): name one with --card"),
    }
}

/// Returns the change that `value` asks of a mixer; `None` if it is no such change.
pub(super) fn change(value: &str) -> Option<Change> {
    match value {
        "mute" => return Some(Change::Mute(true)),
        "unmute" => return Some(Change::Mute(false)),
        _ => {}
    }
    if let Some(number) = value.strip_suffix("dB") {
        let decibels: f32 = number.trim().parse().ok()?;
        return decibels.is_finite().then_some(Change::Decibels(decibels));
    }
    let number = value.strip_suffix('%')?.trim();
    let part = number.parse::<f64>().ok().filter(|number| number.is_finite())? / 100.0;
    Some(if number.starts_with(['+', '-']) { Change::By(part) } else { Change::Level(part) })
}

fn as_text(volume: &Volume) -> String {
    let decibels =
        volume.decibels.map(|decibels| format!(" ({decibels:.2} dB)")).unwrap_or_default();
    let muted = if volume.muted == Some(true) { ", muted" } else { "" };
    format!("{}: {:.0} %{decibels}{muted}\n", volume.control, volume.level * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_a_percentage_a_change_or_decibels() {
        for (value, expected) in [
            ("65%", Change::Level(0.65)),
            ("+5%", Change::By(0.05)),
            ("-5%", Change::By(-0.05)),
            ("-12dB", Change::Decibels(-12.0)),
            ("mute", Change::Mute(true)),
            ("unmute", Change::Mute(false)),
        ] {
            assert_eq!(change(value), Some(expected), "{value}");
        }
        for value in ["65", "loud", "%", "dB", "nan%", "infdB"] {
            assert!(change(value).is_none(), "{value}");
        }
    }

    #[test]
    fn only_what_the_mixer_knows_is_shown() {
        let volume = Volume {
            control: "Master".into(),
            level: 0.648,
            decibels: Some(-26.0),
            muted: Some(true),
        };
        assert_eq!(as_text(&volume), "Master: 65 % (-26.00 dB), muted\n");
        let bare = Volume { decibels: None, muted: None, ..volume };
        assert_eq!(as_text(&bare), "Master: 65 %\n");
    }
}
