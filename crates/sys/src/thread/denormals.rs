//! Treats denormal numbers as zero: a decaying filter must not become a hundred times slower as it
//! fades out.

/// Makes the calling thread treat denormal operands and results as zero until it ends. To be called
/// first in a thread that processes audio. Does nothing on architectures without such a mode.
pub fn flush_denormals_to_zero() {
    #[cfg(any(target_arch = "x86_64", all(target_arch = "x86", target_feature = "sse")))]
    {
        const DENORMALS_ARE_ZERO: u32 = 1 << 6;
        const FLUSH_TO_ZERO: u32 = 1 << 15;
        let mut control = 0_u32;
        // SAFETY: reads and writes MXCSR through a local. Only the two bits change, for this
        // thread; rounding and masks stay, and no code of ours depends on denormal results.
        unsafe {
            core::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack));
            control |= DENORMALS_ARE_ZERO | FLUSH_TO_ZERO;
            core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack));
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        const FLUSH_TO_ZERO: u64 = 1 << 24;
        let mut control: u64;
        // SAFETY: reads and writes FPCR. Only the one bit changes, for this thread; no code of ours
        // depends on denormal results.
        unsafe {
            core::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack));
            control |= FLUSH_TO_ZERO;
            core::arch::asm!("msr fpcr, {}", in(reg) control, options(nostack));
        }
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use std::hint::black_box;

    use super::*;

    fn products() -> [f32; 2] {
        let denormal = black_box(f32::from_bits(1 << 22));
        // The first result is denormal; the second is normal, from a denormal operand.
        [black_box(f32::MIN_POSITIVE) * black_box(0.5), denormal * black_box(1024.0)]
    }

    #[test]
    fn denormals_are_zero_only_in_the_requesting_thread() {
        let flushed = std::thread::spawn(|| {
            flush_denormals_to_zero();
            products()
        });
        assert_eq!(flushed.join().unwrap(), [0.0, 0.0]);
        assert!(products().iter().all(|product| *product > 0.0));
    }
}
