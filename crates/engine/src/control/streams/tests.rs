mod devices;
mod kept_volumes;
mod moving;
mod populating;

use device::{Channels, DeviceLatency};
use proto::limits::{STREAM_NAME_BYTES, STREAMS_OF_PROCESS, STREAMS_OF_PROGRAM};
use proto::stream::{DeviceState, DeviceVolume, Gain, NewStream, VolumeSource, Watched};
use rt::shm::WishPage;
use rt::stream::Gains;
use sys::clock::now_ns;
use sys::memory::OwnRing;

use super::beginning::Beginning;
use super::*;
use crate::opening::DriverFacts;
use crate::policy::Permissions;
use crate::realtime_limits::Locking;
use crate::stream_part::StreamDevice;

/// The owner, and the driver thread's side of it.
struct Scenario {
    streams: Streams,
    orders: Consumer<StreamOrder>,
    returns: Producer<StreamReturn>,
    device: DriverFacts,
}

fn device(playback: u32) -> DriverFacts {
    DriverFacts {
        description: "timer".into(),
        channels: Channels { capture: 0, playback, monitors: 0 },
        sample_rate_hz: 48_000,
        latency: DeviceLatency::default(),
        loops: false,
        when_done: false,
        plays_streams: true,
        captures: true,
        quanta: proto::limits::QUANTUM_FRAMES,
        devices: Vec::new(),
        why_away: Arc::default(),
        rest_call: Arc::default(),
    }
}

fn stereo() -> NewStream {
    NewStream {
        program: "player".into(),
        name: "song".into(),
        device: None,
        direction: Direction::Playback,
        channels: vec![0, 1],
        depth_frames: 4800,
        samples: 0,
        account: 0,
        lets_sleep: false,
        reopens: false,
    }
}

/// The process of a peer; peers 1 and 11 are the same process.
fn process(peer: u64) -> u32 {
    peer as u32 % 10
}

impl Scenario {
    fn new() -> Self {
        let (own, (orders, returns)) = stream_rings();
        let driver = Arc::new(DeviceShared::new(DeviceState::Cycling));
        let streams = Streams::new(own, driver, StreamLimits::within(None));
        Self { streams, orders, returns, device: device(2) }
    }

    fn open(&mut self, peer: u64, new: NewStream) -> Result<(u32, RingShape), RequestError> {
        let granted = self.streams.open(peer, process(peer), new, &self.device)?;
        Ok((granted.stream, granted.shape))
    }

    /// A program sends the memory of a stream.
    fn begin(&mut self, peer: u64, number: u32, shape: RingShape) -> Result<bool, RequestError> {
        let ring = OwnRing::create(shape).unwrap();
        let ring = ring.segment().fd().try_clone_to_owned().unwrap();
        let locking = Locking::Nothing;
        match self.streams.begin(peer, (number, 0), ring, &self.device, locking)? {
            Beginning::Begun { stream, .. } => Ok(self.streams.start(stream, &self.device)),
            Beginning::TooLarge(shape) => panic!("nothing is locked: {shape:?}"),
        }
    }

    /// How often the driver thread was called.
    fn calls(&self) -> u32 {
        self.streams.devices.driver.shared.call.count()
    }

    fn begun(&mut self, peer: u64) -> u32 {
        let (number, shape) = self.open(peer, stereo()).unwrap();
        self.begin(peer, number, shape).unwrap();
        number
    }

    /// What the driver thread is to do, in words.
    fn ordered(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok(order) = self.orders.pop() {
            all.push(match order {
                StreamOrder::Begin(_) => "begin".into(),
                StreamOrder::Add(stream) => {
                    let number = stream.memory().stream;
                    // It keeps what it is given until it is to give it back.
                    self.returns.push(StreamReturn::Stream(stream)).unwrap();
                    format!("add {number}")
                }
                StreamOrder::Feed { stream, .. } => format!("feed {stream}"),
                StreamOrder::Hear { stream, channels } => format!("hear {stream} {channels}"),
                StreamOrder::Route { stream, channel, .. } => format!("route {stream} {channel}"),
                StreamOrder::Keep(_) => "keep".into(),
                StreamOrder::Record(recorder) => {
                    let number = recorder.memory().stream;
                    self.returns.push(StreamReturn::Recorder(recorder)).unwrap();
                    format!("record {number}")
                }
                StreamOrder::Close(number) => format!("close {number}"),
                StreamOrder::End => "end".into(),
            });
        }
        all
    }
}

