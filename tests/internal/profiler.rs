//! The plug-in `profiler`, which consort has instead of JACK2's.

use harness::{Server, eventually};

use crate::plug_ins::{has_ports, load, unload};

fn ports(server: &Server) -> Vec<String> {
    let listed = server.lsp(&[]);
    let mut ports: Vec<String> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("profiler:"))
        .map(str::to_owned)
        .collect();
    ports.sort();
    ports
}

#[test]
fn the_profiler_sends_the_measures_of_its_parameters() {
    let server = Server::timer(256);
    let _source = server.probe(&["source", "source"]);
    let clients = ["source:duration", "source:scheduling"];
    for (parameters, general) in [
        ("-c -p -e", &["cpu_load", "driver_end_time", "driver_period"][..]),
        ("-p", &["driver_period"]),
        ("", &[]),
    ] {
        load(&server, "profiler", "profiler", parameters).expect_success();
        let mut expected: Vec<&str> = [general, &clients].concat();
        expected.sort_unstable();
        eventually(&format!("the ports of '{parameters}'"), || {
            (ports(&server) == expected).then_some(())
        });
        unload(&server, "profiler").expect_success();
        assert!(!has_ports(&server, "profiler"));
    }
}

#[test]
fn a_parameter_that_the_profiler_does_not_have_is_refused_with_a_reason() {
    let server = Server::timer(256);
    let refused = load(&server, "profiler", "profiler", "-c --loud");
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("'--loud'"), "{refused:?}");
    assert!(!has_ports(&server, "profiler"));
}
