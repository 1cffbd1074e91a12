//! Streams that move to another device.

use super::devices::{Thread, add, facts_of};
use super::*;

/// A stream that plays on the device that drives, and another device.
fn begun() -> (Scenario, Thread, u32) {
    let mut scenario = Scenario::new();
    let other = add(&mut scenario, "other");
    let number = scenario.begun(1);
    (scenario, other, number)
}

impl Scenario {
    fn move_to(&mut self, peer: u64, number: u32, name: &str) -> Result<(), RequestError> {
        let (own, name) = ((peer, process(peer)), Some(name));
        self.streams.begin_move(own, Permissions::NONE, number, name, &self.device)
    }

    /// Opens and begins a stream that records.
    fn monitoring(&mut self, peer: u64, new: NewStream) -> u32 {
        let (number, _) = self.open(peer, new).unwrap();
        let (_, wishes) = Shared::<WishPage>::for_readers("wishes").unwrap();
        let (device, locking) = (&self.device, Locking::Nothing);
        let begun =
            self.streams.begin_recording(peer, (number, 0), wishes, device, locking).unwrap();
        let Beginning::Begun { stream, .. } = begun else { panic!("nothing is locked") };
        self.streams.start(stream, &self.device);
        number
    }

    /// Begins what is back on the devices that it moves to; returns whether a plan is needed.
    fn arrive(&mut self) -> Vec<bool> {
        self.streams.take_returns();
        let arrivals = std::mem::take(&mut self.streams.arrivals);
        arrivals.into_iter().map(|stream| self.streams.arrive(stream, &self.device)).collect()
    }

    fn page(&self, number: u32) -> Arc<Shared<StreamPage>> {
        match &self.streams.streams[&number].state {
            State::Begun(page) | State::Moving { page, .. } => Arc::clone(page),
            other => panic!("it plays, and is not {other:?}"),
        }
    }

    fn device_of(&self, number: u32) -> Option<String> {
        let statuses = self.streams.statuses_after(number - 1, 0);
        statuses.into_iter().next().and_then(|status| status.device)
    }
}

#[test]
fn a_stream_that_moves_is_taken_from_one_device_and_given_to_the_other() {
    let (mut scenario, mut other, number) = begun();
    let page = scenario.page(number);
    assert_eq!(scenario.move_to(1, number, "other"), Ok(()));
    assert_eq!(scenario.device_of(number).as_deref(), Some("other"), "where it will be");
    assert_eq!(scenario.ordered(), ["begin", &format!("add {number}"), &format!("close {number}")]);
    assert_eq!(other.shared.call.count(), 0);
    assert_eq!(scenario.arrive(), [false], "no plan brings it");
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::Begin(_))));
    let Ok(StreamOrder::Add(stream)) = other.orders.pop() else { panic!("it is given") };
    assert_eq!((stream.memory().stream, page.has_ended()), (number, false));
    scenario.streams.take_returns();
    assert_eq!(scenario.ordered(), ["end"], "the driver needs no loop any more");
    // And back.
    assert_eq!(scenario.move_to(1, number, "system"), Ok(()));
    other.returns.push(StreamReturn::Stream(stream)).unwrap();
    assert_eq!(scenario.arrive(), [true], "a plan brings it");
    assert_eq!(scenario.ordered(), ["begin", &format!("add {number}")]);
    assert_eq!(scenario.device_of(number), None);
    assert_eq!(scenario.move_to(1, number, "system"), Ok(()));
    assert_eq!(scenario.ordered(), [""; 0], "it is there");
}

#[test]
fn a_monitor_that_moves_is_taken_from_one_device_and_given_to_the_other() {
    let (mut scenario, mut other, player) = begun();
    let number = scenario.monitoring(1, NewStream { direction: Direction::Monitor, ..stereo() });
    let page = scenario.page(number);
    scenario.ordered();
    assert_eq!(scenario.move_to(1, number, "other"), Ok(()));
    assert_eq!(scenario.ordered(), [format!("close {number}")]);
    assert_eq!(scenario.device_of(number).as_deref(), Some("other"), "where it will be");
    scenario.streams.forget(player);
    assert_eq!(scenario.arrive(), [false], "no plan brings it");
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::Begin(_))));
    assert!(matches!(other.orders.pop(), Ok(StreamOrder::Keep(_))), "what leaves it is kept");
    let Ok(StreamOrder::Record(recorder)) = other.orders.pop() else { panic!("it is given") };
    assert_eq!((recorder.memory().stream, page.has_ended()), (number, false));
    assert_eq!(scenario.move_to(1, number, "system"), Ok(()));
    assert_eq!(scenario.streams.close(1, number), Ok(()), "on its way back");
    other.returns.push(StreamReturn::Recorder(recorder)).unwrap();
    assert_eq!(scenario.arrive(), [false; 0]);
    assert!(page.has_ended() && scenario.streams.is_empty());
    assert_eq!(scenario.streams.budget.used(), 0);
}

