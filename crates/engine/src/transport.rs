//! The transport's state machine: requests and readiness in, the transport of each cycle out.
//!
//! Pure: the driver thread feeds it and publishes what it decides. What clients wrote is checked
//! here.

use rt::shm::TransportRequest;
use rt::transport::{Position, Transport, TransportState};

/// How long slow clients are waited for by default: what `transport.h` promises.
const SYNC_TIMEOUT_US: u64 = 2_000_000;

/// The cycle that is about to begin.
#[derive(Debug, Clone, Copy)]
pub struct CycleStart {
    /// Its number.
    pub cycle: u32,
    /// Its length, frames.
    pub quantum: u32,
    /// Hz.
    pub sample_rate_hz: u32,
    /// The driver's estimate of when it begins, ns.
    pub wakeup_ns: u64,
}

/// What clients and programs have requested and stated since the previous cycle began.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TransportInputs {
    /// Requests, combined.
    pub request: TransportRequest,
    /// Id of the timebase master, 0: none.
    pub master: u32,
    /// The position that the timebase master has stated for the coming cycle, not checked yet.
    pub stated: Option<Position>,
    /// A slow-sync client is not ready.
    pub held_up: bool,
}

/// The transport from cycle to cycle.
#[derive(Debug)]
pub struct TransportEngine {
    /// The transport of the previous cycle.
    now: Transport,
    /// Length of that cycle, frames.
    quantum: u32,
    sync_timeout_us: u64,
    /// How long slow clients are still waited for, while starting.
    left_frames: u64,
}

impl Default for TransportEngine {
    fn default() -> Self {
        Self {
            now: Transport::default(),
            quantum: 0,
            sync_timeout_us: SYNC_TIMEOUT_US,
            left_frames: 0,
        }
    }
}

impl TransportEngine {
    /// Returns the round for which clients are to be ready: one that is not holds the transport up.
    pub fn round(&self) -> u32 {
        self.now.round
    }

    /// Returns whether the position stays as it is.
    pub fn is_stopped(&self) -> bool {
        self.now.state == TransportState::Stopped
    }

    /// Decides the transport of the coming cycle. Thread: cycle.
    pub fn decide(&mut self, start: CycleStart, inputs: TransportInputs) -> Transport {
        let before = self.now;
        let position = self.position(inputs);
        self.now = Transport {
            cycle: start.cycle,
            position,
            master: inputs.master,
            wakeup_ns: start.wakeup_ns,
            ..before
        };
        self.sync_timeout_us = inputs.request.sync_timeout_us.unwrap_or(self.sync_timeout_us);
        self.step(start, inputs);
        self.quantum = start.quantum;
        self.now
    }

    /// Returns the position at which the coming cycle begins.
    fn position(&self, inputs: TransportInputs) -> Position {
        if let Some(asked) = inputs.request.position {
            return asked.checked();
        }
        let before = &self.now;
        let frame = before.next_frame(self.quantum);
        let master_went = before.master != 0 && before.master != inputs.master;
        match inputs.stated {
            Some(stated) => Position { frame, ..stated.checked() },
            // Bar and beat of another frame, or of a master that has gone, would be wrong.
            None if frame != before.position.frame || master_went => Position::at(frame),
            None => before.position,
        }
    }

    fn step(&mut self, start: CycleStart, inputs: TransportInputs) {
        use TransportState::{Looping, Rolling, Starting, Stopped};
        let jumps = inputs.request.position.is_some();
        match (self.now.state, inputs.request.roll) {
            (Stopped, Some(true)) => self.start(start),
            (Stopped, _) if jumps => self.begin_round(),
            (Stopped, _) => {}
            (_, Some(false)) => {
                self.now.state = Stopped;
                self.now.asks = false;
                if jumps {
                    self.begin_round();
                }
            }
            (Starting | Rolling | Looping, _) if jumps => self.start(start),
            (Starting, _) => {
                self.left_frames = self.left_frames.saturating_sub(u64::from(self.quantum));
                if self.left_frames == 0 || !inputs.held_up {
                    // A client that is not ready yet is still asked, and catches up.
                    self.now.state = Rolling;
                }
            }
            (Rolling | Looping, _) => {}
        }
    }

