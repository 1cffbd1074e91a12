//! Words are read as one value while they are written.

use std::sync::Arc;

use consort_rt::shm::Snapshot;
use loom::thread;

use crate::explore;

#[test]
fn a_snapshot_is_never_torn() {
    explore(3, || {
        let snapshot = Arc::new(Snapshot::<2>::default());
        let writer = {
            let snapshot = snapshot.clone();
            thread::spawn(move || {
                snapshot.write(&[1, 1]);
                snapshot.write(&[2, 2]);
            })
        };
        let first = snapshot.read();
        let second = snapshot.read();
        for [left, right] in [first, second].into_iter().flatten() {
            assert_eq!(left, right, "one value");
        }
        if let (Some(first), Some(second)) = (first, second) {
            assert!(first <= second, "never an older value after a newer one");
        }
        writer.join().expect("writer");
        assert_eq!(snapshot.read(), Some([2, 2]));
    });
}
