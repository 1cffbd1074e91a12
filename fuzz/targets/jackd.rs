//! Any command line of `jackd`: refused with a reason, or parsed into options that a server could
//! be started with.
#![no_main]

use proto::driver::DriverChoice;
use proto::limits::{QUANTUM_FRAMES, SAMPLE_RATE_HZ};

libfuzzer_sys::fuzz_target!(|line: &str| {
    let words: Vec<String> = line.split('\n').map(String::from).collect();
    match jackd::read_jackd(&words) {
        Ok(Some(config)) => {
            assert!(
                proto::names::check_server(&config.name).is_ok(),
                "{words:?}: {:?}",
                config.name
            );
            assert!(QUANTUM_FRAMES.contains(&config.quantum), "{words:?}: {}", config.quantum);
            assert!(config.realtime_priority.is_none_or(|priority| (1..=98).contains(&priority)));
            assert_ne!(config.client_timeout_ms, Some(0), "{words:?}");
            if let DriverChoice::Timer { sample_rate_hz: Some(sample_rate_hz), .. } = config.driver
            {
                assert!(SAMPLE_RATE_HZ.contains(&sample_rate_hz), "{words:?}: {sample_rate_hz} Hz");
            }
        }
        Ok(None) => {}
        Err(refusal) => assert!(!refusal.trim().is_empty(), "{words:?}: refused without a word"),
    }
});
