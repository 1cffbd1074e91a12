//! The transport and freewheel: what one process requests, others see.

use crate::actors::Step::{A, B, BDoes, EventA, EventB, Lsp, Status, Transport};
use crate::actors::{Row, take};

/// Longer than anything that could happen meanwhile.
const NEVER_US: &str = "set_sync_timeout 4000000000";

const MOVED: &[Row] = &[
    (
        "jack_transport_start and jack_transport_stop have the piece roll and stand still, for every process",
        &[
            A("transport_query", "stopped 0"),
            A("transport_start", "done"),
            Transport("/state", "\"rolling\""),
            BDoes("transport_passes", "yes"),
            A("transport_stop", "done"),
            Transport("/state", "\"stopped\""),
        ],
    ),
    (
        "jack_transport_locate moves a piece that stands, and it stands there, also for the estimate of now",
        &[
            A("transport_locate 12345", "0"),
            B("transport_query", "stopped 12345"),
            B("get_current_transport_frame", "12345"),
            Transport("/frame", "12345"),
        ],
    ),
    (
        "jack_transport_reposition carries every member of the position, and refuses bits that mean nothing",
        &[
            A("transport_reposition 4321", "0"),
            B("transport_query", "stopped 4321 full"),
            Transport("/bbt/ticks_per_beat", "960.25"),
            Transport("/video_offset", "4328"),
            A("transport_reposition_bits 0x400", "EINVAL"),
            A("transport_reposition_bits 0x1", "EINVAL"),
            B("transport_query", "stopped 4321 full"),
        ],
    ),
    (
        "the process callback may start, move and stop the transport",
        &[
            A("activate", "0"),
            A("in_cycle locate 777", "done"),
            B("transport_query", "stopped 777"),
            A("in_cycle start", "done"),
            Transport("/state", "\"rolling\""),
            A("in_cycle stop", "done"),
            Transport("/state", "\"stopped\""),
        ],
    ),
    (
        "a client that is not active is heard, and one that is closed is not",
        &[
            A("transport_locate 5", "0"),
            B("transport_query", "stopped 5"),
            A("client_close", "0"),
            A("transport_locate 6", "-1"),
            A("set_sync_timeout 6", "-1"),
            A("transport_query", "stopped 0"),
            BDoes("transport_query", "stopped 5"),
        ],
    ),
    (
        "jack_get_transport_info gives the same in the old struct, as far as it fits",
        &[
            A("transport_reposition 9", "0"),
            B("get_transport_info", "stopped 9 bar 10, valid 0x13"),
            A("transport_locate 8", "0"),
            B("get_transport_info", "stopped 8 bar 0, valid 0x3"),
            A("engine_takeover_timebase", "-1"),
        ],
    ),
];

const SLOW: &[Row] = &[
    (
        "jack_set_sync_callback makes the transport wait until the client is ready, on a jump too",
        &[
            A("activate", "0"),
            A(NEVER_US, "0"),
            A("set_sync_callback unready", "0"),
            // Once after it was set.
            EventA("asked while stopped at 0"),
            BDoes("transport_locate 100", "0"),
            EventA("asked while stopped at 100"),
            BDoes("transport_start", "done"),
            EventA("asked while starting at 100"),
            B("transport_query", "starting 100"),
            A("be_ready", "done"),
            Transport("/state", "\"rolling\""),
            BDoes("transport_stop", "done"),
            Transport("/state", "\"stopped\""),
        ],
    ),
    (
        "jack_set_sync_timeout bounds the wait, and who is not ready then is asked on while it rolls",
        &[
            A("activate", "0"),
            A("set_sync_callback unready", "0"),
            EventA("asked while stopped at 0"),
            BDoes("set_sync_timeout 200000", "0"),
            BDoes("transport_start", "done"),
            EventA("asked while starting at 0"),
            EventA("asked while rolling"),
            Transport("/state", "\"rolling\""),
        ],
    ),
    (
        "no client waits for one whose sync callback was removed, or that left",
        &[
            A("activate", "0"),
            A(NEVER_US, "0"),
            A("set_sync_callback unready", "0"),
            BDoes("transport_start", "done"),
            EventA("asked while starting at 0"),
            A("set_sync_callback none", "0"),
            Transport("/state", "\"rolling\""),
            BDoes("transport_stop", "done"),
            Transport("/state", "\"stopped\""),
            A("set_sync_callback unready", "0"),
            BDoes("transport_locate 0", "0"),
            BDoes("transport_start", "done"),
            Transport("/state", "\"starting\""),
            A("deactivate", "0"),
            Transport("/state", "\"rolling\""),
        ],
    ),
];

