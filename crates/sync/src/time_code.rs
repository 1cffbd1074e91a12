//! SMPTE time code: the numbers of video frames, and their bytes in MIDI.

/// Frames of video per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum VideoRate {
    /// Film
    #[value(name = "24")]
    Film,
    /// PAL
    #[value(name = "25")]
    Pal,
    /// NTSC with dropped numbers: 30000 frames in 1001 s
    #[value(name = "29.97")]
    Drop,
    /// 30 frames per second exactly
    #[value(name = "30")]
    Thirty,
    /// NTSC without dropped numbers: 30000 frames in 1001 s
    #[value(name = "29.97nd")]
    NonDrop,
}

/// The number of a frame of video, in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeCode {
    pub(crate) hours: u8,
    pub(crate) minutes: u8,
    pub(crate) seconds: u8,
    pub(crate) frames: u8,
    pub(crate) rate: VideoRate,
}

/// Numbers that are left out at the beginning of each minute except every tenth.
const DROPPED: u32 = 2;

impl VideoRate {
    pub(crate) const ALL: [Self; 5] =
        [Self::Film, Self::Pal, Self::Drop, Self::Thirty, Self::NonDrop];

    /// Frame numbers per second.
    pub(crate) const fn numbers(self) -> u32 {
        match self {
            Self::Film => 24,
            Self::Pal => 25,
            Self::Drop | Self::Thirty | Self::NonDrop => 30,
        }
    }

    /// Frames per second.
    pub(crate) fn frames_hz(self) -> f64 {
        match self {
            Self::Drop | Self::NonDrop => 30_000.0 / 1001.0,
            _ => f64::from(self.numbers()),
        }
    }

    /// Returns the frames per second as a fraction.
    pub(crate) fn fraction_hz(self) -> (u32, u32) {
        match self {
            Self::Drop | Self::NonDrop => (30_000, 1001),
            _ => (self.numbers(), 1),
        }
    }

    /// The rate's two bits in MIDI, which has none for NTSC without dropped numbers.
    fn code(self) -> u8 {
        match self {
            Self::Film => 0,
            Self::Pal => 1,
            Self::Drop => 2,
            Self::Thirty | Self::NonDrop => 3,
        }
    }

    fn from_code(code: u8) -> Self {
        Self::ALL[usize::from(code & 3)]
    }
}

impl TimeCode {
    /// The number of the frame with this index; numbers start again after a day.
    pub(crate) fn of(index: u32, rate: VideoRate) -> Self {
        let numbers = rate.numbers();
        let mut number = index;
        if rate == VideoRate::Drop {
            let per_minute = 60 * numbers - DROPPED;
            let per_ten = 10 * per_minute + DROPPED;
            let (tens, rest) = (index / per_ten, index % per_ten);
            let minutes =
                if rest < 60 * numbers { 0 } else { (rest - 60 * numbers) / per_minute + 1 };
            number += tens * 9 * DROPPED + minutes * DROPPED;
        }
        let part = |value: u32, of: u32| u8::try_from(value % of).unwrap_or(0);
        Self {
            frames: part(number, numbers),
            seconds: part(number / numbers, 60),
            minutes: part(number / (numbers * 60), 60),
            hours: part(number / (numbers * 3600), 24),
            rate,
        }
    }

    /// The frame's index.
    pub(crate) fn index(&self) -> u32 {
        let numbers = self.rate.numbers();
        let minutes = u32::from(self.hours) * 60 + u32::from(self.minutes);
        let number = (minutes * 60 + u32::from(self.seconds)) * numbers + u32::from(self.frames);
        let dropped =
            if self.rate == VideoRate::Drop { DROPPED * (minutes - minutes / 10) } else { 0 };
        number.saturating_sub(dropped)
    }

    /// Whether a frame with this number exists.
    pub(crate) fn is_valid(&self) -> bool {
        self.hours < 24
            && self.minutes < 60
            && self.seconds < 60
            && u32::from(self.frames) < self.rate.numbers()
            && Self::of(self.index(), self.rate) == *self
    }

