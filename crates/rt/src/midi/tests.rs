use proptest::prelude::*;

use super::*;
use crate::sync::Ordering::Relaxed;

const FRAMES: u32 = 64;

fn words() -> Box<MidiWords> {
    Box::new(std::array::from_fn(|_| AtomicU32::new(0)))
}

/// Returns a buffer with these events, as many as fit.
fn buffer(events: &[(u32, Vec<u8>)]) -> Box<MidiWords> {
    let words = words();
    let writer = MidiWriter::begin(&words, FRAMES);
    for (time, message) in events {
        let _ = writer.write(*time, message);
    }
    words
}

fn content(words: &MidiWords) -> Vec<(u32, Vec<u8>)> {
    let message = |event: MidiEvent<'_>| event.copy_to(&mut vec![0; event.len()]).unwrap().to_vec();
    MidiReader::of(words).unwrap().events().map(|event| (event.time(), message(event))).collect()
}

struct Sources<'a>(&'a [Box<MidiWords>]);

impl MidiSources for Sources<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn with<R>(&self, index: usize, read: impl FnOnce(MidiReader<'_>) -> R) -> Option<R> {
        MidiReader::of(&self.0[index]).map(read)
    }
}

fn merged(sources: &[Box<MidiWords>]) -> Box<MidiWords> {
    let into = buffer(&[(3, vec![1, 2, 3])]);
    let mut cursors = vec![Cursor::default(); sources.len()];
    merge(&Sources(sources), &mut cursors, MidiWriter::of(&into).unwrap(), FRAMES);
    into
}

fn lost(words: &MidiWords) -> u32 {
    MidiReader::of(words).unwrap().lost()
}

#[test]
fn a_buffer_holds_as_much_as_jack2s() {
    let words = words();
    let writer = MidiWriter::begin(&words, FRAMES);
    assert_eq!((MAX_EVENTS, writer.max_event_bytes()), (2728, 32_732));
    for _ in 0..MAX_EVENTS {
        assert!(writer.max_event_bytes() >= 4);
        assert_eq!(writer.write(0, &[0x90, 60, 100]), Ok(()));
    }
    assert_eq!(
        (writer.max_event_bytes(), writer.write(0, &[]), lost(&words)),
        (0, Err(MidiError::Full), 1)
    );
    writer.clear();
    assert_eq!((content(&words), lost(&words)), (vec![], 0));
    let whole: Vec<u8> = (0..32_732_u32).map(|index| index as u8).collect();
    assert_eq!(writer.write(63, &[&whole[..], &[0]].concat()), Err(MidiError::Full));
    assert_eq!(writer.write(63, &whole), Ok(()));
    assert_eq!((content(&words), lost(&words)), (vec![(63, whole)], 1));
}

#[test]
fn a_refused_event_does_not_count_as_lost() {
    for (what, times, expected) in [
        ("at once", &[5, 5][..], Ok(())),
        ("the last frame", &[5, 63], Ok(())),
        ("before the last event", &[5, 4], Err(MidiError::Time)),
        ("past the cycle", &[64], Err(MidiError::Time)),
    ] {
        let words = words();
        let writer = MidiWriter::begin(&words, FRAMES);
        let (last, before) = times.split_last().unwrap();
        before.iter().for_each(|time| writer.write(*time, &[0xf8]).unwrap());
        assert_eq!(writer.write(*last, &[0xf8]), expected, "{what}");
        assert_eq!(lost(&words), 0, "{what}");
    }
}

#[test]
fn words_that_are_not_a_midi_buffer_are_refused() {
    for (what, at, value, reads, writes) in [
        ("another mark", word::MARK, 0, false, false),
        ("more events than fit", word::EVENTS, MAX_EVENTS as u32 + 1, false, false),
        ("as many as fit", word::EVENTS, MAX_EVENTS as u32, true, true),
        ("more data than fit", word::DATA_BYTES, SLOT_BYTES as u32, true, false),
        ("data amid a word", word::DATA_BYTES, 3, true, false),
    ] {
        let words = buffer(&[]);
        words[at].store(value, Relaxed);
        assert_eq!(MidiReader::of(&words).is_some(), reads, "{what}");
        assert_eq!(MidiWriter::of(&words).is_some(), writes, "{what}");
    }
}

