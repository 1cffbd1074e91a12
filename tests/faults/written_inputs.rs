//! Programs that write into their input buffers, which JACK forbids and some do.

use harness::{Counts, Program, Server, eventually, in_three_attempts};
use rustix::process::Signal;

const WRITER: [&str; 6] = ["thru", "writer", "--from", "source:out", "--fault", "write-input"];

/// Lets cycles pass in which a writer writes, one reads the same source beside it, and one reads what it passes on. On a
/// busy machine one may be so late that it reads what its source writes for the next cycle: not time after time.
fn neighbours_hear_every_sample(server: &Server) {
    in_three_attempts(|| {
        let beside = server.probe(&["check", "beside", "--from", "source:out"]);
        let fed = server.probe(&["check", "fed", "--from", "writer:out"]);
        server.await_cycles(600);
        for counts in [Counts::of(beside), Counts::of(fed)] {
            assert!(counts.good > 100, "{counts:?}");
            if counts.wrong != 0 {
                return Err(format!("{counts:?}"));
            }
        }
        Ok(())
    });
}

fn writer(server: &Server, more: &[&str], copies: bool) -> Program {
    server.probe_with(&[&WRITER, more].concat(), |command| {
        if copies {
            command.env("CONSORT_COPY_INPUTS", "1");
        } else {
            command.env_remove("CONSORT_COPY_INPUTS");
        }
    })
}

/// How often it was told that it writes into its inputs.
fn warnings(writer: &mut Program) -> usize {
    writer.stderr().matches("writes into its input buffers").count()
}

#[test]
fn a_program_that_writes_into_copied_inputs_changes_what_nobody_else_hears() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let mut writer = writer(&server, &[], true);
    neighbours_hear_every_sample(&server);
    assert_eq!(warnings(&mut writer), 0, "{}", writer.stderr());
}

#[test]
fn a_program_that_writes_into_inputs_gets_copies_and_one_warning_and_nobody_else_hears_of_it() {
    for quantum in [256, 2048] {
        let server = Server::timer(quantum);
        let _source = server.probe(&["source", "source"]);
        let mut writer = writer(&server, &[], false);
        neighbours_hear_every_sample(&server);
        eventually("the writer is warned", || (warnings(&mut writer) > 0).then_some(()));
        // Another connection maps other memory.
        let _other = server.probe(&["source", "other"]);
        server.run("jack_disconnect", &["source:out", "writer:in"]).expect_success();
        server.run("jack_connect", &["other:out", "writer:in"]).expect_success();
        neighbours_hear_every_sample(&server);
        assert!(writer.is_running(), "{}", writer.stderr());
        assert_eq!(warnings(&mut writer), 1, "{}", writer.stderr());
    }
}

#[test]
fn a_program_with_its_own_handler_for_crashes_writes_into_inputs_unharmed_and_still_hears_of_crashes() {
    for handler in ["before", "after"] {
        let server = Server::timer(256);
        let _source = server.probe(&["source", "source"]);
        let mut writer = writer(&server, &["--handler", handler], false);
        neighbours_hear_every_sample(&server);
        assert!(writer.is_running(), "{handler}: {}", writer.stderr());
        writer.signal(Signal::USR1);
        assert_eq!(
            writer.finish().code,
            Some(7),
            "{handler}: its handler did not get the fault at address 0"
        );
    }
}

#[test]
fn a_program_that_crashes_ends_by_the_signal_that_it_would_have_ended_by() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let writer = writer(&server, &[], false);
    writer.signal(Signal::USR1);
    assert_eq!(writer.finish().signal, Some(11));
}
