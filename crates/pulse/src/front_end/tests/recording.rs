//! Streams that record, through packets.

use pulseaudio::protocol::stream::StreamFlags;
use pulseaudio::protocol::{
    ChannelVolume, CorkStreamParams, CreateRecordStreamReply, LatencyParams, LookupReply,
    RecordLatency, RecordStreamParams, SetDeviceMuteParams, SetDeviceVolumeParams,
    SetRecordStreamBufferAttrParams, SetRecordStreamBufferAttrReply, SetStreamMuteParams,
    SetStreamVolumeParams, SourceInfo, SourceOutputInfo, SubscriptionEvent,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType, SubscriptionMask,
    Volume,
};

use super::*;
use crate::front_end::silence::FRAMES_AT_ONCE;

pub(super) fn asked() -> RecordStreamParams {
    let format = SampleFormat::S16Le;
    RecordStreamParams {
        sample_spec: SampleSpec { format, channels: 2, sample_rate: 48_000 },
        channel_map: ChannelMap::stereo(),
        ..RecordStreamParams::default()
    }
}

impl Scene {
    fn recording(&mut self, client: u32, asked: RecordStreamParams) -> CreateRecordStreamReply {
        self.ask(client, &Command::CreateRecordStream(asked)).expect("a stream")
    }

    fn output(&mut self, client: u32, index: u32) -> SourceOutputInfo {
        self.ask(client, &Command::GetSourceOutputInfo(index)).expect("a stream")
    }

    /// Lets a look at all streams pass; returns the samples that are sent to a program, a piece for
    /// each frame.
    fn recorded(&mut self, client: u32, channel: u32) -> Vec<Vec<i16>> {
        self.now_ns += 10_000_000;
        self.front_end.sent_all(client);
        self.front_end.update(self.now_ns);
        let mut all = Vec::new();
        loop {
            let sent = self.sent(client);
            let frames = sent.iter().filter(|frame| frame[4..8] == channel.to_be_bytes());
            let (mut pieces, mut any) = (Vec::new(), false);
            for frame in frames {
                let (samples, _) = frame[20..].as_chunks::<2>();
                pieces.push(samples.iter().map(|sample| i16::from_le_bytes(*sample)).collect());
                any = true;
            }
            all.append(&mut pieces);
            if !any {
                return all;
            }
            self.front_end.sent_all(client);
        }
    }
}

const HALF: i16 = 1 << 14;
const QUARTER: i16 = -(1 << 13);

#[test]
fn what_is_recorded_is_sent_in_pieces_no_longer_than_a_fragment() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let buffer_attr = BufferAttr { fragment_size: 1000, ..BufferAttr::default() };
    let reply = scene.recording(client, RecordStreamParams { buffer_attr, ..asked() });
    assert_eq!((reply.buffer_attr.max_length, reply.buffer_attr.fragment_size), (4 << 20, 1000));
    assert_eq!((reply.stream_latency, reply.suspended), (0, false));
    assert_eq!(reply.sink_name.as_deref(), Some(c"consort.monitor"));
    let opened = &scene.front_end.devices_mut().recorded;
    assert_eq!((opened[0].program.as_str(), opened[0].kept_frames), ("a program", 24_000));
    // What there was at once, and more at the look.
    let pieces = scene.recorded(client, reply.channel);
    assert!(pieces.iter().all(|piece| piece.len() <= 500 && piece.len() % 2 == 0));
    let samples = pieces.concat();
    assert_eq!(samples.len() % (2 * FRAMES_AT_ONCE), 0);
    assert!(samples.chunks(2).all(|frame| frame == [HALF, QUARTER]));
}

#[test]
fn a_program_that_takes_nothing_has_what_it_was_granted_kept_and_no_more() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let buffer_attr = BufferAttr { max_length: 100_000, ..BufferAttr::default() };
    let reply = scene.recording(client, RecordStreamParams { buffer_attr, ..asked() });
    let mut sent = scene.sent(client).len();
    for _ in 0..1000 {
        scene.now_ns += 10_000_000;
        scene.front_end.update(scene.now_ns);
        sent += scene.sent(client).len();
    }
    assert_eq!(sent, 1, "the first piece waits in the connection");
    let shown = scene.output(client, reply.stream_index);
    assert_eq!(shown.buffer_latency, 100_000 / 1920 * 10_000, "whole looks");
    let now = std::time::SystemTime::UNIX_EPOCH;
    let latency = Command::GetRecordLatency(LatencyParams { channel: reply.channel, now });
    let times: RecordLatency = scene.ask(client, &latency).expect("an answer");
    assert_eq!(times.write_offset - times.read_offset, 100_000 / 1920 * 1920);
    scene.tell(client, &Command::FlushRecordStream(reply.channel)).expect("flushed");
    let times: RecordLatency = scene.ask(client, &latency).expect("an answer");
    assert!(times.write_offset - times.read_offset <= 1920, "{times:?}");
}

