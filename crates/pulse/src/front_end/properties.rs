//! Lists of properties.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::props::PropsUpdateMode;
use pulseaudio::protocol::{Prop, Props, PulseError};

use super::FrontEnd;
use crate::output::Devices;

/// Most bytes of the properties of a connection or a stream.
const MAX_BYTES: usize = 64 << 10;
/// Most bytes of the properties of all connections and streams of one program. A list of all is one
/// packet, for which the program that asks must have room.
const MAX_BYTES_OF_ONE: usize = 1 << 20;
/// What a packet has for each property besides its key and its value, bytes.
const ENTRY_BYTES: usize = 12;

impl<D: Devices> FrontEnd<D> {
    /// Returns properties that a connection or a stream of a program may have, instead of others of
    /// `before` bytes.
    ///
    /// # Errors
    /// They are too many, or all of its program's would be.
    pub(super) fn limited_for(
        &self,
        account: u32,
        before: usize,
        props: Props,
    ) -> Result<Props, PulseError> {
        let clients = self.clients.values().filter(|client| client.origin.account == account);
        let inputs = self.inputs.values().filter(|input| input.account == account);
        let outputs = self.outputs.values().filter(|output| output.account == account);
        let all = clients.map(|client| &client.props);
        let all = all.chain(inputs.map(|input| &input.props));
        let all = all.chain(outputs.map(|output| &output.props)).map(bytes).sum::<usize>();
        // MUTATION: limited_for.all_of_a_program
        let all = all.saturating_sub(before) + bytes(&props);
        if all > MAX_BYTES_OF_ONE { Err(PulseError::TooLarge) } else { limited(props) }
    }
}

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

/// Returns the bytes of properties in a packet.
pub(super) fn bytes(props: &Props) -> usize {
    // MUTATION: properties.empty_ones_are_nothing
    let entry = ENTRY_BYTES;
    props.iter().map(|(key, value)| entry + key.to_bytes().len() + value.len()).sum()
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
        // Their values have one byte.
        let names =
            (0..MAX_BYTES / 16).map(|number| CString::new(format!("{number}")).expect("text"));
        let names: Vec<CString> = names.collect();
        let many: Vec<_> = names.iter().map(|name| (&**name, "")).collect();
        assert_eq!(limited(props(&many)), Err(PulseError::TooLarge));
    }
}
