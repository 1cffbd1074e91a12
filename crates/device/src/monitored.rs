//! A driver with monitor ports: `system:monitor_1` and so on, one for each playback port.

use dsp::PeerSamples;
use proto::limits::QUANTUM_FRAMES;

use crate::{Capture, Channels, DeviceLatency, Driver, Pacing, Playback, Wake, touched};

/// Wraps a driver: the monitor ports repeat in each cycle what was played in the one before.
pub struct Monitored {
    driver: Box<dyn Driver>,
    /// The driver's channels and the monitor ports.
    channels: Channels,
    /// The last cycle's playback samples: a plane for each playback port, as long as the longest
    /// cycle.
    played: Vec<Vec<f32>>,
    /// Frames in each plane.
    frames: usize,
}

impl Monitored {
    /// Wraps `driver` with a monitor port for each of its playback ports. Not for the driver
    /// thread: it allocates.
    pub fn new(driver: Box<dyn Driver>) -> Self {
        let own = driver.channels();
        let played = (0..own.playback).map(|_| touched(*QUANTUM_FRAMES.end() as usize)).collect();
        Self { driver, channels: Channels { monitors: own.playback, ..own }, played, frames: 0 }
    }
}

/// The samples already mixed for the monitor ports.
struct MixedPlayback<'a> {
    planes: &'a [Vec<f32>],
    /// The source of the samples.
    playback: &'a dyn Playback,
}

impl Playback for MixedPlayback<'_> {
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
        match self.planes.get(channel as usize) {
            Some(played) => dsp::copy(PeerSamples::from_slice(played), samples),
            None => dsp::silence(samples),
        }
    }

    fn is_played_into(&self, channel: u32) -> bool {
        self.playback.is_played_into(channel)
    }
}

impl Driver for Monitored {
    fn description(&self) -> String {
        self.driver.description()
    }

    fn channels(&self) -> Channels {
        self.channels.clone()
    }

    fn sample_rate_hz(&self) -> u32 {
        self.driver.sample_rate_hz()
    }

    fn latency(&self) -> DeviceLatency {
        self.driver.latency()
    }

    fn pacing(&self) -> Pacing {
        self.driver.pacing()
    }

    fn start(&mut self, quantum: u32) -> Result<(), String> {
        self.driver.start(quantum)
    }

    fn wait(&mut self) -> Wake {
        self.driver.wait()
    }

    fn is_away(&self) -> bool {
        self.driver.is_away()
    }

    fn next_due_ns(&self) -> u64 {
        self.driver.next_due_ns()
    }

    fn set_quantum(&mut self, quantum: u32) {
        self.driver.set_quantum(quantum);
    }

    fn read(&mut self, capture: &mut dyn Capture) {
        self.driver.read(capture);
        for (monitor, played) in (self.channels.first_monitor()..).zip(&self.played) {
            if capture.is_heard(monitor)
                && let Some(port) = capture.channel(monitor)
            {
                // If the cycle is longer than the one before, its end is silent.
                dsp::copy(PeerSamples::from_slice(&played[..self.frames]), port);
            }
        }
    }

    fn write(&mut self, frames: u32, playback: &mut dyn Playback) {
        self.frames = frames as usize;
        for (channel, plane) in (0..).zip(&mut self.played) {
            playback.mix_into(channel, &mut plane[..frames as usize]);
        }
        self.driver.write(frames, &mut MixedPlayback { planes: &self.played, playback });
    }

    fn can_park(&self) -> bool {
        self.driver.can_park()
    }

    fn pause(&mut self) {
        self.frames = 0;
        self.driver.pause();
    }

    fn can_close(&self) -> bool {
        self.driver.can_close()
    }

    fn close(&mut self) {
        self.driver.close();
    }

    fn is_closed(&self) -> bool {
        self.driver.is_closed()
    }

    fn rest(&mut self) {
        self.driver.rest();
    }

    fn resume(&mut self) {
        self.driver.resume();
    }

    fn stop(&mut self) {
        self.driver.stop();
    }

    fn report(&self) -> Option<String> {
        self.driver.report()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timer;

    /// What channel, frame by frame, is played in cycle `cycle`.
    struct Ramp {
        cycle: f32,
    }

    impl Playback for Ramp {
        fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
            let first = self.cycle * 100.0 + channel as f32 * 10.0;
            (0u8..).zip(samples).for_each(|(frame, sample)| *sample = first + f32::from(frame));
        }
    }

    struct Ports(Vec<Vec<f32>>);

    impl Capture for Ports {
        fn channel(&mut self, channel: u32) -> Option<&mut [f32]> {
            self.0.get_mut(channel as usize).map(Vec::as_mut_slice)
        }
    }

    fn monitored() -> Monitored {
        let channels = Channels { capture: 1, playback: 2, monitors: 0 };
        let mut monitored = Monitored::new(Box::new(Timer::new(channels, 48_000).looped()));
        monitored.start(4).unwrap();
        monitored
    }

    /// The capture port, and then the monitor ports.
    fn read(monitored: &mut Monitored, frames: usize) -> Vec<Vec<f32>> {
        let channels = monitored.channels();
        let mut ports = Ports(vec![vec![9.0; frames]; channels.slots() as usize]);
        monitored.read(&mut ports);
        let mut read = vec![ports.0[0].clone()];
        read.extend(ports.0.drain(channels.first_monitor() as usize..));
        read
    }

    #[test]
    fn monitor_ports_repeat_what_was_played_in_the_cycle_before() {
        let mut monitored = monitored();
        assert_eq!(monitored.channels(), Channels { capture: 1, playback: 2, monitors: 2 });
        assert_eq!(read(&mut monitored, 4), vec![vec![0.0; 4]; 3], "nothing was played yet");
        monitored.write(4, &mut Ramp { cycle: 1.0 });
        let left = [100.0, 101.0, 102.0, 103.0];
        assert_eq!(read(&mut monitored, 4)[1..], [left, [110.0, 111.0, 112.0, 113.0]]);
        // The timer's cable is as long as a device's.
        let captured = (2u8..6).map(|cycle| {
            monitored.write(4, &mut Ramp { cycle: cycle.into() });
            read(&mut monitored, 4).swap_remove(0)
        });
        assert!(captured.into_iter().any(|captured| captured == left));
    }

    #[test]
    fn a_cycle_longer_than_the_last_ends_in_silence() {
        let mut monitored = monitored();
        monitored.write(2, &mut Ramp { cycle: 2.0 });
        assert_eq!(read(&mut monitored, 4)[1], [200.0, 201.0, 0.0, 0.0]);
        monitored.pause();
        monitored.resume();
        assert_eq!(read(&mut monitored, 4)[1..], [[0.0; 4], [0.0; 4]]);
    }
}
