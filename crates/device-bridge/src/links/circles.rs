//! Links that lead from a device back to itself through others. What is heard there would be heard
//! again and again, louder each time. Pure.

use std::collections::{BTreeMap, BTreeSet};

use client::stream::{Direction, StreamStatus};

/// Name of the device that drives.
pub(super) const DRIVER: &str = "system";

/// What the programs of links are called.
const PROGRAMS: [&str; 3] = ["consort loopback", "consort remap", "consort combined"];

/// From where to where links lead, by names of devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wiring<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> Wiring<'a> {
    /// Finds the links among the streams of all programs: a link has a monitor and a stream that
    /// plays, of one name.
    pub(super) fn of(streams: &'a [StreamStatus]) -> Self {
        let device = |stream: &'a StreamStatus| stream.device.as_deref().unwrap_or(DRIVER);
        let link = |stream: &'a StreamStatus| (stream.process, &*stream.program, &*stream.name);
        let of_links = |direction: Direction| {
            let all = streams.iter().filter(move |stream| stream.direction == direction);
            all.filter(|stream| PROGRAMS.contains(&&*stream.program))
        };
        let mut wiring = Self::default();
        for source in of_links(Direction::Monitor) {
            for sink in of_links(Direction::Playback).filter(|sink| link(sink) == link(source)) {
                wiring.0.entry(device(source)).or_default().insert(device(sink));
            }
        }
        wiring
    }

    /// Returns the devices on a shortest way back to `from` through a link from there to `to`: both
    /// first, and `from` again at the end. `None`: there is no way back.
    pub(super) fn circle(&self, from: &'a str, to: &'a str) -> Option<Vec<&'a str>> {
        let mut ways = BTreeMap::from([(to, vec![from, to])]);
        let mut next = vec![to];
        while !next.is_empty() && !ways.contains_key(from) {
            let mut further = Vec::new();
            for device in next {
                for other in self.0.get(device).into_iter().flatten().copied() {
                    if !ways.contains_key(other) {
                        let way = ways.get(device).into_iter().flatten().copied();
                        ways.insert(other, way.chain([other]).collect());
                        further.push(other);
                    }
                }
            }
            next = further;
        }
        ways.remove(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(program: &str, name: &str, device: &str, direction: Direction) -> StreamStatus {
        StreamStatus {
            stream: 1,
            program: program.into(),
            name: name.into(),
            process: 7,
            device: (device != DRIVER).then(|| device.into()),
            wanted: None,
            direction,
            plays: false,
            rendered_us: 0,
            depth_frames: 1,
            missed_frames: 0,
            volume: client::stream::Volume::default(),
            volume_sources: Default::default(),
        }
    }

    fn link(from: &str, to: &str) -> [StreamStatus; 2] {
        let name = format!("{from} to {to}");
        let of = |device: &str, direction| stream(PROGRAMS[0], &name, device, direction);
        [of(from, Direction::Monitor), of(to, Direction::Playback)]
    }

    #[test]
    fn a_circle_is_named_by_its_devices_in_the_order_of_the_sound() {
        let streams = [link("b", "c"), link("c", "system"), link("c", "d"), link("d", "x")];
        let streams = streams.concat();
        let wiring = Wiring::of(&streams);
        assert_eq!(wiring.circle("a", "b"), None);
        assert_eq!(wiring.circle("x", "b"), Some(vec!["x", "b", "c", "d", "x"]));
        assert_eq!(wiring.circle("system", "b"), Some(vec!["system", "b", "c", "system"]));
        assert_eq!(wiring.circle("a", "a"), Some(vec!["a", "a"]));
    }

    #[test]
    fn programs_that_record_and_play_are_no_links() {
        let ways = [("a", Direction::Monitor), ("b", Direction::Playback)];
        let streams =
            ways.map(|(device, direction)| stream("a program", "song", device, direction));
        assert_eq!(Wiring::of(&streams).circle("b", "a"), None);
        let mut streams = link("a", "b");
        streams[0].direction = Direction::Record;
        assert_eq!(Wiring::of(&streams).circle("b", "a"), None, "a microphone hears no device");
    }
}
