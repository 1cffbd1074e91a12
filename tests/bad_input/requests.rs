//! Well-formed requests for impossible things.

use proto::MAX_PACKET_BYTES;
use proto::property::{
    Property, PropertyPage, PropertyRequest, PropertyValue, client_uuid, port_uuid,
};
use proto::request::{PortType, Reply, Request, SlabSlot};

use crate::wire::{ByHand, INPUT, OUTPUT, Wire, assert_says, in_modes, port, quantum_of, refused};

fn connect(source: &str, destination: &str) -> Request {
    Request::Connect { source: source.into(), destination: destination.into() }
}

#[test]
fn impossible_ports_are_refused_with_the_reason() {
    let slot = |slab, slot| Some(SlabSlot { slab, slot });
    let oversized = "x".repeat(320);
    let gigantic = "x".repeat(MAX_PACKET_BYTES - 100);
    let cases = [
        ("empty name", port("", INPUT, None), "must not be empty"),
        ("oversized name", port(&oversized, INPUT, None), "is too long: at most"),
        ("gigantic name", port(&gigantic, INPUT, None), "is too long: at most"),
        ("control characters", port("a\u{7}b", INPUT, None), "control characters"),
        ("taken name", port("taken", INPUT, None), "'bad:taken' is taken"),
        ("no direction", port("p", 0, None), "either an input or an output"),
        ("both directions", port("p", INPUT | OUTPUT, slot(0, 1)), "either an input or an output"),
        ("an output without a slot", port("p", OUTPUT, None), "needs a slot in a slab"),
        ("no such slab", port("p", OUTPUT, slot(1, 0)), "needs a slot in a slab"),
        ("no such slot", port("p", OUTPUT, slot(0, 16)), "needs a slot in a slab"),
        ("largest numbers", port("p", OUTPUT, slot(u32::MAX, u32::MAX)), "needs a slot in a slab"),
        ("an input with a slot", port("p", INPUT, slot(0, 0)), "has no slot"),
    ];
    in_modes(|server| {
        let mut client = ByHand::open(server, "bad");
        client.add_slab();
        client.register("taken", INPUT);
        for (case, port, word) in cases.clone() {
            assert_says(case, &client.refusal(Request::RegisterPort(port)), &[word]);
        }
        client.register("still possible", OUTPUT);
    });
}

#[test]
fn impossible_connections_are_refused_with_the_reason() {
    let gigantic = "x".repeat(MAX_PACKET_BYTES - 100);
    in_modes(|server| {
        let mut client = ByHand::open(server, "bad");
        client.add_slab();
        client.register("in", INPUT);
        client.register("out", OUTPUT);
        let midi = port("midi", INPUT, None);
        let midi = proto::request::NewPort { port_type: PortType::Midi, ..midi };
        assert!(matches!(client.wire.ask(Request::RegisterPort(midi)), Reply::Port(_)));
        let text = client.refusal(connect("bad:out", "system:playback_1"));
        assert_says("not active", &text, &["'bad:out' is not active yet"]);
        client.activate();
        for (case, source, destination, words) in [
            ("unknown source", "no:such", "system:playback_1", &["no port 'no:such'"][..]),
            ("empty name", "", "bad:in", &["no port ''"]),
            ("gigantic name", &gigantic, "bad:in", &["no port"]),
            ("the wrong way round", "bad:in", "bad:out", &["'bad:in' is not an output port"]),
            ("input to input", "system:playback_1", "bad:in", &["is not an output port"]),
            ("output to output", "bad:out", "system:capture_1", &["is not an input port"]),
            ("audio to MIDI", "bad:out", "bad:midi", &["different types"]),
        ] {
            assert_says(case, &client.refusal(connect(source, destination)), words);
        }
        let mistyped = Wire::observer(server).ask(connect("system:captur_1", "bad:in"));
        assert_says("a slip", &refused(mistyped), &["did you mean 'system:capture_1'?"]);
        assert_eq!(client.wire.ask(connect("bad:out", "bad:in")), Reply::Done);
        let text = client.refusal(connect("bad:out", "bad:in"));
        assert_says("twice", &text, &["connected already"]);
    });
}

