//! `consort volume`: the volume in the card's own mixer.

use std::process::ExitCode;

use alsa::{Change, Volume};
use anyhow::{Context, bail};
use clap::Args;
use cli::{UsageError, output};
use client::Observer;

/// Show or set how loud the sound card plays, by the card's own mixer
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort volume
  consort volume 65%
  consort volume -5%
  consort volume -12dB
  consort volume mute
  consort volume --card hw:USB 80%")]
pub(crate) struct SetVolume {
    /// 65%, +5%, -5%, -12dB, mute or unmute [default: show it]
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// The card [default: the one the server plays on]
    #[arg(long, value_name = "NAME")]
    card: Option<String>,
}

impl SetVolume {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let changes: Vec<Change> =
            self.value.iter().map(|value| change(value)).collect::<Result<_, _>>()?;
        let name = match self.card {
            Some(name) => name,
            None => card_of(&Observer::open(Some(server))?.status()?.driver)?,
        };
        let located = alsa::locate(&name).or_else(|| alsa::locate(&format!("hw:{name}")));
        let (card, _) = located.with_context(|| format!("there is no card '{name}'"))?;
        let volume = alsa::volume(card, &changes).with_context(|| format!("'{name}'"))?;
        output::print(&as_text(&volume))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The card in a driver's description; of two, the one that plays.
fn card_of(driver: &str) -> anyhow::Result<String> {
    let mut devices = driver.split_whitespace().filter(|word| alsa::locate(word).is_some());
    match devices.next_back() {
        Some(device) => Ok(device.to_owned()),
        None => bail!("the server does not play on a sound card ({driver}): name one with --card"),
    }
}

fn change(value: &str) -> Result<Change, UsageError> {
    let wrong = || {
        UsageError(format!("'{value}' is not a volume: write 65%, +5%, -5%, -12dB, mute or unmute"))
    };
    match value {
        "mute" => return Ok(Change::Mute(true)),
        "unmute" => return Ok(Change::Mute(false)),
        _ => {}
    }
    if let Some(number) = value.strip_suffix("dB") {
        let decibels: f32 = number.parse().map_err(|_| wrong())?;
        return if decibels.is_finite() { Ok(Change::Decibels(decibels)) } else { Err(wrong()) };
    }
    let number = value.strip_suffix('%').ok_or_else(wrong)?;
    let part =
        number.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(wrong)? / 100.0;
    Ok(if number.starts_with(['+', '-']) { Change::By(part) } else { Change::Level(part) })
}

fn as_text(volume: &Volume) -> String {
    let decibels =
        volume.decibels.map(|decibels| format!(" ({decibels:.2} dB)")).unwrap_or_default();
    let muted = if volume.muted == Some(true) { ", muted" } else { "" };
    format!("{}: {:.0} %{decibels}{muted}\n", volume.control, volume.level * 100.0)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

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
            assert_eq!(change(value), Ok(expected), "{value}");
        }
        for value in ["65", "loud", "%", "dB", "nan%", "infdB"] {
            assert!(change(value).is_err(), "{value}");
        }
    }

    #[test]
    fn a_negative_volume_is_not_taken_for_an_option() {
        #[derive(Debug, clap::Parser)]
        struct Alone {
            #[command(flatten)]
            volume: SetVolume,
        }
        for (words, value, card) in [
            ("volume -5%", Some("-5%"), None),
            ("volume -- -12dB", Some("-12dB"), None),
            ("volume -12dB --card hw:USB", Some("-12dB"), Some("hw:USB")),
            ("volume --card hw:USB -5%", Some("-5%"), Some("hw:USB")),
            ("volume --card hw:USB", None, Some("hw:USB")),
        ] {
            let SetVolume { value: found, card: of } = Alone::try_parse_from(words.split(' '))
                .unwrap_or_else(|error| panic!("{words}: {error}"))
                .volume;
            assert_eq!((found.as_deref(), of.as_deref()), (value, card), "{words}");
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
