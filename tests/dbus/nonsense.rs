//! Invalid calls change nothing, and report why.

use crate::bus::Bus;
use crate::patchbay::with_a_client;

/// Everything that could have changed.
fn everything(bus: &Bus) -> String {
    let parameters = bus.run("jack_control", &["ep", "dp"]).expect_success().stdout;
    let graph = bus.answer("org.jackaudio.JackPatchbay.GetGraph", &["0"]);
    let quantum = bus.answer("org.jackaudio.JackControl.GetBufferSize", &[]);
    format!("{parameters}\n{graph}\n{quantum}")
}

#[test]
fn an_invalid_call_is_refused_with_the_reason() {
    let (bus, _metro) = with_a_client();
    let before = everything(&bus);
    let long = "x".repeat(10_000);
    for (interface, method, arguments, reason) in [
        (
            "Configure",
            "ReadContainer",
            &["['nonsense']"][..],
            "InvalidArgs: there is nothing at 'nonsense'",
        ),
        ("Configure", "GetParametersInfo", &["@as []"], "InvalidArgs: there is nothing at"),
        (
            "Configure",
            "GetParameterInfo",
            &["['engine','\\n']"],
            "InvalidArgs: there is nothing at",
        ),
        (
            "Configure",
            "GetParameterConstraint",
            &["['drivers','oss','rate']"],
            "InvalidArgs: there is nothing at",
        ),
        (
            "Configure",
            "GetParameterValue",
            &["['engine','realtime','more']"],
            "InvalidArgs: there is nothing at",
        ),
        (
            "Configure",
            "SetParameterValue",
            &["['engine','sync']", "<'yes'>"],
            "of type 'b', not 's'",
        ),
        (
            "Configure",
            "SetParameterValue",
            &["['engine','name']", "<'../x'>"],
            "is not a valid server name",
        ),
        (
            "Configure",
            "SetParameterValue",
            &["['driver','rate']", "<uint32 0>"],
            "0 is out of range",
        ),
        (
            "Configure",
            "SetParameterValue",
            &["['driver','rate']", "<['x']>"],
            "of type 'u', not 'as'",
        ),
        (
            "Configure",
            "SetParameterValue",
            &["['engine','driver']", "<'oss'>"],
            "'oss' is not one of",
        ),
        ("Configure", "ResetParameterValue", &["['engine']"], "InvalidArgs: there is nothing at"),
        ("JackControl", "SetBufferSize", &["0"], "InvalidArgs: a quantum of 0 frames"),
        ("JackControl", "SetBufferSize", &["8193"], "a quantum of 8193 frames"),
        (
            "JackPatchbay",
            "GetGraph",
            &["999999"],
            "InvalidArgs: graph version 999999 does not exist yet",
        ),
        (
            "JackPatchbay",
            "ConnectPortsByName",
            &["metro", "nonsense", "system", "playback_1"],
            "there is no port",
        ),
        (
            "JackPatchbay",
            "ConnectPortsByName",
            &["system", "playback_1", "metro", "120_bpm"],
            "is not an output port",
        ),
        (
            "JackPatchbay",
            "ConnectPortsByName",
            &[&long, &long, "system", "playback_1"],
            "there is no port",
        ),
        ("JackPatchbay", "ConnectPortsByID", &["5", "99"], "InvalidArgs: there is no port 99"),
        (
            "JackPatchbay",
            "ConnectPortsByID",
            &["18446744073709551615", "3"],
            "there is no port 18446744073709551615",
        ),
        ("JackPatchbay", "DisconnectPortsByID", &["5", "3"], "are not connected"),
        (
            "JackPatchbay",
            "DisconnectPortsByConnectionID",
            &["77"],
            "InvalidArgs: there is no connection 77",
        ),
        ("JackPatchbay", "GetClientPID", &["99"], "InvalidArgs: there is no client 99"),
        ("SessionManager", "Notify", &["false", "''", "9", "/tmp/"], "9 is not a kind of session"),
        (
            "SessionManager",
            "Notify",
            &["false", "'nobody'", "1", "/tmp/"],
            "there is no client 'nobody'",
        ),
        ("SessionManager", "Notify", &["false", "''", "1", "''"], "a session needs a directory"),
        ("SessionManager", "GetUuidForClientName", &["nobody"], "there is no client 'nobody'"),
        ("SessionManager", "GetClientNameByUuid", &["'x'"], "'x' is not a uuid"),
        ("SessionManager", "GetClientNameByUuid", &["'77'"], "there is no client of uuid 77"),
        ("SessionManager", "HasSessionCallback", &["nobody"], "there is no client 'nobody'"),
        ("SessionManager", "ReserveClientName", &["''", "'8589934699'"], "must not be empty"),
        ("JackControl", "Nonsense", &[], "org.freedesktop.DBus.Error.UnknownMethod"),
    ] {
        let refused = bus.call(&format!("org.jackaudio.{interface}.{method}"), arguments);
        assert_eq!(refused.code, Some(1), "{method} {arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(reason), "{method} {arguments:?}: {}", refused.stderr);
    }
    assert_eq!(everything(&bus), before);
}

#[test]
fn without_a_server_every_query_reports_that_there_is_none() {
    let bus = Bus::start();
    for (interface, method, arguments) in [
        ("JackControl", "GetLoad", &[][..]),
        ("JackControl", "GetXruns", &[]),
        ("JackControl", "ResetXruns", &[]),
        ("JackControl", "GetSampleRate", &[]),
        ("JackControl", "GetLatency", &[]),
        ("JackControl", "GetBufferSize", &[]),
        ("JackControl", "SetBufferSize", &["64"]),
        ("JackControl", "IsRealtime", &[]),
        ("JackPatchbay", "GetAllPorts", &[]),
        ("JackPatchbay", "GetGraph", &["0"]),
        ("JackPatchbay", "ConnectPortsByName", &["a", "b", "c", "d"]),
        ("JackPatchbay", "ConnectPortsByID", &["1", "2"]),
        ("JackPatchbay", "GetClientPID", &["1"]),
        ("SessionManager", "Notify", &["false", "''", "1", "/tmp/"]),
        ("SessionManager", "GetUuidForClientName", &["a"]),
        ("SessionManager", "GetClientNameByUuid", &["'77'"]),
        ("SessionManager", "ReserveClientName", &["a", "'8589934699'"]),
        ("SessionManager", "HasSessionCallback", &["a"]),
    ] {
        let refused = bus.call(&format!("org.jackaudio.{interface}.{method}"), arguments);
        assert!(
            refused.stderr.contains("org.jackaudio.Error.ServerNotRunning"),
            "{method}: {refused:?}"
        );
    }
}
