//! A program that gives the driver as much work as it can (`victims/greedy.c`).

use harness::{Judge, MODES, Program, Server, c_program, eventually};

use crate::scenario::{alone, judged, quantum};

/// With all of their outputs played, these take more than a quarter of the driver's time at 64
/// frames, and are connected within seconds if nothing refuses it.
const CLIENTS: usize = 2;
const OUTPUTS: usize = 180;
const PLAYBACKS: usize = 4;

/// `source → bystander`, and a program that plays more than a cycle has time for.
fn played_very_much(mode: &[&str]) -> Result<(), String> {
    let _alone = alone();
    let ports = PLAYBACKS.to_string();
    let server = Server::start(&[mode, &["--capture", &ports, "--playback", &ports]].concat());
    let _source = server.probe(&["source", "source"]);
    let judge = Judge::of_cycles(quantum(mode)).expect("a judge was there before");
    let mut command = server.command(&c_program("victims/greedy.c"));
    command.args([CLIENTS, OUTPUTS, PLAYBACKS].map(|number| number.to_string()));
    let mut greedy = Program::start(command);
    let made: usize = eventually("the greedy program has all that it gets", || {
        assert!(greedy.is_running(), "{}", greedy.stderr());
        let printed = greedy.stdout();
        let made = printed.strip_suffix("ready\n")?.trim().strip_prefix("made ")?;
        made.parse().ok()
    });
    let bystander = server.probe(&["monitor", "bystander", "--from", "source:out"]);
    server.await_cycles(500);
    let heard = judge.judge(bystander);
    greedy.terminate().expect_success();
    assert!(made > 500, "a program may play more than any has use for: {made}");
    assert!(made < CLIENTS * OUTPUTS * PLAYBACKS, "{made}: the server has refused nothing");
    heard.expect("next to very many outputs", u64::from(mode.contains(&"--sync")))?;
    Ok(())
}

#[test]
fn a_program_that_plays_very_many_outputs_costs_no_other_program_a_cycle() {
    for mode in [MODES[0], MODES[2]] {
        judged(mode, || played_very_much(mode));
    }
}
