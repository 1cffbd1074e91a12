//! Streams and their volumes, through packets.

use client::stream::{RingSamples, Schedule};
use pulseaudio::protocol::stream::StreamFlags;
use pulseaudio::protocol::{
    ChannelVolume, CorkStreamParams, LatencyParams, PlaybackLatency, Request, SetDeviceMuteParams,
    SetDeviceVolumeParams, SetStreamMuteParams, SetStreamNameParams, SetStreamVolumeParams,
    SinkInfo, SinkInputInfo, SubscriptionEvent, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, SubscriptionMask, UpdateSampleRateParams, Volume,
};

use super::*;
use crate::output::{Devices, NewNullDevice, Output, Refusal};
use crate::wire::{Frame, Seek};

fn input(scene: &mut Scene, client: u32, index: u32) -> SinkInputInfo {
    scene.ask(client, &Command::GetSinkInputInfo(index)).expect("a stream")
}

#[test]
fn a_new_stream_is_answered_with_what_it_was_granted() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let reply = scene.stream(client);
    assert_eq!(reply.buffer_attr.target_length, 384_000);
    assert_eq!((reply.requested_bytes, reply.stream_latency), (384_000, 1_960_000));
    assert_eq!(reply.sample_spec, params().sample_spec);
    assert_eq!(reply.sink_name.as_deref(), Some(c"consort"));
    let opened = &scene.front_end.devices_mut().opened;
    assert_eq!((opened[0].program.as_str(), opened[0].depth_frames), ("a program", 95_040));
    let other = scene.stream(client);
    assert_ne!((reply.channel, reply.stream_index), (other.channel, other.stream_index));
}

#[test]
fn a_stream_that_makes_no_sense_is_refused() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let refused = |scene: &mut Scene, params| {
        scene.tell(client, &Command::CreatePlaybackStream(params)).expect_err("refused")
    };
    let channel_map = ChannelMap::mono();
    let mono = PlaybackStreamParams { channel_map, ..params() };
    assert_eq!(refused(&mut scene, mono), PulseError::Invalid);
    let cvolume = Some(ChannelVolume::norm(3));
    let volumes = PlaybackStreamParams { cvolume, ..params() };
    assert_eq!(refused(&mut scene, volumes), PulseError::Invalid);
    let other_sink = PlaybackStreamParams { sink_name: Some(text("other")), ..params() };
    assert_eq!(refused(&mut scene, other_sink), PulseError::NoEntity);
}

#[test]
fn each_program_has_streams_of_its_own_however_many_connections_it_has() {
    let mut scene = Scene::new();
    let [one, two, other] = [2, 2, 3].map(|account| scene.admitted_of(account));
    for number in 0..super::super::MAX_STREAMS_OF_ONE {
        scene.stream(if number % 2 == 0 { one } else { two });
    }
    for client in [one, two] {
        let refused = scene.tell(client, &Command::CreatePlaybackStream(params()));
        assert_eq!(refused, Err(PulseError::TooLarge));
    }
    scene.stream(other);
    let opened = &scene.front_end.devices_mut().opened;
    let accounts: Vec<u32> = opened.iter().map(|output| output.account).collect();
    assert_eq!(accounts.iter().filter(|account| **account == 2).count(), 64);
    assert_eq!(accounts.last(), Some(&3));
}

#[test]
fn a_stream_begins_without_a_question_unless_devices_have_changed() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.stream(client);
    let before = scene.front_end.devices_mut().lists;
    scene.stream(client);
    assert_eq!(scene.front_end.devices_mut().lists, before, "it knows them");
    // Another program adds one, and the news waits for its turn.
    let new = NewNullDevice { name: "other".into(), channels: 2, rate_hz: None };
    assert_eq!(scene.front_end.devices_mut().add(new), Ok(()));
    scene.stream(client);
    assert_eq!(scene.front_end.devices_mut().lists, before + 1);
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    assert_eq!(sinks.len(), 2);
}

#[test]
fn a_program_is_answered_before_its_stream_has_memory() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let index = scene.granted(client).stream_index;
    let has_begun = |scene: &mut Scene| {
        let input = scene.front_end.inputs.get_mut(index).expect("a stream");
        input.playback.output_mut().has_begun
    };
    assert!(!has_begun(&mut scene));
    assert!(scene.front_end.begin_streams(0));
    assert!(has_begun(&mut scene) && !scene.front_end.begin_streams(0));
    assert_eq!(scene.events(client), [], "it has what it was granted");
}

