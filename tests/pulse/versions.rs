//! Programs of earlier versions of the protocol, which know less of it: they are answered in their
//! own version, and heard.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use harness::{Sound, eventually, in_three_attempts};

use crate::bad_input::{connect, frame, packet};
use crate::{RATE_HZ, Scene, compare, ramps};

/// The first version that is served, those that brought something to streams or sinks, and the last
/// one before ours.
const VERSIONS: [u8; 10] = [13, 14, 15, 17, 18, 19, 21, 24, 30, 34];

const CREATE_PLAYBACK_STREAM: u32 = 3;
const AUTH: u32 = 8;
const SET_CLIENT_NAME: u32 = 9;
const DRAIN_PLAYBACK_STREAM: u32 = 12;
const GET_SINK_INFO_LIST: u32 = 22;
const GET_SINK_INPUT_INFO_LIST: u32 = 30;
const REPLY: u32 = 2;
const REQUEST: u32 = 61;

/// A program of a version, which has been let in.
struct OldProgram {
    version: u8,
    socket: UnixStream,
    /// Bytes that the server has asked for and has not been sent.
    asked_bytes: usize,
}

impl OldProgram {
    fn new(scene: &Scene, version: u8) -> Self {
        let mut program = Self { version, socket: connect(scene), asked_bytes: 0 };
        let auth = [b"L\0\0\0", &[version][..], b"x\0\0\x01\0", &[0; 256]].concat();
        let answer = program.ask(AUTH, &auth);
        assert_eq!(shape(&answer), "L");
        program.ask(SET_CLIENT_NAME, b"PN");
        program
    }

    /// Sends a request; returns the values of its reply.
    fn ask(&mut self, command: u32, values: &[u8]) -> Vec<u8> {
        self.socket.write_all(&packet(command, values)).expect("sent");
        loop {
            let (what, values) = self.next();
            if what == REPLY {
                return values;
            }
        }
    }

    /// The next packet: its command, and what is behind its tag. What is asked for is counted.
    fn next(&mut self) -> (u32, Vec<u8>) {
        let mut head = [0; 20];
        self.socket.read_exact(&mut head).expect("a packet");
        let mut content = vec![0; word(&head, 0) as usize];
        self.socket.read_exact(&mut content).expect("a packet");
        let command = word(&content, 1);
        assert_ne!(command, 0, "version {}: error {:?}", self.version, content.last());
        let values = content.split_off(10);
        if command == REQUEST {
            self.asked_bytes += word(&values, 6) as usize;
        }
        (command, values)
    }

    /// Opens a stream of 16-bit stereo at 48 kHz; returns the reply, and the stream's number.
    fn open(&mut self) -> (Vec<u8>, u32) {
        // With the usual buffer, and a volume of 100 %.
        const STREAM: &[u8] = b"a\x03\x02\0\0\xbb\x80m\x02\x01\x02L\xff\xff\xff\xffN\
            L\xff\xff\xff\xff0L\xff\xff\xff\xffL\xff\xff\xff\xffL\xff\xff\xff\xff\
            L\0\0\0\0v\x02\0\x01\0\0\0\x01\0\x00000000000PN";
        let mut values = STREAM.to_vec();
        for (since, further) in
            [(14, &b"10"[..]), (15, b"000"), (17, b"0"), (18, b"0"), (21, b"B\0")]
        {
            values.extend(if self.version >= since { further } else { b"" });
        }
        let reply = self.ask(CREATE_PLAYBACK_STREAM, &values);
        self.asked_bytes += word(&reply, 11) as usize;
        let stream = word(&reply, 1);
        (reply, stream)
    }

