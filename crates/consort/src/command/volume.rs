//! `consort volume`, `mute` and `unmute`: how loud streams and the device are.

mod card;
mod level;
pub(super) mod target;

use std::process::ExitCode;

use clap::Args;
use cli::{UsageError, output};
use client::Observer;
use client::stream::{DeviceVolume, FurtherDevice, StreamDevice, StreamStatus, Volume};

use self::level::Change;
use self::target::Target;

/// Show or set how loud a stream, the device or the sound card plays
///
/// A stream is named by its number, or by its program or how that begins: then all of the
/// program's streams are meant. 'device' is all that leaves the server's device, whatever it is,
/// and 'device:NAME' all that leaves another one (`consort device add null`). These volumes are
/// factors in the server: 100% or 0dB changes no sample. A device has one for each of its channels,
/// all of which a value sets. Without a name, a value is for the card's own mixer.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort volume
  consort volume 3 0.5
  consort volume firefox -6dB
  consort volume firefox +3dB
  consort volume device 50%
  consort volume device:null 50%
  consort volume device -5%
  consort volume 65%
  consort volume --card hw:USB 80%

Values:
  0.5, 50%, -6dB, 3dB   a volume
  +0.1, -0.1, +5%, -5%  more or less of it
  +3dB                  louder by that
  mute, unmute          of a card; for streams and the device see `consort mute`")]
pub(crate) struct SetVolume {
    /// A stream, 'device', or a value for the card's mixer [default: show everything]
    #[arg(allow_hyphen_values = true)]
    stream: Option<String>,
    /// The volume, or a change of it [default: show it]
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// The card whose mixer is meant [default: the one the server plays on]
    #[arg(long, value_name = "NAME")]
    card: Option<String>,
}

/// Silence a stream, all streams of a program, or the device
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort mute firefox
  consort mute 3
  consort mute device")]
pub(crate) struct Mute {
    /// Number of a stream, name of a program or how it begins, 'device', or 'device:NAME'
    stream: String,
}

/// Let a stream, all streams of a program, or the device be heard again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort unmute firefox
  consort unmute device")]
pub(crate) struct Unmute {
    /// Number of a stream, name of a program or how it begins, 'device', or 'device:NAME'
    stream: String,
}

impl SetVolume {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let Self { stream, value, card } = self;
        let text = match (stream, value) {
            (Some(name), Some(_)) if card.is_some() => {
                return Err(UsageError(format!(
                    "'{name}' is not a volume: --card takes 65%, +5%, -5%, -12dB, mute or unmute"
                ))
                .into());
            }
            (Some(name), Some(value)) => changed(server, &name, Change::Level(value.parse()?))?,
            (Some(value), None) => match (card::change(&value), card) {
                (Some(change), card) => card::change_and_show(server, card, &[change])?,
                (None, Some(_)) => {
                    return Err(UsageError(format!(
                        "'{value}' is not a volume: write 65%, +5%, -5%, -12dB, mute or unmute"
                    ))
                    .into());
                }
                (None, None) => shown(&Found::read(server)?, &value)?,
            },
            (None, _) if card.is_some() => card::change_and_show(server, card, &[])?,
            (None, _) => everything(server)?,
        };
        output::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Mute {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        mute(server, &self.stream, true)
    }
}

impl Unmute {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        mute(server, &self.stream, false)
    }
}

fn mute(server: &str, name: &str, muted: bool) -> anyhow::Result<ExitCode> {
    output::print(&changed(server, name, Change::Muted(muted))?)?;
    Ok(ExitCode::SUCCESS)
}

/// The streams and the devices of a server.
struct Found {
    observer: Observer,
    streams: Vec<StreamStatus>,
    device: StreamDevice,
    further: Vec<FurtherDevice>,
}

