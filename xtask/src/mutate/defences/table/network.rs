//! What other machines send, and publish in a network.

use super::super::super::edit::Edit::Replace;
use super::super::{Defence, process, unit};

const BRIDGE: &str = "consort-device-bridge";

pub(super) const NETWORK: &[Defence] = &[
    process(
        "simple.any_number_of_connections",
        Replace("connected.load(Ordering::Relaxed) >= MAX_CONNECTIONS", "false"),
        "pulse",
        "tunnels::sockets_of_raw_samples_are_few_and_end_with_their_module",
    ),
    unit(
        "rtp.any_sender",
        Replace("self.sender != Some(packet.sender) && self.sender.is_some()", "false"),
        BRIDGE,
        "rtp::order::tests::another_sender_is_heard_when_the_one_before_is_silent",
    ),
    unit(
        "rtp.any_number_of_sessions",
        Replace("self.all.len() >= MOST", "false"),
        BRIDGE,
        "rtp::sessions::tests::sessions_are_few_however_many_are_announced",
    ),
    unit(
        "rtp.anybody_ends_sessions",
        Replace("self.all[at].from != from", "false"),
        BRIDGE,
        "rtp::sessions::tests::nobody_else_ends_or_changes_a_session",
    ),
    unit(
        "loaded.tunnels_without_limit",
        Replace("all.len() < MOST_TUNNELS", "true"),
        BRIDGE,
        "zeroconf::discover::tests::tunnels_are_few_and_none_is_loaded_once_all_end",
    ),
    unit(
        "services.without_limit",
        Replace("self.0.len() >= MOST_SERVICES", "false"),
        BRIDGE,
        "zeroconf::discover::tests::services_that_are_published_without_end_are_not_kept_in_mind",
    ),
    unit(
        "tunnel.any_device",
        Replace(".filter(|name| is_name(name))", ""),
        BRIDGE,
        "zeroconf::service::tests::a_service_that_makes_no_sense_leads_nowhere",
    ),
    unit(
        "tunnel.shows_cookie",
        Replace("auth-cookie-enabled=no", ""),
        BRIDGE,
        "zeroconf::service::tests::what_is_published_leads_to_a_tunnel_that_shows_no_cookie",
    ),
];
