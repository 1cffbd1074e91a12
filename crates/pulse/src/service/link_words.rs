//! The command lines of the processes that pass frames on for modules: pure.

use std::ffi::OsString;
use std::path::Path;

use crate::output::{
    Heard, NewBell, NewLink, NewLoopback, NewPipe, NewRtpReceiver, NewRtpSender, NewSimple,
    NewTunnel,
};
use crate::remote::RemoteCookie;

/// The server's name of the device that drives.
const DRIVER: &str = "system";

/// Returns the arguments of `consort device serve`; `own`: where this front end listens.
pub(super) fn words(new: &NewLink, own: &Path) -> Vec<OsString> {
    match new {
        NewLink::TunnelSink(tunnel) => tunnel_words(tunnel, "tunnel-sink", "--from"),
        NewLink::TunnelSource(tunnel) => tunnel_words(tunnel, "tunnel-source", "--to"),
        NewLink::Simple(simple) => simple_words(simple, own),
        NewLink::RtpSender(sender) => sender_words(sender, own),
        NewLink::RtpReceiver(receiver) => receiver_words(receiver, own),
        NewLink::ZeroconfPublisher { port } => {
            vec![
                "zeroconf-publish".into(),
                own_peer(own),
                format!("--published-port={port}").into(),
            ]
        }
        NewLink::ZeroconfDiscoverer { latency_ms } => {
            let latency = latency_ms.map(|ms| format!("--latency={ms}").into());
            ["zeroconf-discover".into(), own_peer(own)].into_iter().chain(latency).collect()
        }
        NewLink::X11Bell(bell) => bell_words(bell, own),
        NewLink::Loopback(loopback) => loopback_words(loopback),
        NewLink::Processed(loopback, processing) => {
            let further = processing.words(DRIVER).into_iter().map(OsString::from);
            loopback_words(loopback).into_iter().chain(further).collect()
        }
        NewLink::PipeSink(pipe) => pipe_words(pipe, "pipe-sink", "--from", false),
        NewLink::PipeSource(pipe) => pipe_words(pipe, "pipe-source", "--to", true),
    }
}

/// Returns what is set in the environment of that process: the X server is found by it.
pub(super) fn environment(new: &NewLink) -> Vec<(&'static str, OsString)> {
    let NewLink::X11Bell(NewBell { display, authority, .. }) = new else { return Vec::new() };
    let display = display.as_ref().map(|display| ("DISPLAY", display.into()));
    let authority = authority.as_ref().map(|file| ("XAUTHORITY", file.into()));
    display.into_iter().chain(authority).collect()
}

fn bell_words(new: &NewBell, own: &Path) -> Vec<OsString> {
    let mut words =
        vec!["x11-bell".into(), own_peer(own), format!("--sample={}", new.sample).into()];
    words.extend(new.sink.iter().map(|name| format!("--peer-device={name}").into()));
    words
}

fn loopback_words(new: &NewLoopback) -> Vec<OsString> {
    let NewLoopback { from: Heard { device, captures }, from_map, via, to, mixed, latency_ms } =
        new;
    let named = |device: &Option<String>| device.clone().unwrap_or_else(|| DRIVER.into());
    let part = if *captures { ":capture" } else { "" };
    let mut words = vec![
        "loopback".to_owned(),
        format!("--from={}{part}", named(device)),
        format!("--from-positions={from_map}"),
        format!("--latency={latency_ms}"),
    ];
    words.extend(via.iter().map(|map| format!("--via-positions={map}")));
    words.extend(to.iter().map(|(device, _)| format!("--to={}", named(device))));
    words.extend(to.iter().map(|(_, map)| format!("--to-positions={map}")));
    words.extend((!mixed).then(|| "--unmixed".to_owned()));
    words.into_iter().map(OsString::from).collect()
}

fn pipe_words(new: &NewPipe, kind: &str, device: &str, states_rate: bool) -> Vec<OsString> {
    let mut file = OsString::from("--file=");
    file.push(&new.file);
    let mut words = vec![kind.to_owned()];
    words.push(format!("{device}={}", new.device));
    words.push(format!("--format={}", new.format));
    words.push(format!("--channels={}", new.channels));
    words.extend(states_rate.then(|| format!("--rate={}", new.rate_hz)));
    words.into_iter().map(OsString::from).chain(std::iter::once(file)).collect()
}