#[test]
fn a_stream_that_records_in_the_graph_goes_on_with_the_next_driver_that_plays_streams() {
    for (plays_streams, survives) in [(true, true), (false, false)] {
        let mut scenario = Scenario::new();
        scenario.device.channels.capture = 2;
        let record = NewStream { direction: Direction::Record, ..stereo() };
        let number = scenario.monitoring(1, record);
        let page = scenario.page(number);
        assert_eq!(scenario.ordered(), ["begin", &format!("record {number}")]);
        scenario.device.plays_streams = plays_streams;
        let device = StreamDevice::new(48_000, 2, Gains::default(), 64);
        scenario.returns.push(StreamReturn::Device { device, is_cut: true }).unwrap();
        assert_eq!(scenario.arrive(), [survives], "a plan brings it");
        assert_eq!((page.has_ended(), scenario.streams.is_empty()), (!survives, !survives));
        let record = format!("record {number}");
        let expected = if survives { vec!["begin", &*record] } else { Vec::new() };
        assert_eq!(scenario.ordered(), expected);
        assert_eq!(scenario.streams.close(1, number).is_ok(), survives);
        scenario.arrive();
        assert_eq!(scenario.streams.budget.used(), 0);
    }
}

#[test]
fn a_stream_that_is_closed_on_its_way_has_ended() {
    let (mut scenario, mut other, number) = begun();
    let page = scenario.page(number);
    scenario.move_to(1, number, "other").unwrap();
    assert_eq!(scenario.streams.close(1, number), Ok(()));
    scenario.ordered();
    assert_eq!(scenario.arrive(), [false; 0]);
    assert!(page.has_ended() && scenario.streams.is_empty());
    assert!(other.orders.pop().is_err());
    assert_eq!(scenario.streams.budget.used(), 0);
}

#[test]
fn a_stream_that_is_closed_before_it_begins_again_has_ended() {
    let (mut scenario, _other, number) = begun();
    let page = scenario.page(number);
    scenario.move_to(1, number, "other").unwrap();
    scenario.ordered();
    scenario.streams.take_returns();
    assert_eq!(scenario.streams.close(1, number), Ok(()));
    assert_eq!(scenario.arrive(), [false]);
    assert!(page.has_ended() && scenario.streams.is_empty());
    assert_eq!(scenario.streams.budget.used(), 0);
}

#[test]
fn a_stream_outlives_the_device_that_it_has_left_and_ends_with_the_one_that_it_goes_to() {
    for (removed, survives) in [("first", true), ("second", false)] {
        let mut scenario = Scenario::new();
        let mut first = add(&mut scenario, "first");
        let mut second = add(&mut scenario, "second");
        let new = NewStream { device: Some("first".into()), ..stereo() };
        let (number, shape) = scenario.open(1, new).unwrap();
        scenario.begin(1, number, shape).unwrap();
        let page = scenario.page(number);
        scenario.move_to(1, number, "second").unwrap();
        scenario.streams.devices.remove(removed).unwrap();
        let _begin = first.orders.pop();
        let Ok(StreamOrder::Add(stream)) = first.orders.pop() else { panic!("it is there") };
        first.returns.push(StreamReturn::Stream(stream)).unwrap();
        let gone = if removed == "first" { &mut first } else { &mut second };
        gone.returns.push(StreamReturn::Left).unwrap();
        scenario.arrive();
        assert_eq!((page.has_ended(), scenario.streams.is_empty()), (!survives, !survives));
    }
}