fn refusal<T>(result: Result<T, RequestError>) -> String {
    result.err().expect("a refusal").to_string()
}

#[test]
fn the_first_stream_brings_the_loop_and_the_last_one_takes_it_away() {
    let mut scenario = Scenario::new();
    let (first, shape) = scenario.open(1, stereo()).unwrap();
    assert_eq!(shape.depth_frames(), 8192);
    assert_eq!(scenario.ordered(), [""; 0], "there is no memory yet");
    assert_eq!(scenario.begin(1, first, shape), Ok(true), "a plan has to bring it");
    let (second, shape) = scenario.open(2, stereo()).unwrap();
    assert_eq!(scenario.begin(2, second, shape), Ok(false));
    assert_eq!(scenario.streams.close(2, second), Ok(()));
    scenario.streams.peer_gone(1);
    assert_eq!(scenario.calls(), 2, "to end each of them");
    let expected = ["begin", "add 1", "add 2", "close 2", "close 1"];
    assert_eq!(scenario.ordered(), expected);
    assert!(!scenario.streams.is_empty(), "they fade out");
    scenario.streams.take_returns();
    assert_eq!(scenario.calls(), 3);
    assert_eq!((scenario.ordered(), scenario.streams.is_empty()), (vec!["end".into()], true));
    assert_eq!(scenario.streams.budget.used(), 0);
}

#[test]
fn the_driver_thread_takes_a_new_stream_soon_if_nobody_calls() {
    let mut scenario = Scenario::new();
    scenario.begun(1);
    let due_ns = scenario.streams.devices.driver.calls.due_ns().expect("a call is due");
    scenario.streams.call_if_due(due_ns - 1);
    assert_eq!(scenario.calls(), 0, "its program is about to call");
    scenario.streams.call_if_due(due_ns);
    assert_eq!(scenario.calls(), 1);
}

#[test]
fn a_stream_belongs_to_the_program_that_opened_it() {
    let mut scenario = Scenario::new();
    let number = scenario.begun(1);
    let page = scenario.streams.streams[&number].page().has_ended();
    assert!(!page);
    for foreign in [scenario.streams.close(2, number), scenario.streams.close(1, number + 1)] {
        assert!(refusal(foreign).contains("there is no stream"));
    }
    assert_eq!(scenario.streams.close(1, number), Ok(()));
    assert!(refusal(scenario.streams.close(1, number)).contains("has ended"), "once");
    assert!(refusal(scenario.streams.awaited_shape(1, number)).contains("has ended"));
}

#[test]
fn what_no_device_can_play_is_refused_in_words() {
    let mut scenario = Scenario::new();
    let long = "n".repeat(STREAM_NAME_BYTES + 1);
    for (new, words) in [
        (NewStream { channels: Vec::new(), ..stereo() }, "use 1 to 32"),
        (NewStream { channels: vec![0; 33], ..stereo() }, "use 1 to 32"),
        (NewStream { channels: vec![0, 2], ..stereo() }, "no channel 2"),
        (NewStream { direction: Direction::Record, ..stereo() }, "it captures 0 channels"),
        (NewStream { direction: Direction::Monitor, channels: vec![2], ..stereo() }, "it plays 2"),
        (NewStream { name: String::new(), ..stereo() }, "the stream's name"),
        (NewStream { program: "a\nb".into(), ..stereo() }, "the program's name"),
        (NewStream { name: long.clone(), ..stereo() }, "the stream's name"),
        (NewStream { device: Some(long), ..stereo() }, "no device has a name of more than 64"),
        (NewStream { samples: 2, ..stereo() }, "samples that lie like number 2"),
        (NewStream { channels: vec![0; 3], samples: 1, ..stereo() }, "of 3 channels, has samples"),
        (NewStream { direction: Direction::Monitor, samples: 1, ..stereo() }, "like number 1"),
    ] {
        let text = refusal(scenario.open(1, new));
        assert!(text.contains(words), "{text}");
    }
    scenario.device.plays_streams = false;
    assert!(refusal(scenario.open(1, stereo())).contains("plays no streams yet"));
    assert!(scenario.streams.is_empty());
}

