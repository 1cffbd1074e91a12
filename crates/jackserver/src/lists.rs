//! `JSList`s of handles, built once and valid as long as their owner.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use crate::objects::Handle;

/// `JSList`: an element, and at the same time the list that begins with it.
#[derive(Debug)]
#[repr(C)]
pub struct Element {
    data: *mut c_void,
    next: *mut Element,
}

/// A list whose elements lie in one allocation that never moves.
#[derive(Debug)]
pub struct List(Box<[Element]>);

// SAFETY: written once, in `of`, before another thread sees it. The pointers to data are never
// dereferenced here.
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    /// Builds the list of these handles.
    pub fn of(handles: impl Iterator<Item = Handle>) -> Self {
        let elements = handles.map(|handle| Element { data: handle.pointer(), next: null_mut() });
        let mut elements: Box<[Element]> = elements.collect();
        let start = elements.as_mut_ptr();
        for index in 1..elements.len() {
            // SAFETY: an element of the box, whose memory stays where it is as long as the box
            // lives.
            unsafe { (*start.add(index - 1)).next = start.add(index) };
        }
        Self(elements)
    }

    /// Returns the list for C; null if it is empty.
    pub fn first(&self) -> *const Element {
        if self.0.is_empty() { null() } else { self.0.as_ptr() }
    }
}