#[test]
fn a_corked_stream_records_nothing_until_it_is_uncorked() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let flags = StreamFlags { start_corked: true, ..StreamFlags::default() };
    let reply = scene.recording(client, RecordStreamParams { flags, ..asked() });
    assert_eq!(scene.recorded(client, reply.channel), Vec::<Vec<i16>>::new());
    assert!(scene.output(client, reply.stream_index).corked);
    let cork = |cork| Command::CorkRecordStream(CorkStreamParams { channel: reply.channel, cork });
    scene.tell(client, &cork(false)).expect("uncorked");
    assert!(!scene.recorded(client, reply.channel).is_empty());
    scene.tell(client, &cork(true)).expect("corked");
    scene.recorded(client, reply.channel);
    assert_eq!(scene.recorded(client, reply.channel), Vec::<Vec<i16>>::new());
}

#[test]
fn a_recording_that_makes_no_sense_is_refused() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let refused = |scene: &mut Scene, asked| {
        scene.tell(client, &Command::CreateRecordStream(asked)).expect_err("refused")
    };
    let channel_map = ChannelMap::mono();
    let mono = RecordStreamParams { channel_map, ..asked() };
    assert_eq!(refused(&mut scene, mono), PulseError::Invalid);
    let volumes = RecordStreamParams { cvolume: Some(ChannelVolume::norm(3)), ..asked() };
    assert_eq!(refused(&mut scene, volumes), PulseError::Invalid);
    for source_index in [1, 7] {
        let other = RecordStreamParams { source_index: Some(source_index), ..asked() };
        assert_eq!(refused(&mut scene, other), PulseError::NoEntity, "{source_index}");
    }
    let direct = RecordStreamParams { direct_on_input_index: Some(3), ..asked() };
    assert_eq!(refused(&mut scene, direct), PulseError::NoEntity);
    let playing = scene.stream(client).stream_index;
    scene.front_end.devices_mut().devices[0].format.captured = 1;
    scene.front_end.devices_changed(0);
    let (direct_on_input_index, source_index) = (Some(playing), Some(1));
    let direct = RecordStreamParams { direct_on_input_index, source_index, ..asked() };
    assert_eq!(refused(&mut scene, direct), PulseError::Invalid, "not the monitor of its sink");
    scene.front_end.devices_mut().devices[0].format.captured = 0;
    scene.front_end.devices_changed(0);
    scene.front_end.devices_mut().refuses = true;
    assert_eq!(refused(&mut scene, asked()), PulseError::AccessDenied, "by the server's policy");
    scene.front_end.devices_mut().refuses = false;
    // One plays already.
    for _ in 1..super::super::MAX_STREAMS_OF_ONE {
        scene.recording(client, asked());
    }
    assert_eq!(refused(&mut scene, asked()), PulseError::TooLarge);
    for gone in [
        Command::DeleteRecordStream(999),
        Command::FlushRecordStream(999),
        Command::KillSourceOutput(999),
        Command::GetSourceOutputInfo(999),
    ] {
        assert_eq!(scene.tell(client, &gone), Err(PulseError::NoEntity), "{gone:?}");
    }
}

#[test]
fn what_a_device_captures_is_a_source_and_the_default_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let lookup = |scene: &mut Scene, name| {
        scene.ask::<LookupReply>(client, &Command::LookupSource(text(name)))
    };
    assert_eq!(lookup(&mut scene, "@DEFAULT_SOURCE@"), Ok(LookupReply(0)));
    assert_eq!(lookup(&mut scene, "consort.capture"), Err(PulseError::NoEntity));
    scene.front_end.devices_mut().devices[0].format.captured = 1;
    scene.front_end.devices_changed(0);
    assert_eq!(lookup(&mut scene, "@DEFAULT_SOURCE@"), Ok(LookupReply(1)));
    for (name, index) in [("consort.capture", 1), ("1", 1), ("@DEFAULT_MONITOR@", 0), ("0", 0)] {
        assert_eq!(lookup(&mut scene, name), Ok(LookupReply(index)), "{name}");
    }
    let sources: Vec<SourceInfo> = scene.ask(client, &Command::GetSourceInfoList).expect("a list");
    let shown = sources.iter().map(|source| (source.index, source.sample_spec.channels));
    assert_eq!(shown.collect::<Vec<_>>(), [(0, 2), (1, 1)]);
    let reply = scene.recording(client, asked());
    assert_eq!(reply.sink_index, 1);
    // One channel is recorded on both.
    let samples = scene.recorded(client, reply.channel).concat();
    assert!(!samples.is_empty() && samples.iter().all(|sample| *sample == HALF));
}

