//! Loading, finding and unloading, by JACK's functions and by Debian's programs.

use std::os::unix::fs::symlink;
use std::process::Command;

use harness::{Counts, Server, binary, c_program, copy_program, eventually, library_directory};

use crate::plug_ins::{
    await_end, compile, has_ports, hosts, let_cycles_pass, load, server, server_with, unload,
};

#[test]
fn debians_inprocess_carries_sound_until_it_is_unloaded() {
    let mut server = Server::timer(256);
    let loaded = load(&server, "inprocess", "inprocess", "").expect_success();
    assert!(loaded.stdout.contains("inprocess is running."), "{loaded:?}");
    let [host] = hosts(&mut server)[..] else { panic!("one process for one plug-in") };
    // It has connected itself with the card.
    server.await_connection("inprocess:input", "system:capture_1");
    server.await_connection("inprocess:output", "system:playback_1");
    server.run("jack_disconnect", &["system:capture_1", "inprocess:input"]).expect_success();
    let _source = server.probe(&["source", "source"]);
    server.run("jack_connect", &["source:out", "inprocess:input"]).expect_success();
    let checker = server.probe(&["check", "checker", "--from", "inprocess:output"]);
    let_cycles_pass(&server);
    let counts = Counts::of(checker);
    assert!(counts.good > 0 && counts.wrong == 0, "{counts:?}");
    let unloaded = unload(&server, "inprocess").expect_success();
    assert!(unloaded.stdout.contains("inprocess unloaded."), "{unloaded:?}");
    assert!(!has_ports(&server, "inprocess"), "{}", server.lsp(&[]));
    await_end(&[host]);
    assert!(unload(&server, "inprocess").stderr.contains("not found"), "it is unloaded once");
}

#[test]
fn each_function_of_intclient_h_does_what_its_header_says() {
    let mut server = server(&[]);
    let plug_ins = server.directory().join("plug-ins");
    std::fs::write(plug_ins.join("no_object.so"), "no shared object").expect("a file");
    let status = std::process::Command::new("gcc")
        .args(["-shared", "-x", "c", "/dev/null", "-o"])
        .arg(plug_ins.join("no_functions.so"))
        .status();
    assert!(status.expect("gcc runs").success());
    let program = c_program("internal/loader.c");
    let ended = server.run(&program, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(hosts(&mut server), [0; 0], "no process is left");
}

#[test]
fn a_plug_in_may_be_linked_with_either_of_jacks_libraries() {
    let server = server(&[]);
    compile(&server.directory().join("plug-ins"), "of_libjack", "libjack.so.0");
    load(&server, "one", "of_libjack", "").expect_success();
    load(&server, "two", "plug_in", "").expect_success();
    server.run("jack_connect", &["one:out", "two:in"]).expect_success();
    unload(&server, "one").expect_success();
    unload(&server, "two").expect_success();
}

#[test]
fn jack_finish_gets_the_argument_of_the_process_callback() {
    let mut server = server(&[]);
    load(&server, "x", "plug_in", "some parameters").expect_success();
    unload(&server, "x").expect_success();
    eventually("the plug-in says what it got", || {
        server.program().stderr().contains("plug-in finishes with 'some parameters'").then_some(())
    });
}

#[test]
fn jack2s_plug_ins_that_need_its_inside_are_refused_with_a_reason() {
    let server = Server::timer(256);
    for name in ["netmanager", "netadapter", "audioadapter"] {
        let refused = load(&server, name, name, "");
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains(&format!("consort has no '{name}'")), "{refused:?}");
        assert!(!has_ports(&server, name));
    }
}

#[test]
fn plug_ins_end_with_their_server_whether_it_stops_or_is_killed() {
    for is_killed in [false, true] {
        let mut server = server(&[]);
        for name in ["one", "two"] {
            load(&server, name, "plug_in", "").expect_success();
        }
        let processes = hosts(&mut server);
        assert_eq!(processes.len(), 2);
        if is_killed {
            server.kill();
        } else {
            let ended = server.stop().expect_success();
            assert_eq!(
                ended.stderr.matches("plug-in finishes with ''").count(),
                2,
                "{}",
                ended.stderr
            );
        }
        await_end(&processes);
    }
}

#[test]
fn a_temporary_server_ends_although_plug_ins_are_left() {
    let server = server(&["--temporary"]);
    let guest = server.probe(&["source", "guest"]);
    load(&server, "x", "plug_in", "").expect_success();
    drop(guest);
    server.into_program().finish().expect_success();
}

#[test]
fn a_server_whose_own_file_was_replaced_loads_plug_ins() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a directory");
    let program = directory.path().join("consort");
    copy_program(binary("consort"), &program);
    for library in ["libjack.so", "libjackserver.so"] {
        symlink(library_directory().join(library), directory.path().join(library)).expect("a link");
    }
    let server = server_with(&[], |command| {
        let mut copied = Command::new(&program);
        copied.args(command.get_args());
        copied.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        copied.current_dir(command.get_current_dir().expect("set"));
        *command = copied;
    });
    std::fs::remove_file(&program).expect("it was there");
    std::fs::write(&program, "another release").expect("room");
    load(&server, "loaded", "plug_in", "").expect_success();
    assert!(has_ports(&server, "loaded"));
    unload(&server, "loaded").expect_success();
}
