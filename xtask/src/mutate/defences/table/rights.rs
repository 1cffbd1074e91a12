//! The server's files and rights, and the descriptors of peers.

use super::super::super::edit::Edit::{Delete, Replace};
use super::super::{Defence, process, unit};

const ENGINE: &str = "consort-engine";
const SYS: &str = "consort-sys";

pub(super) const RIGHTS: &[Defence] = &[
    // The server's files and rights.
    unit(
        "bind.replaces_files",
        Replace(
            "Err(io::ErrorKind::AlreadyExists.into())",
            "std::fs::remove_file(path).map(|()| true)",
        ),
        SYS,
        "socket::listener::tests::a_file_or_link_in_the_socket_s_place_is_left_alone",
    ),
    unit(
        "runtime_directory.open_to_others",
        Replace("&& found.mode() & RIGHTS_OF_OTHERS == 0", ""),
        SYS,
        "runtime_directory::tests::a_private_directory_that_others_can_reach_is_refused",
    ),
    process(
        "drop_rights.keeps_capabilities",
        Replace(
            "set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?",
            "drop((effective, permitted, inheritable))",
        ),
        "bad_input",
        "servers::a_running_server_drops_most_of_roots_capabilities",
    ),
    process(
        "file_thread.keeps_capabilities",
        Delete,
        "bad_input",
        "servers::a_running_server_drops_most_of_roots_capabilities",
    ),
    process(
        "web.keeps_capabilities",
        Delete,
        "bad_input",
        "servers::page_and_plug_ins_of_a_server_that_looks_at_processes_look_at_none",
    ),
    process(
        "host.keeps_capabilities",
        Delete,
        "bad_input",
        "servers::page_and_plug_ins_of_a_server_that_looks_at_processes_look_at_none",
    ),
    unit(
        "report.waits_for_room",
        Replace("queue.try_send(", "queue.send("),
        SYS,
        "log::tests::lines_that_nothing_reads_are_lost_and_delay_nothing",
    ),
    process(
        "messages.written_by_library",
        Delete,
        "bad_input",
        "servers::a_server_whose_standard_error_is_full_continues",
    ),
    // Descriptors of peers.
    process(
        "foreign.closed_at_once",
        Replace("let _ = self.queue.sender.send(inner.into())", "drop::<OwnedFd>(inner.into())"),
        "bad_input",
        "packets::a_descriptor_whose_close_lasts_delays_no_answer",
    ),
    process(
        "foreign.memory_closed_at_once",
        Replace("let _ = self.queue.sender.send(inner.into())", "drop::<OwnedFd>(inner.into())"),
        "bad_input",
        "foreign_descriptors::\
         memory_that_a_program_sends_is_given_back_by_threads_that_nobody_waits_for",
    ),
    process(
        "foreign.silent_file_closed_at_once",
        Replace("let _ = self.queue.sender.send(inner.into())", "drop::<OwnedFd>(inner.into())"),
        "bad_input",
        "foreign_descriptors::a_silent_file_before_any_hello_delays_no_answer",
    ),
    process(
        "segment.size_of_any_file",
        Replace(
            "fcntl_get_seals(&memfd) {",
            "{ let _ = fstat(&memfd); fcntl_get_seals(&memfd) } {",
        ),
        "bad_input",
        "foreign_descriptors::a_silent_file_in_place_of_a_streams_memory_delays_no_answer",
    ),
    process(
        "handle_numbered.descriptors_without_end",
        Delete,
        "bad_input",
        "packets::an_unexpected_descriptor_ends_its_connection",
    ),
    process(
        "begin_stream.descriptors_without_end",
        Replace("return self.close_peer(peer)", "return"),
        "bad_input",
        "streams::memory_that_is_no_stream_is_refused_and_costs_the_connection",
    ),
    process(
        "accept.retries_without_descriptor",
        Replace("self.pause_listening(poller, now_ns)", "()"),
        "bad_input",
        "crowds::a_server_without_a_descriptor_left_recovers",
    ),
    process(
        "make_client.process_not_watched",
        Replace("poller.add(process, token, Interest::Readable).is_ok()", "true"),
        "faults",
        "hostile::a_client_is_gone_when_its_process_is_although_a_child_lives",
    ),
    unit(
        "disposal.one_thread_only",
        Delete,
        SYS,
        "disposal::tests::a_close_that_lasts_holds_up_no_other",
    ),
    unit(
        "unsent.not_tried_again",
        Replace("true", "false"),
        ENGINE,
        "control::unsent::tests::a_packet_that_the_kernel_refuses_is_sent_once_when_it_does_not",
    ),
    unit(
        "unsent.without_limit",
        Replace("< WAITING_OF_ONE", "< usize::MAX"),
        ENGINE,
        "control::unsent::tests::a_peer_for_which_too_many_packets_wait_gets_no_more",
    ),
    unit(
        "unsent.tried_for_ever",
        Replace("now_ns < *until_ns", "true"),
        ENGINE,
        "control::unsent::tests::a_peer_that_has_waited_too_long_gets_the_reason_and_is_closed",
    ),
];