#[test]
fn a_recording_is_converted_for_the_next_driver() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.front_end.devices_mut().devices[0].format.captured = 2;
    scene.front_end.devices_changed(0);
    let flags = pulseaudio::protocol::stream::StreamFlags { no_move: true, ..Default::default() };
    let reply = scene.recording(client, RecordStreamParams { flags, ..asked() });
    assert_eq!(reply.sink_index, 1);
    let samples = scene.recorded(client, reply.channel).concat();
    assert!(samples.contains(&HALF) && samples.contains(&QUARTER));
    // A timer stands in for a card that is opened again, and captures nothing.
    for (captured, streams) in [(0, 1), (2, 1), (1, 2)] {
        scene.front_end.devices_mut().devices[0].format.captured = captured;
        scene.front_end.devices_changed(0);
        assert_eq!(scene.front_end.devices_mut().recorded.len(), streams, "of {captured} channels");
    }
    let samples = scene.recorded(client, reply.channel).concat();
    let after = samples.len() / 2;
    assert!(after > 0 && samples[after..].iter().all(|sample| *sample == HALF), "{samples:?}");
}

#[test]
fn volumes_of_a_recording_and_of_its_source_are_heard_in_it() {
    let mut scene = Scene::new();
    let [client, mixer] = [scene.admitted(), scene.admitted()];
    let mask = SubscriptionMask::SOURCE_OUTPUT | SubscriptionMask::SOURCE;
    scene.tell(mixer, &Command::Subscribe(mask)).expect("subscribed");
    let reply = scene.recording(client, asked());
    let index = reply.stream_index;
    scene.recorded(client, reply.channel);
    let mut volume = ChannelVolume::empty();
    volume.push(Volume::from_u32_clamped(0x8000));
    let set = SetStreamVolumeParams { index, volume };
    scene.tell(mixer, &Command::SetSourceOutputVolume(set)).expect("set");
    // After the ramp.
    scene.recorded(client, reply.channel);
    scene.recorded(client, reply.channel);
    let last = |scene: &mut Scene| {
        *scene.recorded(client, reply.channel).concat().last_chunk().expect("some")
    };
    assert_eq!(last(&mut scene), [HALF / 8, QUARTER / 8]);
    let (device_index, device_name) = (Some(0), None);
    let set = SetDeviceVolumeParams { device_index, device_name: device_name.clone(), volume };
    scene.tell(mixer, &Command::SetSourceVolume(set)).expect("set");
    scene.recorded(client, reply.channel);
    scene.recorded(client, reply.channel);
    assert_eq!(last(&mut scene), [HALF / 64, QUARTER / 64]);
    let sources: Vec<SourceInfo> = scene.ask(mixer, &Command::GetSourceInfoList).expect("a list");
    assert_eq!(sources[0].cvolume.channels(), [Volume::from_u32_clamped(0x8000); 2]);
    let mute = SetDeviceMuteParams { device_index, device_name, mute: true };
    scene.tell(mixer, &Command::SetSourceMute(mute)).expect("muted");
    scene.recorded(client, reply.channel);
    scene.recorded(client, reply.channel);
    assert_eq!(last(&mut scene), [0, 0]);
    let mute = SetStreamMuteParams { index, mute: true };
    scene.tell(mixer, &Command::SetSourceOutputMute(mute)).expect("muted");
    let shown = scene.output(mixer, index);
    assert_eq!((shown.muted, shown.client_index, shown.source_index), (true, Some(client), 0));
    assert_eq!(shown.cvolume.channels(), [Volume::from_u32_clamped(0x8000); 2]);
    let wrong = SetStreamVolumeParams { index, volume: ChannelVolume::norm(5) };
    let refused = scene.tell(mixer, &Command::SetSourceOutputVolume(wrong));
    assert_eq!(refused, Err(PulseError::Invalid));
}

#[test]
fn a_killed_recording_is_gone_and_its_program_notified() {
    let mut scene = Scene::new();
    let [owner, mixer] = [scene.admitted(), scene.admitted()];
    scene.tell(mixer, &Command::Subscribe(SubscriptionMask::SOURCE_OUTPUT)).expect("subscribed");
    let reply = scene.recording(owner, asked());
    scene.sent(owner);
    let event = |event_type| {
        Command::SubscribeEvent(SubscriptionEvent {
            event_facility: Facility::SourceOutput,
            event_type,
            index: Some(reply.stream_index),
        })
    };
    assert_eq!(scene.events(mixer), [event(EventType::New)]);
    scene.tell(mixer, &Command::KillSourceOutput(reply.stream_index)).expect("killed");
    assert_eq!(scene.events(owner), [Command::RecordStreamKilled(reply.channel)]);
    let gone = Command::DeleteRecordStream(reply.channel);
    assert_eq!(scene.tell(owner, &gone), Err(PulseError::NoEntity));
    scene.recording(owner, asked());
    scene.front_end.disconnected(owner, scene.now_ns);
    let none: Vec<SourceOutputInfo> =
        scene.ask(mixer, &Command::GetSourceOutputInfoList).expect("a list");
    assert_eq!(none, []);
}

