//! The web page.

use super::super::super::edit::Edit::Replace;
use super::super::{Defence, process, unit};

const WEB: &str = "consort-web";

pub(super) const PAGE: &[Defence] = &[
    unit(
        "check.any_host",
        Replace("token.is_none() && !is_local(host)", "false"),
        WEB,
        "access::tests::without_a_token_only_names_of_this_machine_are_answered",
    ),
    unit(
        "check.other_sites",
        Replace("!is_own_page(headers, host, uri.path())", "false"),
        WEB,
        "access::tests::other_sites_may_only_link_to_the_page",
    ),
    unit(
        "check.any_form",
        Replace("*method == Method::POST && !is_json(headers)", "false"),
        WEB,
        "access::tests::other_sites_may_only_link_to_the_page",
    ),
    unit(
        "check.without_token",
        Replace("if !offers(uri, headers, token)", "if false && !offers(uri, headers, token)"),
        WEB,
        "access::tests::with_a_token_only_requests_that_present_it_are_answered",
    ),
    unit(
        "is_allowed_at.any_address",
        Replace("address.ip().is_loopback()", "!address.ip().is_multicast()"),
        WEB,
        "access::tests::without_a_token_a_page_is_for_this_machine_only",
    ),
    process(
        "peer.any_user",
        Replace("|user| user == ROOT || user == sys::process::real_user_id()", "|_| true"),
        "web",
        "users::without_a_token_another_user_neither_sees_nor_orders_anything",
    ),
    process(
        "served.acts_past_policy",
        Replace("has_policy && !self.has_token", "false"),
        "web",
        "access::a_page_without_a_token_serves_no_server_with_a_policy",
    ),
    process(
        "accept.connections_without_limit",
        Replace("CONNECTIONS", "Semaphore::MAX_PERMITS"),
        "web",
        "crowds::more_browsers_than_there_is_room_for_are_refused",
    ),
    process(
        "collect.any_length",
        Replace("length > most", "false"),
        "web",
        "states::an_invalid_state_file_is_refused_by_the_page",
    ),
    process(
        "set_volume.of_others_by_page",
        Replace("!permissions.patch && ", "false && "),
        "web",
        "streams::a_page_may_do_no_more_with_streams_than_its_own_process",
    ),
];
