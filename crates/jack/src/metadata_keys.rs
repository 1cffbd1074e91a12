//! The variables that hold the metadata keys with an agreed meaning (`metadata.h`).

use std::ffi::{CStr, c_char};

/// A C variable of type `const char *` that never changes. Programs may copy it when they start, so
/// it must be an object of the size of a pointer, not a function or an array.
#[repr(transparent)]
#[derive(Debug)]
pub struct Key(*const c_char);

// SAFETY: points to a constant text, which any thread may read.
unsafe impl Sync for Key {}

impl Key {
    /// Returns the key's text.
    pub fn text(&self) -> &'static CStr {
        // SAFETY: only this module makes keys, and only from string constants.
        unsafe { CStr::from_ptr(self.0) }
    }
}

/// Declares each variable, and the list of all.
macro_rules! keys {
    ($($name:ident = $last:literal;)*) => {
        $(
            #[doc = concat!("`http://jackaudio.org/metadata/", $last, "`")]
            #[unsafe(no_mangle)]
            pub static $name: Key = Key(concat!("http://jackaudio.org/metadata/", $last, "\0").as_ptr().cast());
        )*

        /// All keys.
        pub static ALL: &[&Key] = &[$(&$name),*];
    };
}

keys! {
    JACK_METADATA_CONNECTED = "connected";
    JACK_METADATA_EVENT_TYPES = "event-types";
    JACK_METADATA_HARDWARE = "hardware";
    JACK_METADATA_ICON_LARGE = "icon-large";
    JACK_METADATA_ICON_NAME = "icon-name";
    JACK_METADATA_ICON_SMALL = "icon-small";
    JACK_METADATA_ORDER = "order";
    JACK_METADATA_PORT_GROUP = "port-group";
    JACK_METADATA_PRETTY_NAME = "pretty-name";
    JACK_METADATA_SIGNAL_TYPE = "signal-type";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_key_is_a_pointer_sized_object_with_its_own_text() {
        assert_eq!(size_of::<Key>(), size_of::<*const c_char>());
        let texts: BTreeSet<&CStr> = ALL.iter().map(|key| key.text()).collect();
        assert_eq!(texts.len(), 10);
        for text in texts {
            assert!(text.to_bytes().starts_with(b"http://jackaudio.org/metadata/"), "{text:?}");
        }
    }
}
