//! Numbered entries are overwritten while they are read.

use std::sync::Arc;

use consort_rt::shm::{NumberedCursor, NumberedRing};
use loom::thread;

use crate::explore;

#[test]
fn a_numbered_entry_is_read_whole_or_not_at_all() {
    explore(3, || {
        let ring = Arc::new(NumberedRing::<2, 2>::default());
        // Before the start: a reader that finds nothing accesses nothing that the writer accesses.
        ring.write(1, &[1, 1]);
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || (2..=4).for_each(|number| ring.write(number, &[number, number])))
        };
        let (mut cursor, mut last) = (NumberedCursor::default(), 0);
        for _ in 0..2 {
            if let Some((number, words)) = cursor.next(&ring) {
                assert_eq!(words, [number, number], "one entry");
                assert!(number > last, "in their order");
                last = number;
            }
        }
        writer.join().expect("writer");
        assert_eq!((ring.get(2), ring.get(3), ring.get(4)), (None, Some([3, 3]), Some([4, 4])));
    });
}
