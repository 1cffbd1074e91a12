//! Volumes that devices and streams have again when they come again.

use proto::stream::{ChannelGains, Volume};
use state::State;

use super::devices::add;
use super::*;
use crate::control::streams::kept_volumes::MOST;

fn gain(factor: f32) -> Gain {
    Gain::new(factor).unwrap()
}

/// With a state file.
fn keeping() -> Scenario {
    let mut scenario = Scenario::new();
    scenario.streams.keep_volumes(&State::default());
    scenario
}

impl Scenario {
    fn set(&mut self, number: u32, factor: f32) {
        let change = (Some(gain(factor)), None);
        self.streams.set_volume((1, process(1)), Permissions::ALL, number, change).unwrap();
    }

    fn set_device(&mut self, name: &str, gains: &[f32], muted: bool) {
        let gains: Vec<Gain> = gains.iter().copied().map(gain).collect();
        let change = (ChannelGains::of(&gains), Some(muted));
        self.streams.set_device_volume(Permissions::ALL, Some(name), change).unwrap();
    }

    /// The factor with which a stream begins.
    fn volume_of_new(&mut self, new: NewStream) -> f32 {
        let (number, _) = self.open(1, new).unwrap();
        let factor = self.streams.streams[&number].volume.gain.factor();
        self.streams.end(number);
        factor
    }

    /// The next server's beginning.
    fn restarted(&self) -> Self {
        let mut state = State::default();
        self.streams.kept_volumes.add_to(&mut state);
        let state = State::parse(&state.to_text()).expect("it is read again");
        let mut next = Self::new();
        next.streams.keep_volumes(&state);
        next
    }
}

fn named(name: &str) -> NewStream {
    NewStream { name: name.into(), ..stereo() }
}

#[test]
fn a_stream_begins_with_the_volume_of_the_last_one_of_its_name() {
    let mut scenario = keeping();
    let number = scenario.begun(1);
    assert!(!scenario.streams.kept_volumes.take_changed());
    scenario.set(number, 0.5);
    assert!(scenario.streams.kept_volumes.take_changed(), "it is to be written");
    let mut next = scenario.restarted();
    for scenario in [&mut scenario, &mut next] {
        assert_eq!(scenario.volume_of_new(stereo()), 0.5);
        assert_eq!(scenario.volume_of_new(named("another song")), 1.0);
        let other = NewStream { program: "another player".into(), ..stereo() };
        assert_eq!(scenario.volume_of_new(other), 1.0);
    }
    scenario.open(1, stereo()).unwrap();
    let sources = scenario.streams.statuses_after(number, 0).remove(0).volume_sources;
    assert_eq!((sources.gain, sources.muted), (VolumeSource::State, VolumeSource::Nobody));
    scenario.set(number, 1.0);
    assert_eq!(scenario.restarted().volume_of_new(stereo()), 1.0);
}

#[test]
fn a_device_has_the_volume_again_that_one_of_its_name_had() {
    let mut scenario = keeping();
    let _thread = add(&mut scenario, "other");
    scenario.set_device("other", &[0.25, 0.5], true);
    scenario.set_device("system", &[0.75], false);
    let mut next = scenario.restarted();
    assert_eq!(next.streams.devices.driver.shared.gains.of(1), 0.75, "at once");
    let thread = add(&mut next, "other");
    let number = next.streams.devices.find(Some("other")).unwrap();
    next.streams.restore_device(number);
    let volume = next.streams.devices.get(number).unwrap().volume;
    assert_eq!((volume.muted, volume.gains.channel(0)), (true, gain(0.25)));
    assert_eq!(thread.shared.gains.of(1), 0.0, "nothing is heard");
    next.set_device("other", &[0.25, 0.5], false);
    assert_eq!([0, 1, 2].map(|channel| thread.shared.gains.of(channel)), [0.25, 0.5, 0.5]);
}

#[test]
fn what_a_process_plays_for_others_begins_as_that_process_wants_it() {
    let mut scenario = keeping();
    let number = scenario.begun(1);
    scenario.set(number, 0.5);
    let for_others = || NewStream { account: 7, ..stereo() };
    assert_eq!(scenario.volume_of_new(for_others()), 1.0);
    let (number, _) = scenario.open(1, for_others()).unwrap();
    scenario.set(number, 0.1);
    assert_eq!(scenario.restarted().volume_of_new(stereo()), 0.5);
}

#[test]
fn without_a_state_file_no_volume_is_kept() {
    let mut scenario = Scenario::new();
    let number = scenario.begun(1);
    scenario.set(number, 0.5);
    assert!(!scenario.streams.kept_volumes.take_changed());
    assert_eq!(scenario.volume_of_new(stereo()), 1.0);
}

#[test]
fn the_volume_that_was_changed_first_makes_room_for_others() {
    let mut scenario = keeping();
    let volume = Volume { gain: gain(0.5), muted: false };
    for song in 0..=MOST {
        scenario.streams.kept_volumes.note_stream("player", &song.to_string(), volume);
        // It is changed again and again.
        let muted = Volume { muted: song % 2 == 0, ..volume };
        scenario.streams.kept_volumes.note_stream("player", "song", muted);
    }
    let mut next = scenario.restarted();
    assert_eq!(next.volume_of_new(named("song")), 0.5);
    assert_eq!(next.volume_of_new(named("0")), 1.0);
    assert_eq!(next.volume_of_new(named(&MOST.to_string())), 0.5);
}