fn tunnel_words(new: &NewTunnel, kind: &str, device: &str) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![
        kind.into(),
        format!("{device}={}", new.device).into(),
        format!("--peer={}", new.server).into(),
        format!("--format={}", new.format).into(),
        format!("--positions={}", new.map).into(),
        format!("--latency={}", new.latency_ms).into(),
    ];
    words.extend(new.far_device.iter().map(|name| format!("--peer-device={name}").into()));
    words.extend(new.reconnect_ms.map(|ms| format!("--reconnect={ms}").into()));
    match &new.cookie {
        RemoteCookie::OfUser => {}
        RemoteCookie::File(file) => {
            let mut word = OsString::from("--peer-cookie=");
            word.push(file);
            words.push(word);
        }
        RemoteCookie::Zeros => words.push("--no-cookie".into()),
    }
    words
}

/// The argument that says where this front end listens.
fn own_peer(own: &Path) -> OsString {
    let mut peer = OsString::from("--peer=unix:");
    peer.push(own);
    peer
}

fn sender_words(new: &NewRtpSender, own: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![
        "rtp-send".into(),
        own_peer(own),
        format!("--group={}", new.to).into(),
        format!("--payload={}", new.payload).into(),
        format!("--hops={}", new.hops).into(),
        format!("--rate={}", new.rate_hz).into(),
        format!("--positions={}", new.map).into(),
    ];
    words.extend(new.loops.then(|| "--loops".into()));
    words.extend(new.source.iter().map(|name| format!("--peer-source={name}").into()));
    words.extend(new.from.iter().map(|address| format!("--local={address}").into()));
    words.extend(new.port.iter().map(|port| format!("--group-port={port}").into()));
    words.extend(new.name.iter().map(|name| format!("--session-name={name}").into()));
    words
}

fn receiver_words(new: &NewRtpReceiver, own: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![
        "rtp-receive".into(),
        own_peer(own),
        format!("--group={}", new.group).into(),
        format!("--packet-latency={}", new.latency_ms).into(),
    ];
    words.extend(new.sink.iter().map(|name| format!("--peer-device={name}").into()));
    words
}

