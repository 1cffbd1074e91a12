//! Mutations of the memory of streams: rings, wishes, and what the server publishes.

use super::edit::{ACQUIRE_RELAXED, Edit::*, RELEASE_RELAXED};
use super::models::{KICKED, KICKED_FOR_WISH, NUMBERED, PLAYBACK_RING, RECORD_RING, WISHES};
use super::{Mutation, mutation};

pub(super) const STREAMS: &[Mutation] = &[
    mutation("numbered.old_entry_not_withdrawn", Delete, NUMBERED),
    mutation("numbered.writer_without_fence", Delete, NUMBERED),
    mutation("numbered.reader_without_fence", Delete, NUMBERED).short(),
    mutation("numbered.write_end_relaxed", RELEASE_RELAXED, NUMBERED),
    mutation("numbered.read_start_relaxed", ACQUIRE_RELAXED, NUMBERED),
    mutation(
        "numbered.copy_not_checked",
        Replace("entry.number.load(Ordering::Relaxed) == number", "number > 0"),
        NUMBERED,
    ),
    mutation("ring.publish_relaxed", RELEASE_RELAXED, PLAYBACK_RING),
    mutation("ring.written_relaxed", ACQUIRE_RELAXED, PLAYBACK_RING),
    mutation("lowest.relaxed", ACQUIRE_RELAXED, PLAYBACK_RING),
    mutation("set_lowest.relaxed", RELEASE_RELAXED, PLAYBACK_RING).short(),
    mutation("ring.overwriting_not_announced", Delete, RECORD_RING),
    mutation("ring.writer_without_fence", Delete, RECORD_RING),
    mutation("ring.reader_without_fence", Delete, RECORD_RING),
    mutation(
        "has_room_for.acknowledgement_not_awaited",
        Replace("self.acknowledged.number_at(number) == number - wishes", "number > 0"),
        WISHES,
    )
    .short(),
    mutation("kick.relaxed", RELEASE_RELAXED, KICKED),
    mutation("kick.count_unchanged", Replace("fetch_add(1", "fetch_add(0"), KICKED),
    mutation("kick.without_wake_up", Delete, KICKED).short(),
    mutation("kicks.relaxed", ACQUIRE_RELAXED, KICKED_FOR_WISH),
    mutation("await_due.counts_kicks_late", After("let kicks = self.kicks();"), KICKED),
    mutation(
        "await_acknowledgement.counts_kicks_late",
        After("let kicks = self.kicks();"),
        KICKED_FOR_WISH,
    ),
];
