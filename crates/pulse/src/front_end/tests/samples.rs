//! Samples, through packets.

use pulseaudio::protocol::{
    CreateUploadStreamReply, LookupReply, PlaySampleParams, SampleInfo, SinkInputInfo, StatInfo,
    UploadStreamParams,
};

use super::*;

fn upload(length: u32) -> UploadStreamParams {
    let format = SampleFormat::S16Le;
    UploadStreamParams {
        media_name: Some(text("bell")),
        sample_spec: SampleSpec { format, channels: 2, sample_rate: 48_000 },
        channel_map: ChannelMap::stereo(),
        length,
        props: Props::new(),
    }
}

fn created(scene: &mut Scene, client: u32, length: u32) -> Result<u32, PulseError> {
    let asked = Command::CreateUploadStream(upload(length));
    let reply: CreateUploadStreamReply = scene.ask(client, &asked)?;
    assert_eq!(reply.length, length);
    Ok(reply.channel)
}

fn send_samples(scene: &mut Scene, client: u32, channel: u32, bytes: &[u8]) {
    let mut frame = (bytes.len() as u32).to_be_bytes().to_vec();
    frame.extend(channel.to_be_bytes());
    frame.extend([0; 12]);
    frame.extend(bytes);
    scene.send_bytes(client, &frame);
}

pub(super) fn uploaded(scene: &mut Scene, client: u32) {
    let channel = created(scene, client, 400).expect("an upload");
    send_samples(scene, client, channel, &[1; 300]);
    // More than its length.
    send_samples(scene, client, channel, &[2; 300]);
    scene.tell(client, &Command::FinishUploadStream(channel)).expect("uploaded");
}

pub(super) fn play(name: &str) -> Command {
    Command::PlaySample(PlaySampleParams {
        sink_index: None,
        sink_name: None,
        volume: 0x8000,
        name: text(name),
        props: Props::new(),
    })
}

#[test]
fn a_sample_has_the_bytes_that_it_was_to_have() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    uploaded(&mut scene, client);
    let all: Vec<SampleInfo> = scene.ask(client, &Command::GetSampleInfoList).expect("a list");
    assert_eq!((all.len(), all[0].length, all[0].name.clone()), (1, 400, text("bell")));
    let stat: StatInfo = scene.ask(client, &Command::Stat).expect("an answer");
    assert_eq!(stat.sample_cache_size, 400);
    let one: SampleInfo = scene.ask(client, &Command::GetSampleInfo(0)).expect("a sample");
    assert_eq!(one, all[0]);
    assert_eq!(one.props.get(Prop::ApplicationName), Some(&b"a program\0"[..]));
}

/// Asks for a sample by its name, as libpulse does.
fn info_named(scene: &mut Scene, client: u32, name: &str) -> Result<SampleInfo, PulseError> {
    let mut bytes = Vec::new();
    let command = Command::GetSampleInfo(u32::MAX);
    encode_command_message(&mut bytes, 7, &command, MAX_VERSION).expect("a packet");
    bytes.push(b't');
    bytes.extend(text(name).to_bytes_with_nul());
    let length = (bytes.len() - 20) as u32;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    scene.send_bytes(client, &bytes);
    let sent = scene.sent(client);
    let answer = sent.iter().find(|packet| is_answer(packet)).expect("an answer");
    answered(read_reply_message(&mut &answer[..], MAX_VERSION))
}

#[test]
fn a_sample_is_found_by_its_name() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    uploaded(&mut scene, client);
    assert_eq!(info_named(&mut scene, client, "bell").expect("a sample").length, 400);
    assert_eq!(info_named(&mut scene, client, "other"), Err(PulseError::NoEntity));
}

#[test]
fn a_sample_plays_on_when_its_program_leaves() {
    let mut scene = Scene::new();
    let [client, other] = [scene.admitted(), scene.admitted()];
    uploaded(&mut scene, client);
    let index = scene.ask::<LookupReply>(client, &play("bell")).expect("it plays").0;
    scene.front_end.disconnected(client, scene.now_ns);
    let input: SinkInputInfo =
        scene.ask(other, &Command::GetSinkInputInfo(index)).expect("a stream");
    assert_eq!((input.client_index, input.name), (None, text("bell")));
    assert_eq!(input.cvolume.channels()[0].as_u32(), 0x8000);
    assert_eq!(input.props.get_bytes(c"event.id"), Some(&b"bell\0"[..]));
    scene.tell(other, &Command::KillSinkInput(index)).expect("killed");
}