    /// One of the eight pieces of four bits that quarter frames carry, with its number.
    pub(crate) fn piece(&self, number: u8) -> u8 {
        let bits = match number & 7 {
            0 => self.frames & 0xF,
            1 => self.frames >> 4,
            2 => self.seconds & 0xF,
            3 => self.seconds >> 4,
            4 => self.minutes & 0xF,
            5 => self.minutes >> 4,
            6 => self.hours & 0xF,
            _ => self.hours >> 4 | self.rate.code() << 1,
        };
        (number & 7) << 4 | bits
    }

    /// The time code of eight pieces; `None` if there is no such frame.
    pub(crate) fn of_pieces(pieces: &[u8; 8]) -> Option<Self> {
        let pair = |low: usize, mask: u8| (pieces[low] & 0xF) | (pieces[low + 1] & 0xF & mask) << 4;
        let rate = VideoRate::from_code((pieces[7] & 0xF) >> 1);
        let code = Self {
            frames: pair(0, 1),
            seconds: pair(2, 3),
            minutes: pair(4, 3),
            hours: pair(6, 1),
            rate,
        };
        Some(code).filter(Self::is_valid)
    }

    /// The full-frame message.
    pub(crate) fn full(&self) -> [u8; 10] {
        let hours = self.hours | self.rate.code() << 5;
        [0xF0, 0x7F, 0x7F, 1, 1, hours, self.minutes, self.seconds, self.frames, 0xF7]
    }

    /// The time code of a full-frame message; `None` if it is another message, or there is no such
    /// frame.
    pub(crate) fn of_full(message: &[u8]) -> Option<Self> {
        let [0xF0, 0x7F, _, 1, 1, hours, minutes, seconds, frames, 0xF7] = *message else {
            return None;
        };
        let rate = VideoRate::from_code(hours >> 5);
        Some(Self { hours: hours & 0x1F, minutes, seconds, frames, rate }).filter(Self::is_valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_number_survives_the_way_through_its_bytes() {
        for rate in VideoRate::ALL {
            for index in (0..2_500_000).step_by(7).chain(0..40_000) {
                let code = TimeCode::of(index, rate);
                if index < 2_073_600 {
                    assert_eq!(code.index(), index, "{code:?}");
                }
                assert!(code.is_valid());
                let pieces = std::array::from_fn(|number| code.piece(number as u8));
                let in_midi = VideoRate::from_code(rate.code());
                let expected = Some(TimeCode { rate: in_midi, ..code });
                assert_eq!(TimeCode::of_pieces(&pieces), expected);
                assert_eq!(TimeCode::of_full(&code.full()), expected);
            }
        }
    }

    #[test]
    fn dropped_numbers_are_those_of_ntsc() {
        let parts = |index| {
            let TimeCode { hours, minutes, seconds, frames, .. } =
                TimeCode::of(index, VideoRate::Drop);
            (hours, minutes, seconds, frames)
        };
        assert_eq!((parts(1799), parts(1800)), ((0, 0, 59, 29), (0, 1, 0, 2)));
        assert_eq!((parts(17_981), parts(17_982)), ((0, 9, 59, 29), (0, 10, 0, 0)));
        // An hour of time code is an hour, but for 3.6 ms.
        assert_eq!(parts(107_892), (1, 0, 0, 0));
        let dropped =
            TimeCode { hours: 0, minutes: 1, seconds: 0, frames: 0, rate: VideoRate::Drop };
        assert!(!dropped.is_valid());
    }

    #[test]
    fn bytes_that_are_not_a_time_code_are_refused() {
        let code = TimeCode::of(1000, VideoRate::Pal);
        for (index, byte) in
            [(0, 0xF1), (1, 0x7E), (4, 2), (5, 24), (6, 60), (7, 60), (8, 25), (9, 0)]
        {
            let mut message = code.full();
            message[index] = byte;
            // 24 hours at 24 frames: the bits of the rate are those of another.
            assert_eq!(TimeCode::of_full(&message), None, "byte {index}");
        }
        assert_eq!(TimeCode::of_full(&code.full()[..9]), None);
    }
}
