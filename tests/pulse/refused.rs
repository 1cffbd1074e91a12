//! Requests that are refused: about what is not there, and with values that are none.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use crate::Scene;
use crate::bad_input::{auth, connect, frame, packet, read_to_end};

/// No such entity, in the codes of PulseAudio's protocol.
const NO_ENTITY: u8 = 5;
const INVALID: u8 = 3;
const PROTOCOL: u8 = 7;
const MODULE: u8 = 14;
const TOO_LARGE: u8 = 18;
const NOT_SUPPORTED: u8 = 19;
const NO_EXTENSION: u8 = 21;

/// An index and a channel that nothing has, and the index that stands for none.
const UNKNOWN: u32 = 9999;
const NO_INDEX: u32 = u32::MAX;

/// A request: what it is about, its command, its values, and the error that answers it.
type Refused = (&'static str, u32, Vec<u8>, u8);

fn word(value: u32) -> Vec<u8> {
    [b"L", &value.to_be_bytes()[..]].concat()
}

fn words<const COUNT: usize>(values: [u32; COUNT]) -> Vec<u8> {
    values.map(word).concat()
}

fn text(value: &str) -> Vec<u8> {
    [b"t", value.as_bytes(), b"\0"].concat()
}

fn volume(channels: &[u32]) -> Vec<u8> {
    let count = u8::try_from(channels.len()).expect("few");
    let each = channels.iter().flat_map(|volume| volume.to_be_bytes());
    [&[b'v', count][..], &each.collect::<Vec<u8>>()].concat()
}

/// A device that is not there, by its index and by its name, and one that is named by both; each
/// with the error that answers it.
fn devices() -> [(Vec<u8>, u8); 3] {
    [
        ([&word(UNKNOWN)[..], b"N"].concat(), NO_ENTITY),
        ([word(NO_INDEX), text("none")].concat(), NO_ENTITY),
        ([word(0), text("consort")].concat(), INVALID),
    ]
}

/// What a request says about a stream or a device of this index, behind it.
fn about(index: u32, values: &[u8]) -> Vec<u8> {
    [&word(index), values].concat()
}

/// Requests about streams, programs, samples and modules that are not there.
fn about_nothing() -> Vec<Refused> {
    const TIME: &[u8] = b"T\0\0\0\0\0\0\0\0";
    let mut all = Vec::new();
    let mut add = |commands: &[(&'static str, u32)], values: &[u8], error: u8| {
        all.extend(
            commands.iter().map(|(what, command)| (*what, *command, about(UNKNOWN, values), error)),
        );
    };
    let alone = [
        ("delete a stream", 4),
        ("delete a recording", 6),
        ("drain a stream", 12),
        ("delete an upload", 16),
        ("finish an upload", 17),
        ("a module", 25),
        ("a client", 27),
        ("a stream", 29),
        ("a recording", 31),
        ("flush a stream", 42),
        ("trigger a stream", 43),
        ("end a client", 48),
        ("end a stream", 49),
        ("end a recording", 50),
        ("unload a module", 52),
        ("flush a recording", 59),
        ("prebuffer a stream", 60),
    ];
    add(&alone, b"", NO_ENTITY);
    add(&[("a stream's times", 14), ("a recording's times", 57)], TIME, NO_ENTITY);
    let flagged = [
        ("pause a stream", 41),
        ("pause a recording", 58),
        ("mute a stream", 69),
        ("mute a recording", 99),
    ];
    add(&flagged, b"1", NO_ENTITY);
    add(&[("rename a stream", 46), ("rename a recording", 47)], b"tname\0", NO_ENTITY);
    let full = volume(&[0x1_0000; 2]);
    add(&[("a stream's volume", 37), ("a recording's volume", 98)], &full, NO_ENTITY);
    add(&[("a stream's rate", 74), ("a recording's rate", 75)], &word(44_100), NO_ENTITY);
    add(&[("a stream's buffer", 72)], &[&words([4096; 4])[..], b"00"].concat(), NO_ENTITY);
    add(&[("a recording's buffer", 73)], &[&words([4096; 2])[..], b"00"].concat(), NO_ENTITY);
    let properties = [word(0), b"PN".to_vec()].concat();
    add(&[("a recording's properties", 80), ("a stream's properties", 81)], &properties, NO_ENTITY);
    let keys = b"tmedia.name\0N";
    add(&[("a recording without keys", 83), ("a stream without keys", 84)], keys, NO_ENTITY);
    for (device, error) in devices() {
        add(&[("move a stream", 67), ("move a recording", 68)], &device, error);
    }
    all
}

/// Requests about devices, cards, samples and names that are not there.
fn about_no_device() -> Vec<Refused> {
    let mut all = Vec::new();
    for (device, error) in devices() {
        let mut add = |commands: &[(&'static str, u32)], values: &[u8]| {
            all.extend(
                commands
                    .iter()
                    .map(|(what, command)| (*what, *command, [&device, values].concat(), error)),
            );
        };
        add(&[("a sink", 21), ("a source", 23), ("a card", 88)], b"");
        add(&[("a sink's volume", 36), ("a source's volume", 38)], &volume(&[0; 2]));
        let flagged = [("mute a sink", 39), ("mute a source", 40)];
        add(&flagged, b"1");
        add(&[("suspend a sink", 70), ("suspend a source", 71)], b"1");
        add(&[("a card's profile", 90)], b"toff\0");
        add(&[("a sink's port", 96), ("a source's port", 97)], b"tport\0");
        add(&[("a card's latency", 100)], b"tport\0r\0\0\0\0\0\0\0\x09");
    }
    let named = [
        ("look up a sink", 10),
        ("look up a source", 11),
        ("remove a sample", 19),
        ("the default sink", 44),
        ("the default source", 45),
    ];
    all.extend(named.map(|(what, command)| (what, command, text("none"), NO_ENTITY)));
    let sample = [&word(NO_INDEX)[..], b"N", &word(0x1_0000), &text("none"), b"PN"].concat();
    all.push(("play a sample", 18, sample, NO_ENTITY));
    all.push(("a sample", 33, [&word(UNKNOWN)[..], b"N"].concat(), NO_ENTITY));
    all
}

/// Values that are none, for what is there: the sink `consort` is 0.
fn with_nonsense() -> Vec<Refused> {
    const TOO_LOUD: u32 = u32::MAX / 2 + 1;
    let sink = |values: Vec<u8>| [&word(0)[..], b"N", &values].concat();
    let mut all = vec![
        ("no volume", 36, sink(volume(&[])), PROTOCOL),
        ("a volume that is none", 36, sink(volume(&[TOO_LOUD; 2])), INVALID),
        ("volumes of 33 channels", 36, sink(volume(&[0; 33])), PROTOCOL),
        ("volumes that are cut short", 36, sink(b"v\x02\0\0\0\0".to_vec()), PROTOCOL),
        ("a flag that is a number", 39, sink(word(1)), PROTOCOL),
        ("a text without an end", 10, b"tconsort".to_vec(), PROTOCOL),
        ("a value too many", 20, word(0), PROTOCOL),
        ("a tag that is none", 21, b"?".to_vec(), PROTOCOL),
        ("a module that is none", 51, [text("module-none"), text("")].concat(), MODULE),
        ("a module without a name", 51, b"NN".to_vec(), PROTOCOL),
        ("an extension of no module", 87, [word(NO_INDEX), text("none")].concat(), NO_EXTENSION),
    ];
    // What once there was to subscribe to, and what there never was.
    all.extend(
        [0x100, 0x400, u32::MAX].map(|kinds| ("no kind of event", 35, word(kinds), INVALID)),
    );
    // What servers tell programs.
    all.push(("what servers ask for", 61, words([UNKNOWN; 2]), NOT_SUPPORTED));
    all.extend(
        [62, 63, 64, 66, 76, 78, 86]
            .map(|command| ("what only servers say", command, words([UNKNOWN; 2]), PROTOCOL)),
    );
    all
}

/// A format, a map and a device, of a stream that is refused.
fn opened(
    what: &'static str,
    (format, map): (&[u8], &[u8]),
    device: &[u8],
    error: u8,
) -> [Refused; 2] {
    let shape = [b"a", format, b"m", map, device].concat();
    let attributes = [&word(NO_INDEX)[..], b"1", &words([NO_INDEX; 3])].concat();
    let played = [&shape[..], &attributes, &word(0), &volume(&[0x1_0000; 2])].concat();
    let played = [&played[..], b"000000000", b"PN", b"0000000", b"B\0"].concat();
    let recorded = [&shape[..], &word(NO_INDEX), b"1", &word(NO_INDEX), b"000000000"].concat();
    let recorded = [&recorded[..], b"PN", &word(NO_INDEX), b"000", b"B\0"].concat();
    let recorded = [&recorded[..], &volume(&[0x1_0000; 2]), b"00000"].concat();
    [(what, 3, played, error), (what, 5, recorded, error)]
}

/// Streams of formats that are none, and at devices that are not there.
fn streams_of_nothing() -> Vec<Refused> {
    const STEREO: &[u8] = b"\x02\x01\x02";
    // 16-bit stereo at 48 kHz.
    const FORMAT: &[u8] = b"\x03\x02\0\0\xbb\x80";
    let default = [&word(NO_INDEX)[..], b"N"].concat();
    let mut all = Vec::new();
    for (what, format, map, error) in [
        ("an unknown format", &b"\xc8\x02\0\0\xbb\x80"[..], STEREO, PROTOCOL),
        ("no channels", b"\x03\x00\0\0\xbb\x80", b"\x00", INVALID),
        ("no rate", b"\x03\x02\0\0\0\0", STEREO, INVALID),
        ("too high a rate", b"\x03\x02\xff\xff\xff\xff", STEREO, INVALID),
        ("33 channels", b"\x03\x21\0\0\xbb\x80", STEREO, INVALID),
        ("a map for one channel", FORMAT, b"\x01\x00", INVALID),
        ("positions that are none", FORMAT, b"\x02\xfe\xfe", PROTOCOL),
    ] {
        all.extend(opened(what, (format, map), &default, error));
    }
    for (device, error) in devices() {
        all.extend(opened("an unknown device", (FORMAT, STEREO), &device, error));
    }
    let upload = |format: &[u8], map: &[u8], bytes: u32| {
        [&text("sample")[..], b"a", format, b"m", map, &word(bytes), b"PN"].concat()
    };
    all.push(("upload nothing", 15, upload(FORMAT, STEREO, 0), INVALID));
    all.push(("upload no whole frames", 15, upload(FORMAT, STEREO, 6), INVALID));
    all.push(("upload too much", 15, upload(FORMAT, STEREO, 0xffff_fffc), TOO_LARGE));
    all
}

/// Sends a packet; returns the error that answers it, if it is one.
fn asked(socket: &mut UnixStream, packet: &[u8]) -> Option<u8> {
    socket.write_all(packet).expect("sent");
    loop {
        let mut head = [0; 20];
        socket.read_exact(&mut head).expect("an answer");
        let length = u32::from_be_bytes(*head.first_chunk().expect("a length"));
        let mut content = vec![0; length as usize];
        socket.read_exact(&mut content).expect("an answer");
        // Events answer nothing.
        if content[5..10] == *b"L\0\0\0\x07" {
            return (content[..5] == *b"L\0\0\0\0").then(|| *content.last().expect("an error"));
        }
    }
}

/// Samples of a stream's channel, for a place in it.
fn samples(channel: u32, offset: i64, seek: u8) -> Vec<u8> {
    let mut bytes = frame(4, channel, b"none");
    bytes[8..16].copy_from_slice(&offset.to_be_bytes());
    bytes[19] = seek;
    bytes
}

/// Sends all of these requests, each of which is refused, and samples for streams that are not
/// there, on one connection, which stays.
pub(crate) fn send_refused(scene: &Scene) {
    let mut socket = connect(scene);
    assert_eq!(asked(&mut socket, &auth()), None, "it is let in");
    let all = [about_nothing(), about_no_device(), with_nonsense(), streams_of_nothing()].concat();
    for (what, command, values, error) in all {
        let answer = asked(&mut socket, &packet(command, &values));
        assert_eq!(answer, Some(error), "{what}: {command} with {values:?}");
    }
    for channel in [0, 7, u32::MAX - 1] {
        for (offset, seek) in [(0, 0), (i64::MIN, 0), (i64::MAX, 1), (-1, 2), (5, 3)] {
            socket.write_all(&samples(channel, offset, seek)).expect("sent");
        }
    }
    assert_eq!(asked(&mut socket, &packet(20, b"")), None, "other requests are served");
    // There is no such way to seek: what follows would be guessed.
    socket.write_all(&samples(0, 0, 4)).expect("sent");
    read_to_end(socket);
}
