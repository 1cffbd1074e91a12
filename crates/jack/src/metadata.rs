//! Properties of clients and ports. The server stores them as long as their subject exists.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::null_mut;

use client::{Error, PropertyChange, PropertyValue, Requester};

use crate::callbacks::Context;
use crate::clients::{self, ClientHandle, OpenClient};
use crate::convert::{FAILED, allocated, answer, array, complain, refuse, request, store, text};
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
    /// Uuid of the client or port.
    pub subject: Uuid,
    /// Number of properties.
    pub count: u32,
    /// From `malloc`.
    pub properties: *mut Property,
    /// Number of properties that the array has room for.
    pub capacity: u32,
}

/// `JackPropertyChangeCallback`.
pub type PropertyChangeCallback = unsafe extern "C" fn(Uuid, *const c_char, u32, *mut c_void);

/// A message for [`refuse`].
const MISSING: &str =
    "a property's key, or a place for the answer, is missing; all texts have to be UTF-8";

/// Sets a property of any client or port. Returns 0, or -1 (no key, no value, or too large).
/// `type_name` may be null.
///
/// # Safety
/// The texts are null or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_set_property(
    client: ClientHandle,
    subject: Uuid,
    key: *const c_char,
    value: *const c_char,
    type_name: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let (key, value, given_type) = unsafe { (text(key), text(value), text(type_name)) };
    let (Some(key), Some(value)) = (key, value) else { return refuse(MISSING) };
    if given_type.is_none() && !type_name.is_null() {
        return refuse(MISSING);
    }
    let value =
        PropertyValue { text: value.into(), type_name: given_type.unwrap_or_default().into() };
    request(client, |client| {
        client.session.set_property(client::Property { subject, key: key.into(), value })
    })
}

/// Asks the server of any open client of this process. Returns `None`, with a message, on failure.
fn ask<T>(question: impl FnOnce(&OpenClient) -> Result<T, Error>) -> Option<T> {
    let answer = clients::any().ok_or(Error::Closed).and_then(|client| question(&client));
    answer.map_err(|error| complain(&error)).ok()
}

/// Copies a property, freed with `jack_free`. Returns 0, or -1 if there is none. The type is null
/// if none was given.
///
/// # Safety
/// `key` is null or a C string; `value` and `type_name` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_property(
    subject: Uuid,
    key: *const c_char,
    value: *mut *mut c_char,
    type_name: *mut *mut c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(key) = (unsafe { text(key) }).filter(|_| !value.is_null()) else {
        return refuse(MISSING);
    };
    // Programs ask for properties that may not exist, so a failure is not reported.
    let found = clients::any().and_then(|client| client.session.property(subject, key).ok());
    let Some(found) = found else { return FAILED };
    // SAFETY: the caller's promise.
    unsafe {
        store(value, allocated(&found.text));
        store(type_name, type_text(&found));
    }
    0
}

fn type_text(value: &PropertyValue) -> *mut c_char {
    if value.type_name.is_empty() { null_mut() } else { allocated(&value.type_name) }
}

/// Returns the properties of one subject in memory for the program.
fn describe(subject: Uuid, properties: &[client::Property]) -> Description {
    let copy = |property: &client::Property| Property {
        key: allocated(&property.key),
        data: allocated(&property.value.text),
        type_name: type_text(&property.value),
    };
    let copies = array(properties.iter().map(copy).collect());
    let count = if copies.is_null() { 0 } else { u32::try_from(properties.len()).unwrap_or(0) };
    Description { subject, count, properties: copies, capacity: count }
}

/// Fills `*description` with all properties of a subject, for [`jack_free_description`]. Returns
/// their number, or -1.
///
/// # Safety
/// `description` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_properties(
    subject: Uuid,
    description: *mut Description,
) -> c_int {
    if description.is_null() {
        return refuse(MISSING);
    }
    let Some(found) = ask(|client| client.session.properties(Some(subject))) else { return FAILED };
    let filled = describe(subject, &found);
    let count = c_int::try_from(filled.count).unwrap_or(c_int::MAX);
    // SAFETY: the caller's promise.
    unsafe { store(description, filled) };
    count
}

/// Allocates one description for each subject that has properties. Returns their number, or -1.
/// Each is freed with [`jack_free_description`], then the array with `jack_free`; the array is null
/// if there are none.
///
/// # Safety
/// `descriptions` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_get_all_properties(descriptions: *mut *mut Description) -> c_int {
    if descriptions.is_null() {
        return refuse(MISSING);
    }
    let Some(found) = ask(|client| client.session.properties(None)) else { return FAILED };
    let subjects = found.chunk_by(|one, next| one.subject == next.subject);
    let described: Vec<Description> = subjects
        .map(|properties| describe(properties.first().map_or(0, |first| first.subject), properties))
        .collect();
    let count = c_int::try_from(described.len()).unwrap_or(c_int::MAX);
    // SAFETY: the caller's promise.
    unsafe { store(descriptions, array(described)) };
    count
}

