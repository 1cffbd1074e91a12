//! What a stream asks of the server that follows the one it was on: to be what it was.
//!
//! The next server knows nothing of it, and checks it like any other. What the program does not
//! know itself is on the page of the server that has gone ([`StreamState`]) and in its registry,
//! which stay mapped.

use proto::request::Request;
use proto::stream::{Direction, Gain, NewStream, StreamReply, StreamRequest, UNCONNECTED};
use rt::shm::StreamState;

use super::connection::{ask, set_volume};
use super::devices::{StreamDevice, device};
use super::opening::{Grant, open};
use super::server::StreamServer;
use crate::Error;
use crate::registry_view::RegistryView;
use crate::requests::Requests;

/// A connection of a stream's port: the number of its channel, and the name of the other port.
type Link = (usize, String);

/// Opens a stream on `server` as it was on the one that has `gone`, with the same device, volume
/// and connections. `state` is what that has published of it.
pub(super) fn open_again(
    server: &StreamServer,
    gone: &StreamServer,
    opened: &NewStream,
    state: Option<&StreamState>,
) -> Result<Grant, Error> {
    let new = match state {
        Some(state) => {
            NewStream { device: state.device.further().map(Into::into), ..opened.clone() }
        }
        None => opened.clone(),
    };
    let there = device(&server.requests, new.device.as_deref())?;
    check(&new, state.map(|state| state.sample_rate_hz), &there)?;
    let grant = open(&server.requests, new)?;
    let restored = restore(server, gone, &grant, state);
    if restored.is_err() {
        close(&server.requests, grant.stream);
    }
    restored.map(|()| grant)
}

/// Ends a stream that could not be taken back.
pub(super) fn close(requests: &Requests, stream: u32) {
    // Fails if the server has gone, and then nothing is left to be closed.
    let _ = ask(requests, StreamRequest::Close { stream });
}

/// Ends a stream that was granted and does not begin. A server that has not answered would not be
/// quicker to close it.
pub(super) fn close_after(requests: &Requests, stream: u32, error: &Error) {
    if !matches!(error, Error::Timeout { .. } | Error::ServerGone) {
        close(requests, stream);
    }
}

/// Makes the device obey the wishes of a stream.
pub(super) fn call(requests: &Requests, stream: u32) -> Result<(), Error> {
    match ask(requests, StreamRequest::Call { stream })? {
        StreamReply::Called => Ok(()),
        _ => Err(Error::OTHER_REPLY),
    }
}

/// Checks whether the frames that the program has, and will write, fit the device.
fn check(new: &NewStream, rate_hz: Option<u32>, device: &StreamDevice) -> Result<(), Error> {
    let device_hz = device.sample_rate_hz;
    if let Some(rate_hz) = rate_hz.filter(|rate_hz| *rate_hz != device_hz) {
        return Err(Error::OtherServer(format!(
            "its device has {device_hz} Hz, and the stream {rate_hz} Hz"
        )));
    }
    let there = if new.direction == Direction::Record { device.captured } else { device.channels };
    let of_device = new.channels.iter().filter(|channel| **channel != UNCONNECTED);
    let needed = of_device.max().map_or(0, |channel| channel.saturating_add(1));
    // A device without any may have some later: the server says why it has none.
    if there > 0 && needed > there {
        return Err(Error::OtherServer(format!(
            "its device has {there} of the {needed} channels that the stream needs"
        )));
    }
    Ok(())
}

