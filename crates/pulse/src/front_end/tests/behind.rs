//! Programs that do not take what they are sent while others change something over and over.

use pulseaudio::protocol::{
    CorkStreamParams, SetStreamMuteParams, SubscriptionEvent,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType, SubscriptionMask,
};

use super::*;

fn change(event_type: EventType, index: u32) -> Command {
    let event_facility = Facility::SinkInput;
    Command::SubscribeEvent(SubscriptionEvent { event_facility, event_type, index: Some(index) })
}

/// A program that mutes its stream and lets it be heard again, without end.
fn storm(scene: &mut Scene, client: u32, index: u32) {
    for number in 0..1000 {
        let mute = SetStreamMuteParams { index, mute: number % 2 == 0 };
        scene.tell(client, &Command::SetSinkInputMute(mute)).expect("muted");
    }
}

#[test]
fn a_program_that_is_behind_is_notified_once_of_what_changes_without_end() {
    let mut scene = Scene::new();
    let [mixer, busy] = [2, 3].map(|account| scene.admitted_of(account));
    scene.tell(mixer, &Command::Subscribe(SubscriptionMask::SINK_INPUT)).expect("subscribed");
    let index = scene.stream(busy).stream_index;
    scene.events(mixer);
    scene.front_end.is_behind(mixer);
    storm(&mut scene, busy, index);
    let second = scene.stream(busy).stream_index;
    let gone = scene.stream(busy).stream_index;
    scene.tell(busy, &Command::KillSinkInput(gone)).expect("killed");
    assert_eq!(scene.events(mixer), []);
    scene.front_end.sent_all(mixer);
    let expected = [change(EventType::Changed, index), change(EventType::New, second)];
    assert_eq!(scene.events(mixer), expected);
    scene.front_end.sent_all(mixer);
    assert_eq!(scene.events(mixer), []);
    // It is notified at once again.
    storm(&mut scene, busy, index);
    assert_eq!(scene.events(mixer).len(), 1000);
}

#[test]
fn a_program_that_is_behind_is_asked_to_hold_its_stream_once_it_is_not() {
    let mut scene = Scene::new();
    let [music, call] = [2, 3].map(|account| scene.admitted_of(account));
    scene.role(music, c"music");
    let phone = scene.role(call, c"phone");
    let cork = |cork| {
        let channel = phone.channel;
        Command::CorkPlaybackStream(CorkStreamParams { channel, cork })
    };
    let asked = |scene: &mut Scene| -> Vec<String> {
        let events = scene.events(music).into_iter();
        let names = events.filter_map(|event| match event {
            Command::PlaybackStreamEvent(event) => Some(event.event_name),
            _ => None,
        });
        names.map(|name| name.into_string().expect("text")).collect()
    };
    asked(&mut scene);
    for (last, expected) in [(true, "request-uncork"), (false, "request-cork")] {
        scene.front_end.is_behind(music);
        for number in 0..100 {
            scene.tell(call, &cork(number % 2 == 0)).expect("corked");
        }
        scene.tell(call, &cork(last)).expect("corked");
        assert_eq!(asked(&mut scene), [""; 0]);
        scene.front_end.sent_all(music);
        assert_eq!(asked(&mut scene), [expected]);
    }
}

#[test]
fn few_requests_wait_until_everything_was_heard() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let channel = scene.stream(client).channel;
    let mut frame = 4_u32.to_be_bytes().to_vec();
    frame.extend(channel.to_be_bytes());
    frame.extend([0; 16]);
    scene.send_bytes(client, &frame);
    let drain = Command::DrainPlaybackStream(channel);
    let answers = (0..1000).flat_map(|_| scene.send(client, &drain));
    let refusals: Vec<_> = answers.filter(|packet| is_answer(packet)).collect();
    assert_eq!(refusals.len(), 1000 - 64);
    let refused = answered(read_ack_message(&mut &refusals[0][..]).map(|tag| (tag, ())));
    assert_eq!(refused, Err(PulseError::TooLarge));
}