/// Frees the content of a description and, if `itself` is not 0, the description too.
///
/// # Safety
/// `description` is null or points to a description whose texts and array are from `malloc` or
/// null, and are not used by other code; the same holds for the description itself if it is to be
/// freed.
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

/// Removes a property. Returns 0, or -1 if there is none.
///
/// # Safety
/// `key` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jack_remove_property(
    client: ClientHandle,
    subject: Uuid,
    key: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(key) = (unsafe { text(key) }) else { return refuse(MISSING) };
    request(client, |client| client.session.remove_property(subject, key))
}

/// Removes all properties of a subject. Returns their number, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_remove_properties(client: ClientHandle, subject: Uuid) -> c_int {
    let removed = client
        .pin()
        .ok_or(Error::Closed)
        .and_then(|client| client.session.remove_properties(subject));
    match removed {
        Ok(count) => c_int::try_from(count).unwrap_or(c_int::MAX),
        Err(error) => answer(Err(error)),
    }
}

/// Removes all properties of every subject. Returns 0, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn jack_remove_all_properties(client: ClientHandle) -> c_int {
    request(client, |client| client.session.remove_all_properties())
}

/// Sets the callback for properties that are set or removed. The key is empty if all properties of
/// the subject were removed, and the subject is 0 if those of every subject were.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_property_change_callback(
    client: ClientHandle,
    callback: Option<PropertyChangeCallback>,
    argument: *mut c_void,
) -> c_int {
    let context = Context(argument);
    request(client, |client| {
        client.session.configure(|callbacks| {
            callbacks.property = callback.map(|callback| {
                client::callback(move |subject: Uuid, key: &str, change: PropertyChange| {
                    let key = CString::new(key).unwrap_or_default();
                    let change = match change {
                        PropertyChange::Created => 0,
                        PropertyChange::Changed => 1,
                        PropertyChange::Deleted => 2,
                    };
                    // SAFETY: the program's callback; the text is valid during the call.
                    unsafe { callback(subject, key.as_ptr(), change, context.pointer()) };
                }) as client::Callback<dyn FnMut(Uuid, &str, PropertyChange) + Send>
            });
        })
    })
}

#[cfg(test)]
mod tests {
    use std::ptr::null;

    use super::*;

    fn property(key: &str, value: &str, type_name: &str) -> client::Property {
        let value = PropertyValue { text: value.into(), type_name: type_name.into() };
        client::Property { subject: 7, key: key.into(), value }
    }

    #[test]
    fn a_freed_description_is_empty() {
        let mut description =
            describe(7, &[property("k", "v", ""), property("l", "w", "text/plain")]);
        // SAFETY: made by `describe`, with this number of properties, and freed once.
        unsafe {
            let properties =
                std::slice::from_raw_parts(description.properties, description.count as usize);
            let texts =
                properties.iter().flat_map(|found| [found.key, found.data, found.type_name]);
            let texts: Vec<Option<&str>> = texts.map(|found| text(found)).collect();
            assert_eq!(
                texts,
                [Some("k"), Some("v"), None, Some("l"), Some("w"), Some("text/plain")]
            );
            assert_eq!((description.subject, description.count, description.capacity), (7, 2, 2));
            jack_free_description(&raw mut description, 0);
            jack_free_description(&raw mut description, 0);
        }
        assert_eq!((description.count, description.properties.is_null()), (0, true));
    }

    #[test]
    fn invalid_metadata_calls_write_nothing() {
        let key = c"k".as_ptr();
        for client in [ClientHandle::NONE, ClientHandle::from_number(0x1234_5678)] {
            // SAFETY: null, constants, or variables of this test.
            unsafe {
                assert_eq!(jack_set_property(client, 7, key, key, null()), FAILED);
                assert_eq!(jack_set_property(client, 7, null(), key, null()), FAILED);
                assert_eq!(jack_set_property(client, 7, key, null(), null()), FAILED);
                assert_eq!(jack_set_property(client, 7, key, key, c"\xff".as_ptr()), FAILED);
                assert_eq!(jack_remove_property(client, 7, key), FAILED);
                assert_eq!(jack_remove_property(client, 7, null()), FAILED);
            }
            assert_eq!(jack_remove_properties(client, 7), FAILED);
            assert_eq!(jack_remove_all_properties(client), FAILED);
            assert_eq!(jack_set_property_change_callback(client, None, null_mut()), FAILED);
        }
        let mut answer = null_mut();
        let mut descriptions = null_mut();
        // SAFETY: null, constants, or variables of this test.
        unsafe {
            assert_eq!(jack_get_property(7, key, &raw mut answer, null_mut()), FAILED);
            assert_eq!(jack_get_property(7, null(), &raw mut answer, null_mut()), FAILED);
            assert_eq!(jack_get_property(7, key, null_mut(), null_mut()), FAILED);
            assert_eq!(jack_get_properties(7, null_mut()), FAILED);
            assert_eq!(jack_get_all_properties(null_mut()), FAILED);
            assert_eq!(jack_get_all_properties(&raw mut descriptions), FAILED);
            jack_free_description(null_mut(), 1);
        }
        assert!(answer.is_null() && descriptions.is_null());
    }
}