#[test]
fn a_stream_for_which_memory_becomes_short_is_shorter_or_ends() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.front_end.devices_mut().begins = Ok(48_000);
    let stream = scene.granted(client);
    assert_eq!(stream.buffer_attr.target_length, 384_000);
    scene.front_end.begin_streams(0);
    let [Command::PlaybackStreamMoved(moved)] = &scene.events(client)[..] else {
        panic!("it is notified")
    };
    assert_eq!((moved.stream_index, moved.device_index), (stream.channel, stream.sink_index));
    assert!((1..=192_000).contains(&moved.buffer_attr.target_length), "{moved:?}");
    scene.front_end.devices_mut().begins = Err(Refusal::Never);
    let refused = scene.granted(client);
    scene.front_end.begin_streams(0);
    assert_eq!(scene.events(client), [Command::PlaybackStreamKilled(refused.channel)]);
}

#[test]
fn a_stream_takes_samples_before_the_server_has_taken_it() {
    for answer in [Ok(()), Err(Refusal::NotNow), Err(Refusal::Never)] {
        let mut scene = Scene::new();
        let client = scene.admitted();
        scene.front_end.devices_mut().takes_memory = None;
        let stream = scene.granted(client);
        let samples = crate::wire::samples(stream.channel, &[1; 4000]);
        scene.send_bytes(client, &samples);
        assert_eq!(scene.events(client), []);
        let input = scene.front_end.inputs.get_mut(stream.stream_index).expect("a stream");
        let sink = input.playback.output_mut();
        assert_eq!((sink.written(), sink.has_begun()), (1000, None));
        sink.takes_memory = Some(answer);
        assert_eq!(scene.front_end.begin_streams(0), answer.is_err());
        assert!(!scene.front_end.begin_streams(0));
        scene.front_end.update(0);
        let events = scene.events(client);
        if answer == Err(Refusal::Never) {
            assert_eq!(events, [Command::PlaybackStreamKilled(stream.channel)]);
            continue;
        }
        let is_moved = |event: &Command| matches!(event, Command::PlaybackStreamMoved(_));
        assert_eq!(events.iter().any(is_moved), answer.is_err(), "{events:?}");
        let input = scene.front_end.inputs.get_mut(stream.stream_index).expect("a stream");
        assert_eq!(
            input.playback.output().written(),
            1000,
            "all of it again, if it was opened again"
        );
        assert_eq!(scene.front_end.devices_mut().opened.len(), 1 + usize::from(answer.is_err()));
    }
}

#[test]
fn a_stream_that_its_server_never_took_returns_to_the_next_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.front_end.devices_mut().takes_memory = None;
    let stream = scene.granted(client);
    scene.front_end.begin_streams(0);
    scene.front_end.server_gone(1_000_000_000, 0);
    scene.front_end.server_found(1);
    assert_eq!(scene.front_end.devices_mut().returned.len(), 1);
    // What the first server would have said does not count any more.
    let input = scene.front_end.inputs.get_mut(stream.stream_index).expect("a stream");
    input.playback.output_mut().takes_memory = Some(Err(Refusal::Never));
    assert!(!scene.front_end.begin_streams(1));
    let input = scene.front_end.inputs.get_mut(stream.stream_index).expect("a stream");
    assert_eq!(input.adrift, None);
}

#[test]
fn a_stream_whose_server_goes_before_it_begins_is_opened_on_the_next_one() {
    for is_gone in [false, true] {
        let mut scene = Scene::new();
        let client = scene.admitted();
        scene.front_end.devices_mut().begins = Err(Refusal::NotNow);
        let stream = scene.granted(client);
        scene.front_end.begin_streams(0);
        let devices = scene.front_end.devices_mut();
        (devices.begins, devices.is_away) = (Ok(48_000), is_gone);
        if is_gone {
            scene.front_end.server_gone(1_000_000_000, 0);
            scene.front_end.devices_mut().is_away = false;
            scene.front_end.server_found(1);
        } else {
            assert_eq!(scene.front_end.deadline(0), Some(0), "in the next turn");
            scene.front_end.update(0);
        }
        let events = scene.events(client);
        let is_moved = |event: &Command| {
            matches!(event, Command::PlaybackStreamMoved(moved)
                if moved.stream_index == stream.channel)
        };
        assert!(events.iter().any(is_moved), "{events:?}");
        let input = scene.front_end.inputs.get_mut(stream.stream_index).expect("a stream");
        assert!(input.adrift.is_none() && input.playback.output_mut().has_begun);
    }
}