#[test]
fn impossible_properties_are_refused_with_the_reason() {
    in_modes(|server| {
        let mut client = ByHand::open(server, "bad");
        let property = |subject, key: &str, text: &str, type_name: &str| {
            let value = PropertyValue { text: text.into(), type_name: type_name.into() };
            Request::Property(PropertyRequest::Set(Property { subject, key: key.into(), value }))
        };
        let subject = client_uuid(1);
        let long = "x".repeat(MAX_PACKET_BYTES - 100);
        for (case, request, word) in [
            ("no key", property(subject, "", "v", ""), "needs a key and a value"),
            ("no value", property(subject, "k", "", ""), "needs a key and a value"),
            ("nothing's", property(0, "k", "v", ""), "names nothing"),
            ("a 0 in the key", property(subject, "k\0k", "v", ""), "must not contain a 0"),
            ("a 0 in the type", property(subject, "k", "v", "\0"), "must not contain a 0"),
            ("gigantic key", property(subject, &long, "v", ""), "at most 1024"),
            ("gigantic value", property(subject, "k", &long, ""), "at most 49152"),
            ("gigantic type", property(subject, "k", "v", &long), "at most 256"),
            (
                "unknown",
                Request::Property(PropertyRequest::Get { subject, key: "no such".into() }),
                "no property 'no such'",
            ),
            (
                "unknown",
                Request::Property(PropertyRequest::Remove { subject, key: "no such".into() }),
                "no property 'no such'",
            ),
        ] {
            assert_says(case, &client.refusal(request), &[word]);
        }
        let mut observer = Wire::observer(server);
        for request in [
            Request::Property(PropertyRequest::Remove { subject, key: "k".into() }),
            Request::Property(PropertyRequest::RemoveAllOf { subject }),
            Request::Property(PropertyRequest::RemoveAll),
        ] {
            assert_says("an observer", &refused(observer.ask(request)), &["only a client"]);
        }
        let past_the_end = PropertyPage { subject: None, after: Some((u64::MAX, long)) };
        let nothing = Reply::Properties { properties: Vec::new(), more: false };
        assert_eq!(observer.ask(Request::Property(PropertyRequest::List(past_the_end))), nothing);
    });
}

#[test]
fn a_client_that_sets_properties_without_end_is_stopped() {
    in_modes(|server| {
        let mut client = ByHand::open(server, "bad");
        let port = client.register("in", INPUT);
        let mut set = 0;
        let refusal = loop {
            let value = PropertyValue { text: "x".into(), type_name: String::new() };
            let subject = port_uuid(port);
            let property = Property { subject, key: set.to_string(), value };
            match client.wire.ask(Request::Property(PropertyRequest::Set(property))) {
                Reply::Done => set += 1,
                other => break refused(other),
            }
        };
        assert_eq!(set, proto::limits::PROPERTIES_PER_CLIENT);
        assert_says("too many", &refusal, &["no room for another property", "remove some"]);
        drop(client);
        let mut observer = Wire::observer(server);
        harness::eventually("they went with the client", || {
            let page = PropertyPage { subject: None, after: None };
            let nothing = Reply::Properties { properties: Vec::new(), more: false };
            (observer.ask(Request::Property(PropertyRequest::List(page))) == nothing).then_some(())
        });
    });
}

#[test]
fn a_client_cannot_take_what_belongs_to_another() {
    in_modes(|server| {
        let mut owner = ByHand::open(server, "owner");
        let owned = owner.register("in", INPUT);
        let mut client = ByHand::open(server, "bad");
        let stranger = [owned, 1, 0, u32::MAX];
        for port in stranger {
            let expected = if port == 0 || port == u32::MAX {
                "no port '#"
            } else {
                "belongs to another client"
            };
            for (case, request) in [
                ("unregister", Request::UnregisterPort { port }),
                ("latency", Request::SetLatency { port, capture: true, min: 0, max: u32::MAX }),
            ] {
                assert_says(case, &client.refusal(request), &[expected]);
            }
        }
        let mut observer = Wire::observer(server);
        for request in [
            Request::RegisterPort(port("p", INPUT, None)),
            Request::UnregisterPort { port: owned },
            Request::AddSlab,
            Request::Deactivate,
        ] {
            assert_says("an observer", &refused(observer.ask(request)), &["only a client"]);
        }
    });
}

#[test]
fn a_buffer_size_that_no_port_could_hold_is_refused_with_the_range() {
    in_modes(|server| {
        let mut observer = Wire::observer(server);
        let before = quantum_of(server);
        for frames in [0, 8193, 10_000_000, u32::MAX] {
            let text = refused(observer.ask(Request::SetQuantum { frames }));
            assert_says("a quantum", &text, &[&frames.to_string(), "out of range: 1 to 8192"]);
        }
        assert_eq!(quantum_of(server), before);
    });
}

/// A suggestion compares names letter by letter, on the thread that serves all programs.
#[test]
fn a_client_is_given_no_suggestion_for_the_names_that_it_makes_up() {
    in_modes(|server| {
        let mut client = ByHand::open(server, "bad");
        for number in 0..1000 {
            client.register(&format!("a port with a name of its own, {number}"), INPUT);
        }
        let nearly = "bad:a port with a name of its own; 999";
        let gigantic = "x".repeat(MAX_PACKET_BYTES - 100);
        for name in [nearly, &gigantic] {
            let text = client.refusal(connect(name, "bad:in"));
            assert!(text.contains("no port") && !text.contains("did you mean"), "{text}");
        }
        let mistyped = refused(Wire::observer(server).ask(connect(nearly, "bad:in")));
        assert_says("a person's slip", &mistyped, &["did you mean 'bad:a port with"]);
        let gigantic = refused(Wire::observer(server).ask(connect(&gigantic, "bad:in")));
        assert!(!gigantic.contains("did you mean"), "no person types that: {gigantic}");
    });
}