    fn start(&mut self, start: CycleStart) {
        self.begin_round();
        self.now.state = TransportState::Starting;
        let frames = u128::from(self.sync_timeout_us) * u128::from(start.sample_rate_hz);
        self.left_frames = u64::try_from(frames.div_ceil(1_000_000)).unwrap_or(u64::MAX);
    }

    fn begin_round(&mut self) {
        self.now.round = self.now.round.wrapping_add(1);
        self.now.asks = true;
    }
}

#[cfg(test)]
mod tests {
    use rt::transport::valid;

    use super::*;

    const QUANTUM: u32 = 100;

    /// An engine and the number of its next cycle, at 1 kHz: 100 ms a cycle.
    #[derive(Default)]
    struct Scenario(TransportEngine, u32);

    impl Scenario {
        fn cycle(&mut self, inputs: TransportInputs) -> (TransportState, u32) {
            let decided = self.decide(inputs);
            (decided.state, decided.position.frame)
        }

        fn decide(&mut self, inputs: TransportInputs) -> Transport {
            self.1 += 1;
            let start =
                CycleStart { cycle: self.1, quantum: QUANTUM, sample_rate_hz: 1000, wakeup_ns: 0 };
            let decided = self.0.decide(start, inputs);
            assert_eq!(decided.cycle, self.1);
            decided
        }

        fn asked(&mut self, request: TransportRequest) -> (TransportState, u32) {
            self.cycle(TransportInputs { request, ..TransportInputs::default() })
        }

        fn quiet(&mut self) -> (TransportState, u32) {
            self.cycle(TransportInputs::default())
        }
    }

    fn roll(roll: bool) -> TransportRequest {
        TransportRequest { roll: Some(roll), ..TransportRequest::default() }
    }

    fn locate(frame: u32) -> TransportRequest {
        TransportRequest { position: Some(Position::at(frame)), ..TransportRequest::default() }
    }

    use TransportState::{Rolling, Starting, Stopped};

    #[test]
    fn a_rolling_transport_advances_one_quantum_per_cycle() {
        let mut scenario = Scenario::default();
        assert_eq!(scenario.quiet(), (Stopped, 0));
        assert_eq!(scenario.asked(roll(true)), (Starting, 0));
        assert_eq!([scenario.quiet(), scenario.quiet()], [(Rolling, 0), (Rolling, 100)]);
        assert_eq!(scenario.asked(roll(true)), (Rolling, 200), "it does already");
        assert_eq!(scenario.asked(roll(false)), (Stopped, 300));
        assert_eq!(
            [scenario.quiet(), scenario.asked(roll(false))],
            [(Stopped, 300), (Stopped, 300)]
        );
    }

    #[test]
    fn a_jump_restarts_only_a_rolling_transport() {
        let mut scenario = Scenario::default();
        assert_eq!(scenario.asked(locate(7000)), (Stopped, 7000));
        assert_eq!(scenario.quiet(), (Stopped, 7000));
        scenario.asked(roll(true));
        assert_eq!(scenario.quiet(), (Rolling, 7000));
        assert_eq!(scenario.asked(locate(u32::MAX - 49)), (Starting, u32::MAX - 49));
        assert_eq!(
            [scenario.quiet(), scenario.quiet()],
            [(Rolling, u32::MAX - 49), (Rolling, 50)],
            "frames wrap"
        );
        let both = TransportRequest { roll: Some(false), ..locate(5) };
        assert_eq!([scenario.asked(both), scenario.quiet()], [(Stopped, 5), (Stopped, 5)]);
        let both = TransportRequest { roll: Some(true), ..locate(9) };
        assert_eq!([scenario.asked(both), scenario.quiet()], [(Starting, 9), (Rolling, 9)]);
    }