#[test]
fn a_program_can_not_take_all_streams() {
    let mut scenario = Scenario::new();
    for _ in 0..STREAMS_OF_PROGRAM {
        scenario.open(1, NewStream { channels: vec![0], depth_frames: 0, ..stereo() }).unwrap();
    }
    assert!(refusal(scenario.open(1, stereo())).contains("one program"));
    assert!(refusal(scenario.open(11, stereo())).contains("one program"), "the same process");
    assert!(scenario.open(2, stereo()).is_ok());
    // Without memory there is nothing that the driver thread would have to give back.
    scenario.streams.peer_gone(1);
    assert_eq!(scenario.calls(), 0);
    assert!(scenario.open(1, stereo()).is_ok());
}

#[test]
fn a_process_that_plays_for_others_has_streams_for_hundreds() {
    let mut scenario = Scenario::new();
    let mut small = |peer, account| {
        let new = NewStream { channels: vec![0], depth_frames: 0, account, ..stereo() };
        scenario.open(peer, new)
    };
    for number in 0..STREAMS_OF_PROGRAM {
        small(1, 1).unwrap_or_else(|error| panic!("{number}: {error}"));
    }
    assert!(refusal(small(1, 1)).contains("one program"));
    for number in STREAMS_OF_PROGRAM..STREAMS_OF_PROCESS {
        small(1, 2 + number as u32 % 500).unwrap_or_else(|error| panic!("{number}: {error}"));
    }
    assert!(refusal(small(1, 1000)).contains("one process for others"));
    assert!(small(2, 0).is_ok());
    // A process that cannot be seen is one program, whatever it says.
    for account in 0..STREAMS_OF_PROGRAM as u32 {
        small(10, account).unwrap_or_else(|error| panic!("{account}: {error}"));
    }
    assert!(refusal(small(10, 1000)).contains("one program"));
    assert!(refusal(small(20, 0)).contains("one program"), "on another connection as well");
}

#[test]
fn memory_of_another_shape_begins_nothing() {
    let mut scenario = Scenario::new();
    let (number, shape) = scenario.open(1, stereo()).unwrap();
    for wrong in [shape.halved().unwrap(), RingShape::new(1, shape.capacity_frames()).unwrap()] {
        assert!(matches!(scenario.begin(1, number, wrong), Err(RequestError::Memory(_))));
    }
    assert_eq!(scenario.ordered(), [""; 0]);
    assert_eq!(scenario.begin(1, number, shape), Ok(true));
    assert!(refusal(scenario.begin(1, number, shape)).contains("sent before"));
}

#[test]
fn streams_of_a_device_that_has_gone_have_ended() {
    let mut scenario = Scenario::new();
    let number = scenario.begun(1);
    let State::Begun(page) = &scenario.streams.streams[&number].state else { panic!("begun") };
    let page = Arc::clone(page);
    scenario.ordered();
    let device = StreamDevice::new(48_000, 2, Gains::default(), 64);
    // A player watches devices, and sleeps as long as it has frames queued.
    scenario.streams.watches.wait(Ticket { peer: 1, number: 9 }, 0, Watched::Devices).unwrap();
    scenario.returns.push(StreamReturn::Device { device, is_cut: true }).unwrap();
    scenario.streams.take_returns();
    assert!(page.has_ended() && scenario.streams.is_empty());
    assert_eq!(scenario.streams.watches.take_due(0).len(), 1, "its program is woken");
    assert_eq!(scenario.ordered(), [""; 0], "the loop is back already");
    let (number, shape) = scenario.open(1, stereo()).unwrap();
    assert_eq!(scenario.begin(1, number, shape), Ok(true), "another one is needed");
}

#[test]
fn the_volume_of_another_programs_stream_needs_the_permission_to_patch() {
    let mut scenario = Scenario::new();
    let number = scenario.begun(1);
    let half = (Some(Gain::new(0.5).unwrap()), None);
    let mut set = |peer: u64, permissions, change| {
        scenario.streams.set_volume((peer, process(peer)), permissions, number, change)
    };
    let own = set(1, Permissions::NONE, half).unwrap();
    assert_eq!((own.gain.factor(), own.muted), (0.5, false));
    let same = set(11, Permissions::NONE, (None, Some(true))).unwrap();
    assert_eq!((same.gain.factor(), same.factor()), (0.5, 0.0), "the same process");
    assert!(refusal(set(2, Permissions::NONE, half)).contains("another program's stream"));
    assert!(set(2, Permissions { patch: true, ..Permissions::NONE }, (None, Some(false))).is_ok());
    let status = scenario.streams.statuses_after(0, 0).remove(0);
    assert_eq!(status.volume.factor(), 0.5);
    assert_eq!(scenario.streams.streams[&number].gain.get(), 0.5, "for the driver thread");
    let unknown = scenario.streams.set_volume((1, 1), Permissions::ALL, number + 1, half);
    assert!(refusal(unknown).contains("there is no stream"));
}