#[test]
fn a_sample_that_is_played_with_no_volume_has_that_of_its_samples() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    uploaded(&mut scene, client);
    for none in [u32::MAX, u32::MAX - 1, 0x8000_0000] {
        let Command::PlaySample(asked) = play("bell") else { panic!("it is to be played") };
        let asked = Command::PlaySample(PlaySampleParams { volume: none, ..asked });
        let index = scene.ask::<LookupReply>(client, &asked).expect("it plays").0;
        let input: SinkInputInfo =
            scene.ask(client, &Command::GetSinkInputInfo(index)).expect("a stream");
        assert_eq!(input.cvolume.channels()[0].as_u32(), 0x10000, "{none}");
    }
}

#[test]
fn a_sample_is_what_has_come_of_it_in_whole_frames() {
    let mut scene = Scene::new();
    let [client, other] = [scene.admitted(), scene.admitted()];
    let channel = created(&mut scene, client, 400).expect("an upload");
    send_samples(&mut scene, client, channel, &[1; 399]);
    let finish = Command::FinishUploadStream(channel);
    assert_eq!(scene.tell(other, &finish), Err(PulseError::NoEntity), "another's");
    scene.tell(client, &finish).expect("uploaded");
    let kept: SampleInfo = scene.ask(client, &Command::GetSampleInfo(0)).expect("a sample");
    assert_eq!(kept.length, 396);
    scene.tell(client, &Command::RemoveSample(text("bell"))).expect("removed");
    assert_eq!(scene.tell(client, &finish), Err(PulseError::NoEntity), "it has ended");
    let channel = created(&mut scene, client, 400).expect("an upload");
    scene.tell(client, &Command::DeleteUploadStream(channel)).expect("deleted");
    send_samples(&mut scene, client, channel, &[1; 400]);
    let empty = created(&mut scene, client, 400).expect("an upload");
    send_samples(&mut scene, client, empty, &[1; 3]);
    let finish = Command::FinishUploadStream(empty);
    assert_eq!(scene.tell(client, &finish), Err(PulseError::NoData));
    assert_eq!(scene.ask::<LookupReply>(client, &play("bell")), Err(PulseError::NoEntity));
}

#[test]
fn uploads_that_make_no_sense_or_are_too_many_are_refused() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let refused = |scene: &mut Scene, asked| {
        scene.tell(client, &Command::CreateUploadStream(asked)).expect_err("refused")
    };
    let media_name = Some(text("two words"));
    let name = UploadStreamParams { media_name, ..upload(400) };
    assert_eq!(refused(&mut scene, name), PulseError::Invalid);
    let map = UploadStreamParams { channel_map: ChannelMap::mono(), ..upload(400) };
    assert_eq!(refused(&mut scene, map), PulseError::Invalid);
    assert_eq!(refused(&mut scene, upload(0)), PulseError::Invalid);
    assert_eq!(refused(&mut scene, upload(u32::MAX - 3)), PulseError::TooLarge);
    assert_eq!(refused(&mut scene, upload(u32::MAX)), PulseError::Invalid, "no whole frames");
    created(&mut scene, client, 16 << 20).expect("an upload");
    assert_eq!(created(&mut scene, client, 4), Err(PulseError::TooLarge));
    // Other programs are not concerned, and what it had is free when it leaves.
    let other = scene.admitted_of(3);
    created(&mut scene, other, 4).expect("an upload");
    scene.front_end.disconnected(client, scene.now_ns);
    let again = scene.admitted();
    created(&mut scene, again, 16 << 20).expect("an upload");
    assert_eq!(scene.tell(other, &play("")), Err(PulseError::Invalid));
    let remove = Command::RemoveSample(text("none"));
    assert_eq!(scene.tell(other, &remove), Err(PulseError::NoEntity));
}
