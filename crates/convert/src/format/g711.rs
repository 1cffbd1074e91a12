//! A-law and μ-law, as ITU-T G.711 defines them (tables 1 and 2).
//!
//! A code has a sign, a segment of three bits and a step of four. The steps of a segment are
//! equally long, and twice as long as those of the segment below it; the first two segments of
//! A-law have the same. A code stands for the middle of its step.

/// G.711's unit of A-law: 4,096 of them are full scale.
const A_LAW_SCALE: f32 = 4096.0;
/// A-law inverts every other bit, so that silence is not a long run of zeros on a line.
const A_LAW_MASK: u8 = 0x55;
/// G.711's unit of μ-law: 8,192 of them are full scale.
const MU_LAW_SCALE: f32 = 8192.0;
/// Added to a magnitude of μ-law, it makes each segment begin at a power of two.
const MU_LAW_BIAS: u32 = 33;

/// The bit of a code for its sign.
const SIGN: u8 = 0x80;

/// Returns the sample that each of the 256 codes stands for.
pub(super) const fn a_law_table() -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        let bits = code as u8 ^ A_LAW_MASK;
        let (segment, step) = (bits >> 4 & 7, (bits & 15) as u32);
        let magnitude = if segment == 0 { 2 * step + 1 } else { (2 * step + 33) << (segment - 1) };
        let sample = magnitude as f32 / A_LAW_SCALE;
        table[code] = if bits & SIGN == 0 { -sample } else { sample };
        code += 1;
    }
    table
}

/// Returns the sample that each of the 256 codes stands for. The code for negative zero gives
/// negative zero.
pub(super) const fn mu_law_table() -> [f32; 256] {
    let mut table = [0.0; 256];
    let mut code = 0;
    while code < 256 {
        let bits = !(code as u8);
        let (segment, step) = (bits >> 4 & 7, (bits & 15) as u32);
        let magnitude = ((2 * step + 33) << segment) - MU_LAW_BIAS;
        let sample = magnitude as f32 / MU_LAW_SCALE;
        table[code] = if bits & SIGN == 0 { sample } else { -sample };
        code += 1;
    }
    table
}

/// Returns the code of the step that a sample lies in.
pub(super) fn a_law(sample: f32) -> u8 {
    // A cast of NaN is 0.
    let magnitude = ((sample.abs() * A_LAW_SCALE) as u32).min(4095);
    let segment = (magnitude >> 4).checked_ilog2().unwrap_or(0);
    let step = magnitude >> segment.max(1) & 15;
    (sign(!is_negative(sample)) | (segment << 4 | step) as u8) ^ A_LAW_MASK
}

/// Returns the code of the step that a sample lies in.
pub(super) fn mu_law(sample: f32) -> u8 {
    let magnitude = ((sample.abs() * MU_LAW_SCALE) as u32).min(8191 - MU_LAW_BIAS) + MU_LAW_BIAS;
    let segment = magnitude.ilog2() - 5;
    let step = magnitude >> (segment + 1) & 15;
    !(sign(is_negative(sample)) | (segment << 4 | step) as u8)
}

fn sign(is_set: bool) -> u8 {
    if is_set { SIGN } else { 0 }
}

fn is_negative(sample: f32) -> bool {
    sample.is_sign_negative() && !sample.is_nan()
}
