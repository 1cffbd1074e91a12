//! What is written as an assignment is read as the same.

use super::*;

impl Assignments {
    /// Allocates on the heap, since the segment is too large for a test thread's stack.
    pub(crate) fn boxed() -> std::boxed::Box<Self> {
        // SAFETY: allocated with the layout of `Assignments`, for which zeroed bytes are a value:
        // atomics only.
        unsafe {
            std::boxed::Box::from_raw(
                std::alloc::alloc_zeroed(core::alloc::Layout::new::<Self>()).cast(),
            )
        }
    }
}

fn copy<'a>(state: &'a mut (u64, usize), words: &'a mut [u32]) -> AssignmentCopy<'a> {
    AssignmentCopy { valid_from: &mut state.0, used: &mut state.1, words }
}

#[test]
fn a_client_reads_what_the_server_wrote() {
    let mut words = [0; 64];
    let edges = Edges::new(3).expect("three");
    let mut writer = AssignmentWriter::new(&mut words, Some(1), edges, true);
    writer.page(1);
    writer.wake_early();
    let follower = FollowerEdge { page: 4, edge: 5, edges: 6 };
    writer.follower(follower);
    let source = InputSource { slab: 70_000, slot: 15, feedback: true, own: false };
    let own = InputSource { slab: 0, slot: 3, feedback: false, own: true };
    writer.group(&[source, own], &[2, 7]);
    writer.group(&[own], &[9]);
    let reader = AssignmentReader::new(writer.finish().expect("fits"));
    assert_eq!(
        (reader.cpu(), reader.edges(), reader.runs(), reader.driver_waits(), reader.page()),
        (Some(1), edges, true, true, 1)
    );
    assert!(reader.wakes_early() && !AssignmentReader::new(&absent(1)).wakes_early());
    assert_eq!([0, 1].map(|page| AssignmentReader::new(&absent(page)).page()), [0, 1]);
    assert!(!AssignmentReader::new(&absent(1)).runs());
    assert!(reader.followers().eq([follower]));
    let [source, own] = [source, own].map(InputSource::to_word);
    assert!(reader.groups().eq([
        InputGroup { sources: &[source, own], inputs: &[2, 7] },
        InputGroup { sources: &[own], inputs: &[9] },
    ]));
    assert_eq!(
        InputSource::from_word(own),
        InputSource { slab: 0, slot: 3, feedback: false, own: true }
    );
}

#[test]
fn assignments_that_do_not_fit_are_refused_as_a_whole() {
    let mut words = [0; FIXED_WORDS + 2];
    let mut writer = AssignmentWriter::new(&mut words, None, Edges::NONE, false);
    writer.follower(FollowerEdge { page: 0, edge: 0, edges: 1 });
    assert!(writer.finish().is_none());
}

#[test]
fn a_client_obeys_the_newest_assignment_of_its_plan() {
    let assignments = Assignments::boxed();
    let (mut state, mut words) = ((0, 0), std::vec![0; ASSIGNMENT_WORDS]);
    assert!(!assignments.copy_for(5, &mut copy(&mut state, &mut words)), "none yet");
    assert!(assignments.publish(3, &[30]));
    assert!(assignments.publish(5, &[50, 51]));
    assert!(assignments.copy_for(4, &mut copy(&mut state, &mut words)));
    assert_eq!((state, words[0]), ((3, 1), 30));
    assert!(assignments.copy_for(9, &mut copy(&mut state, &mut words)));
    assert_eq!((state, &words[..2]), ((5, 2), &[50, 51][..]));
    assert!(assignments.replace_newest(6, &[60]));
    assert!(
        assignments.copy_for(5, &mut copy(&mut state, &mut words)),
        "the older set is untouched"
    );
    assert_eq!((state, words[0]), ((3, 1), 30));
}

#[test]
fn any_words_can_be_read_as_an_assignment() {
    let mut seed = 1_u32;
    for length in 0..200 {
        let words: std::vec::Vec<u32> = (0..length)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if seed >> 28 == 0 { seed } else { seed >> 28 }
            })
            .collect();
        let reader = AssignmentReader::new(&words);
        assert!(reader.followers().count() <= words.len());
        assert!(reader.groups().count() <= words.len());
    }
}
