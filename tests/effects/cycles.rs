//! Process threads, cycles, delays and time.

use harness::{Server, eventually};
use rustix::process::Signal;

use crate::actors::Step::{A, B, Status};
use crate::actors::{Actor, Row, take};

const THREADS: &[Row] = &[
    (
        "jack_client_thread_id is the thread of the process callback, with the priority that is reported",
        &[
            A("activate", "0"),
            A("await_cycle", "ran"),
            A("client_thread_id", "the same"),
            A("client_real_time_priority", "as the kernel says"),
            A("is_realtime", "1"),
        ],
    ),
    (
        "jack_set_process_thread runs a client's cycles in its own loop, and the server counts it active",
        &[
            A("set_process_thread", "0"),
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            A("connect a:out system:playback_1", "0"),
            A("await_cycle", "ran"),
            A("client_thread_id", "the same"),
            B("port_get_all_connections system:playback_1", "a:out"),
            A("cycles_of_wrong_size", "0"),
        ],
    ),
    (
        "jack_client_create_thread runs a function with its argument",
        &[A("client_create_thread word", "0 word")],
    ),
    (
        "jack_set_thread_creator makes the process thread of who is activated then",
        &[
            A("activate", "0"),
            A("await_cycle", "ran"),
            A("process_thread_by", "the library"),
            A("deactivate", "0"),
            A("set_thread_creator own", "done"),
            A("activate", "0"),
            A("await_cycle", "ran"),
            A("process_thread_by", "the program"),
            A("client_thread_id", "the same"),
            A("client_real_time_priority", "as the kernel says"),
            A("deactivate", "0"),
            A("cycles_go_on", "no"),
        ],
    ),
    (
        "jack_set_thread_creator makes the notification thread of who is opened then",
        &[
            A("set_thread_creator own", "done"),
            A("second_open second", "ok"),
            A("second_activate", "0"),
            A("second_threads_by", "the program"),
            A("second_close", "0"),
        ],
    ),
    (
        "a process callback that fails leaves the graph: no further cycles, no connections",
        &[
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            A("connect a:out system:playback_1", "0"),
            A("await_cycle", "ran"),
            A("fail_cycle", "done"),
            B("port_get_all_connections system:playback_1", "(null)"),
            A("cycles_go_on", "no"),
            Status("/connections", "0"),
        ],
    ),
    (
        "jack_cpu_load is a part of the whole",
        &[A("activate", "0"), A("cpu_load", "in percent"), B("cpu_load", "in percent")],
    ),
    (
        "jack_get_sample_rate and jack_get_buffer_size are the server's",
        &[
            B("get_sample_rate", "48000"),
            B("get_buffer_size", "256"),
            Status("/sample_rate_hz", "48000"),
        ],
    ),
];

#[test]
fn threads_and_cycles_are_as_reported() {
    take(THREADS);
}

#[test]
fn threads_of_programs_stay_below_the_driver() {
    for (options, priorities) in [
        (["--realtime-priority", "70"].as_slice(), "65 69"),
        (&["--realtime-priority", "3"], "1 2"),
        (&["--no-realtime"], "-1 -1"),
    ] {
        let server = Server::start(options);
        let (mut actor, _) = Actor::open(&server, "a", "a", "");
        assert_eq!(actor.ask("priorities"), priorities, "{options:?}");
    }
}

#[test]
fn a_client_may_be_closed_within_its_cycle() {
    let server = Server::timer(256);
    let (mut actor, _) = Actor::open(&server, "closing", "closing", "");
    let id = actor.id();
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("a running program");
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        tasks
            .filter_map(name)
            .filter(|name| name.starts_with("closing") || name.starts_with("consort-"))
            .count()
    };
    for order in ["port_register out audio o", "activate", "connect closing:out system:playback_1"]
    {
        actor.ask(order);
    }
    assert_eq!(actor.ask("await_cycle"), "ran");
    assert_eq!(actor.ask("close_in_cycle"), "0");
    eventually("the client and its ports are gone", || {
        (!server.has_ports("closing")).then_some(())
    });
    assert_eq!(actor.ask("cycles_go_on"), "no");
    eventually("its threads are gone", || (threads() == 0).then_some(()));
    assert_eq!(server.status().connections, 0);
}

