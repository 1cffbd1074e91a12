//! Who is admitted, and what a policy allows.

use super::super::super::edit::Edit::{Delete, Replace};
use super::super::{Defence, process, unit};

const ENGINE: &str = "consort-engine";

pub(super) const PERMISSIONS: &[Defence] = &[
    process(
        "admit.any_user",
        Replace("!self.listeners.admit(socket)", "false"),
        "bad_input",
        "groups::a_process_outside_of_the_group_cannot_connect",
    ),
    process(
        "permissions_of.others_load_plug_ins",
        Replace("permissions.load && may_act_as_us", "permissions.load"),
        "bad_input",
        "groups::a_member_has_no_plug_ins_run_as_the_user_whose_server_it_is",
    ),
    process(
        "ask_session.programs_of_other_users",
        Replace("self.peers.user(slot.peer) == asking", "true"),
        "bad_input",
        "groups::a_member_has_no_program_of_another_user_save",
    ),
    process(
        "executable.path_in_other_mounts",
        Replace(
            "Executable::Elsewhere",
            "path_of_executable(&format!(\"{process}/exe\"))
                .map_or(Executable::Unknown, Executable::Path)",
        ),
        "bad_input",
        "policies::a_program_cannot_take_a_path_by_mounts_of_its_own",
    ),
    process(
        "check.connects_for_others",
        Replace("(permissions.connect && own())", "permissions.connect"),
        "bad_input",
        "policies::without_the_permission_to_patch_a_program_changes_only_its_own",
    ),
    process(
        "check.opens_any_driver",
        Delete,
        "bad_input",
        "policies::the_permission_to_control_opens_neither_files_nor_devices",
    ),
    process(
        "connect.feeds_others",
        Delete,
        "bad_input",
        "policies::feeding_other_clients_needs_the_permission_to_play",
    ),
    unit(
        "lets_in.any_cookie",
        Replace("cookie.is(offered)", "true"),
        "consort-pulse",
        "front_end::tests::admission::a_program_of_another_user_or_of_the_network_needs_the_cookie",
    ),
    unit(
        "cookie.any_length",
        Replace("offered.len() == COOKIE_BYTES", "true"),
        "consort-pulse",
        "front_end::admission::tests::a_part_of_the_cookie_is_not_the_cookie",
    ),
    unit(
        "modules.files_for_the_network",
        Replace("kind.reaches_outside()", "false"),
        "consort-pulse",
        "front_end::tests::modules::policies::a_program_over_the_network_opens_no_file_and_no_further_way_in_or_out",
    ),
    process(
        "run_server.page_past_policy",
        Replace("!config.policy.is_empty()", "false"),
        "bad_input",
        "policies::with_a_policy_a_web_page_needs_a_token",
    ),
    process(
        "check_return.any_frame",
        Replace("!is_plausible(returning.frames, returning.at_ns, now_ns)", "false"),
        "bad_input",
        "returning::an_impossible_returning_client_is_refused_with_the_reason",
    ),
    process(
        "check_load.any_path",
        Delete,
        "internal",
        "library::each_function_of_intclient_h_does_what_its_header_says",
    ),
    process(
        "set_latency.of_any_port",
        Replace("client != Some(owned.owner)", "client.is_none()"),
        "bad_input",
        "requests::a_client_cannot_take_what_belongs_to_another",
    ),
    unit(
        "confinement.other_mounts",
        Replace("!self.shares_files_with(server)", "false"),
        "consort-confinement",
        "tests::each_kind_of_confinement_is_recognized",
    ),
    process(
        "examined.has_all_rights",
        Replace("Rights::ALL, rule", "Rights::ALL, |_| Rights::ALL"),
        "pulse",
        "confined::a_confined_program_plays_and_changes_and_records_nothing_else",
    ),
    unit(
        "awaits_examination.never",
        Replace("known.rights.is_none()", "false"),
        "consort-pulse",
        "front_end::tests::confined::a_request_waits_until_it_is_known_what_its_program_may_do",
    ),
    process(
        "link_ready.requests_before_rights",
        Replace("front_end.has_unanswered_request(number)", "false"),
        "pulse",
        "confined::requests_that_come_with_the_first_are_answered_by_the_programs_rights",
    ),
    unit(
        "answer.without_rights",
        Delete,
        "consort-pulse",
        "front_end::tests::confined::a_confined_program_changes_only_what_is_its_own",
    ),
    unit(
        "remember.by_anyone",
        Replace("!self.rights_of(client).control", "false"),
        "consort-pulse",
        "front_end::tests::confined::what_a_confined_program_changes_of_its_streams_is_not_\
         remembered",
    ),
    unit(
        "device_manager.by_anyone",
        Replace("known.rights().control || !asked.changes()", "true"),
        "consort-pulse",
        "front_end::tests::device_manager::a_confined_program_reads_what_is_known_of_devices_and_\
         changes_nothing",
    ),
    unit(
        "kill_module_stream.by_anyone",
        Replace("!self.rights_of(client).load", "false"),
        "consort-pulse",
        "front_end::tests::confined::who_may_change_streams_of_others_neither_unloads_nor_moves_a_\
         module_by_that",
    ),
    unit(
        "move_module_stream.by_anyone",
        Replace("!self.rights_of(client).load", "false"),
        "consort-pulse",
        "front_end::tests::confined::who_may_change_streams_of_others_neither_unloads_nor_moves_a_\
         module_by_that",
    ),
    unit(
        "roles.any_number",
        Replace("stated.take(ROLES).collect()", "stated.collect()"),
        "consort-engine",
        "control::streams::roles::tests::an_answer_has_as_many_roles_as_fit_into_it",
    ),
    unit(
        "check_hears.anything",
        Replace("rights.record", "true"),
        "consort-pulse",
        "front_end::tests::confined::a_confined_program_records_nothing_until_a_rule_allows_it",
    ),
    unit(
        "by_default.confined_may_load",
        Replace("confinement.is_none()", "true"),
        ENGINE,
        "policy::tests::a_confined_program_has_everything_but_the_permission_to_load",
    ),
    unit(
        "decide.unmatched_may_everything",
        Replace("NONE", "ALL"),
        ENGINE,
        "policy::tests::the_first_matching_rule_decides",
    ),
    unit(
        "path_of_executable.says_deleted",
        Replace("before.to_owned()", "path.clone()"),
        ENGINE,
        "control::peer_facts::tests::a_deleted_executable_has_its_former_path",
    ),
    process(
        "check_direction.monitored_by_anyone",
        Replace("permissions.record", "true"),
        "bad_input",
        "policies::recording_as_a_stream_needs_the_permissions_of_a_clients_ports",
    ),
    unit(
        "set_volume.of_others",
        Replace("!permissions.patch && ", "false && "),
        ENGINE,
        "control::streams::tests::the_volume_of_another_programs_stream_needs_the_permission_to_patch",
    ),
    unit(
        "begin_move.of_others",
        Replace("!permissions.patch && ", "false && "),
        ENGINE,
        "control::streams::tests::moving::a_stream_moves_only_where_it_fits_and_for_those_who_may",
    ),
    unit(
        "set_device_volume.by_anyone",
        Replace("!permissions.control", "false"),
        ENGINE,
        "control::streams::tests::the_volume_of_the_device_needs_the_permission_to_control",
    ),
    process(
        "check_new_device.by_anyone",
        Replace("!permissions.control", "false"),
        "bad_input",
        "policies::adding_a_device_needs_the_permission_to_control",
    ),
    process(
        "check_new_device.opens_any_card",
        Replace("matches!(new.hardware, NewHardware::Card { .. })", "false"),
        "bad_input",
        "policies::the_permission_to_control_opens_neither_files_nor_devices",
    ),
    process(
        "remove_device.by_anyone",
        Replace("!self.peers.permissions(peer).control", "false"),
        "bad_input",
        "policies::adding_a_device_needs_the_permission_to_control",
    ),
    process(
        "check.anyone_controls",
        Replace("permissions.control", "true"),
        "bad_input",
        "policies::stopping_the_server_needs_the_permission_to_control",
    ),
    process(
        "check_feeding.streams_feed_all",
        Replace("self.peers.permissions(peer).play", "true"),
        "bad_input",
        "policies::a_stream_feeds_other_clients_with_the_permission_to_play",
    ),
    process(
        "check_hearing.streams_record_all",
        Replace("self.peers.permissions(peer)", "Permissions::ALL"),
        "bad_input",
        "policies::a_recorder_hears_other_programs_with_the_permission_to_record",
    ),
    process(
        "check_hearing.others_heard",
        Replace("&& !permissions.record", "&& false"),
        "bad_input",
        "policies::memory_of_others_needs_the_permission_to_record",
    ),
    process(
        "check_hearing.loop_is_no_recording",
        Replace("|| self.settings.driver.loops", ""),
        "bad_input",
        "policies::what_others_play_needs_the_permission_to_record_at_a_monitor",
    ),
];