    /// Plays samples as they are asked for, to their end.
    fn play(&mut self, stream: u32, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.asked_bytes == 0 {
                self.next();
            }
            let (now, later) = bytes.split_at(self.asked_bytes.min(bytes.len()));
            self.socket.write_all(&frame(now.len() as u32, stream, now)).expect("sent");
            (bytes, self.asked_bytes) = (later, 0);
        }
        self.ask(DRAIN_PLAYBACK_STREAM, &[b"L", &stream.to_be_bytes()[..]].concat());
    }

    /// What is added to a shape since a version.
    fn since(&self, version: u8, further: &str) -> String {
        if self.version >= version { further.to_owned() } else { String::new() }
    }
}

/// The number at a place, in which the tag of a value is counted.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four"))
}

/// The tags of values in their order: `b` for a truth, `t` for a text or none, and nothing of what
/// is in properties.
fn shape(mut values: &[u8]) -> String {
    let mut shape = String::new();
    while let Some((tag, rest)) = values.split_first() {
        let length = match tag {
            b'L' | b'V' => 4,
            b'U' => 8,
            b'a' => 6,
            b'B' => 1,
            b'm' => 1 + usize::from(rest[0]),
            b'v' => 1 + 4 * usize::from(rest[0]),
            b't' => 1 + rest.iter().position(|byte| *byte == 0).expect("an end"),
            b'P' => properties_length(rest),
            b'N' | b'0' | b'1' | b'f' => 0,
            other => panic!("{other} is no tag, behind {shape}"),
        };
        shape.push(match tag {
            b'N' => 't',
            b'0' | b'1' => 'b',
            tag => char::from(*tag),
        });
        values = &rest[length..];
    }
    shape
}

/// Bytes of properties behind their tag, with their end.
fn properties_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while bytes[at] == b't' {
        // A name, the length of its value, and the value with the length once more.
        at += 1 + bytes[at..].iter().position(|byte| *byte == 0).expect("an end");
        at += 5 + 5 + word(bytes, at + 1) as usize;
    }
    assert_eq!(bytes[at], b'N', "the end of properties");
    at + 1
}

/// Samples of 16 bits.
fn bytes(sound: &Sound) -> Vec<u8> {
    let frames = sound.channels[0].iter().zip(&sound.channels[1]);
    let samples = frames.flat_map(|(left, right)| [*left, *right]);
    samples.flat_map(|sample| ((sample * 32_768.0) as i16).to_le_bytes()).collect()
}

#[test]
fn a_program_of_an_earlier_version_is_heard_sample_for_sample() {
    let sound = ramps(RATE_HZ as usize / 2);
    for version in VERSIONS {
        in_three_attempts(|| {
            let scene = Scene::new();
            let mut program = OldProgram::new(&scene, version);
            let (_, stream) = program.open();
            program.play(stream, &bytes(&sound));
            drop(program);
            let heard = compare(&scene.recorded(), &sound.channels);
            heard.map_err(|wrong| format!("version {version}: {wrong}"))
        });
    }
}

#[test]
fn a_program_of_an_earlier_version_is_answered_with_what_its_version_has() {
    let scene = Scene::new();
    for version in VERSIONS {
        let mut program = OldProgram::new(&scene, version);
        let (reply, _) = program.open();
        let format = program.since(21, "fBP");
        assert_eq!(shape(&reply), format!("LLLLLLLamLtbU{format}"), "{version}");
        let sinks = program.ask(GET_SINK_INFO_LIST, b"");
        let sink = ["LttamLvbLtUtLPU", &program.since(15, "VLLL"), &program.since(16, "Lt")];
        let formats = program.since(21, "BfBP");
        assert_eq!(shape(&sinks), sink.concat() + &formats, "{version}");
        let inputs = program.ask(GET_SINK_INPUT_INFO_LIST, b"");
        let input = ["LtLLLamvUUttbP", &program.since(19, "b"), &program.since(20, "bb"), &format];
        assert_eq!(shape(&inputs), input.concat(), "{version}");
        drop(program);
        eventually("it is forgotten", || {
            scene.pactl(&["list", "short", "sink-inputs"]).is_empty().then_some(())
        });
    }
}
