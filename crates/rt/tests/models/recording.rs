//! Records are overwritten while they are read.

use std::sync::Arc;

use consort_rt::shm::{RecordCursor, RecordRing};
use loom::thread;

use crate::explore;

#[test]
fn a_reader_gets_only_completely_written_records() {
    explore(3, || {
        let ring = Arc::new(RecordRing::<2>::default());
        let mut cursor = RecordCursor::oldest(&ring);
        // One record before the start: a reader that finds none accesses nothing that the writer
        // accesses.
        ring.push(&[1, 1]);
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || (2..=4).for_each(|record| ring.push(&[record, record])))
        };
        let mut last = 0;
        for _ in 0..2 {
            if let Some([left, right]) = cursor.next(&ring) {
                assert_eq!(left, right, "one record");
                assert!(left > last, "in their order");
                last = left;
            }
        }
        writer.join().expect("writer");
        assert_eq!((ring.get(2), ring.get(3)), (Some([3, 3]), Some([4, 4])));
    });
}
