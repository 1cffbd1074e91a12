//! What is kept of the sound of programs that write or record without end, through packets.

use pulseaudio::protocol::{CreateRecordStreamReply, RecordStreamParams};

use super::recording::asked;
use super::*;

/// Most that a program gets: what its streams share, and what each of them has in any case.
const MOST_BYTES: usize = (64 << 20) + 64 * (1 << 20);
/// Streams of which each could keep more than four megabytes.
const STREAMS: usize = 40;

/// Writes as many bytes to a stream as it may ever keep.
fn fill(scene: &mut Scene, client: u32, channel: u32) {
    let mut frame = (4_u32 << 20).to_be_bytes().to_vec();
    frame.extend(channel.to_be_bytes());
    frame.extend([0; 12]);
    frame.resize(20 + (4 << 20), 0);
    scene.send_bytes(client, &frame);
}

fn is_overflow(event: &Command) -> bool {
    matches!(event, Command::Overflow(_))
}

#[test]
fn what_one_program_has_written_is_kept_as_far_as_there_is_room() {
    let mut scene = Scene::new();
    let [greedy, other] = [2, 3].map(|account| scene.admitted_of(account));
    for _ in 0..STREAMS {
        let channel = scene.stream(greedy).channel;
        fill(&mut scene, greedy, channel);
    }
    let events = scene.events(greedy);
    assert!(events.iter().any(is_overflow), "as if a stream were full");
    let inputs = scene.front_end.inputs.values();
    let kept: Vec<usize> = inputs.map(|input| input.playback.kept_bytes()).collect();
    assert!(kept.iter().sum::<usize>() <= MOST_BYTES, "{kept:?}");
    assert_eq!(kept[0], 4 << 20, "as much as it was granted");
    let channel = scene.stream(other).channel;
    fill(&mut scene, other, channel);
    assert!(!scene.events(other).iter().any(is_overflow), "it has its own room");
}

#[test]
fn a_program_whose_room_is_used_up_has_some_for_each_stream() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    for _ in 0..STREAMS {
        let channel = scene.stream(client).channel;
        fill(&mut scene, client, channel);
    }
    scene.events(client);
    let channel = scene.stream(client).channel;
    let mut frame = 384_000_u32.to_be_bytes().to_vec();
    frame.extend(channel.to_be_bytes());
    frame.extend([0; 12]);
    frame.resize(20 + 384_000, 0);
    scene.send_bytes(client, &frame);
    assert!(!scene.events(client).iter().any(is_overflow), "two seconds");
}

#[test]
fn what_was_recorded_for_one_program_is_kept_as_far_as_there_is_room() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let format = SampleFormat::Float32Le;
    let sample_spec = SampleSpec { format, channels: 8, sample_rate: 384_000 };
    let channel_map = ChannelMap::new([pulseaudio::protocol::ChannelPosition::Mono; 8]);
    let costly = RecordStreamParams { sample_spec, channel_map, ..asked() };
    for _ in 0..STREAMS {
        let asked = Command::CreateRecordStream(costly.clone());
        scene.ask::<CreateRecordStreamReply>(client, &asked).expect("a stream");
    }
    for _ in 0..100 {
        scene.now_ns += 10_000_000;
        scene.front_end.update(scene.now_ns);
        scene.sent(client);
    }
    let outputs = scene.front_end.outputs.values();
    let kept: Vec<usize> = outputs.map(|output| output.recording.kept_bytes()).collect();
    let all = kept.iter().sum::<usize>();
    assert!((64 << 20..=MOST_BYTES).contains(&all), "{kept:?}");
    assert!(kept.iter().all(|kept| *kept > 512 << 10), "each has some: {kept:?}");
}
