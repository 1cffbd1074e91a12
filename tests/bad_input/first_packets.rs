//! The first packet of a program, and the refusal of anything else.

use proto::MAX_PACKET_BYTES;
use proto::hello::{Hello, PROTOCOL_VERSION, Role, Welcome, encode_first};
use rt::shm::LAYOUT_VERSION;

use crate::wire::{Wire, assert_says, in_modes, server, with_bystanders};

fn hello(layout: u32) -> Vec<u8> {
    encode_first(&Hello { layout, role: Role::Observer })
}

fn hello_of_version(version: u32) -> Vec<u8> {
    let mut packet = hello(LAYOUT_VERSION);
    packet[8..12].copy_from_slice(&version.to_le_bytes());
    packet
}

#[test]
fn a_first_packet_that_is_no_hello_is_refused_with_the_reason() {
    let good = hello(LAYOUT_VERSION);
    let longer = [&good[..], b"more"].concat();
    let (newer, older) = (PROTOCOL_VERSION + 8, PROTOCOL_VERSION - 1);
    let newer_words = [format!("version {newer}"), format!("version {PROTOCOL_VERSION}")];
    let older_words = [format!("version {older}"), format!("version {PROTOCOL_VERSION}")];
    let layout_words =
        [format!("layout {}", LAYOUT_VERSION + 1), format!("server {LAYOUT_VERSION}")];
    let foreign: &[&str] = &["not consort's", "something else is speaking"];
    let nonsense: &[&str] = &["not a message of this protocol"];
    let cases: [(&str, Vec<u8>, Vec<&str>); 10] = [
        ("one byte", vec![0], foreign.to_vec()),
        (
            "random bytes",
            (0..200_u8).map(|byte| byte.wrapping_mul(151)).collect(),
            foreign.to_vec(),
        ),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), foreign.to_vec()),
        ("cut in the version", good[..10].to_vec(), foreign.to_vec()),
        ("cut after the version", good[..12].to_vec(), nonsense.to_vec()),
        ("cut at the end", good[..good.len() - 1].to_vec(), nonsense.to_vec()),
        ("too long", longer, vec!["4 bytes before its packet does"]),
        (
            "a newer protocol",
            hello_of_version(newer),
            newer_words.iter().map(String::as_str).collect(),
        ),
        (
            "an older protocol",
            hello_of_version(older),
            older_words.iter().map(String::as_str).collect(),
        ),
        (
            "another layout",
            hello(LAYOUT_VERSION + 1),
            layout_words.iter().map(String::as_str).collect(),
        ),
    ];
    with_bystanders(server, |server| {
        for (case, packet, words) in &cases {
            let mut wire = Wire::connect(server);
            wire.send(packet, &[]);
            assert_says(case, &wire.sent_away(), words);
        }
    });
}

#[test]
fn a_first_packet_longer_than_any_message_is_refused() {
    in_modes(|server| {
        let mut wire = Wire::connect(server);
        wire.send(&vec![b'x'; MAX_PACKET_BYTES + 1], &[]);
        assert_says("oversized", &wire.sent_away(), &["too long"]);
    });
}

#[test]
fn invalid_client_names_are_refused_with_the_reason() {
    let oversized = "x".repeat(65);
    let gigantic = "x".repeat(MAX_PACKET_BYTES - 100);
    in_modes(|server| {
        for (case, name, word) in [
            ("empty", "", "must not be empty"),
            ("blank", " \t ", "must not be empty"),
            ("oversized", &oversized, "65 bytes is too long: at most 64"),
            ("gigantic", &gigantic, "too long: at most 64"),
            ("a line break", "a\nb", "control characters"),
            ("a zero", "a\0b", "control characters"),
            ("an escape sequence", "\u{1b}[2J", "control characters"),
        ] {
            let mut wire = Wire::connect(server);
            match wire.greet(Role::Client { name: name.into(), exact: false, session: None }).0 {
                Welcome::Refused(error) => assert_says(case, &error.to_string(), &[word]),
                other => panic!("{case}: {other:?}"),
            }
            wire.assert_closed();
        }
    });
}

#[test]
fn a_program_that_sends_no_first_packet_is_disconnected() {
    in_modes(|server| Wire::connect(server).assert_closed());
}
