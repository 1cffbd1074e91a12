//! Properties of clients and ports. Servers of this release keep none: all calls but the releasing one fail.

use std::ffi::{c_char, c_int, c_void};

use crate::clients::ClientHandle;
use crate::convert::{FAILED, order};
use crate::uuid::Uuid;

/// `jack_property_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Property {
    /// From `malloc`.
    pub key: *mut c_char,
    /// From `malloc`.
    pub data: *mut c_char,
    /// From `malloc`, or null.
    pub type_name: *mut c_char,
}

/// `jack_description_t`.
#[derive(Debug)]
#[repr(C)]
pub struct Description {
    /// Whose properties they are.
    pub subject: Uuid,
    /// How many there are.
    pub count: u32,
    /// From `malloc`.
    pub properties: *mut Property,
    /// How many there is room for.
    pub capacity: u32,
}

/// `JackPropertyChangeCallback`.
pub type PropertyChangeCallback = unsafe extern "C" fn(Uuid, *const c_char, u32, *mut c_void);

/// Fails: there are no properties yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_property(
    _client: ClientHandle,
    _subject: Uuid,
    _key: *const c_char,
    _value: *const c_char,
    _type: *const c_char,
) -> c_int {
    FAILED
}

/// Fails: there are no properties yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_property(
    _subject: Uuid,
    _key: *const c_char,
    _value: *mut *mut c_char,
    _type: *mut *mut c_char,
) -> c_int {
    FAILED
}

/// Fails: there are no properties yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_properties(_subject: Uuid, _description: *mut Description) -> c_int {
    FAILED
}

/// Fails: there are no properties yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_get_all_properties(_descriptions: *mut *mut Description) -> c_int {
    FAILED
}

/// Releases what a description holds, and if `itself` is not 0 the description too.
///
/// # Safety
/// `description` is null or points to a description whose texts and array are from `malloc` or null, and are used by
/// nobody else; and so is the description itself if it is to be released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_free_description(description: *mut Description, itself: c_int) {
    // SAFETY: the caller's promise, also for the pointers inside. What stays is left empty.
    unsafe {
        let Some(content) = description.as_mut() else { return };
        let count = if content.properties.is_null() { 0 } else { content.count as usize };
        for index in 0..count {
            let property = content.properties.add(index).read();
            for text in [property.key, property.data, property.type_name] {
                libc::free(text.cast());
            }
        }
        libc::free(content.properties.cast());
        (content.count, content.capacity, content.properties) = (0, 0, std::ptr::null_mut());
        if itself != 0 {
            libc::free(description.cast());
        }
    }
}

/// Fails: there are no properties yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_remove_property(_client: ClientHandle, _subject: Uuid, _key: *const c_char) -> c_int {
    FAILED
}

/// Fails: there are no properties yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_remove_properties(_client: ClientHandle, _subject: Uuid) -> c_int {
    FAILED
}

/// Fails: there are no properties yet.
#[unsafe(no_mangle)]
pub extern "C" fn jack_remove_all_properties(_client: ClientHandle) -> c_int {
    FAILED
}

/// Accepts a callback that has no occasion yet: there are no properties that could change.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_property_change_callback(
    client: ClientHandle,
    _callback: Option<PropertyChangeCallback>,
    _argument: *mut c_void,
) -> c_int {
    order(client, |client| client.session.configure(|_| {}))
}
