//! Packets in, packets out, on a device without sound.

mod absence;
mod admission;
mod behind;
mod cards;
mod confined;
mod desktop;
mod device_manager;
mod devices;
mod kept_sound;
mod modules;
mod playback;
mod recording;
mod roles;
mod samples;
mod server;
mod states;

use std::ffi::CString;

use pulseaudio::protocol::stream::BufferAttr;
use pulseaudio::protocol::{
    AuthParams, AuthReply, ChannelMap, Command, CommandReply, CreatePlaybackStreamReply,
    MAX_VERSION, PlaybackStreamParams, Prop, Props, ProtocolError, PulseError, SampleFormat,
    SampleSpec, SetClientNameReply, encode_command_message, read_ack_message, read_command_message,
    read_reply_message,
};

use super::silence::Silence;
use super::{Effect, FrontEnd, Machine, Origin, Way};
use crate::wire::FrameReader;

/// A front end, and what it has sent to each program.
struct Scene {
    front_end: FrontEnd<Silence>,
    now_ns: u64,
}

impl Scene {
    fn new() -> Self {
        let machine = Machine { runtime_directory: "/run/pulse".into(), ..Machine::default() };
        Self { front_end: FrontEnd::new(Silence::stereo(), machine), now_ns: 0 }
    }

    /// A connection of a program that is not confined.
    fn came(&mut self, origin: Origin) -> Option<u32> {
        let client = self.front_end.connected(origin)?;
        self.front_end.examined(client, None, 0);
        Some(client)
    }

    /// A connection of a program of this user.
    fn connected(&mut self, account: u32) -> Option<u32> {
        self.came(Origin { account, way: Way::OwnUser })
    }

    /// A program of this user that has been let in.
    fn admitted(&mut self) -> u32 {
        self.admitted_of(2)
    }

    fn admitted_of(&mut self, account: u32) -> u32 {
        let client = self.connected(account).expect("room");
        let auth = AuthParams { version: 35, ..AuthParams::default() };
        let reply: AuthReply = self.ask(client, &Command::Auth(auth)).expect("let in");
        assert_eq!((reply.version, reply.use_shm, reply.use_memfd), (35, false, false));
        let mut props = Props::new();
        props.set(Prop::ApplicationName, c"a program");
        let reply: SetClientNameReply =
            self.ask(client, &Command::SetClientName(props)).expect("named");
        assert_eq!(reply.client_id, client);
        client
    }

    /// Sends a packet; returns what is sent to this program, packet by packet.
    fn send(&mut self, client: u32, command: &Command) -> Vec<Vec<u8>> {
        let mut bytes = Vec::new();
        encode_command_message(&mut bytes, 7, command, MAX_VERSION).expect("a packet");
        self.send_bytes(client, &bytes);
        self.sent(client)
    }

    fn send_bytes(&mut self, client: u32, bytes: &[u8]) {
        let Self { front_end, now_ns } = self;
        let frames = FrameReader::<Vec<u8>>::default()
            .push(bytes, |frame| front_end.frame(client, frame, *now_ns));
        frames.expect("frames");
    }

    /// What has been sent to a program since the last time.
    fn sent(&mut self, to: u32) -> Vec<Vec<u8>> {
        let (own, others) = self.front_end.take_effects().into_iter().partition(|effect| {
            let (Effect::Send { client, .. }
            | Effect::Close { client }
            | Effect::Gather { client, .. }) = effect;
            *client == to
        });
        self.front_end.effects = others;
        let bytes = |effect| match effect {
            Effect::Send { bytes, .. } => Some(bytes),
            Effect::Close { .. } => Some(b"closed".to_vec()),
            Effect::Gather { .. } => None,
        };
        Vec::into_iter(own).filter_map(bytes).collect()
    }

    /// Sends a packet whose answer comes first.
    fn ask<R: CommandReply>(&mut self, client: u32, command: &Command) -> Result<R, PulseError> {
        let sent = self.send(client, command);
        let answer = sent.iter().find(|packet| is_answer(packet)).expect("an answer");
        answered(read_reply_message(&mut &answer[..], MAX_VERSION))
    }

    /// Sends a packet that is answered by its being done.
    fn tell(&mut self, client: u32, command: &Command) -> Result<(), PulseError> {
        let sent = self.send(client, command);
        let answer = sent.iter().find(|packet| is_answer(packet)).expect("an answer");
        answered(read_ack_message(&mut &answer[..]).map(|tag| (tag, ())))
    }

    /// A stream of 16-bit stereo at 48 kHz.
    fn stream(&mut self, client: u32) -> CreatePlaybackStreamReply {
        let stream = self.granted(client);
        self.front_end.begin_streams(self.now_ns);
        stream
    }

    /// One that has not begun yet.
    fn granted(&mut self, client: u32) -> CreatePlaybackStreamReply {
        self.ask(client, &Command::CreatePlaybackStream(params())).expect("a stream")
    }

    /// The events that a program was sent.
    fn events(&mut self, client: u32) -> Vec<Command> {
        let sent = self.sent(client);
        let read = |bytes: &Vec<u8>| read_command_message(&mut &bytes[..], MAX_VERSION);
        sent.iter().filter(|bytes| is_event(bytes)).map(|bytes| read(bytes).unwrap().1).collect()
    }
}

fn is_answer(packet: &[u8]) -> bool {
    // Samples have a channel.
    packet[4..8] == [0xff; 4] && !is_event(packet)
}

fn is_event(packet: &[u8]) -> bool {
    // A packet's tag follows its descriptor and its command.
    packet[4..8] == [0xff; 4] && packet.get(26..30) == Some(&[0xff; 4])
}

fn answered<R>(reply: Result<(u32, R), ProtocolError>) -> Result<R, PulseError> {
    match reply {
        Ok((tag, reply)) => {
            assert_eq!(tag, 7);
            Ok(reply)
        }
        Err(ProtocolError::ServerError(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

fn params() -> PlaybackStreamParams {
    let format = SampleFormat::S16Le;
    PlaybackStreamParams {
        sample_spec: SampleSpec { format, channels: 2, sample_rate: 48_000 },
        channel_map: ChannelMap::stereo(),
        buffer_attr: BufferAttr::default(),
        ..PlaybackStreamParams::default()
    }
}

fn text(text: &str) -> CString {
    CString::new(text).expect("text")
}
