//! The kernels, compiled for several instruction sets, and the choice between them at run time.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod fetch;
mod pack;
mod peer;
mod peer_frames;
mod transpose;

pub(crate) use pack::{pack, unpacked};
pub use peer::PeerSamples;
pub use peer_frames::PeerFrames16;
pub(crate) use transpose::transposed;

#[cfg(target_arch = "x86_64")]
use self::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use self::fetch::fetch;
use crate::kernels::weave::Baseline;
use crate::{Format, LANES, kernels};

/// Makes a kernel a public function: the version compiled for AVX2 where the processor has it, else
/// the baseline version.
macro_rules! dispatch {
    ($($(#[$attribute:meta])* $kernel:path $(| $with_avx2:path)? => fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        $(#[$attribute])*
        pub fn $name($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn with_avx2($($argument: $type),*) $(-> $result)? {
                    dispatch!(@either $kernel $(, $with_avx2)?)($($argument),*)
                }
                if std::is_x86_feature_detected!("avx2") {
                    // SAFETY: AVX2 is the only feature that the function needs, and was just found.
                    return unsafe { with_avx2($($argument),*) };
                }
            }
            $kernel($($argument),*)
        }
    )*};
    (@either $kernel:path) => { $kernel };
    (@either $kernel:path, $with_avx2:path) => { $with_avx2 };
}

dispatch! {
    /// Adds `source` to `into`. If `source` is shorter, the rest of `into` stays as it is.
    kernels::samples::add => fn add(source: PeerSamples<'_>, into: &mut [f32]);

    /// Sets `into` to the sum of the sources, added in their order, so that the bits are the same
    /// on every machine and in every cycle. A source that is shorter than `into` is silent from its
    /// end on. Without a source, `into` becomes silent.
    kernels::samples::mix => fn mix(sources: &[PeerSamples<'_>], into: &mut [f32]);

    /// Sets all samples to 0.
    kernels::samples::silence => fn silence(into: &mut [f32]);

    /// Multiplies all samples by `factor`.
    kernels::samples::gain => fn gain(into: &mut [f32], factor: f32);

    /// Replaces NaN and infinities by 0, so that a faulty client cannot send them to a device.
    kernels::samples::scrub => fn scrub(into: &mut [f32]);

    /// [Scrubs](scrub) all samples, limits them to magnitudes of at most `most`, which is positive,
    /// and multiplies them by `factor`.
    kernels::samples::limited_gain => fn limited_gain(into: &mut [f32], most: f32, factor: f32);

    /// Returns the largest magnitude of the samples: 0 if there are none, NaN if one is NaN.
    kernels::samples::peak => fn peak(samples: &[f32]) -> f32;

    /// Writes `source` to `channel` (counted from 0) of the interleaved frames `into`, which have
    /// `channels` samples each. Other channels stay as they are.
    ///
    /// Converts as many frames as both contain completely, with any alignment; none if `channel` is
    /// not below `channels`.
    kernels::convert::encode | avx2::encode => fn encode(
        format: Format, source: &[f32], into: &mut [u8], channel: usize, channels: usize
    );

    /// Reads `channel` (counted from 0) of the interleaved frames in `source`, which have
    /// `channels` samples each.
    ///
    /// Converts as many frames as both contain completely, with any alignment; none if `channel` is
    /// not below `channels`. The rest of `into` stays as it is.
    kernels::convert::decode | avx2::decode => fn decode(
        format: Format, source: &[u8], into: &mut [f32], channel: usize, channels: usize
    );

    /// Reads `channel` (counted from 0) of frames that a peer may be writing, as [`decode`] does
    /// from private memory. Silence follows the last one, and takes the place of a channel that
    /// they lack.
    peer_frames::decode_frames => fn decode_frames(
        source: PeerFrames16<'_>, into: &mut [f32], channel: usize
    );

    /// Writes several channels like [`encode`], one for each of `from` and starting at `first`.
    /// Faster than one at a time if there are many.
    ///
    /// Converts as many frames as all contain completely; none if one of the channels is not below
    /// `channels`.
    kernels::weave::interleave::<Baseline> | kernels::weave::interleave::<Avx2> => fn interleave(
        format: Format, from: [&[f32]; LANES], into: &mut [u8], first: usize, channels: usize
    );

    /// Reads several channels like [`decode`], one for each of `into` and starting at `first`.
    /// Faster than one at a time if there are many.
    ///
    /// Converts as many frames as all contain completely; none if one of the channels is not below
    /// `channels`. The rest of `into` stays as it is.
    kernels::weave::deinterleave::<Baseline> | kernels::weave::deinterleave::<Avx2> => fn deinterleave(
        format: Format, source: &[u8], into: [&mut [f32]; LANES], first: usize, channels: usize
    );
}

/// Copies `source` to `into`. If `source` is shorter, silence follows. A short copy is inlined.
#[inline]
pub fn copy(source: PeerSamples<'_>, into: &mut [f32]) {
    if into.len() <= SHORT_FRAMES && into.len() <= source.len() {
        source.copy_inline(into);
    } else {
        copy_any(source, into);
    }
}

/// Frames up to which a copy in blocks takes less time than looking for the pages of the C
/// library's.
const SHORT_FRAMES: usize = 256;

#[inline(never)]
fn copy_any(source: PeerSamples<'_>, into: &mut [f32]) {
    kernels::samples::copy(source, into);
}

/// Returns the integer part of a number, clipped to `BITS` bits (32 at most); 0 for NaN. A cast
/// does the same, but takes several times as long.
#[inline(always)]
pub(crate) fn truncated<const BITS: u32>(number: f32) -> i32 {
    const { assert!(BITS >= 2 && BITS <= 32) };
    let full_scale = (1_u64 << (BITS - 1)) as f32;
    let highest = if BITS == 32 { full_scale.next_down() } else { full_scale - 1.0 };
    // Not `clamp`: each of these lines is one instruction.
    let number = if number.is_nan() { 0.0 } else { number };
    let number = if number < -full_scale { -full_scale } else { number };
    let number = if number > highest { highest } else { number };
    // SAFETY: the number is not NaN, and was clipped to the range of 32 bits just above.
    unsafe { number.to_int_unchecked() }
}

/// Detects the processor's features and caches the answer for the process.
///
/// Optional, since the first operation does the same. But detection takes some microseconds, on a
/// virtual machine tens of them, so a thread calls this before its first cycle.
pub fn detect_processor() {
    #[cfg(target_arch = "x86_64")]
    let _ = std::is_x86_feature_detected!("avx2");
}