impl Found {
    fn read(server: &str) -> anyhow::Result<Self> {
        let observer = Observer::open(Some(server))?;
        let (streams, device) = (observer.streams()?, observer.stream_device()?);
        let further = observer.further_devices()?;
        Ok(Self { observer, streams, device, further })
    }
}

/// Changes the volume of everything that `name` names; returns the new volumes as text.
fn changed(server: &str, name: &str, change: Change) -> anyhow::Result<String> {
    let Found { observer, streams, device, further } = Found::read(server)?;
    let set = |name, before| -> anyhow::Result<DeviceVolume> {
        let (gains, muted) = change.of_device(before)?;
        Ok(observer.set_device_volume(name, gains, muted)?)
    };
    match target::find(&streams, &further, name)? {
        Target::Device => Ok(about_driver(set(None, device.volume)?, &device)),
        Target::Further(device) => {
            Ok(about_further(set(Some(&device.name), device.volume)?, device))
        }
        Target::Streams(named) => named
            .into_iter()
            .map(|stream| {
                let (gain, muted) = change.of_stream(stream.volume)?;
                Ok(about_stream(observer.set_volume(stream.stream, gain, muted)?, stream))
            })
            .collect(),
    }
}

fn shown(found: &Found, name: &str) -> anyhow::Result<String> {
    Ok(match target::find(&found.streams, &found.further, name)? {
        Target::Device => about_driver(found.device.volume, &found.device),
        Target::Further(device) => about_further(device.volume, device),
        Target::Streams(named) => {
            named.into_iter().map(|stream| about_stream(stream.volume, stream)).collect()
        }
    })
}

/// Every volume that there is: the card's, if the server plays on one that has a mixer.
fn everything(server: &str) -> anyhow::Result<String> {
    let found = Found::read(server)?;
    let streams = found.streams.iter().map(|stream| about_stream(stream.volume, stream));
    // One that only captures has no volume.
    let further = found.further.iter().filter(|device| device.channels > 0);
    let further = further.map(|device| about_further(device.volume, device));
    let mut text = about_driver(found.device.volume, &found.device);
    text.extend(further.chain(streams));
    if let Ok(card) = card::card_of(&found.observer.status()?.driver)
        && let Ok(mixer) = card::change_and_show(server, Some(card.clone()), &[])
    {
        text += &format!("card {card}, {mixer}");
    }
    Ok(text)
}

fn about_stream(volume: Volume, stream: &StreamStatus) -> String {
    let StreamStatus { stream, program, name, .. } = stream;
    format!("{stream}: {program}: {name}: {volume}\n")
}

fn about_driver(volume: DeviceVolume, device: &StreamDevice) -> String {
    format!("device: {}\n", volume.as_text(device.channels))
}

fn about_further(volume: DeviceVolume, device: &FurtherDevice) -> String {
    format!("device:{}: {}\n", device.name, volume.as_text(device.channels))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn a_negative_volume_is_not_taken_for_an_option() {
        #[derive(Debug, clap::Parser)]
        struct Alone {
            #[command(flatten)]
            volume: SetVolume,
        }
        for (words, stream, value, card) in [
            ("volume -5%", Some("-5%"), None, None),
            ("volume -- -12dB", Some("-12dB"), None, None),
            ("volume -12dB --card hw:USB", Some("-12dB"), None, Some("hw:USB")),
            ("volume --card hw:USB -5%", Some("-5%"), None, Some("hw:USB")),
            ("volume --card hw:USB", None, None, Some("hw:USB")),
            ("volume firefox -6dB", Some("firefox"), Some("-6dB"), None),
            ("volume 3 -0.5", Some("3"), Some("-0.5"), None),
        ] {
            let SetVolume { stream: name, value: found, card: of } =
                Alone::try_parse_from(words.split(' '))
                    .unwrap_or_else(|error| panic!("{words}: {error}"))
                    .volume;
            let all = (name.as_deref(), found.as_deref(), of.as_deref());
            assert_eq!(all, (stream, value, card), "{words}");
        }
    }
}
