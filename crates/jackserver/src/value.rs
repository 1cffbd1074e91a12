//! Values of parameters, in C's union and in Rust.

use std::ffi::c_char;

use jack_parameters::{Kind, Value};

/// `JACK_PARAM_STRING_MAX`, with the terminating 0.
pub const STRING_BYTES: usize = 128;

/// `union jackctl_parameter_value`; the parameter's type determines the member.
#[derive(Clone, Copy)]
#[repr(C)]
pub union RawValue {
    ui: u32,
    i: i32,
    /// Also the boolean: any bit pattern may come from C.
    c: u8,
    text: [u8; STRING_BYTES],
}

/// Returns the `jackctl_param_type_t` of a type.
pub fn kind_number(kind: Kind) -> u32 {
    match kind {
        Kind::Int => 1,
        Kind::UInt => 2,
        Kind::Char => 3,
        Kind::Text => 4,
        Kind::Bool => 5,
    }
}

impl RawValue {
    /// The value for an invalid handle.
    pub const ZERO: Self = Self { text: [0; STRING_BYTES] };

    /// Returns the member of this type. A text ends at its 0; one that is not UTF-8 is `None`.
    ///
    /// # Safety
    /// The member of this type was written; of a text, all bytes up to its 0.
    pub unsafe fn read(place: *const Self, kind: Kind) -> Option<Value> {
        // SAFETY: the caller's promise. Nothing beyond the member is read, since C may have written
        // only that.
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
                        std::str::from_utf8(text)
                            .ok()
                            .filter(|text| text.len() < STRING_BYTES)?
                            .to_owned()
                            .into(),
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
