//! `JSList`s of handles, made once and handed out as long as their owner lives.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::objects::Handle;

/// `JSList`: an element, and with it the list that begins there.
#[derive(Debug)]
#[repr(C)]
pub struct Element {
    data: *mut c_void,
    next: *mut Element,
}

/// A list whose elements lie beside each other, and stay.
#[derive(Debug)]
pub struct List(Box<[Element]>);

// SAFETY: written once, in `of`, before it is seen by another thread. The pointers to data are never followed here.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    /// The list of these handles.
    pub fn of(handles: impl Iterator<Item = Handle>) -> Self {
        let elements = handles.map(|handle| Element { data: handle.pointer(), next: null_mut() });
        let mut elements: Box<[Element]> = elements.collect();
        let start = elements.as_mut_ptr();
        for index in 1..elements.len() {
            // SAFETY: an element of the box, whose memory stays where it is as long as the box lives.
            unsafe { (*start.add(index - 1)).next = start.add(index) };
        }
        Self(elements)
    }

    /// The list, for C; null: the empty one.
    pub fn first(&self) -> *const Element {
        if self.0.is_empty() { null() } else { self.0.as_ptr() }
    }
}
