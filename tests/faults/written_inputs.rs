//! Programs that write into their input buffers, which JACK forbids and some do.

use harness::{Counts, Program, Server, in_three_attempts};
use rustix::process::Signal;

const WRITER: [&str; 6] = ["thru", "writer", "--from", "source:out", "--fault", "write-input"];

/// Lets cycles pass in which one client writes into its input, another reads the same source, and a
/// third reads what the first passes on. On a busy machine a client may be so late that it reads
/// what its source writes for the next cycle, but not every time.
fn neighbours_hear_every_sample(server: &Server) {
    in_three_attempts(|| {
        let bystander = server.probe(&["check", "bystander", "--from", "source:out"]);
        let fed = server.probe(&["check", "fed", "--from", "writer:out"]);
        server.await_cycles(600);
        for counts in [Counts::of(bystander), Counts::of(fed)] {
            assert!(counts.good > 100, "{counts:?}");
            if counts.wrong != 0 {
                return Err(format!("{counts:?}"));
            }
        }
        Ok(())
    });
}

fn writer(server: &Server, more: &[&str]) -> Program {
    server.probe(&[&WRITER, more].concat())
}

#[test]
fn a_program_that_writes_into_inputs_writes_into_copies() {
    for quantum in [256, 2048] {
        let server = Server::timer(quantum);
        let _source = server.probe(&["source", "source"]);
        let mut writer = writer(&server, &[]);
        neighbours_hear_every_sample(&server);
        // A new connection maps other memory.
        let _other = server.probe(&["source", "other"]);
        server.run("jack_disconnect", &["source:out", "writer:in"]).expect_success();
        server.run("jack_connect", &["other:out", "writer:in"]).expect_success();
        neighbours_hear_every_sample(&server);
        assert!(writer.is_running(), "{}", writer.stderr());
    }
}

#[test]
fn a_program_with_a_crash_handler_may_write_into_inputs() {
    for handler in ["before", "after"] {
        let server = Server::timer(256);
        let _source = server.probe(&["source", "source"]);
        let mut writer = writer(&server, &["--handler", handler]);
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
