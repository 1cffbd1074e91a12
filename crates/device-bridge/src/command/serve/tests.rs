//! What is asked for, in words, and what is shown.

use super::*;

#[test]
fn a_midi_devices_state_shows_lateness_losses_and_refused_ports() {
    let state = MidiState {
        has_left: false,
        ports: 4,
        lost: 1,
        refusals: Vec::new(),
        worst_late_us: 61,
        worst_read_us: Some(35),
    };
    assert_eq!(midi_state(&state), "4 ports, read within 35 µs, sent within 61 µs, 1 lost");
    let refusals = vec!["hw:1,0,0 (input) is in use by amidi (process 7)".into()];
    let state = MidiState { refusals, worst_read_us: None, ..state };
    assert_eq!(
        midi_state(&state),
        "4 ports, sent within 61 µs, 1 lost; hw:1,0,0 (input) is in use by amidi (process 7)"
    );
}

#[test]
fn devices_that_are_not_cards_are_midi() {
    assert_eq!(Options::sequencer().midi(), Some(MidiHardware::Sequencer));
    assert_eq!(Options::raw_midi().midi(), Some(MidiHardware::Raw));
    assert_eq!(Options::of("hw:USB").midi(), None);
}

#[test]
fn what_is_no_other_kind_of_device_is_a_card() {
    assert!(Options::of("hw:USB").is_card());
    for kind in ["null", "seq", "loopback", "tunnel-sink", "rtp-send", "zeroconf-publish"] {
        assert!(!Options::of(kind).is_card(), "{kind}");
    }
}

#[test]
fn a_card_for_streams_is_the_same_in_its_process() {
    let card = Options::card_for_streams("hw:USB");
    assert!(card.is_of_server() && !Options::of("hw:USB").is_of_server());
    assert_eq!(card.words()[..2], ["hw:USB", "--streams"]);
}
