//! Clients that claim to come from an earlier server: only what is possible is accepted.

use harness::Server;
use proto::hello::{Hello, Returning, Role, encode_first};
use proto::request::{Reply, Request, RequestError, ReturningConnection, ReturningPort, SlabSlot};
use rt::shm::{EngineSegment, LAYOUT_VERSION};
use sys::memory::{Access, Segment, SegmentRequirements, Shared};

use crate::wire::{
    ByHand, INPUT, OUTPUT, QUANTUM_FRAMES, Wire, assert_says, port, server, with_bystanders,
};

/// The time at which a claim is sent.
const AT_ONCE: u64 = 0;

/// The first packet of a client of another server.
fn returning(client: u32, name: &str) -> Returning {
    Returning {
        client,
        uuid: proto::property::client_uuid(client),
        name: name.into(),
        instance: 1,
        frames: 0,
        at_ns: AT_ONCE,
        quantum: QUANTUM_FRAMES,
        sample_rate_hz: 48_000,
        last_client: 0,
        last_port: 0,
        transport: None,
    }
}

/// The time is read now: a server that lost cycles is at an earlier frame than an older time
/// suggests.
fn sent_now(claim: Returning) -> Role {
    let at_ns = if claim.at_ns == AT_ONCE { sys::clock::now_ns() } else { claim.at_ns };
    Role::Returning(Returning { at_ns, ..claim })
}

fn instance(server: &Server) -> u64 {
    let (_, mut memory) = Wire::connect(server).greet(Role::Observer);
    let wanted = SegmentRequirements::exactly(size_of::<EngineSegment>() as u64);
    let segment = Segment::receive(memory.swap_remove(0), &wanted).expect("the engine segment");
    Shared::<EngineSegment>::open(&segment, Access::ReadOnly)
        .expect("the engine segment")
        .instance()
}

#[test]
fn an_impossible_returning_client_is_refused_with_the_reason() {
    let now_ns = sys::clock::now_ns();
    let cases = [
        ("another rate", Returning { sample_rate_hz: 44_100, ..returning(9, "bad") }, "44100 Hz"),
        (
            "a clock ahead of others",
            Returning { frames: 1 << 24, ..returning(9, "bad") },
            "comes too late",
        ),
        (
            "the largest clock",
            Returning { frames: u64::MAX, at_ns: u64::MAX, ..returning(9, "bad") },
            "cannot have come to frame",
        ),
        (
            "a time in the future",
            Returning { at_ns: now_ns + (1 << 50), ..returning(9, "bad") },
            "cannot have come to frame 0",
        ),
        ("an empty name", returning(9, " "), "must not be empty"),
        ("a name that is taken", returning(9, "chk"), "'chk' is taken"),
        ("the server's own number", returning(1, "bad"), "in use or out of range"),
        ("a number in use", returning(2, "bad"), "in use or out of range"),
        ("no number", returning(0, "bad"), "in use or out of range"),
        ("the largest number", returning(u32::MAX, "bad"), "in use or out of range"),
    ];
    with_bystanders(server, |server| {
        let of_this_server = (
            "closed by this server",
            Returning { instance: instance(server), ..returning(9, "bad") },
            "has closed client 'bad'",
        );
        for (case, claim, words) in cases.iter().cloned().chain([of_this_server]) {
            let mut wire = Wire::connect(server);
            wire.send(&encode_first(&Hello { layout: LAYOUT_VERSION, role: sent_now(claim) }), &[]);
            assert_says(case, &wire.sent_away(), &[words]);
        }
        let all_ids =
            Returning { last_client: u32::MAX, last_port: u32::MAX, ..returning(9, "good") };
        assert_eq!(ByHand::open_as(server, sent_now(all_ids)).name, "good");
        // Reserved ids are assigned all the same when no other is left.
        let mut client = ByHand::open(server, "newcomer");
        client.register("in", INPUT);
    });
}

#[test]
fn impossible_returning_ports_are_refused_or_ignored() {
    with_bystanders(server, |server| {
        let mut client = ByHand::open_as(server, sent_now(returning(9, "bad")));
        client.add_slab();
        let slot = |slab, slot| Some(SlabSlot { slab, slot });
        let port = |id, port, aliases: &[&str]| ReturningPort {
            id,
            port,
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            capture_latency: (u32::MAX, 0),
            playback_latency: (0, u32::MAX),
        };
        let cases = [
            (
                "a number in use",
                port(1, crate::wire::port("p", INPUT, None), &[]),
                "in use or out of range",
            ),
            (
                "the largest number",
                port(u32::MAX, crate::wire::port("p", INPUT, None), &[]),
                "in use or out of range",
            ),
            (
                "no slab",
                port(90, crate::wire::port("p", OUTPUT, slot(1, 0)), &[]),
                "needs a slot in a slab",
            ),
            (
                "an alias too many",
                port(90, crate::wire::port("p", INPUT, None), &["a", "b", "c"]),
                "at most 2 aliases",
            ),
            (
                "no alias",
                port(90, crate::wire::port("p", INPUT, None), &["a\n"]),
                "control characters",
            ),
        ];
        for (case, port, words) in cases {
            assert_says(case, &client.refusal(Request::ReturnPort(port)), &[words]);
        }
        let good = port(90, crate::wire::port("out", OUTPUT, slot(0, 0)), &["alias"]);
        assert_eq!(client.wire.ask(Request::ReturnPort(good)), Reply::Done);
        client.activate();
        let connection = |source: &str, destination: &str, age| ReturningConnection {
            source: source.into(),
            destination: destination.into(),
            age,
        };
        let connections = vec![
            connection("src:out", "system:playback_1", 1),
            connection("bad:out", "nobody:in", 2),
            connection("bad:out", "bad:out", 3),
            connection("system:capture_1", "bad:out", 4),
            connection("alias", "system:playback_2", 5),
            connection("bad:out", "system:playback_1", u64::MAX),
        ];
        let too_many = vec![connection("bad:out", "system:playback_1", 1); 65];
        assert_says(
            "65 at once",
            &client.refusal(Request::ReturnConnections(too_many)),
            &["64 at a time"],
        );
        assert_eq!(client.wire.ask(Request::ReturnConnections(connections)), Reply::Done);
        server.await_connection("bad:out", "system:playback_1");
        let listed = server.lsp(&["-c"]);
        assert_eq!(listed.matches("   system:playback_").count(), 1, "{listed}");
        assert_eq!(client.wire.ask(Request::Returned), Reply::Done);
    });
}

#[test]
fn only_a_client_that_is_returning_may_send_returning_requests() {
    with_bystanders(server, |server| {
        let mut new = ByHand::active(server, "new");
        let mut through = ByHand::open_as(server, sent_now(returning(9, "through")));
        assert_eq!(through.wire.ask(Request::Returned), Reply::Done);
        for client in [&mut new, &mut through] {
            let (capture_latency, playback_latency) = ((0, 0), (0, 0));
            let port = port("p", INPUT, None);
            let port = ReturningPort {
                id: 90,
                port,
                aliases: Vec::new(),
                capture_latency,
                playback_latency,
            };
            for request in [
                Request::ReturnPort(port),
                Request::ReturnClock,
                Request::ReturnConnections(Vec::new()),
                Request::Returned,
            ] {
                let text = client.refusal(request);
                assert_says(&client.name, &text, &["only a client that returns to a server"]);
            }
        }
        for request in [Request::ReturnClock, Request::Returned] {
            let observer = Wire::observer(server).ask(request);
            assert!(matches!(observer, Reply::Error(RequestError::NotAllowed(_))), "{observer:?}");
        }
    });
}
