//! What one process does, callbacks of another tell.

use harness::Server;

use crate::actors::Step::{A, BDoes, Ls, Status, ToldA, ToldB};
use crate::actors::{Actor, Row, take};

const TOLD: &[Row] = &[
    (
        "port registration, connection, renaming and order callbacks tell what another client does",
        &[
            BDoes("activate", "0"),
            A("port_register early audio o", "ok"),
            // Ports of a client that is not active yet are told of when it is.
            A("activate", "0"),
            ToldB("port a:early came"),
            A("port_register out audio o", "ok"),
            ToldB("port a:out came"),
            A("connect a:out system:playback_1", "0"),
            ToldB("a:out to system:playback_1"),
            ToldB("order"),
            A("port_rename a:out left", "0 from a:out to a:left"),
            ToldB("port a:out is now a:left"),
            A("disconnect a:left system:playback_1", "0"),
            ToldB("a:left no more to system:playback_1"),
            ToldB("order"),
            A("port_unregister a:left", "0"),
            ToldB("port a:left went"),
        ],
    ),
    (
        "jack_client_close takes ports and connections away, and others are told of each and of the client",
        &[
            BDoes("activate", "0"),
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            A("connect a:out system:playback_1", "0"),
            ToldB("a:out to system:playback_1"),
            A("client_close", "0"),
            ToldB("a:out no more to system:playback_1"),
            ToldB("port a:out went"),
            ToldB("client a went"),
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
            ToldB("a:out to system:playback_1"),
            A("deactivate", "0"),
            ToldB("a:out no more to system:playback_1"),
            ToldB("order"),
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
            ToldB("quantum 512"),
            ToldA("quantum 512"),
            BDoes("get_buffer_size", "512"),
            BDoes("port_type_get_buffer_size audio", "2048"),
            Status("/quantum", "512"),
            BDoes("set_buffer_size 128", "0"),
            ToldB("quantum 128"),
            ToldA("quantum 128"),
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
            ToldA("a thread begins"),
            ToldA("a thread begins"),
            BDoes("set_buffer_size 512", "0"),
            ToldA("quantum 512"),
        ],
    ),
    (
        "jack_set_buffer_size of nothing is refused, and nothing changes",
        &[A("set_buffer_size 0", "-1"), BDoes("get_buffer_size", "256"), Status("/quantum", "256")],
    ),
];

#[test]
fn callbacks_tell_what_another_process_has_done() {
    take(TOLD);
}

#[test]
fn a_client_hears_of_other_clients_and_not_of_itself() {
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

/// With `JackFailure | JackServerError` and the reason, where it asks for them; and only so where
/// it asks for both.
#[test]
fn a_stopping_server_calls_one_shutdown_callback_once() {
    const WITH_REASON: &str = "shutdown 0x21 a program asked for it";
    let server = Server::timer(256);
    let asked = [
        ("informed", "", WITH_REASON),
        ("plain", "plain-shutdown", "shutdown"),
        ("both", "both-shutdowns", WITH_REASON),
    ];
    let mut actors = asked.map(|(name, option, told)| {
        let (mut actor, _) = Actor::open(&server, name, name, option);
        assert_eq!(actor.ask("activate"), "0");
        // On an active client, this is too late and has no effect.
        assert_eq!(actor.ask("on_info_shutdown"), "done");
        (actor, told)
    });
    server.consort(&["stop"]).expect_success();
    for (actor, told) in &mut actors {
        actor.await_event("the server has stopped", told);
    }
    // A second call would come at once after the first.
    for (actor, told) in &mut actors {
        let all: Vec<_> =
            actor.events().into_iter().filter(|event| event.starts_with("shutdown")).collect();
        assert_eq!(all, [*told]);
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
