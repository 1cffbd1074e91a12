//! The frame clock and the transport of JACK's programs, while the device changes between cycles
//! and what it plays far ahead.

use harness::{Program, Server, c_program, eventually, not_run};
use rustix::process::Signal;

use crate::{patching, server};

const QUANTUM: u32 = 256;

/// A client that is active in turns, and its server, on which a stream plays.
struct Scene {
    server: Server,
    client: Program,
    player: Program,
}

impl Scene {
    fn start() -> Self {
        let server = server(QUANTUM);
        let (player, _) = patching::playing(&server);
        let mut client = server.spawn(&c_program("streams/in_and_out.c"), &[]);
        eventually("it reads the clock", || client.stdout().contains("reads").then_some(()));
        let scene = Self { server, client, player };
        scene.await_device("deep");
        scene
    }

    fn await_device(&self, state: &str) {
        eventually(&format!("the device is {state}"), || {
            (self.server.consort_json(&["status"])["device"] == state).then_some(())
        });
    }

    fn is_active(&self) -> bool {
        self.server.client("in and out").expect("it is connected").active
    }

    /// The client becomes active, and has some cycles.
    fn join(&self) {
        self.client.signal(Signal::USR1);
        self.server.await_active("in and out");
        self.await_device("cycling");
        self.server.await_cycles(20);
    }

    fn leave(&self) {
        self.client.signal(Signal::USR1);
        eventually("it is inactive", || (!self.is_active()).then_some(()));
    }

    fn transport(&self, action: &str, state: &str) {
        self.server.consort(&["transport", action]).expect_success();
        eventually(state, || {
            (self.server.consort_json(&["transport", "show"])["state"] == state).then_some(())
        });
        self.server.await_cycles(20);
    }

    /// Ends all, and checks what the client saw: docs/design/clocks.md has what is promised.
    ///
    /// # Errors
    /// If the machine took frames: no clock counts those, and what was estimated meanwhile is ahead
    /// of the cycle that follows.
    fn end(self) -> Result<(), String> {
        let Self { server, client, player } = self;
        let late_client = server.client("in and out").expect("it is connected").late_cycles;
        let taken = [server.status().xruns.into(), server.late_frames(), late_client];
        let printed = client.terminate().expect_success().stdout;
        player.terminate();
        let is_digit = |character: char| character.is_ascii_digit();
        let words = printed.split(|character| !is_digit(character));
        let numbers = words.filter(|word| !word.is_empty()).map(|word| word.parse().expect("few"));
        let numbers: Vec<u32> = numbers.collect();
        let [backwards, ahead, behind, cycles, early, late, turned, jumps] = numbers[..] else {
            panic!("{printed}")
        };
        assert!(cycles >= 60, "{printed}");
        assert_eq!((turned, early), (0, 0), "cycles never go back: {printed}");
        assert_eq!(jumps, 0, "the transport goes with the frames: {printed}");
        let follows = backwards + late == 0 && ahead < QUANTUM && behind < QUANTUM;
        if !follows && taken != [0; 3] {
            return Err(format!("{taken:?} xruns, frames and cycles late: {printed}"));
        }
        assert!(follows, "cycle follows cycle, with the clock of the machine: {printed}");
        Ok(())
    }
}

/// Repeats what one xrun of seconds keeps from being judged.
fn judged(attempt: impl Fn() -> Result<(), String>) {
    const ATTEMPTS: usize = 6;
    let mut failures = (0..ATTEMPTS).map_while(|_| attempt().err());
    if let Some(failure) = failures.nth(ATTEMPTS - 1) {
        not_run(&format!("the machine takes cycles: {failure}"));
    }
}

#[test]
fn the_frame_clock_goes_on_whether_cycles_run_or_a_stream_is_played_far_ahead() {
    judged(|| {
        let scene = Scene::start();
        for _ in 0..4 {
            scene.join();
            scene.leave();
            scene.await_device("deep");
        }
        scene.end()
    });
}

/// A transport that rolls needs cycles, with or without a client: what is played far ahead comes
/// only once it stands.
#[test]
fn the_transport_rolls_without_a_jump_and_stands_while_a_stream_is_played_far_ahead() {
    judged(|| {
        let scene = Scene::start();
        scene.transport("start", "rolling");
        scene.join();
        scene.leave();
        scene.server.await_cycles(20);
        scene.await_device("cycling");
        scene.join();
        scene.transport("stop", "stopped");
        scene.leave();
        scene.await_device("deep");
        scene.join();
        scene.transport("start", "rolling");
        scene.leave();
        scene.server.await_cycles(20);
        scene.join();
        scene.transport("stop", "stopped");
        scene.leave();
        scene.await_device("deep");
        scene.end()
    });
}
