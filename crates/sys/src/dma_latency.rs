//! `/dev/cpu_dma_latency`: keeps the CPUs out of the idle states that take long to wake from.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// The promise, held by the kernel while the value lives, that no CPU sleeps deeper than what it leaves in 0 µs.
///
/// Source: the kernel's `Documentation/power/pm_qos_interface.rst`.
#[derive(Debug)]
pub struct DmaLatency {
    _device: File,
}

impl DmaLatency {
    /// Asks for 0 µs. `None` where the device is missing or not ours to write: a machine without it works, only
    /// with longer wake-ups.
    #[must_use]
    pub fn hold() -> Option<Self> {
        Self::hold_at(Path::new(DEVICE)).ok()
    }

    fn hold_at(path: &Path) -> io::Result<Self> {
        let mut device = OpenOptions::new().write(true).open(path)?;
        device.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _device: device })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_an_error_and_creates_no_file() {
        let path = std::env::temp_dir().join(format!("consort-no-such-device-{}", std::process::id()));
        assert_eq!(DmaLatency::hold_at(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!path.exists());
    }

    #[test]
    fn zero_microseconds_are_written_as_a_native_32_bit_integer() {
        let path = std::env::temp_dir().join(format!("consort-dma-latency-{}", std::process::id()));
        std::fs::write(&path, b"").unwrap();
        let held = DmaLatency::hold_at(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [0; 4]);
        drop(held);
        std::fs::remove_file(&path).unwrap();
    }
}