    #[test]
    fn every_start_or_jump_begins_a_new_round() {
        let mut scenario = Scenario::default();
        let mut rounds = Vec::new();
        for request in [locate(1), roll(true), locate(2), roll(false), locate(3), roll(false)] {
            let decided =
                scenario.decide(TransportInputs { request, ..TransportInputs::default() });
            rounds.push((decided.round, decided.asks));
        }
        assert_eq!(rounds, [(1, true), (2, true), (3, true), (3, false), (4, true), (4, true)]);
    }

    #[test]
    fn a_slow_client_is_waited_for_until_the_timeout() {
        let held_up = TransportInputs { held_up: true, ..TransportInputs::default() };
        for (timeout_us, waits) in [(0, 0), (1, 0), (250_000, 2), (1_000_000, 9)] {
            let mut scenario = Scenario::default();
            let request = TransportRequest { sync_timeout_us: Some(timeout_us), ..roll(true) };
            assert_eq!(scenario.cycle(TransportInputs { request, ..held_up }), (Starting, 0));
            for waited in 0..waits {
                assert_eq!(scenario.cycle(held_up), (Starting, 0), "{timeout_us} µs, {waited}");
            }
            let decided = scenario.decide(held_up);
            assert_eq!(
                (decided.state, decided.asks),
                (Rolling, true),
                "{timeout_us} µs, and still asked"
            );
        }
        let mut scenario = Scenario::default();
        scenario.cycle(TransportInputs { request: roll(true), ..held_up });
        assert_eq!(scenario.cycle(held_up), (Starting, 0));
        assert_eq!(scenario.quiet(), (Rolling, 0), "as soon as it is ready");
    }

    #[test]
    fn a_jump_while_starting_waits_anew() {
        let held_up = TransportInputs { held_up: true, ..TransportInputs::default() };
        let mut scenario = Scenario::default();
        let request = TransportRequest { sync_timeout_us: Some(200_000), ..roll(true) };
        scenario.cycle(TransportInputs { request, ..held_up });
        assert_eq!(scenario.cycle(held_up), (Starting, 0));
        assert_eq!(
            scenario.cycle(TransportInputs { request: locate(70), ..held_up }),
            (Starting, 70)
        );
        assert_eq!(
            [scenario.cycle(held_up), scenario.cycle(held_up)],
            [(Starting, 70), (Rolling, 70)]
        );
    }

    #[test]
    fn a_stated_position_is_lost_with_the_timebase_master() {
        let stated = Position { frame: 999, valid: valid::BBT, bar: 4, ..Position::default() };
        let led = TransportInputs { master: 7, stated: Some(stated), ..TransportInputs::default() };
        let silent = TransportInputs { master: 7, ..TransportInputs::default() };
        let mut scenario = Scenario::default();
        scenario.decide(silent);
        let position = scenario.decide(led).position;
        assert_eq!(
            (position.frame, position.bar, position.valid),
            (0, 4, valid::BBT),
            "but the frame is not its to say"
        );
        assert_eq!(scenario.decide(silent).position.bar, 4, "as long as it stands still");
        scenario.decide(TransportInputs { request: roll(true), ..silent });
        scenario.decide(led);
        assert_eq!(scenario.decide(led).position, Position { frame: 100, ..stated });
        assert_eq!(scenario.decide(silent).position, Position::at(200), "a master that hangs");
        assert_eq!(
            scenario.decide(TransportInputs { request: roll(false), ..led }).position,
            Position { frame: 300, ..stated }
        );
        assert_eq!(
            scenario.decide(TransportInputs::default()).position,
            Position::at(300),
            "a master that has gone"
        );
    }

    #[test]
    fn positions_are_checked_where_they_enter() {
        let spoilt = Position { valid: u32::MAX, beats_per_minute: f64::NAN, ..Position::at(5) };
        let request = TransportRequest { position: Some(spoilt), ..TransportRequest::default() };
        let mut scenario = Scenario::default();
        assert_eq!(
            scenario.decide(TransportInputs { request, ..TransportInputs::default() }).position,
            spoilt.checked()
        );
        let stated =
            TransportInputs { master: 1, stated: Some(spoilt), ..TransportInputs::default() };
        assert_eq!(scenario.decide(stated).position, spoilt.checked());
    }
}
