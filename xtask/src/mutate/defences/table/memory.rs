//! Memory that is received, and memory that is given away.

use super::super::super::edit::Edit::{Delete, Replace};
use super::super::{Defence, process, unit};

const SYS: &str = "consort-sys";

pub(super) const MEMORY: &[Defence] = &[
    // What is received.
    unit(
        "segment.missing_seals_accepted",
        Replace("missing != Seals::NONE", "false"),
        SYS,
        "memory::segment::tests::a_memfd_that_can_still_shrink_is_refused",
    )
    .short(),
    unit(
        "segment.any_size_accepted",
        Replace("|| !wanted.size_bytes.contains(&found_bytes)", ""),
        SYS,
        "memory::segment::tests::a_size_outside_the_range_is_refused",
    ),
    unit(
        "segment.any_kind_accepted",
        Replace("check(T::KIND)", "check(T::KIND).or(Ok::<(), LayoutError>(()))"),
        SYS,
        "memory::shared::tests::a_segment_of_another_kind_is_refused",
    ),
    unit(
        "ring.others_may_write",
        Replace("Seals::SIZE | Seals::FUTURE_WRITE", "Seals::SIZE"),
        SYS,
        "memory::ring::tests::a_ring_of_another_size_or_without_the_seal_is_refused",
    ),
    unit(
        "stream.any_position_written",
        Replace("self.written.read(header, self.lowest, capacity)", "header.written()"),
        SYS,
        "memory::hostile_program::any_bytes_in_a_streams_memory_harm_only_that_stream",
    ),
    unit(
        "stream.played_before_it_is_populated",
        Replace("written.min(self.populated.position())", "written"),
        SYS,
        "memory::stream::tests::a_stream_is_played_as_far_as_its_ring_is_populated",
    ),
    unit(
        "for_readers.writes_not_sealed",
        Delete,
        SYS,
        "memory::shared::tests::what_is_for_readers_is_written_by_its_creator_alone",
    ),
    // What is given away.
    process(
        "activate.own_page_not_closed",
        Replace("slot.memory.close_to_writers(locking)", "Ok::<(), sys::memory::SegmentError>(())"),
        "faults",
        "hostile::a_predecessor_that_discards_memory_stops_only_its_followers",
    ),
    process(
        "signal_page.not_closed",
        Delete,
        "faults",
        "hostile::a_predecessor_that_discards_memory_stops_only_its_followers",
    ),
    process(
        "signal_pages.former_neighbour_keeps_page",
        Delete,
        "faults",
        "scribbling::the_signal_page_of_a_client_is_replaced_when_a_neighbour_closes",
    ),
    process(
        "remove_client.pages_not_revoked",
        Delete,
        "faults",
        "scribbling::the_signal_page_of_a_client_is_replaced_when_a_neighbour_is_killed",
    ),
    process(
        "make_present.not_populated",
        Delete,
        "realtime",
        "memory::threads_in_the_graph_fault_no_page_in_once_they_run",
    ),
    process(
        "connect.memory_not_populated",
        Delete,
        "faults",
        "resources::a_server_without_memory_for_a_client_s_samples_refuses_to_play_them",
    ),
    unit(
        "seal_in_time.without_end",
        Replace("recv_timeout(PATIENCE)", "recv()"),
        SYS,
        "memory::sealing::tests::a_seal_waits_a_moment_for_a_writer_that_does_not_end",
    ),
    unit(
        "close_to_writers.writes_not_sealed",
        Replace("Seals::FUTURE_WRITE | Seals::SEAL", "Seals::SEAL"),
        SYS,
        "memory::mapping::tests::no_page_of_a_closed_segment_can_be_discarded",
    )
    .short(),
    unit(
        "mapping.pages_not_pinned",
        Delete,
        SYS,
        "memory::mapping::tests::the_kernel_merges_no_pinned_page",
    ),
    unit(
        "ring.pages_not_pinned",
        Delete,
        SYS,
        "memory::pin::tests::the_kernel_merges_no_page_of_a_stream_that_plays",
    ),
    unit(
        "record_stream.wishes_not_pinned",
        Delete,
        SYS,
        "memory::pin::tests::the_kernel_merges_no_page_of_a_stream_that_records",
    ),
    unit(
        "record_stream.ring_not_pinned",
        Delete,
        SYS,
        "memory::pin::tests::the_kernel_merges_no_page_of_a_stream_that_records",
    ),
];