#[test]
fn a_late_client_is_an_xrun_for_all_clients() {
    let server = Server::timer(256);
    let (mut late, _) = Actor::open(&server, "late", "late", "");
    let (mut observer, _) = Actor::open(&server, "observer", "observer", "");
    for order in ["port_register out audio o", "activate", "connect late:out system:playback_1"] {
        late.ask(order);
    }
    observer.ask("activate");
    assert_eq!(late.ask("await_cycle"), "ran");
    late.signal(Signal::STOP);
    observer.await_event("a client does not finish", "xrun");
    eventually("the server counts it", || (server.status().xruns > 0).then_some(()));
    late.signal(Signal::CONT);
    let delayed =
        |actor: &mut Actor| actor.ask("get_max_delayed_usecs").parse::<f32>().expect("a number");
    eventually("a delay is reported", || (delayed(&mut observer) > 0.0).then_some(()));
    assert_eq!(observer.ask("get_xrun_delayed_usecs"), "some");
    // A busy machine may have the next xrun at once.
    eventually("one resets it, the other reads none", || {
        assert_eq!(observer.ask("reset_max_delayed_usecs"), "done");
        (delayed(&mut late) == 0.0).then_some(())
    });
}

#[test]
fn frame_times_are_one_clock_for_all_processes() {
    let server = Server::timer(256);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    for actor in [&mut a, &mut b] {
        assert_eq!(actor.ask("activate"), "0");
        assert_eq!(actor.ask("await_cycle"), "ran");
    }
    let number = |text: String| text.parse::<u64>().expect("a number");
    let mut before = [0; 3];
    for _ in 0..20 {
        for actor in [&mut a, &mut b] {
            let now =
                ["frame_time", "last_frame_time", "get_time"].map(|order| number(actor.ask(order)));
            for (now, before) in now.iter().zip(&before) {
                assert!(now >= before, "{now:?} comes after {before:?}");
            }
            before = now;
        }
    }
}

/// What the library reported to a client, all of it inside one cycle.
#[derive(Debug)]
struct CycleTimes {
    result: u64,
    first_frame: u64,
    last_frame_time: u64,
    back: u64,
    since_begin: u64,
    since_later: u64,
    start_us: u64,
    next_us: u64,
    start_again_us: u64,
    next_again_us: u64,
    length_us: u64,
}

impl CycleTimes {
    fn of(actor: &mut Actor) -> Self {
        let answer = actor.ask("measure_cycle");
        let numbers: Vec<u64> =
            answer.split(' ').filter_map(|number| number.parse().ok()).collect();
        let Ok(numbers) = <[u64; 11]>::try_from(numbers) else { panic!("not measured: {answer}") };
        let [
            result,
            first_frame,
            last_frame_time,
            back,
            since_begin,
            since_later,
            start_us,
            next_us,
            ..,
        ] = numbers;
        let [.., start_again_us, next_again_us, length_us] = numbers;
        Self {
            result,
            first_frame,
            last_frame_time,
            back,
            since_begin,
            since_later,
            start_us,
            next_us,
            start_again_us,
            next_again_us,
            length_us,
        }
    }
}

#[test]
fn all_times_read_in_a_cycle_are_this_cycles() {
    let server = Server::timer(1024);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    for actor in [&mut a, &mut b] {
        assert_eq!(actor.ask("activate"), "0");
        assert_eq!(actor.ask("await_cycle"), "ran");
    }
    for _ in 0..10 {
        let cycle = CycleTimes::of(&mut a);
        assert_eq!((cycle.result, cycle.last_frame_time), (0, cycle.first_frame), "{cycle:?}");
        // Times are rounded to microseconds, of which a frame has 20.
        assert!(cycle.first_frame.abs_diff(cycle.back) <= 1, "{cycle:?}");
        assert!(cycle.start_us.abs_diff(cycle.start_again_us) <= 1, "{cycle:?}");
        assert!(cycle.next_us.abs_diff(cycle.next_again_us) <= 1, "{cycle:?}");
        assert!((cycle.next_us - cycle.start_us).abs_diff(cycle.length_us) <= 2, "{cycle:?}");
        // It slept for 2 ms in between, which are 96 frames.
        assert!(cycle.since_later >= cycle.since_begin + 95, "{cycle:?}");
        // Another process, in a later cycle: not exact, but far from another origin or unit.
        let date_us: u64 =
            b.ask(&format!("frames_to_time {}", cycle.first_frame)).parse().expect("a time");
        assert!(date_us.abs_diff(cycle.start_us) < 1_000_000, "{date_us} in b, {cycle:?} in a");
        let frame: u64 =
            b.ask(&format!("time_to_frames {}", cycle.start_us)).parse().expect("a frame");
        assert!(frame.abs_diff(cycle.first_frame) < 48_000, "{frame} in b, {cycle:?} in a");
    }
}