#[test]
fn who_changed_the_volume_of_a_stream_is_shown() {
    let mut scenario = Scenario::new();
    let number = scenario.begun(1);
    let mut sources = |peer: u64, change| {
        let whose = (peer, process(peer));
        scenario.streams.set_volume(whose, Permissions::ALL, number, change).unwrap();
        let VolumeSources { gain, muted } =
            scenario.streams.statuses_after(0, 0).remove(0).volume_sources;
        (gain, muted)
    };
    let half = (Some(Gain::new(0.5).unwrap()), None);
    let (nobody, own, other) =
        (VolumeSource::Nobody, VolumeSource::Program, VolumeSource::OtherProgram);
    assert_eq!(sources(1, half), (own, nobody));
    assert_eq!(sources(2, (None, Some(true))), (own, other));
    assert_eq!(sources(11, (Some(Gain::UNITY), None)), (own, other), "the same process");
    assert_eq!(sources(2, half), (other, other));
}

#[test]
fn the_volume_of_the_device_needs_the_permission_to_control() {
    let mut scenario = Scenario::new();
    let muted = (None, Some(true));
    let without = Permissions { control: false, ..Permissions::ALL };
    assert!(refusal(scenario.streams.set_device_volume(without, None, muted)).contains("device"));
    assert_eq!(scenario.streams.devices.driver.volume, DeviceVolume::default());
    let may = Permissions { control: true, ..Permissions::NONE };
    assert!(scenario.streams.set_device_volume(may, None, muted).unwrap().muted);
}

#[test]
fn routes_wait_for_room_and_leave_it_to_streams_that_end() {
    let mut scenario = Scenario::new();
    let number = scenario.begun(1);
    let to = |pairs: &[(usize, usize)]| pairs.iter().copied().collect::<Routes>();
    let both = [to(&[(0, 0), (1, 1)]), to(&[(0, 1), (1, 0)])];
    let reroute = |scenario: &mut Scenario, routes: Routes| {
        scenario.streams.streams.get_mut(&number).unwrap().routes = routes;
        scenario.streams.rerouted.insert(number);
        scenario.streams.order_routes();
    };
    for turn in 0..1000 {
        reroute(&mut scenario, both[turn % 2]);
    }
    assert_eq!(scenario.streams.devices.driver.orders.slots(), LASTING_ORDERS);
    let due_ns = scenario.streams.devices.driver.calls.due_ns();
    assert!(scenario.streams.rerouted.contains(&number) && due_ns.is_some());
    // The driver thread takes them; the newest come after them.
    let taken = scenario.ordered().len();
    assert_eq!(taken, ROUTE_ORDERS, "with those that began the stream");
    reroute(&mut scenario, to(&[(0, 1)]));
    let ordered = scenario.streams.streams[&number].ordered;
    assert_eq!((ordered, scenario.streams.rerouted.len()), (to(&[(0, 1)]), 0));
    assert_eq!(scenario.streams.close(1, number), Ok(()));
    assert_eq!(scenario.ordered().last(), Some(&format!("close {number}")));
}

#[test]
fn the_first_stream_that_monitors_brings_room_to_keep_what_leaves_the_device() {
    let mut scenario = Scenario::new();
    let new = NewStream { direction: Direction::Monitor, ..stereo() };
    for expected in [&["begin", "keep", "record 1"][..], &["record 2"]] {
        let (number, _) = scenario.open(1, new.clone()).unwrap();
        let (_, wishes) = Shared::<WishPage>::for_readers("wishes").unwrap();
        let locking = Locking::Nothing;
        let (streams, device) = (&mut scenario.streams, &scenario.device);
        let begun = streams.begin_recording(1, (number, 0), wishes, device, locking).unwrap();
        let Beginning::Begun { ring, stream } = begun else { panic!("nothing is locked") };
        assert!(ring.is_some(), "the ring is the server's");
        assert_eq!(scenario.ordered(), [""; 0], "its program is answered first");
        scenario.streams.start(stream, &scenario.device);
        assert_eq!(scenario.ordered(), expected);
    }
    let wide = device(100);
    let refused = scenario.streams.open(1, 1, new, &wide).map(|granted| granted.stream);
    assert!(refusal(refused).contains("too much memory"));
    assert!(scenario.streams.statuses_after(0, 0)[0].direction == Direction::Monitor);
}
