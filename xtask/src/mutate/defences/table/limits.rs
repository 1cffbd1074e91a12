//! What programs may have.

use super::super::super::edit::Edit::{Delete, Replace};
use super::super::{Defence, process, unit};

const CLIENT: &str = "consort-client";
const ENGINE: &str = "consort-engine";
const POLICY: &str = "consort-policy";
const PULSE: &str = "consort-pulse";
const ROUND_ROBIN: &str = "consort-round-robin";
const SOUNDFILE: &str = "consort-soundfile";

pub(super) const LIMITS: &[Defence] = &[
    unit(
        "quota.of_program_without_limit",
        Replace("of_program > self.of_program", "false"),
        ENGINE,
        "quota::tests::a_greedy_program_gets_its_part_and_leaves_the_rest",
    ),
    unit(
        "quota.nothing_reserved",
        Replace("of_program > self.modest && in_all > self.in_all - self.reserve", "false"),
        ENGINE,
        "quota::tests::programs_that_have_much_leave_the_reserve_to_newcomers",
    ),
    unit(
        "pending.without_limit",
        Replace("PENDING_PER_PEER", "usize::MAX"),
        ENGINE,
        "control::ticket::tests::a_peer_with_too_many_waiting_requests_can_only_close",
    ),
    process(
        "request.suggests_to_clients",
        Replace("Err(error) if client.is_none() =>", "Err(error) if true || client.is_none() =>"),
        "bad_input",
        "requests::a_client_is_given_no_suggestion_for_the_names_that_it_makes_up",
    ),
    process(
        "check_ports.without_limit",
        Replace("limit as usize", "usize::MAX"),
        "bad_input",
        "limits::a_client_that_registers_ports_without_end_leaves_room_for_others",
    ),
    process(
        "add_slab.without_limit",
        Replace("limit as usize", "usize::MAX"),
        "bad_input",
        "limits::a_client_may_offer_twice_the_memory_that_its_ports_need",
    ),
    process(
        "connect.without_limit",
        Delete,
        "bad_input",
        "limits::a_client_that_connects_without_end_is_stopped",
    ),
    process(
        "connect.one_program_gets_all",
        Delete,
        "bad_input",
        "programs::a_program_of_two_clients_leaves_connections_for_others",
    ),
    process(
        "activate.any_number",
        Delete,
        "bad_input",
        "programs::a_program_has_as_many_clients_in_cycles_as_the_driver_has_time_for",
    ),
    process(
        "check_driver_work.any_amount",
        Replace("more == DriverWork::default()", "true"),
        "faults",
        "driver_time::a_program_that_plays_very_many_outputs_costs_no_other_program_a_cycle",
    ),
    unit(
        "outbox.notifications_without_limit",
        Replace("LIMIT", "usize::MAX"),
        ENGINE,
        "outbox::tests::unread_notifications_leave_room_for_a_question",
    ),
    process(
        "outbox.memory_not_withdrawn",
        Delete,
        "bad_input",
        "crowds::a_client_that_reads_no_events_keeps_no_memory_of_others",
    ),
    process(
        "make_room.any_number_of_silent_peers",
        Replace("SILENT_AT_ONCE", "usize::MAX"),
        "bad_input",
        "crowds::a_thousand_silent_connections_keep_no_client_out",
    ),
    process(
        "reply.deaf_peer_stays",
        Replace("!self.peers.reply(ticket, reply)", "!self.peers.reply(ticket, reply) && false"),
        "bad_input",
        "crowds::a_program_that_floods_the_server_and_reads_nothing_is_closed",
    ),
    unit(
        "time_slice.without_end",
        Replace("now_ns < self.until_ns", "true"),
        ROUND_ROBIN,
        "tests::slow_messages_end_a_slice_early",
    )
    .short(),
    unit(
        "limited_for.all_of_a_program",
        Replace("all.saturating_sub(before)", "0"),
        PULSE,
        "front_end::tests::admission::one_program_has_no_more_properties_than_a_list_has_room_for",
    ),
    unit(
        "properties.empty_ones_are_nothing",
        Replace("ENTRY_BYTES", "0"),
        PULSE,
        "front_end::properties::tests::too_many_properties_are_refused",
    ),
    unit(
        "keep.properties_without_limit",
        Replace("properties::bytes(&sample.props)", "sample.name.as_bytes().len()"),
        PULSE,
        "front_end::samples::tests::samples_have_no_more_properties_than_a_list_has_room_for",
    ),
    unit(
        "modules.arguments_without_limit",
        Replace("self.modules.arguments_bytes() + text.len() > MAX_ARGUMENTS_BYTES", "false"),
        PULSE,
        "front_end::tests::modules::policies::\
         the_arguments_of_all_modules_are_no_longer_than_a_list_has_room_for",
    ),
    unit(
        "round_robin.one_slice_for_each_connection",
        Replace("self.used_ns.get(&program).copied().unwrap_or(0)", "0"),
        ROUND_ROBIN,
        "tests::a_program_has_one_slice_for_all_of_its_connections",
    ),
    unit(
        "round_robin.same_connection_first",
        Delete,
        ROUND_ROBIN,
        "tests::each_connection_of_a_program_has_its_turn_some_time",
    ),
    process(
        "overdue.silent_peers_stay",
        Replace("deadline_ns < now_ns", "deadline_ns < now_ns && false"),
        "bad_input",
        "first_packets::a_program_that_sends_no_first_packet_is_disconnected",
    ),
    unit(
        "set_property.any_number",
        Replace("used.count >= PROPERTIES_PER_CLIENT", "used.count == usize::MAX"),
        ENGINE,
        "model::metadata::tests::a_refused_property_changes_nothing",
    ),
    unit(
        "set_property.any_size",
        Replace("> PROPERTY_BYTES_PER_CLIENT", "== usize::MAX"),
        ENGINE,
        "model::metadata::tests::all_properties_of_a_client_together_have_a_limit_in_bytes",
    ),
    unit(
        "grant.one_program_gets_all",
        Replace("self.used_by(account)", "0"),
        ENGINE,
        "stream_budget::tests::a_greedy_program_leaves_others_their_depth",
    ),
    unit(
        "grant.one_process_gets_all",
        Replace("self.used_by_process(account.process)", "0"),
        ENGINE,
        "stream_budget::tests::a_process_that_plays_for_hundreds_of_programs_has_memory_for_each",
    ),
    unit(
        "connected.one_program_takes_all",
        Replace("self.clients.values().filter(is_its).count()", "0"),
        PULSE,
        "front_end::tests::server::one_program_leaves_connections_for_others",
    ),
    unit(
        "connected.without_limit",
        Replace("self.clients.len()", "0"),
        PULSE,
        "front_end::tests::server::no_more_programs_are_taken_than_the_limit",
    ),
    unit(
        "connected.network_takes_all",
        Replace("self.network_clients()", "0"),
        PULSE,
        "front_end::tests::admission::the_network_leaves_connections_for_programs_of_this_machine",
    ),
    unit(
        "frames.first_packet_of_any_length",
        Replace("MAX_FIRST_PACKET_BYTES", "MAX_PACKET_BYTES"),
        PULSE,
        "wire::frames::tests::lengths_beyond_the_limits_are_refused_before_their_bytes_come",
    ),
    unit(
        "register.segments_without_limit",
        Replace("self.segments.len() >= MAX_SEGMENTS", "false"),
        PULSE,
        "wire::memory::tests::a_program_has_few_segments_each_registered_once",
    ),
    unit(
        "read.blocks_of_any_length",
        Replace("block.length > MAX_BLOCK_BYTES", "false"),
        PULSE,
        "wire::memory::tests::a_block_that_is_not_there_is_refused_and_not_released",
    ),
    unit(
        "read.short_blocks_are_played",
        Replace("segment.read(offset + length - 1, &mut [0]) == 0", "false"),
        PULSE,
        "wire::memory::tests::a_block_that_is_not_there_is_refused_and_not_released",
    ),
    unit(
        "wanted.as_many_blocks_as_come",
        Replace("READ_BYTES_WITH_BLOCKS", "READ_BYTES"),
        PULSE,
        "wire::frames::tests::few_blocks_are_read_at_once",
    ),
    process(
        "read_into.any_descriptor_is_kept",
        Replace("examine_unmapped(memory).is_ok()", "true"),
        "pulse",
        "memory::what_is_no_memory_ends_its_connection_alone",
    ),
    process(
        "sealer.not_sealed",
        Replace("fcntl_add_seals(&memfd, seals).is_ok()", "!seals.is_empty()"),
        "pulse",
        "rings::the_memory_of_rings_keeps_its_pages_once_it_is_read",
    ),
    process(
        "rings_ready.ringing_is_not_heard",
        Replace("Interest::Written", "Interest::Closed"),
        "pulse",
        "rings::a_program_that_rings_is_heard_though_nothing_else_happens",
    ),
    unit(
        "go_back.without_limit",
        Replace("now_ns + REWRITING_AHEAD_NS < self.rewritten_until_ns", "false"),
        PULSE,
        "playback::stream::tests::indices::a_program_that_goes_back_with_every_byte_has_its_\
         buffer_converted_now_and_then",
    ),
    unit(
        "packet.answers_without_limit",
        Replace("known.answered_bytes > super::MAX_ANSWERED_BYTES", "false"),
        PULSE,
        "front_end::tests::admission::requests_that_are_sent_without_end_are_answered_as_far_as_\
         there_is_room",
    ),
    unit(
        "open_input.streams_without_limit",
        Replace("plays + records >= MAX_STREAMS_OF_ONE", "false"),
        PULSE,
        "front_end::tests::playback::each_program_has_streams_of_its_own_however_many_connections_\
         it_has",
    ),
    unit(
        "let_wait.without_limit",
        Replace("own().count() < MAX_WAITING_OF_ONE && bytes <= MAX_BYTES_OF_ONE", "true"),
        PULSE,
        "front_end::tests::absence::a_program_has_as_many_requests_wait_as_there_is_room_for",
    ),
    unit(
        "keep.without_limit",
        Replace("self.has_room(&sample, same)", "true"),
        PULSE,
        "front_end::samples::tests::samples_that_play_after_they_were_removed_are_counted",
    ),
    unit(
        "has_room.confined_programs_take_all",
        Replace("sample.owner.is_some()", "false"),
        PULSE,
        "front_end::samples::tests::\
         confined_programs_have_a_part_of_the_room_and_each_a_part_of_that",
    ),
    unit(
        "has_room.one_confined_program_takes_all",
        Replace("sample.owner == new.owner", "false"),
        PULSE,
        "front_end::samples::tests::\
         confined_programs_have_a_part_of_the_room_and_each_a_part_of_that",
    ),
    unit(
        "index_of.samples_of_other_programs",
        Replace("sample.owner == owner && ", ""),
        PULSE,
        "front_end::tests::confined::\
         a_confined_programs_samples_are_heard_by_no_other_and_end_with_it",
    ),
    unit(
        "kept_memory.without_limit",
        Replace("own.clone().map(|(_, bytes)| bytes).sum::<usize>()", "0"),
        PULSE,
        "service::kept_memory::tests::\
         the_connection_that_keeps_most_ends_when_all_of_a_program_keep_too_much",
    ),
    process(
        "bound_memory.never",
        Replace("link.kept_bytes() <= kept_memory::LITTLE_BYTES", "true"),
        "pulse",
        "greedy::packets_that_never_end_are_kept_as_far_as_one_program_has_room",
    ),
    unit(
        "most_kept.without_limit",
        Replace("played + recorded", "(played + recorded) / (1 << 30)"),
        PULSE,
        "front_end::tests::kept_sound::\
         what_was_recorded_for_one_program_is_kept_as_far_as_there_is_room",
    ),
    unit(
        "write.beyond_what_one_program_may_keep",
        Replace("most.min(self.most_kept as u64)", "most"),
        PULSE,
        "front_end::tests::kept_sound::what_one_program_has_written_is_kept_as_far_as_there_is_room",
    ),
    unit(
        "printable.without_limit",
        Replace("MAX_LETTERS", "usize::MAX"),
        PULSE,
        "service::card::tests::\
         what_the_kernel_says_about_a_usb_card_is_said_by_its_properties",
    ),
    process(
        "update_streams.without_turns",
        Replace(
            "self.looks.begin(account, began_ns)",
            "RoundRobin::default().begin(account, began_ns)",
        ),
        "pulse",
        "greedy::recorders_that_are_costly_hold_up_no_other_program",
    ),
    unit(
        "notify.those_who_are_behind",
        Replace("known.is_behind", "known.is_behind && known.is_busy"),
        PULSE,
        "front_end::tests::behind::\
         a_program_that_is_behind_is_notified_once_of_what_changes_without_end",
    ),
    process(
        "write.nobody_is_behind",
        Delete,
        "pulse",
        "greedy::a_mixer_that_stands_still_is_not_disconnected_by_a_program_that_changes_its_stream",
    ),
    unit(
        "drain.without_limit",
        Replace("input.playback.waiting_drains() >= MAX_WAITING_DRAINS", "false"),
        PULSE,
        "front_end::tests::behind::few_requests_wait_until_everything_was_heard",
    ),
    unit(
        "line_limit.without_limit",
        Replace("self.lines >= LINES", "false"),
        PULSE,
        "service::line_limit::tests::lines_beyond_the_limit_are_counted_and_not_printed",
    ),
    unit(
        "waiting_streams.of_one_program",
        Replace("self.count(|known| known == account)", "0"),
        ENGINE,
        "control::streams::waiting::tests::\
         each_program_has_a_part_of_the_places_for_requests_that_wait",
    ),
    unit(
        "waiting_streams.of_one_process",
        Replace("self.count(|known| known.process == account.process)", "0"),
        ENGINE,
        "control::streams::waiting::tests::\
         each_program_has_a_part_of_the_places_for_requests_that_wait",
    ),
    unit(
        "create_upload.without_limit",
        Replace("own().map(|upload| u64::from(upload.length)).sum::<u64>()", "0_u64"),
        PULSE,
        "front_end::tests::samples::uploads_that_make_no_sense_or_are_too_many_are_refused",
    ),
    unit(
        "remember.without_limit",
        Replace("self.entries.len() >= MOST", "false"),
        POLICY,
        "table::tests::the_oldest_entry_makes_room",
    ),
    process(
        "begun.at_any_position",
        Replace("position > MAX_STREAM_POSITION", "false"),
        "bad_input",
        "streams::a_stream_begins_at_no_position_that_cannot_be",
    ),
    unit(
        "open.accounts_of_the_unseen",
        Replace("if process == 0 { 0 } else { stated }", "stated"),
        ENGINE,
        "control::streams::tests::a_process_that_plays_for_others_has_streams_for_hundreds",
    ),
    unit(
        "check.accounts_without_limit",
        Replace("of_process().count()", "0"),
        ENGINE,
        "control::streams::tests::a_process_that_plays_for_others_has_streams_for_hundreds",
    ),
    unit(
        "extend.without_limit",
        Replace("bytes <= self.left(grant.account)", "true"),
        ENGINE,
        "stream_budget::tests::more_memory_for_a_stream_comes_from_its_programs_share",
    ),
    unit(
        "remembered.any_number_of_a_name",
        Replace("of_name.is_some_and(|ages| ages.len() >= MOST_OF_A_NAME)", "false"),
        ENGINE,
        "model::remembered::tests::only_the_newest_items_of_a_name_are_remembered",
    ),
    unit(
        "nearest.compares_all_names",
        Replace("alike.take(CANDIDATES)", "alike"),
        ENGINE,
        "model::names::tests::a_suggestion_compares_the_first_few_names_that_are_alike",
    ),
    unit(
        "notice_queue.without_limit",
        Replace(">= MOST_EVENTS", "== u32::MAX"),
        CLIENT,
        "notice_queue::tests::events_beyond_the_limit_are_counted",
    ),
    unit(
        "calls.at_any_rate",
        Replace("self.next_ns.saturating_sub(AHEAD_NS)", "now_ns"),
        ENGINE,
        "control::streams::calls::tests::calls_that_follow_each_other_closely_are_one",
    ),
    unit(
        "work_of_connection.passing_is_nothing",
        Replace("|| is_passed", ""),
        ENGINE,
        "driver_budget::tests::a_stream_is_passed_to_clients_without_a_signal",
    ),
    unit(
        "work_of_recording.is_nothing",
        Replace("model.is_stream_client(reader).into()", "0"),
        ENGINE,
        "driver_budget::tests::what_a_stream_records_is_the_work_of_its_own_program",
    ),
    process(
        "open_ports.streams_take_all",
        Delete,
        "bad_input",
        "streams::a_program_cannot_take_all_ports_for_its_streams",
    ),
    unit(
        "modules.without_limit",
        Replace("self.modules.count(|_| true) >= MAX_MODULES", "false"),
        PULSE,
        "front_end::tests::modules::policies::modules_are_limited",
    ),
    unit(
        "keep.recorded_without_limit",
        Replace("queue.len() + bytes.len() <= most", "true"),
        PULSE,
        "front_end::tests::recording::a_program_that_takes_nothing_has_what_it_was_granted_kept_and_no_more",
    ),
    unit(
        "drop_oldest.keep_all",
        Replace("plane.drain(..beyond)", "plane.drain(..0)"),
        PULSE,
        "playback::stream::tests::monitored::a_tap_that_is_not_read_keeps_the_newest_frames",
    ),
    unit(
        "remote_timing.any_delay",
        Replace("us <= MAX_DELAY_US", "true"),
        PULSE,
        "remote::incoming::tests::times_that_make_no_sense_are_left_alone",
    ),
    unit(
        "announced.any_size_fits",
        Replace("begin.saturating_add(announced)", "begin + announced"),
        SOUNDFILE,
        "announced::tests::sound_of_a_size_that_no_file_can_have_is_cut",
    ),
    unit(
        "announced.chunks_without_limit",
        Replace("CHUNK_LIMIT", "usize::MAX"),
        SOUNDFILE,
        "announced::tests::chunks_without_end_are_not_searched",
    ),
];
