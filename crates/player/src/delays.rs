//! How long frames take from being written until they are heard. Pure.

use std::fmt;

/// The delays of the frames of a stream so far; none before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Delays {
    range: Option<(u64, u64)>,
    rate_hz: u32,
}

impl Delays {
    /// Starts without frames, which have this rate.
    pub(crate) fn new(rate_hz: u32) -> Self {
        Self { range: None, rate_hz: rate_hz.max(1) }
    }

    /// Notes that the frames from position `first` up to `end` were written while frame `heard`
    /// was heard.
    pub(crate) fn note(&mut self, first: u64, end: u64, heard: u64) {
        if first < end {
            let (least, most) = self.range.unwrap_or((u64::MAX, 0));
            let (first, last) = (first.saturating_sub(heard), (end - 1).saturating_sub(heard));
            self.range = Some((least.min(first), most.max(last)));
        }
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let ms = |frames: u64| frames as f64 * 1000.0 / f64::from(self.rate_hz);
        match self.range {
            None => write!(formatter, "latency: nothing was written while it played"),
            Some((least, most)) => write!(
                formatter,
                "latency: {:.1} to {:.1} ms from when a frame was written until it was heard",
                ms(least),
                ms(most)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_those_of_the_first_and_last_frame_of_each_writing() {
        let mut delays = Delays::new(1000);
        assert!(delays.to_string().contains("nothing was written"));
        delays.note(20, 31, 10);
        delays.note(31, 31, 31);
        delays.note(35, 46, 30);
        assert!(delays.to_string().starts_with("latency: 5.0 to 20.0 ms "), "{delays}");
    }
}