#[test]
fn a_stream_moves_only_where_it_fits_and_for_those_who_may() {
    let (mut scenario, _other, number) = begun();
    for (name, facts) in [("fast", facts_of(96_000, 2, 0)), ("mono", facts_of(48_000, 1, 0))] {
        let (own, _) = stream_rings();
        let end = DeviceEnd::new(own, Arc::new(DeviceShared::new(DeviceState::Parked)));
        scenario.streams.devices.insert(name.into(), facts, end, None, None);
    }
    scenario.device.channels.capture = 2;
    let record = NewStream { direction: Direction::Record, ..stereo() };
    let (recorder, _) = scenario.open(1, record).unwrap();
    let monitor = NewStream { direction: Direction::Monitor, ..stereo() };
    let (monitor, _) = scenario.open(1, monitor).unwrap();
    let (granted, _) = scenario.open(1, stereo()).unwrap();
    for (peer, number, name, words) in [
        (1, number, "none", "there is no device 'none'"),
        (1, number, "fast", "48000 Hz and the device 96000"),
        (1, number, "mono", "channel 1"),
        (1, recorder, "other", "connect them with others"),
        (1, monitor, "fast", "48000 Hz and the device 96000"),
        (1, monitor, "other", "not begun"),
        (1, granted, "other", "not begun"),
        (1, granted + 1, "other", "there is no stream"),
        (2, number, "other", "another program's stream"),
    ] {
        let text = refusal(scenario.move_to(peer, number, name));
        assert!(text.contains(words), "{text}");
    }
    scenario.device.plays_streams = false;
    assert!(refusal(scenario.move_to(1, number, "system")).contains("plays no streams yet"));
    let may = Permissions { patch: true, ..Permissions::NONE };
    let other = Some("other");
    let moved = scenario.streams.begin_move((2, 2), may, number, other, &scenario.device);
    assert_eq!(moved, Ok(()));
}

#[test]
fn a_program_can_read_where_its_stream_is_and_what_its_volume_is() {
    let (mut scenario, _other, number) = begun();
    let page = scenario.page(number);
    let state = || page.state().expect("it is published");
    let begun = state();
    assert_eq!((begun.sample_rate_hz, begun.device.further()), (48_000, None));
    assert_eq!((begun.gain, begun.muted, begun.ports), (1.0, false, [0; 32]));
    let gain = Some(Gain::new(0.5).unwrap());
    let set =
        scenario.streams.set_volume((1, process(1)), Permissions::NONE, number, (gain, Some(true)));
    assert!(set.is_ok());
    assert_eq!((state().gain, state().muted), (0.5, true));
    assert_eq!(scenario.move_to(1, number, "other"), Ok(()));
    assert_eq!(state().device.further(), Some("other"), "it is on its way");
    let ports = StreamPorts { client: 1, ordinal: 1, ports: vec![7, 9], slabs: Vec::new() };
    scenario.streams.streams.get_mut(&number).unwrap().ports = Some(ports);
    scenario.streams.show_state(number);
    assert_eq!(state().ports[..3], [7, 9, 0]);
}

#[test]
fn a_program_that_converts_again_is_asked_to_open_its_stream_where_it_does_not_fit() {
    let (mut scenario, _other, plain) = begun();
    let (own, _) = stream_rings();
    let end = DeviceEnd::new(own, Arc::new(DeviceShared::new(DeviceState::Parked)));
    let facts = facts_of(96_000, 1, 0);
    scenario.streams.devices.insert("fast".into(), facts, end, None, None);
    let (number, shape) = scenario.open(1, NewStream { reopens: true, ..stereo() }).unwrap();
    assert!(refusal(scenario.move_to(1, number, "fast")).contains("not begun"));
    scenario.begin(1, number, shape).unwrap();
    scenario.ordered();
    let status = |scenario: &Scenario| {
        let status = scenario.streams.statuses_after(number - 1, 0).remove(0);
        (status.device, status.wanted)
    };
    assert!(refusal(scenario.move_to(2, number, "fast")).contains("another program's"));
    assert_eq!(scenario.move_to(1, number, "fast"), Ok(()));
    assert_eq!(status(&scenario), (None, Some("fast".into())), "it plays on where it is");
    assert_eq!(scenario.ordered(), [""; 0]);
    assert_eq!(scenario.move_to(1, number, "system"), Ok(()));
    assert_eq!(status(&scenario), (None, None), "it is to stay");
    assert_eq!(scenario.move_to(1, number, "other"), Ok(()));
    assert_eq!(status(&scenario), (Some("other".into()), None), "where it fits, it is moved");
    let monitor = NewStream { direction: Direction::Monitor, reopens: true, ..stereo() };
    let number = scenario.monitoring(1, monitor);
    assert_eq!(scenario.move_to(1, number, "fast"), Ok(()));
    let status = scenario.streams.statuses_after(number - 1, 0).remove(0);
    assert_eq!((status.device, status.wanted), (None, Some("fast".into())), "also a monitor");
    assert!(refusal(scenario.move_to(1, plain, "fast")).contains("48000 Hz"));
}
