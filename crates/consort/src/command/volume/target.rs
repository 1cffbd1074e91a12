//! Which streams a name on the command line means.

use anyhow::{anyhow, bail};
use client::stream::{FurtherDevice, StreamStatus};

/// What is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::command) enum Target<'a> {
    /// All that leaves the server's own device.
    Device,
    /// All that leaves another one.
    Further(&'a FurtherDevice),
    /// One stream, or all of one program.
    Streams(Vec<&'a StreamStatus>),
}

/// Finds the stream of this number, the streams of the program of this name, or the device after
/// the colon of `device:NAME`. How a program's name begins is enough, in capitals or not, if no
/// other program's name begins like that.
pub(in crate::command) fn find<'a>(
    streams: &'a [StreamStatus],
    further: &'a [FurtherDevice],
    name: &str,
) -> anyhow::Result<Target<'a>> {
    if name == "device" {
        return Ok(Target::Device);
    }
    if let Some(name) = name.strip_prefix("device:") {
        let found = further.iter().find(|device| device.name == name).map(Target::Further);
        return found.ok_or_else(|| {
            anyhow!("there is no device '{name}' beside the server's own: see `consort volume`")
        });
    }
    if let Ok(number) = name.parse::<u32>() {
        let stream = streams.iter().find(|stream| stream.stream == number);
        return stream
            .map(|stream| Target::Streams(vec![stream]))
            .ok_or_else(|| anyhow!("there is no stream {number}: `consort volume` lists them"));
    }
    let wanted = name.to_lowercase();
    let program = |stream: &StreamStatus| stream.program.to_lowercase();
    let exact: Vec<_> = streams.iter().filter(|stream| program(stream) == wanted).collect();
    if !exact.is_empty() {
        return Ok(Target::Streams(exact));
    }
    let named: Vec<_> =
        streams.iter().filter(|stream| program(stream).starts_with(&wanted)).collect();
    let mut programs: Vec<&str> = named.iter().map(|stream| stream.program.as_str()).collect();
    programs.sort_unstable();
    programs.dedup();
    match programs.as_slice() {
        [] => bail!("no program '{name}' has a stream: `consort volume` lists them"),
        [_] => Ok(Target::Streams(named)),
        several => bail!("'{name}' may be {}: write more of it", several.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use client::stream::{DeviceState, DeviceVolume, Direction, Volume};

    use super::*;

    fn stream(stream: u32, program: &str) -> StreamStatus {
        StreamStatus {
            stream,
            program: program.into(),
            name: "song".into(),
            process: 1,
            device: None,
            wanted: None,
            direction: Direction::Playback,
            plays: true,
            rendered_us: 0,
            depth_frames: 1,
            missed_frames: 0,
            volume: Volume::default(),
            volume_sources: Default::default(),
        }
    }

    #[test]
    fn a_stream_is_found_by_number_and_by_the_beginning_of_its_program() {
        let all = [
            stream(1, "Firefox"),
            stream(2, "mpv"),
            stream(5, "Firefox"),
            stream(6, "mpv 2"),
            stream(7, "5 bells"),
        ];
        let headphones = FurtherDevice {
            name: "headphones".into(),
            number: 1,
            sample_rate_hz: 48_000,
            channels: 2,
            captured: 0,
            card: None,
            why_away: None,
            wake_ups: 0,
            lost_frames: 0,
            wake_up_rate: Default::default(),
            state: DeviceState::Parked,
            volume: DeviceVolume::default(),
        };
        let further = [headphones];
        let find = |name: &str| find(&all, &further, name);
        let numbers = |name: &str| match find(name).unwrap() {
            Target::Device | Target::Further(_) => vec![],
            Target::Streams(named) => named.iter().map(|stream| stream.stream).collect(),
        };
        assert_eq!(numbers("2"), [2]);
        assert_eq!(numbers("fire"), [1, 5], "all of a program");
        assert_eq!(numbers("MPV"), [2], "a whole name comes before a beginning");
        assert_eq!(numbers("5"), [5], "a number is a stream's");
        assert_eq!(numbers("5 b"), [7]);
        assert_eq!(find("device").unwrap(), Target::Device);
        assert_eq!(find("device:headphones").unwrap(), Target::Further(&further[0]));
        for (name, words) in [
            ("9", "no stream 9"),
            ("vlc", "no program 'vlc'"),
            ("m", "mpv or mpv 2"),
            ("device:head", "no device 'head'"),
        ] {
            let error = find(name).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