#[test]
fn a_stream_is_only_its_own_programs_to_control() {
    let mut scene = Scene::new();
    let [owner, other] = [scene.admitted(), scene.admitted()];
    let channel = scene.stream(owner).channel;
    let cork = Command::CorkPlaybackStream(CorkStreamParams { channel, cork: true });
    assert_eq!(scene.tell(other, &cork), Err(PulseError::NoEntity));
    assert_eq!(scene.tell(owner, &cork), Ok(()));
    // Samples for a stream that is another's go nowhere.
    scene.send_bytes(other, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(scene.sent(other), Vec::<Vec<u8>>::new());
}

#[test]
fn a_stream_plays_while_blocks_that_have_arrived_wait_to_be_read() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let stream = scene.stream(client);
    let bytes = vec![1; 64 << 10];
    let mut write = |following: u64| {
        let (channel, seek) = (stream.channel, Seek::Relative(0));
        let bytes = bytes.as_slice().into();
        let samples = Frame::Samples { channel, seek, bytes, following };
        scene.front_end.frame(client, samples, 0);
        let input = scene.front_end.inputs.get_mut(stream.stream_index).expect("a stream");
        input.playback.runs()
    };
    assert!(!write(0));
    assert!(write(stream.buffer_attr.pre_buffering.into()));
}

#[test]
fn what_a_program_writes_is_counted_and_more_is_requested_while_it_plays() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let reply = scene.stream(client);
    let mut frame = 384_000_u32.to_be_bytes().to_vec();
    frame.extend(reply.channel.to_be_bytes());
    frame.extend([0; 12]);
    frame.resize(20 + 384_000, 0);
    scene.send_bytes(client, &frame);
    let ready = 1_960 * 192;
    let request = Request { channel: reply.channel, length: ready };
    assert_eq!(scene.events(client), [Command::Request(request)]);
    let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(1_000_003);
    let asked = LatencyParams { channel: reply.channel, now };
    let latency: PlaybackLatency =
        scene.ask(client, &Command::GetPlaybackLatency(asked)).expect("an answer");
    assert_eq!((latency.write_offset, latency.read_offset), (384_000, 0));
    assert_eq!((latency.local_time, latency.playing), (now, false));
}

#[test]
fn a_program_that_was_asked_has_an_eighth_of_the_time_that_is_left_to_answer() {
    const MS: u64 = 1_000_000;
    let mut scene = Scene::new();
    let client = scene.admitted();
    let [one, other] = [0; 2].map(|_| scene.stream(client));
    let play = |scene: &mut Scene, channel: u32| {
        let head = [384_000_u32.to_be_bytes(), channel.to_be_bytes(), [0; 4], [0; 4], [0; 4]];
        scene.send_bytes(client, &[head.concat(), vec![0; 384_000]].concat());
    };
    let schedule = |scene: &mut Scene, index: u32, wake_ns: u64| {
        let input = scene.front_end.inputs.get_mut(index).expect("a stream");
        let until = 1 << 20;
        input.playback.output_mut().schedule =
            Some(Schedule { wake_ns, until, ..Schedule::default() });
    };
    let gathered = |scene: &mut Scene| {
        scene.front_end.take_effects();
        scene.front_end.gather(one.stream_index, MS);
        let effects = scene.front_end.take_effects();
        effects.into_iter().find_map(|effect| match effect {
            Effect::Gather { client: program, until_ns } if program == client => Some(until_ns),
            _ => None,
        })
    };
    play(&mut scene, one.channel);
    assert_eq!(gathered(&mut scene), None, "the device has said nothing");
    schedule(&mut scene, one.stream_index, 9 * MS);
    assert_eq!(gathered(&mut scene), Some(2 * MS), "the other one does not play");
    schedule(&mut scene, one.stream_index, 1000 * MS);
    assert_eq!(gathered(&mut scene), Some(MS + super::super::GATHERED_NS), "the longest");
    play(&mut scene, other.channel);
    schedule(&mut scene, other.stream_index, MS + 800);
    assert_eq!(gathered(&mut scene), Some(MS + 100), "the neediest");
    schedule(&mut scene, other.stream_index, MS - 1);
    assert_eq!(gathered(&mut scene), None, "it is late already");
}