const LED: &[Row] = &[
    (
        "jack_set_timebase_callback makes the master complete every position, and reports each new one once",
        &[
            A("activate", "0"),
            A("set_timebase_callback", "0"),
            EventA("new position 0 while stopped"),
            B("transport_query", "stopped 0 full"),
            Transport("/timebase", "\"a\""),
            BDoes("transport_locate 500", "0"),
            EventA("new position 500 while stopped"),
            B("transport_query", "stopped 500 full"),
            BDoes("transport_start", "done"),
            EventA("new position 500 while starting"),
            Transport("/state", "\"rolling\""),
            BDoes("transport_stop", "done"),
            Transport("/state", "\"stopped\""),
            Transport("/bbt/beats_per_minute", "121.5"),
        ],
    ),
    (
        "a conditional take-over leaves a master alone, another one replaces it, and only the master can release",
        &[
            A("activate", "0"),
            BDoes("activate", "0"),
            BDoes("release_timebase", "EINVAL"),
            A("set_timebase_callback conditional", "0"),
            EventA("new position 0 while stopped"),
            BDoes("set_timebase_callback conditional", "EBUSY"),
            Transport("/timebase", "\"a\""),
            BDoes("set_timebase_callback", "0"),
            EventB("new position 0 while stopped"),
            Transport("/timebase", "\"b\""),
            A("release_timebase", "EINVAL"),
            BDoes("release_timebase", "0"),
            Transport("/timebase", "null"),
            A("set_timebase_callback conditional", "0"),
            Transport("/timebase", "\"a\""),
        ],
    ),
    (
        "bar and beat go with the master",
        &[
            A("activate", "0"),
            A("set_timebase_callback", "0"),
            B("transport_query", "stopped 0 full"),
            A("client_close", "0"),
            Transport("/timebase", "null"),
            B("transport_query", "stopped 0"),
        ],
    ),
];

const FREEWHEELING: &[Row] = &[
    (
        "jack_set_freewheel tells every client before and after, takes real-time away, and gives it back",
        &[
            A("activate", "0"),
            BDoes("activate", "0"),
            A("is_realtime", "1"),
            A("set_freewheel 1", "0"),
            EventA("freewheel 1"),
            EventB("freewheel 1"),
            Status("/freewheel", "true"),
            A("await_cycle", "ran"),
            BDoes("await_cycle", "ran"),
            A("is_realtime", "0"),
            BDoes("set_freewheel 1", "-1"),
            BDoes("set_freewheel 0", "0"),
            EventA("freewheel 0"),
            EventB("freewheel 0"),
            Status("/freewheel", "false"),
            A("await_cycle", "ran"),
            A("is_realtime", "1"),
            A("client_real_time_priority", "as the kernel says"),
            A("set_freewheel 0", "-1"),
            A("cycles_of_wrong_size", "0"),
        ],
    ),
    (
        "a new quantum, the transport and connections work in freewheel as ever",
        &[
            A("port_register out audio o", "ok"),
            BDoes("port_register in audio i", "ok"),
            A("activate", "0"),
            BDoes("activate", "0"),
            A("set_freewheel 1", "0"),
            BDoes("set_buffer_size 512", "0"),
            EventA("quantum 512"),
            A("connect a:out b:in", "0"),
            Lsp(&["-c", "b:in"], "b:in\n   a:out\n"),
            BDoes("transport_start", "done"),
            BDoes("transport_passes", "yes"),
            A("cycles_of_wrong_size", "0"),
            A("set_freewheel 0", "0"),
            BDoes("transport_passes", "yes"),
        ],
    ),
];

#[test]
fn the_transport_that_one_process_moves_is_seen_by_others() {
    take(MOVED);
}

#[test]
fn slow_sync_clients_are_waited_for() {
    take(SLOW);
}

#[test]
fn a_timebase_master_completes_what_others_read() {
    take(LED);
}

#[test]
fn freewheel_is_a_mode_of_the_whole_server() {
    take(FREEWHEELING);
}
