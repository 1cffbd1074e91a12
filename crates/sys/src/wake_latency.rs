//! `/dev/cpu_dma_latency`: keeps CPUs out of idle states with a long wake-up time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// A limit that the kernel applies to all CPUs while the value lives: none enters an idle state
/// that takes longer to wake from.
///
/// Source: the kernel's `Documentation/power/pm_qos_interface.rst`.
#[derive(Debug)]
pub struct WakeLatencyLimit {
    _device: File,
}

impl WakeLatencyLimit {
    /// Requests a limit in µs. `None` if the device is missing or not writable: a machine without
    /// it works, with longer wake-ups.
    #[must_use]
    pub fn hold(limit_us: u32) -> Option<Self> {
        Self::hold_at(Path::new(DEVICE), limit_us).ok()
    }

    fn hold_at(path: &Path, limit_us: u32) -> io::Result<Self> {
        let mut device = OpenOptions::new().write(true).open(path)?;
        device.write_all(&i32::try_from(limit_us).unwrap_or(i32::MAX).to_ne_bytes())?;
        Ok(Self { _device: device })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_creates_no_file() {
        let path =
            std::env::temp_dir().join(format!("consort-no-such-device-{}", std::process::id()));
        assert_eq!(
            WakeLatencyLimit::hold_at(&path, 0).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(!path.exists());
    }

    #[test]
    fn the_limit_is_written_as_a_native_32_bit_integer() {
        let path =
            std::env::temp_dir().join(format!("consort-wake-latency-{}", std::process::id()));
        std::fs::write(&path, b"").unwrap();
        let held = WakeLatencyLimit::hold_at(&path, 41).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), 41_i32.to_ne_bytes());
        drop(held);
        std::fs::remove_file(&path).unwrap();
    }
}