#[test]
fn any_program_sees_a_stream_and_changes_its_volume() {
    let mut scene = Scene::new();
    let [owner, mixer] = [scene.admitted(), scene.admitted()];
    scene.tell(mixer, &Command::Subscribe(SubscriptionMask::SINK_INPUT)).expect("subscribed");
    let reply = scene.stream(owner);
    let index = reply.stream_index;
    let name = SetStreamNameParams { index: reply.channel, name: text("a song") };
    scene.tell(owner, &Command::SetPlaybackStreamName(name)).expect("named");
    let mut volume = ChannelVolume::empty();
    volume.push(Volume::from_u32_clamped(0x8000));
    let set = SetStreamVolumeParams { index, volume };
    let event = |event_type| {
        let event_facility = Facility::SinkInput;
        Command::SubscribeEvent(SubscriptionEvent {
            event_facility,
            event_type,
            index: Some(index),
        })
    };
    assert_eq!(scene.events(mixer), [event(EventType::New), event(EventType::Changed)]);
    scene.tell(mixer, &Command::SetSinkInputVolume(set)).expect("set");
    let mute = SetStreamMuteParams { index, mute: true };
    scene.tell(mixer, &Command::SetSinkInputMute(mute)).expect("muted");
    let shown = input(&mut scene, mixer, index);
    assert_eq!(shown.cvolume.channels(), [Volume::from_u32_clamped(0x8000); 2]);
    assert_eq!((shown.muted, shown.client_index), (true, Some(owner)));
    assert_eq!(shown.name, text("a song"));
    assert_eq!(shown.props.get(Prop::ApplicationName), Some(&b"a program\0"[..]));
    let wrong = SetStreamVolumeParams { index, volume: ChannelVolume::norm(5) };
    let refused = scene.tell(mixer, &Command::SetSinkInputVolume(wrong));
    assert_eq!(refused, Err(PulseError::Invalid));
}

#[test]
fn a_change_to_what_is_already_so_is_no_event() {
    let mut scene = Scene::new();
    let [client, other] = [scene.admitted(), scene.admitted()];
    let stream = scene.stream(client);
    let volume = ChannelVolume::norm(2);
    let device = SetDeviceVolumeParams { device_index: Some(0), device_name: None, volume };
    let index = stream.stream_index;
    let changes = [
        Command::SetSinkInputVolume(SetStreamVolumeParams { index, volume }),
        Command::SetSinkInputMute(SetStreamMuteParams { index, mute: false }),
        Command::SetSinkVolume(device),
    ];
    scene.tell(other, &Command::Subscribe(SubscriptionMask::ALL)).expect("subscribed");
    scene.sent(other);
    for change in changes {
        scene.tell(client, &change).expect("done");
        assert_eq!(scene.events(other), [], "{change:?}");
    }
    let change = Command::SetSinkInputMute(SetStreamMuteParams { index, mute: true });
    scene.tell(client, &change).expect("done");
    assert_eq!(scene.events(other).len(), 1);
}

#[test]
fn a_killed_stream_is_gone_and_its_program_notified() {
    let mut scene = Scene::new();
    let [owner, mixer] = [scene.admitted(), scene.admitted()];
    let reply = scene.stream(owner);
    scene.tell(mixer, &Command::KillSinkInput(reply.stream_index)).expect("killed");
    assert_eq!(scene.events(owner), [Command::PlaybackStreamKilled(reply.channel)]);
    let gone = Command::DeletePlaybackStream(reply.channel);
    assert_eq!(scene.tell(owner, &gone), Err(PulseError::NoEntity));
}

#[test]
fn a_program_that_leaves_takes_its_streams_along() {
    let mut scene = Scene::new();
    let [owner, mixer] = [scene.admitted(), scene.admitted()];
    scene.stream(owner);
    scene.front_end.disconnected(owner, scene.now_ns);
    let none: Vec<SinkInputInfo> =
        scene.ask(mixer, &Command::GetSinkInputInfoList).expect("a list");
    assert_eq!(none, []);
}

#[test]
fn a_stream_may_begin_corked_and_muted() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let flags =
        StreamFlags { start_corked: true, start_muted: Some(true), ..StreamFlags::default() };
    let params = PlaybackStreamParams { flags, ..params() };
    let reply: CreatePlaybackStreamReply =
        scene.ask(client, &Command::CreatePlaybackStream(params)).expect("a stream");
    let shown = input(&mut scene, client, reply.stream_index);
    assert_eq!((shown.corked, shown.muted), (true, true));
}

