//! Callbacks report what another process does.

use harness::Server;

use crate::actors::Step::{A, BDoes, EventA, EventB, Ls, Status};
use crate::actors::{Actor, Row, take};

const TOLD: &[Row] = &[
    (
        "port registration, connection, renaming and order callbacks tell what another client does",
        &[
            BDoes("activate", "0"),
            A("port_register early audio o", "ok"),
            // Ports of an inactive client are reported once it is active.
            A("activate", "0"),
            EventB("port a:early came"),
            A("port_register out audio o", "ok"),
            EventB("port a:out came"),
            A("connect a:out system:playback_1", "0"),
            EventB("a:out to system:playback_1"),
            EventB("order"),
            A("port_rename a:out left", "0 from a:out to a:left"),
            EventB("port a:out is now a:left"),
            A("disconnect a:left system:playback_1", "0"),
            EventB("a:left no longer to system:playback_1"),
            EventB("order"),
            A("port_unregister a:left", "0"),
            EventB("port a:left went"),
        ],
    ),
    (
        "jack_client_close takes ports and connections away, and others are notified of each and of the client",
        &[
            BDoes("activate", "0"),
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            A("connect a:out system:playback_1", "0"),
            EventB("a:out to system:playback_1"),
            A("client_close", "0"),
            EventB("a:out no longer to system:playback_1"),
            EventB("port a:out went"),
            EventB("client a went"),
            Ls("a:out", "/name", "null"),
        ],
    ),
    (
        "jack_deactivate takes the connections away and tells, but leaves the ports",
        &[
            BDoes("activate", "0"),
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            A("connect a:out system:playback_1", "0"),
            EventB("a:out to system:playback_1"),
            A("deactivate", "0"),
            EventB("a:out no longer to system:playback_1"),
            EventB("order"),
            Ls("a:out", "/connections", "[]"),
            Ls("a:out", "/name", r#""a:out""#),
        ],
    ),
    (
        "jack_set_buffer_size tells every client before the first cycle of the new quantum",
        &[
            BDoes("activate", "0"),
            A("activate", "0"),
            A("set_buffer_size 512", "0"),
            EventB("quantum 512"),
            EventA("quantum 512"),
            BDoes("get_buffer_size", "512"),
            BDoes("port_type_get_buffer_size audio", "2048"),
            Status("/quantum", "512"),
            BDoes("set_buffer_size 128", "0"),
            EventB("quantum 128"),
            EventA("quantum 128"),
            Status("/quantum", "128"),
            BDoes("await_cycle", "ran"),
            BDoes("cycles_of_wrong_size", "0"),
            A("cycles_of_wrong_size", "0"),
        ],
    ),
    (
        "jack_set_thread_init_callback runs on each of the library's threads before other callbacks",
        &[
            A("activate", "0"),
            EventA("a thread begins"),
            EventA("a thread begins"),
            BDoes("set_buffer_size 512", "0"),
            EventA("quantum 512"),
        ],
    ),
    (
        "jack_set_buffer_size of nothing is refused, and nothing changes",
        &[A("set_buffer_size 0", "-1"), BDoes("get_buffer_size", "256"), Status("/quantum", "256")],
    ),
];

#[test]
fn callbacks_report_changes_by_another_process() {
    take(TOLD);
}

#[test]
fn a_client_is_notified_of_other_clients_only() {
    let server = Server::timer(256);
    let (mut observer, _) = Actor::open(&server, "observer", "observer", "");
    assert_eq!(observer.ask("activate"), "0");
    let (mut other, _) = Actor::open(&server, "other", "other", "");
    observer.await_event("opened", "client other came");
    assert_eq!(other.ask("client_close"), "0");
    observer.await_event("closed", "client other went");
    let clients = observer.events().into_iter().filter(|event| event.starts_with("client "));
    assert_eq!(clients.collect::<Vec<_>>(), ["client other came", "client other went"]);
}

/// The callback gets `JackFailure | JackServerError` and the reason if it was set with
/// `jack_on_info_shutdown`, and it is the only one called if both are set.
#[test]
fn a_stopping_server_calls_one_shutdown_callback_once() {
    const WITH_REASON: &str = "shutdown 0x21 a program asked for it";
    let server = Server::timer(256);
    let asked = [
        ("informed", "", WITH_REASON),
        ("plain", "plain-shutdown", "shutdown"),
        ("both", "both-shutdowns", WITH_REASON),
    ];
    let mut actors = asked.map(|(name, option, expected)| {
        let (mut actor, _) = Actor::open(&server, name, name, option);
        assert_eq!(actor.ask("activate"), "0");
        // On an active client, this is too late and has no effect.
        assert_eq!(actor.ask("on_info_shutdown"), "done");
        (actor, expected)
    });
    server.consort(&["stop"]).expect_success();
    for (actor, expected) in &mut actors {
        actor.await_event("the server has stopped", expected);
    }
    // A second call would come immediately after the first.
    for (actor, expected) in &mut actors {
        let all: Vec<_> =
            actor.events().into_iter().filter(|event| event.starts_with("shutdown")).collect();
        assert_eq!(all, [*expected]);
    }
}

#[test]
fn jack_set_sample_rate_callback_calls_back_before_it_returns() {
    let server = Server::start(&["--rate", "44100", "--quantum", "256"]);
    let (mut a, _) = Actor::open(&server, "a", "a", "");
    let (mut b, _) = Actor::open(&server, "b", "b", "");
    for actor in [&mut a, &mut b] {
        assert_eq!(actor.ask("set_sample_rate_callback"), "0 44100");
        assert_eq!(actor.ask("activate"), "0");
        assert_eq!(actor.ask("set_sample_rate_callback"), "-1 0");
    }
}
