//! Values of parameters, in C's union and in Rust.

use std::ffi::c_char;

/// `JACK_PARAM_STRING_MAX`, with the terminating 0.
pub const STRING_BYTES: usize = 128;

/// `union jackctl_parameter_value`: which member is meant is the parameter's type.
#[derive(Clone, Copy)]
#[repr(C)]
pub union RawValue {
    ui: u32,
    i: i32,
    /// Also a boolean: any bit pattern may come from C.
    c: u8,
    text: [u8; STRING_BYTES],
}

/// `jackctl_param_type_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A number.
    Int = 1,
    /// A number from 0 up.
    UInt = 2,
    /// A letter.
    Char = 3,
    /// A text.
    Text = 4,
    /// Yes or no.
    Bool = 5,
}

/// A value of one of the types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `i`
    Int(i32),
    /// `ui`
    UInt(u32),
    /// `c`
    Char(char),
    /// `str`
    Text(String),
    /// `b`
    Bool(bool),
}

impl RawValue {
    /// For those who ask about nothing.
    pub const ZERO: Self = Self { text: [0; STRING_BYTES] };

    /// The value of this type; a text ends at its 0, and is none if it is not UTF-8.
    ///
    /// # Safety
    /// The member of this type was written; of a text, all bytes up to its 0.
    pub unsafe fn read(place: *const Self, kind: Kind) -> Option<Value> {
        // SAFETY: the caller's promise. Nothing beyond the member is read: C may have written no more.
        unsafe {
            Some(match kind {
                Kind::Int => Value::Int((&raw const (*place).i).read_unaligned()),
                Kind::UInt => Value::UInt((&raw const (*place).ui).read_unaligned()),
                Kind::Char => Value::Char(char::from((&raw const (*place).c).read())),
                Kind::Bool => Value::Bool((&raw const (*place).c).read() != 0),
                Kind::Text => {
                    let start = place.cast::<c_char>();
                    let bytes = libc::strnlen(start, STRING_BYTES);
                    let text = std::slice::from_raw_parts(start.cast::<u8>(), bytes);
                    Value::Text(
                        std::str::from_utf8(text).ok().filter(|text| text.len() < STRING_BYTES)?.into(),
                    )
                }
            })
        }
    }
}

impl From<&Value> for RawValue {
    fn from(value: &Value) -> Self {
        let mut raw = Self::ZERO;
        match value {
            Value::Int(number) => raw.i = *number,
            Value::UInt(number) => raw.ui = *number,
            Value::Char(letter) => raw.c = u8::try_from(*letter).unwrap_or(0),
            Value::Bool(is_so) => raw.c = u8::from(*is_so),
            Value::Text(text) => {
                let mut bytes = [0; STRING_BYTES];
                let room = bytes.iter_mut().take(STRING_BYTES - 1);
                room.zip(text.bytes()).for_each(|(place, byte)| *place = byte);
                raw.text = bytes;
            }
        }
        raw
    }
}

impl Value {
    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Int(_) => Kind::Int,
            Self::UInt(_) => Kind::UInt,
            Self::Char(_) => Kind::Char,
            Self::Text(_) => Kind::Text,
            Self::Bool(_) => Kind::Bool,
        }
    }

    /// The value of this type that a command line's word stands for.
    pub fn parse(kind: Kind, word: &str) -> Option<Self> {
        match kind {
            Kind::Int => word.parse().ok().map(Self::Int),
            Kind::UInt => word.parse().ok().map(Self::UInt),
            Kind::Char => word.chars().next().map(Self::Char),
            Kind::Bool => Some(Self::Bool(!["0", "false", "off", "no"].contains(&word))),
            Kind::Text => Some(Self::Text(word.into())).filter(|_| word.len() < STRING_BYTES),
        }
    }

    /// A command line's word for it.
    pub fn word(&self) -> String {
        match self {
            Self::Int(number) => number.to_string(),
            Self::UInt(number) => number.to_string(),
            Self::Char(letter) => letter.to_string(),
            Self::Text(text) => text.clone(),
            Self::Bool(is_so) => u8::from(*is_so).to_string(),
        }
    }
}