#[test]
fn the_volume_of_each_channel_of_the_sink_is_the_devices() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.tell(client, &Command::Subscribe(SubscriptionMask::SINK)).expect("subscribed");
    let mut volume = ChannelVolume::empty();
    volume.push(Volume::from_u32_clamped(0x4000));
    volume.push(Volume::from_u32_clamped(0x8000));
    let (device_index, device_name) = (None, Some(text("consort")));
    let set = SetDeviceVolumeParams { device_index, device_name: device_name.clone(), volume };
    scene.tell(client, &Command::SetSinkVolume(set.clone())).expect("set");
    let mute = SetDeviceMuteParams { device_index, device_name, mute: true };
    scene.tell(client, &Command::SetSinkMute(mute)).expect("muted");
    let own = scene.front_end.devices_mut().devices[0].volume;
    let factors = [0, 1].map(|channel| own.gains.channel(channel).factor());
    assert_eq!((factors, own.muted), ([0.015_625, 0.125], true));
    let sinks: Vec<SinkInfo> = scene.ask(client, &Command::GetSinkInfoList).expect("a list");
    assert_eq!(sinks[0].cvolume, volume);
    assert!(sinks[0].muted);
    let wrong = SetDeviceVolumeParams { volume: ChannelVolume::norm(5), ..set.clone() };
    let refused = scene.tell(client, &Command::SetSinkVolume(wrong));
    assert_eq!(refused, Err(PulseError::Invalid));
    scene.front_end.devices_mut().refuses = true;
    let refused = scene.tell(client, &Command::SetSinkVolume(set));
    assert_eq!(refused, Err(PulseError::AccessDenied));
}

#[test]
fn a_ring_has_the_frames_of_programs_to_which_nothing_is_to_be_done() {
    let spec = |format, channels, sample_rate| PlaybackStreamParams {
        sample_spec: SampleSpec { format, channels, sample_rate },
        channel_map: if channels == 2 { ChannelMap::stereo() } else { ChannelMap::mono() },
        ..params()
    };
    let variable = StreamFlags { variable_rate: true, ..StreamFlags::default() };
    let (frames, planes) = (RingSamples::Frames16, RingSamples::Planes);
    for (asked, samples) in [
        (params(), frames),
        (spec(SampleFormat::S16Be, 2, 48_000), planes),
        (spec(SampleFormat::Float32Le, 2, 48_000), planes),
        (spec(SampleFormat::S16Le, 2, 44_100), planes),
        (spec(SampleFormat::S16Le, 1, 48_000), planes),
        (PlaybackStreamParams { flags: variable, ..params() }, planes),
    ] {
        let mut scene = Scene::new();
        let client = scene.admitted();
        let asked = Command::CreatePlaybackStream(asked);
        let _: CreatePlaybackStreamReply = scene.ask(client, &asked).expect("a stream");
        assert_eq!(scene.front_end.devices_mut().opened[0].samples, samples, "{asked:?}");
    }
}

#[test]
fn a_stream_has_another_rate_only_if_it_was_opened_for_that() {
    let variable = StreamFlags { variable_rate: true, ..StreamFlags::default() };
    let float = SampleSpec { format: SampleFormat::Float32Le, ..params().sample_spec };
    let (fixed, of_16) = (StreamFlags::default(), params().sample_spec);
    for (sample_spec, flags, rate_hz) in
        [(of_16, fixed, 48_000), (float, fixed, 48_000), (of_16, variable, 44_100)]
    {
        let mut scene = Scene::new();
        let client = scene.admitted();
        let asked = PlaybackStreamParams { flags, sample_spec, ..params() };
        let asked = Command::CreatePlaybackStream(asked);
        let stream: CreatePlaybackStreamReply = scene.ask(client, &asked).expect("a stream");
        let rate = |sample_rate| {
            let asked = UpdateSampleRateParams { index: stream.channel, sample_rate };
            Command::UpdatePlaybackStreamSampleRate(asked)
        };
        assert_eq!(scene.tell(client, &rate(44_100)), Ok(()));
        assert_eq!(scene.tell(client, &rate(0)), Err(PulseError::Invalid));
        let shown = input(&mut scene, client, stream.stream_index);
        assert_eq!(shown.sample_spec.sample_rate, rate_hz);
    }
}
