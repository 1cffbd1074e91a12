//! Mutations of the pages that processes share: how they are written and read.

use super::edit::{ACQUIRE_RELAXED, Edit::*, RELEASE_RELAXED};
use super::models::{
    ASSIGNMENT_IN_FORCE, ASSIGNMENT_WHOLE, BOTH_REQUESTS, CALLED, DRIVER_AWAITS, MESSAGE_FOUND,
    MESSAGES_READ, ONE_OWNER, POSITIONS_IN_ORDER, RECORDING, RETIRED, SLAB, SNAPSHOT, WORDS_READ,
};
use super::{Mutation, mutation};

pub(super) const PAGES: &[Mutation] = &[
    mutation("wake_driver.without_fence", Delete, DRIVER_AWAITS),
    mutation("await_finish.without_fence", Delete, DRIVER_AWAITS),
    mutation("finish.relaxed", RELEASE_RELAXED, DRIVER_AWAITS),
    mutation("finished.relaxed", ACQUIRE_RELAXED, DRIVER_AWAITS),
    mutation("slab.finish_relaxed", RELEASE_RELAXED, SLAB),
    mutation("slab.finished_relaxed", ACQUIRE_RELAXED, SLAB),
    mutation("snapshot.writer_without_fence", Delete, SNAPSHOT),
    mutation("snapshot.reader_without_fence", Delete, SNAPSHOT).short(),
    mutation("snapshot.write_end_relaxed", RELEASE_RELAXED, SNAPSHOT),
    mutation("snapshot.read_start_relaxed", ACQUIRE_RELAXED, SNAPSHOT),
    mutation("recording.writer_without_fence", Delete, RECORDING).short(),
    mutation("recording.reader_without_fence", Delete, RECORDING),
    mutation("recording.write_end_relaxed", RELEASE_RELAXED, RECORDING),
    mutation("recording.read_start_relaxed", ACQUIRE_RELAXED, RECORDING),
    mutation("recording.write_start_not_announced", Delete, RECORDING),
    mutation("assignments.old_set_not_withdrawn", Delete, ASSIGNMENT_WHOLE),
    mutation("assignments.writer_without_fence", Delete, ASSIGNMENT_WHOLE),
    mutation("assignments.reader_without_fence", Delete, ASSIGNMENT_WHOLE),
    mutation("assignments.write_end_relaxed", RELEASE_RELAXED, ASSIGNMENT_WHOLE),
    mutation("assignments.read_start_relaxed", ACQUIRE_RELAXED, ASSIGNMENT_WHOLE),
    mutation(
        "assignments.copy_not_checked",
        Replace("slot.valid_from.load(Ordering::Relaxed) == valid[index]", "valid[index] > 0"),
        ASSIGNMENT_WHOLE,
    ),
    mutation(
        "assignments.set_in_force_replaced",
        Replace("first > second", "first < second"),
        ASSIGNMENT_IN_FORCE,
    ),
    mutation("handover.without_release", Replace("AcqRel", "Acquire"), RETIRED),
    mutation("handover.without_acquire", Replace("AcqRel", "Release"), ONE_OWNER).short(),
    mutation("call.relaxed", RELEASE_RELAXED, CALLED),
    mutation("call.count_relaxed", ACQUIRE_RELAXED, CALLED),
    mutation("call.not_woken", Delete, CALLED).short(),
    mutation("requests.earlier_notice_overwritten", Replace("fetch_or", "store"), BOTH_REQUESTS)
        .short(),
    mutation("requests.notice_relaxed", RELEASE_RELAXED, BOTH_REQUESTS),
    mutation("requests.take_relaxed", ACQUIRE_RELAXED, BOTH_REQUESTS),
    mutation("requests.position_end_relaxed", RELEASE_RELAXED, POSITIONS_IN_ORDER).short(),
    mutation(
        "requests.copy_not_checked",
        Replace("whole.then", "(whole || !whole).then"),
        POSITIONS_IN_ORDER,
    ),
    mutation(
        "requests.older_positions_kept",
        Replace("is_newer(state, *other)", "is_newer(state, *other) && false"),
        POSITIONS_IN_ORDER,
    ),
    mutation(
        "requests.oldest_position_wins",
        Replace("if is_newer", "if !is_newer"),
        POSITIONS_IN_ORDER,
    ),
    mutation("message_rings.listen_without_fence", Delete, MESSAGE_FOUND).short(),
    mutation("message_rings.take_relaxed", ACQUIRE_RELAXED, MESSAGES_READ),
    mutation("message_rings.put_unordered", RELEASE_RELAXED, WORDS_READ),
];
