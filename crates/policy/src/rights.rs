//! What programs may do beyond streams of their own.

/// What a program may do, besides playing, and changing its own streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Record what others play.
    pub record: bool,
    /// Record what a device captures.
    pub capture: bool,
    /// Change, move and end what is another program's.
    pub patch: bool,
    /// Change devices, the default ones, and what is remembered.
    pub control: bool,
    /// Load and unload modules.
    pub load: bool,
}

impl Rights {
    /// Rights of a program that is not confined.
    pub const ALL: Self =
        Self { record: true, capture: true, patch: true, control: true, load: true };
    /// Rights of a confined program to which no rule allows anything.
    pub const NONE: Self =
        Self { record: false, capture: false, patch: false, control: false, load: false };

    /// Reads words with commas between them; `None`: one of them is none of these.
    pub(crate) fn parse(words: &str) -> Option<Self> {
        words.split(',').try_fold(Self::NONE, |rights, word| {
            Some(match word {
                "record" => Self { record: true, ..rights },
                "capture" => Self { capture: true, ..rights },
                "patch" => Self { patch: true, ..rights },
                "control" => Self { control: true, ..rights },
                "everything" => Self::ALL,
                _ => return None,
            })
        })
    }
}
