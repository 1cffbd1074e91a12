//! Ports, their names, connections and latencies.

use crate::actors::Step::{A, B, BDoes, EventB, Ls, Lsp};
use crate::actors::{Row, take};

const NAMES: &[Row] = &[
    (
        "names that were got through a client are readable when it is closed, as long as the process has another",
        &[
            A("second_open second", "ok"),
            A("port_register out audio o", "ok"),
            A("second_hold a:out", "ok"),
            A("second_close", "0"),
            A("held", "a:out a:out a:out"),
            BDoes("port_register out audio o", "ok"),
            A("held", "a:out a:out a:out"),
        ],
    ),
    (
        "jack_port_register makes a port of a type and with flags, which others see",
        &[
            A("port_register out audio oT", "ok"),
            A("port_register keys midi i", "ok"),
            Lsp(
                &["-p", "-t", "a:"],
                "a:out\n\tproperties: output,terminal,\n\t32 bit float mono audio\n\
                                  a:keys\n\tproperties: input,\n\t8 bit raw midi\n",
            ),
            Ls("a:out", "/flags", r#"["output","terminal"]"#),
            Ls("a:keys", "/type", r#""midi""#),
            Ls("a:keys", "/owner", r#""a""#),
            B("port_type a:keys", "8 bit raw midi"),
            B("port_type_id a:out", "0"),
            B("port_type_id a:keys", "1"),
            B("port_flags a:out", "0x12"),
            B("port_flags a:keys", "0x1"),
            B("port_short_name a:out", "out"),
            B("port_is_mine a:out", "0"),
            A("port_is_mine a:out", "1"),
        ],
    ),
    (
        "jack_port_register refuses a name that is taken, an unknown type, and a port that is neither or both",
        &[
            A("port_register out audio o", "ok"),
            A("port_register out audio i", "(null)"),
            A("port_register other sound o", "(null)"),
            A("port_register none audio T", "(null)"),
            A("port_register both audio io", "(null)"),
            Lsp(&["-p", "a:"], "a:out\n\tproperties: output,\n"),
            BDoes("port_register out audio i", "ok"),
            Lsp(&["out"], "a:out\nb:out\n"),
        ],
    ),
    (
        "jack_port_unregister takes a port and its connections away, and another's port is not unregistered",
        &[
            A("activate", "0"),
            A("port_register out audio o", "ok"),
            A("connect a:out system:playback_1", "0"),
            BDoes("port_unregister a:out", "-1"),
            B("port_by_name a:out", "ok"),
            A("port_unregister a:out", "0"),
            B("port_by_name a:out", "(null)"),
            Lsp(
                &["-c"],
                "system:capture_1\nsystem:capture_2\nsystem:playback_1\nsystem:playback_2\n",
            ),
        ],
    ),
    (
        "jack_port_rename gives a port another name at once, and the old one can still be read",
        &[
            A("port_register out audio o", "ok"),
            BDoes("activate", "0"),
            A("port_rename a:out left", "0 from a:out to a:left"),
            EventB("port a:out is now a:left"),
            B("port_by_name a:out", "(null)"),
            B("port_short_name a:left", "left"),
            Lsp(&["a:"], "a:left\n"),
        ],
    ),
    (
        "jack_port_set_name does the same",
        &[
            A("port_register out audio o", "ok"),
            BDoes("activate", "0"),
            A("port_set_name a:out left", "0"),
            EventB("port a:out is now a:left"),
            Lsp(&["a:"], "a:left\n"),
        ],
    ),
    (
        "jack_port_rename refuses a name that another port has",
        &[
            A("port_register out audio o", "ok"),
            A("port_register left audio o", "ok"),
            A("port_rename a:out left", "-1 from a:out to a:out"),
            Lsp(&["a:"], "a:out\na:left\n"),
        ],
    ),
    (
        "jack_port_set_alias gives a port at most two more names, by which others find it",
        &[
            A("port_register out audio o", "ok"),
            A("port_set_alias a:out synth:left", "0"),
            A("port_set_alias a:out synth:main", "0"),
            A("port_set_alias a:out synth:third", "-1"),
            B("port_get_aliases a:out", "2 synth:left synth:main"),
            B("port_by_name synth:left", "ok"),
            B("port_by_name synth:third", "(null)"),
            Lsp(&["-A", "a:"], "a:out\n   synth:left\n   synth:main\n"),
            Ls("a:out", "/aliases", r#"["synth:left","synth:main"]"#),
            BDoes("connect synth:left system:playback_1", "-1"),
            A("activate", "0"),
            BDoes("connect synth:left system:playback_1", "0"),
            Ls("a:out", "/connections", r#"["system:playback_1"]"#),
        ],
    ),
    (
        "jack_port_unset_alias takes one of them away, and refuses what is none",
        &[
            A("port_register out audio o", "ok"),
            A("port_set_alias a:out synth:left", "0"),
            A("port_set_alias a:out synth:main", "0"),
            A("port_unset_alias a:out synth:left", "0"),
            A("port_unset_alias a:out synth:left", "-1"),
            B("port_get_aliases a:out", "1 synth:main -"),
            B("port_by_name synth:left", "(null)"),
            Ls("a:out", "/aliases", r#"["synth:main"]"#),
        ],
    ),
];

#[test]
fn port_names_and_flags_are_seen_by_others() {
    take(NAMES);
}

const FOUND: &[Row] = &[
    (
        "jack_get_ports finds by an extended regular expression, by type, by flags, and by all of them",
        &[
            A("port_register out audio o", "ok"),
            A("port_register keys midi o", "ok"),
            B(
                "get_ports - - ",
                "system:capture_1 system:capture_2 system:playback_1 system:playback_2 a:out a:keys",
            ),
            B("get_ports ^a: - ", "a:out a:keys"),
            B("get_ports capture_1|:out$ - ", "system:capture_1 a:out"),
            B("get_ports - midi ", "a:keys"),
            B("get_ports - - oP", "system:capture_1 system:capture_2"),
            B("get_ports ^[^s] audio o", "a:out"),
            B("get_ports nothing - ", "(null)"),
        ],
    ),
    (
        "jack_get_ports answers null to what is no regular expression",
        &[
            B("get_ports ( - ", "(null)"),
            B("get_ports - [a ", "(null)"),
            B("get_ports ^system:p - ", "system:playback_1 system:playback_2"),
        ],
    ),
    (
        "jack_port_by_id finds a port of another process by the id that consort ls tells",
        &[
            A("port_register out audio o", "ok"),
            Ls("a:out", "/id", "5"),
            B("port_by_id 5", "a:out"),
            B("port_by_id 1", "system:capture_1"),
            B("port_by_id 999", "(none)"),
        ],
    ),
];

#[test]
fn ports_are_found_by_others() {
    take(FOUND);
}

const CONNECTIONS: &[Row] = &[
    (
        "jack_connect connects, and answers EEXIST (17) the second time",
        &[
            A("connect system:capture_1 system:playback_2", "0"),
            A("connect system:capture_1 system:playback_2", "17"),
            BDoes("connect system:capture_1 system:playback_2", "17"),
            Ls("system:capture_1", "/connections", r#"["system:playback_2"]"#),
        ],
    ),
    (
        "jack_connect refuses two outputs, two types, the wrong way round, and what does not exist",
        &[
            A("port_register keys midi i", "ok"),
            A("activate", "0"),
            A("connect system:capture_1 system:capture_2", "-1"),
            A("connect system:playback_1 system:capture_1", "-1"),
            A("connect system:capture_1 a:keys", "-1"),
            A("connect system:capture_1 a:nothing", "-1"),
            Ls("system:capture_1", "/connections", "[]"),
        ],
    ),
    (
        "jack_disconnect takes one connection away, and fails the second time",
        &[
            A("connect system:capture_1 system:playback_1", "0"),
            A("connect system:capture_1 system:playback_2", "0"),
            BDoes("disconnect system:capture_1 system:playback_1", "0"),
            BDoes("disconnect system:capture_1 system:playback_1", "-1"),
            Ls("system:capture_1", "/connections", r#"["system:playback_2"]"#),
        ],
    ),
    (
        "jack_port_disconnect takes all connections of a port away",
        &[
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            A("connect a:out system:playback_1", "0"),
            A("connect a:out system:playback_2", "0"),
            A("connect system:capture_1 system:playback_1", "0"),
            A("port_disconnect a:out", "0"),
            Ls("a:out", "/connections", "[]"),
            Ls("system:playback_1", "/connections", r#"["system:capture_1"]"#),
        ],
    ),
    (
        "connections that one client makes, the other counts and names",
        &[
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            BDoes("connect a:out system:playback_1", "0"),
            BDoes("connect a:out system:playback_2", "0"),
            A("port_connected a:out", "2"),
            A("port_connected_to a:out system:playback_2", "1"),
            A("port_connected_to a:out system:capture_1", "0"),
            A("port_get_connections a:out", "system:playback_1 system:playback_2"),
            B("port_get_all_connections a:out", "system:playback_1 system:playback_2"),
            B("port_get_all_connections system:playback_1", "a:out"),
            B("port_get_all_connections system:capture_1", "(null)"),
        ],
    ),
];

#[test]
fn connections_are_seen_by_others() {
    take(CONNECTIONS);
}

const LATENCIES: &[Row] = &[
    (
        "jack_port_set_latency_range states one direction, which others read, and leaves the other alone",
        &[
            A("port_register out audio o", "ok"),
            A("port_register in audio i", "ok"),
            A("port_set_latency_range a:out capture 10 20", "done"),
            A("port_set_latency_range a:in playback 30 40", "done"),
            B("port_get_latency_range a:out capture", "10 20"),
            B("port_get_latency_range a:out playback", "0 0"),
            B("port_get_latency_range a:in playback", "30 40"),
            B("port_get_latency_range a:in capture", "0 0"),
            Ls("a:out", "/capture_latency", r#"{"max_frames":20,"min_frames":10}"#),
            Lsp(
                &["-l", "a:in"],
                "a:in\n\tport playback latency = [ 30 40 ] frames\n\
                              \tport capture latency = [ 0 0 ] frames\n",
            ),
        ],
    ),
    (
        "what a client states of its output reaches the input that hears it, in another process",
        &[
            A("port_register out audio o", "ok"),
            A("activate", "0"),
            BDoes("port_register in audio i", "ok"),
            BDoes("activate", "0"),
            A("connect a:out b:in", "0"),
            A("port_set_latency_range a:out capture 100 300", "done"),
            BDoes("port_set_latency_range b:in playback 7 9", "done"),
            A("recompute_total_latencies", "0"),
            Ls("b:in", "/capture_latency", r#"{"max_frames":300,"min_frames":100}"#),
            Ls("a:out", "/playback_latency", r#"{"max_frames":9,"min_frames":7}"#),
        ],
    ),
    (
        "jack_port_set_latency states the port's own direction, and the total is the way on to the device and the device's",
        &[
            A("port_register out audio o", "ok"),
            A("port_set_latency a:out 50", "done"),
            B("port_get_latency_range a:out capture", "50 50"),
            B("port_get_latency_range a:out playback", "0 0"),
            B("port_get_latency a:out", "0"),
            B("port_get_latency system:capture_1", "256"),
            B("port_get_total_latency a:out", "0"),
            A("activate", "0"),
            A("connect a:out system:playback_1", "0"),
            B("port_get_total_latency a:out", "512"),
        ],
    ),
    (
        "jack_recompute_total_latencies has every active client asked, for capture and then for playback",
        &[
            BDoes("activate", "0"),
            EventB("latency capture"),
            EventB("latency playback"),
            A("recompute_total_latencies", "0"),
            EventB("latency capture"),
            EventB("latency playback"),
        ],
    ),
    (
        "jack_recompute_total_latency does the same",
        &[
            BDoes("activate", "0"),
            EventB("latency capture"),
            EventB("latency playback"),
            A("recompute_total_latency system:capture_1", "0"),
            EventB("latency capture"),
            EventB("latency playback"),
        ],
    ),
];

#[test]
fn latencies_are_seen_by_others() {
    take(LATENCIES);
}

const MONITORS: &[Row] = &[
    (
        "jack_port_request_monitor counts, and an input's requests reach what it hears",
        &[
            A("port_register in audio i", "ok"),
            A("activate", "0"),
            A("connect system:capture_1 a:in", "0"),
            A("port_request_monitor a:in 1", "0"),
            B("port_monitoring_input system:capture_1", "1"),
            BDoes("port_request_monitor system:capture_1 1", "0"),
            A("port_request_monitor a:in 0", "0"),
            B("port_monitoring_input a:in", "0"),
            B("port_monitoring_input system:capture_1", "1"),
            BDoes("port_request_monitor system:capture_1 0", "0"),
            A("port_monitoring_input system:capture_1", "0"),
            B("port_monitoring_input system:capture_2", "0"),
        ],
    ),
    (
        "jack_port_request_monitor_by_name and jack_port_ensure_monitor do so for a name, and whatever was asked before",
        &[
            A("port_request_monitor_by_name system:capture_1 1", "0"),
            A("port_request_monitor_by_name system:capture_1 1", "0"),
            B("port_monitoring_input system:capture_1", "1"),
            BDoes("port_ensure_monitor system:capture_1 0", "0"),
            A("port_monitoring_input system:capture_1", "0"),
            BDoes("port_ensure_monitor system:capture_1 1", "0"),
            A("port_monitoring_input system:capture_1", "1"),
            A("port_request_monitor_by_name no:such 1", "-1"),
        ],
    ),
];

#[test]
fn monitor_requests_are_seen_by_others() {
    take(MONITORS);
}
