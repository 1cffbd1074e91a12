//! Lists of properties.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::props::PropsUpdateMode;
use pulseaudio::protocol::{Prop, Props, PulseError};

/// Most bytes of the properties of a program or a stream.
const MAX_BYTES: usize = 64 << 10;

/// Returns a property that is text.
pub(super) fn text(props: &Props, prop: Prop) -> Option<&CStr> {
    CStr::from_bytes_with_nul(props.get(prop)?).ok()
}

/// Returns one of the protocol's keys and a text.
pub(super) fn set(props: &mut Props, key: &CStr, value: &str) {
    if let Ok(value) = CString::new(value) {
        props.set_bytes(key, value.as_bytes_with_nul());
    }
}

/// Returns the properties after a change.
///
/// # Errors
/// They would be too many.
pub(super) fn updated(
    before: &Props,
    mode: PropsUpdateMode,
    new: &Props,
) -> Result<Props, PulseError> {
    let (base, over) = match mode {
        PropsUpdateMode::Set => (None, new),
        PropsUpdateMode::Merge => (Some(new), before),
        PropsUpdateMode::Replace => (Some(before), new),
    };
    let mut props = base.cloned().unwrap_or_default();
    over.iter().for_each(|(key, value)| props.set_bytes(key, value));
    limited(props)
}

/// Returns the properties without these keys.
pub(super) fn without(before: &Props, keys: &[CString]) -> Props {
    let mut props = Props::new();
    let kept = before.iter().filter(|(key, _)| !keys.iter().any(|gone| **gone == ***key));
    kept.for_each(|(key, value)| props.set_bytes(key, value));
    props
}

/// Returns properties that are few enough.
///
/// # Errors
/// They are too many.
pub(super) fn limited(props: Props) -> Result<Props, PulseError> {
    if bytes(&props) > MAX_BYTES { Err(PulseError::TooLarge) } else { Ok(props) }
}

/// Returns the bytes of properties.
pub(super) fn bytes(props: &Props) -> usize {
    props.iter().map(|(key, value)| key.to_bytes().len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn props(of: &[(&CStr, &str)]) -> Props {
        let mut props = Props::new();
        of.iter().for_each(|(key, value)| set(&mut props, key, value));
        props
    }

    #[test]
    fn properties_are_set_merged_or_replaced() {
        let before = props(&[(c"a", "1"), (c"b", "2")]);
        let new = props(&[(c"b", "3"), (c"c", "4")]);
        let after = |mode| updated(&before, mode, &new).expect("few");
        assert_eq!(after(PropsUpdateMode::Set), new);
        let merged = props(&[(c"a", "1"), (c"b", "2"), (c"c", "4")]);
        assert_eq!(after(PropsUpdateMode::Merge), merged);
        let replaced = props(&[(c"a", "1"), (c"b", "3"), (c"c", "4")]);
        assert_eq!(after(PropsUpdateMode::Replace), replaced);
        assert_eq!(without(&replaced, &[c"a".into(), c"z".into()]), new);
    }

    #[test]
    fn too_many_properties_are_refused() {
        let long = "x".repeat(MAX_BYTES);
        assert_eq!(limited(props(&[(c"a", &long)])), Err(PulseError::TooLarge));
    }
}