/// Restores what a stream has before it begins, so that nothing else is heard of it.
fn restore(
    server: &StreamServer,
    gone: &StreamServer,
    grant: &Grant,
    state: Option<&StreamState>,
) -> Result<(), Error> {
    let Some(state) = state else { return Ok(()) };
    // Also if it is the default one: a server may keep another volume by the stream's name.
    if let Ok(gain) = Gain::new(state.gain) {
        set_volume(&server.requests, grant.stream, Some(gain), Some(state.muted))?;
    }
    if grant.ports.is_empty() || state.ports[0] == 0 {
        return Ok(());
    }
    let wanted = links_of_dead_server(gone.registry(), &state.ports);
    let registry = server.registry();
    let (connect, disconnect) = changes(&links(registry, &grant.ports), &wanted);
    for ((channel, other), connects) in disconnect
        .into_iter()
        .map(|link| (link, false))
        .chain(connect.into_iter().map(|link| (link, true)))
    {
        let port = grant.ports.get(channel).and_then(|port| registry.port(*port));
        let Some(own) = port.map(|port| port.name) else { continue };
        let (source, destination) = if grant.plays { (own, other) } else { (other, own) };
        let request = if connects {
            Request::Connect { source, destination }
        } else {
            Request::Disconnect { source, destination }
        };
        match server.requests.request(request) {
            // A port that is not there (yet), or that the program may not connect: then its owner
            // restores the connection, if that returns.
            Ok(()) | Err(Error::Refused(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn links(registry: RegistryView<'_>, ports: &[u32]) -> Vec<Link> {
    let of_port = |(channel, port): (usize, &u32)| {
        let others = registry.connections(*port).into_iter();
        others.filter_map(move |other| Some((channel, registry.port(other)?.name)))
    };
    ports.iter().enumerate().flat_map(of_port).collect()
}

fn links_of_dead_server(registry: RegistryView<'_>, ports: &[u32]) -> Vec<Link> {
    let of_port = |(channel, port): (usize, &u32)| {
        let others = registry.connections_of_dead_server(*port).into_iter();
        others.filter_map(move |(other, _)| {
            Some((channel, registry.port_of_dead_server(other)?.name))
        })
    };
    ports.iter().enumerate().flat_map(of_port).collect()
}

/// Returns the connections to be made and those to be removed. Pure.
fn changes(there: &[Link], wanted: &[Link]) -> (Vec<Link>, Vec<Link>) {
    let without = |all: &[Link], others: &[Link]| {
        all.iter().filter(|link| !others.contains(link)).cloned().collect()
    };
    (without(wanted, there), without(there, wanted))
}

#[cfg(test)]
mod tests {
    use proto::stream::{DeviceState, DeviceVolume, WakeUpRate};

    use super::*;

    #[test]
    fn a_device_of_another_rate_or_with_fewer_channels_is_refused_in_words() {
        let device = |sample_rate_hz, channels, captured| StreamDevice {
            sample_rate_hz,
            channels,
            captured,
            captures: true,
            wake_ups: 0,
            wake_up_rate: WakeUpRate::default(),
            lost_frames: 0,
            state: DeviceState::Parked,
            volume: DeviceVolume::default(),
        };
        let new = |direction, channels: &[u32]| NewStream {
            program: "player".into(),
            name: "song".into(),
            device: None,
            direction,
            channels: channels.to_vec(),
            depth_frames: 480,
            samples: 0,
            account: 0,
            lets_sleep: false,
            reopens: false,
        };
        let (plays, records) = (Direction::Playback, Direction::Record);
        for (direction, channels, there, expected) in [
            (plays, &[0, 1][..], device(48_000, 2, 0), None),
            (plays, &[1, 0], device(44_100, 2, 0), Some("has 44100 Hz, and the stream 48000 Hz")),
            (plays, &[0, 5], device(48_000, 2, 8), Some("has 2 of the 6 channels")),
            (plays, &[0, 1], device(48_000, 0, 0), None),
            (records, &[0, 1], device(48_000, 8, 1), Some("has 1 of the 2 channels")),
            (records, &[0, 1], device(48_000, 1, 2), None),
            (records, &[UNCONNECTED, 0], device(48_000, 1, 1), None),
            (Direction::Monitor, &[0, 1], device(48_000, 1, 2), Some("has 1 of the 2 channels")),
        ] {
            let answer = check(&new(direction, channels), Some(48_000), &there);
            let text = answer.map_err(|error| error.to_string());
            match expected {
                None => assert_eq!(text, Ok(()), "{channels:?} on {there:?}"),
                Some(words) => assert!(text.is_err_and(|text| text.contains(words)), "{words}"),
            }
        }
        let unknown = check(&new(plays, &[0]), None, &device(44_100, 2, 0));
        assert!(unknown.is_ok(), "a rate that its server had not published");
    }

    #[test]
    fn connections_are_made_and_removed_until_they_are_what_they_were() {
        let link = |channel, name: &str| (channel, name.to_owned());
        let there = [link(0, "system:playback_1"), link(1, "system:playback_2")];
        let wanted = [link(1, "system:playback_2"), link(1, "effect:in")];
        let (connect, disconnect) = changes(&there, &wanted);
        assert_eq!((connect, disconnect), (vec![wanted[1].clone()], vec![there[0].clone()]));
        assert_eq!(changes(&there, &there), (vec![], vec![]));
    }
}