fn simple_words(new: &NewSimple, own: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![
        "simple-protocol".into(),
        own_peer(own),
        format!("--listen={}", new.at).into(),
        format!("--format={}", new.format).into(),
        format!("--rate={}", new.rate_hz).into(),
        format!("--positions={}", new.map).into(),
    ];
    words.extend(new.plays.then(|| "--plays".into()));
    words.extend(new.records.then(|| "--records".into()));
    words.extend(new.sink.iter().map(|name| format!("--peer-device={name}").into()));
    words.extend(new.source.iter().map(|name| format!("--peer-source={name}").into()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processing::{NewEcho, NewPlugin, NewSpeex, Processing};

    #[test]
    fn a_process_is_given_all_that_its_link_is() {
        let stereo = "front-left,front-right".parse().expect("a map");
        let mono = "mono".parse().expect("a map");
        let loopback = NewLoopback {
            from: Heard { device: None, captures: true },
            from_map: mono,
            via: None,
            to: vec![(None, stereo), (Some("-other".into()), mono)],
            mixed: true,
            latency_ms: 50,
        };
        let own = Path::new("/run/native");
        let all = words(&NewLink::Loopback(loopback.clone()), own);
        assert_eq!(
            all,
            [
                "loopback",
                "--from=system:capture",
                "--from-positions=mono",
                "--latency=50",
                "--to=system",
                "--to=-other",
                "--to-positions=front-left,front-right",
                "--to-positions=mono",
            ]
        );
        let other = NewLoopback { via: Some(stereo), mixed: false, ..loopback.clone() };
        let all = words(&NewLink::Loopback(other), own);
        assert!(all.contains(&"--via-positions=front-left,front-right".into()));
        assert!(all.contains(&"--unmixed".into()));
        let processing = Processing::Ladspa(NewPlugin {
            plugin: "-a".into(),
            label: "b c".into(),
            control: Some(",1".into()),
            inputs: None,
            outputs: Some("Out".into()),
        });
        let processed = words(&NewLink::Processed(loopback.clone(), Box::new(processing)), own);
        let expected = ["--plugin=-a", "--label=b c", "--control=,1", "--plugin-outputs=Out"];
        assert_eq!(processed[processed.len() - 4..], expected);
        let speex = NewSpeex {
            filter_ms: 200,
            agc: false,
            denoise: true,
            suppress: true,
            suppress_db: Some(-40),
            suppress_active_db: None,
        };
        let echo = NewEcho {
            of: "-k".into(),
            of_map: mono,
            heard_on: (None, stereo),
            latency_ms: 100,
            speex: Some(speex),
            frame_ms: 20,
        };
        let link = NewLink::Processed(loopback, Box::new(Processing::Echo(echo)));
        let processed = words(&link, own);
        let expected = [
            "--echo-of=-k",
            "--echo-of-positions=mono",
            "--echo-heard-on=system",
            "--echo-heard-positions=front-left,front-right",
            "--echo-latency=100",
            "--echo-frame=20",
            "--echo-method=speex",
            "--echo-filter=200",
            "--echo-denoise",
            "--echo-suppress",
            "--echo-suppress-db=-40",
        ];
        assert_eq!(processed[processed.len() - expected.len()..], expected);
        let pipe = NewPipe {
            device: "a".into(),
            file: "-f".into(),
            format: "s16le".parse().expect("a format"),
            rate_hz: 8000,
            channels: 1,
        };
        let piped = words(&NewLink::PipeSource(pipe), own);
        let expected =
            ["pipe-source", "--to=a", "--format=s16le", "--channels=1", "--rate=8000", "--file=-f"];
        assert_eq!(piped, expected);
        let tunnel = NewTunnel {
            device: "-a".into(),
            server: "tcp:one".into(),
            far_device: Some("-b".into()),
            cookie: RemoteCookie::File("-c".into()),
            format: "s16le".parse().expect("a format"),
            map: mono,
            latency_ms: 50,
            reconnect_ms: Some(7),
        };
        let expected = [
            "tunnel-sink",
            "--from=-a",
            "--peer=tcp:one",
            "--format=s16le",
            "--positions=mono",
            "--latency=50",
            "--peer-device=-b",
            "--reconnect=7",
            "--peer-cookie=-c",
        ];
        assert_eq!(words(&NewLink::TunnelSink(tunnel.clone()), own), expected);
        let tunnel = NewTunnel { cookie: RemoteCookie::Zeros, ..tunnel };
        let source = words(&NewLink::TunnelSource(tunnel), own);
        assert_eq!(source.last(), Some(&"--no-cookie".into()));
        let simple = NewSimple {
            at: "[::1]:99".parse().expect("an address"),
            sink: None,
            source: Some("-s".into()),
            plays: true,
            records: true,
            format: "s16le".parse().expect("a format"),
            rate_hz: 8000,
            map: mono,
        };
        let expected = [
            "simple-protocol",
            "--peer=unix:/run/native",
            "--listen=[::1]:99",
            "--format=s16le",
            "--rate=8000",
            "--positions=mono",
            "--plays",
            "--records",
            "--peer-source=-s",
        ];
        assert_eq!(words(&NewLink::Simple(simple), own), expected);
        let sender = NewRtpSender {
            source: Some("-s".into()),
            from: Some([127, 0, 0, 1].into()),
            to: [224, 0, 0, 56].into(),
            port: Some(5004),
            payload: 640,
            hops: 2,
            loops: true,
            name: Some("-n".into()),
            rate_hz: 8000,
            map: mono,
        };
        let expected = [
            "rtp-send",
            "--peer=unix:/run/native",
            "--group=224.0.0.56",
            "--payload=640",
            "--hops=2",
            "--rate=8000",
            "--positions=mono",
            "--loops",
            "--peer-source=-s",
            "--local=127.0.0.1",
            "--group-port=5004",
            "--session-name=-n",
        ];
        assert_eq!(words(&NewLink::RtpSender(sender), own), expected);
        let (sink, group) = (Some("-k".into()), [224, 0, 0, 56].into());
        let receiver = NewRtpReceiver { sink, group, latency_ms: 500 };
        let expected = [
            "rtp-receive",
            "--peer=unix:/run/native",
            "--group=224.0.0.56",
            "--packet-latency=500",
            "--peer-device=-k",
        ];
        assert_eq!(words(&NewLink::RtpReceiver(receiver), own), expected);
        let publisher = words(&NewLink::ZeroconfPublisher { port: 7 }, own);
        assert_eq!(
            publisher,
            ["zeroconf-publish", "--peer=unix:/run/native", "--published-port=7"]
        );
        let latency_ms = Some(50);
        let discoverer = words(&NewLink::ZeroconfDiscoverer { latency_ms }, own);
        assert_eq!(discoverer, ["zeroconf-discover", "--peer=unix:/run/native", "--latency=50"]);
        let bell = NewLink::X11Bell(NewBell {
            sink: Some("-k".into()),
            sample: "-s".into(),
            display: Some(":7".into()),
            authority: Some("/run/a".into()),
        });
        let expected = ["x11-bell", "--peer=unix:/run/native", "--sample=-s", "--peer-device=-k"];
        assert_eq!(words(&bell, own), expected);
        let expected = [("DISPLAY", ":7".into()), ("XAUTHORITY", "/run/a".into())];
        assert_eq!(environment(&bell), expected);
    }
}