#[test]
fn buffer_attributes_are_granted_again() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let reply = scene.recording(client, asked());
    let buffer_attr = BufferAttr { fragment_size: 19_200, ..BufferAttr::default() };
    let asked = SetRecordStreamBufferAttrParams {
        index: reply.channel,
        buffer_attr,
        adjust_latency: true,
        early_requests: false,
    };
    let granted: SetRecordStreamBufferAttrReply =
        scene.ask(client, &Command::SetRecordStreamBufferAttr(asked)).expect("granted");
    assert_eq!(granted.buffer_attr.fragment_size, 19_200);
    assert_eq!(granted.configured_source_latency, 100_000);
}

/// A stream that records what another one plays.
fn direct(input: u32) -> RecordStreamParams {
    RecordStreamParams { direct_on_input_index: Some(input), ..asked() }
}

#[test]
fn a_recording_of_one_stream_needs_the_servers_leave_and_ends_with_that_stream() {
    let mut scene = Scene::new();
    let [player, meter] = [scene.admitted(), scene.admitted()];
    let playing = scene.stream(player);
    scene.front_end.devices_mut().refuses = true;
    let refused = Command::CreateRecordStream(direct(playing.stream_index));
    assert_eq!(scene.tell(meter, &refused), Err(PulseError::AccessDenied));
    scene.front_end.devices_mut().refuses = false;
    let reply = scene.recording(meter, direct(playing.stream_index));
    assert_eq!((reply.sink_index, reply.sink_name.as_deref()), (0, Some(c"consort.monitor")));
    // Not the tone that the server's stream would have had.
    for _ in 0..3 {
        let samples = scene.recorded(meter, reply.channel).concat();
        assert!(samples.iter().all(|sample| *sample == 0));
    }
    scene.events(meter);
    scene.front_end.sent_all(meter);
    scene.now_ns += 300_000_000;
    scene.tell(player, &Command::DeletePlaybackStream(playing.channel)).expect("deleted");
    let sent = scene.sent(meter);
    let samples = sent.iter().take_while(|frame| frame[4..8] == reply.channel.to_be_bytes());
    let bytes: usize = samples.map(|frame| frame.len() - 20).sum();
    assert_eq!(bytes, 4 * 14_400, "what was heard before its end");
    let last = read_command_message(&mut &sent[sent.len() - 1][..], MAX_VERSION);
    assert_eq!(last.expect("an event").1, Command::RecordStreamKilled(reply.channel));
}

#[test]
fn all_recordings_of_one_stream_have_its_end() {
    let mut scene = Scene::new();
    let [player, meter] = [scene.admitted(), scene.admitted()];
    let playing = scene.stream(player);
    let taps = [0; 2].map(|_| scene.recording(meter, direct(playing.stream_index)).channel);
    scene.now_ns += 300_000_000;
    scene.front_end.disconnected(player, scene.now_ns);
    let sent = scene.sent(meter);
    for channel in taps {
        let of_tap = sent.iter().filter(|frame| frame[4..8] == channel.to_be_bytes());
        let bytes: usize = of_tap.map(|frame| frame.len() - 20).sum();
        assert_eq!(bytes, 4 * 14_400, "what was heard before its program was gone");
    }
}

#[test]
fn another_server_is_asked_whether_a_stream_may_be_recorded() {
    let mut scene = Scene::new();
    let [player, meter] = [scene.admitted(), scene.admitted()];
    let playing = scene.stream(player);
    let other_server = |scene: &mut Scene, refuses| {
        scene.front_end.server_gone(1_000_000_000, scene.now_ns);
        scene.front_end.devices_mut().refuses = refuses;
        scene.front_end.server_found(scene.now_ns);
        scene.front_end.devices_mut().refuses = false;
        scene.events(meter)
    };
    let reply = scene.recording(meter, direct(playing.stream_index));
    let killed = Command::RecordStreamKilled(reply.channel);
    assert!(!other_server(&mut scene, false).contains(&killed));
    assert!(other_server(&mut scene, true).contains(&killed));
    let input: Result<pulseaudio::protocol::SinkInputInfo, _> =
        scene.ask(player, &Command::GetSinkInputInfo(playing.stream_index));
    assert!(input.is_ok(), "what it recorded plays on");
}