#[test]
fn a_record_that_points_out_of_the_buffer_is_no_event() {
    let end = SLOT_BYTES as u32;
    for (what, bytes, offset, is_event) in [
        ("as written", 8, end - 8, true),
        ("longer than the rest", 9, end - 8, false),
        ("past the end", 8, end, false),
        ("into the header", 8, 0, false),
        ("amid a word", 8, end - 10, false),
        ("longest", u32::MAX, end - 8, false),
        ("farthest", 8, u32::MAX - 3, false),
    ] {
        let words = buffer(&[(1, vec![7; 8])]);
        words[HEADER_WORDS + 1].store(bytes, Relaxed);
        words[HEADER_WORDS + 2].store(offset, Relaxed);
        assert_eq!(content(&words).len(), usize::from(is_event), "{what}");
        let heard = merged(&[words, buffer(&[(2, vec![0xf8])])]);
        assert_eq!(
            content(&heard).len(),
            1 + usize::from(is_event),
            "{what}: the others are heard"
        );
        assert_eq!(lost(&heard), u32::from(!is_event), "{what}");
    }
}

#[test]
fn events_of_a_source_that_go_back_in_time_or_past_the_cycle_are_lost() {
    let source = buffer(&[(1, vec![1]), (5, vec![2]), (5, vec![3]), (6, vec![4])]);
    source[HEADER_WORDS + RECORD_WORDS].store(0, Relaxed);
    source[HEADER_WORDS + 3 * RECORD_WORDS].store(FRAMES, Relaxed);
    let heard = merged(&[source]);
    assert_eq!((content(&heard), lost(&heard)), (vec![(1, vec![1]), (5, vec![3])], 2));
}

#[test]
fn a_merge_counts_every_lost_event() {
    let full = || buffer(&vec![(1, vec![0xf8]); MAX_EVENTS + 10]);
    let heard = merged(&[full(), buffer(&[(0, vec![1])]), full()]);
    assert_eq!(lost(&heard), 10 + 10 + MAX_EVENTS as u32 + 1);
    assert_eq!(content(&heard).len(), MAX_EVENTS);
    assert_eq!(content(&heard)[0], (0, vec![1]), "the earliest are heard");
}

/// Events to write: ascending times, and some that do not all fit.
fn events() -> impl Strategy<Value = Vec<(u32, Vec<u8>)>> {
    let message = prop_oneof![
        9 => prop::collection::vec(any::<u8>(), 0..6),
        1 => prop::collection::vec(any::<u8>(), 0..9000),
    ];
    prop::collection::vec((0..FRAMES, message), 0..20).prop_map(|mut events| {
        events.sort_by_key(|(time, _)| *time);
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_written_event_is_read_back(events in events()) {
        let words = words();
        let writer = MidiWriter::begin(&words, FRAMES);
        let mut written = Vec::new();
        for (time, message) in &events {
            let most = writer.max_event_bytes();
            let result = writer.write(*time, message);
            prop_assert_eq!(result.is_ok(), message.len() <= most);
            if result.is_ok() {
                written.push((*time, message.clone()));
            }
        }
        prop_assert_eq!(lost(&words) as usize, events.len() - written.len());
        prop_assert_eq!(content(&words), written);
    }

    #[test]
    fn a_merge_is_stable_by_time_and_source(
        all in prop::collection::vec(events(), 0..12)
    ) {
        let sources: Vec<_> = all.iter().map(|events| buffer(events)).collect();
        let mut expected: Vec<_> = sources.iter().flat_map(|source| content(source)).collect();
        expected.sort_by_key(|(time, _)| *time);
        let heard = merged(&sources);
        let found = content(&heard);
        prop_assert_eq!(&found[..], &expected[..found.len()]);
        let asked: usize = all.iter().map(Vec::len).sum();
        prop_assert_eq!(lost(&heard) as usize, asked - found.len());
    }

    #[test]
    fn merged_events_are_in_order_whatever_a_peer_writes(
        scribbled in prop::collection::vec((0..MIDI_WORDS, prop_oneof![any::<u32>(), 0..3000_u32]), 0..200),
        events in events(),
    ) {
        let source = buffer(&events);
        for (at, value) in scribbled {
            source[at].store(value, Relaxed);
        }
        let own = buffer(&[(7, vec![0xfa])]);
        let heard = merged(&[source, own]);
        let content = content(&heard);
        prop_assert!(content.is_sorted_by_key(|(time, _)| *time));
        prop_assert!(content.iter().all(|(time, _)| *time < FRAMES));
        prop_assert!(content.contains(&(7, vec![0xfa])) || lost(&heard) > 0);
    }
}
