//! The elements of a card's control interface. Thread: not the cycle's.

use std::ffi::{CStr, CString};
use std::ptr::{NonNull, null_mut};

use alsa_sys as ffi;

/// Which programs an element is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Interface {
    /// Mixer programs.
    Mixer,
    /// Programs that know this card.
    Hardware,
    /// Settings of its sound devices.
    Pcm,
}

/// Identifies an element: no two of a card have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) interface: Interface,
    pub(crate) name: &'static CStr,
    pub(crate) index: u32,
}

/// The type of an element's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 0 or 1.
    Switches,
    /// Up to this number.
    Numbers { most: i64 },
    /// Indices into this list.
    Choices(Vec<String>),
}

/// An element that a card has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// Number of its values.
    pub(crate) count: u32,
}

/// A card, or its stand-in in a test. Errors are `errno`s.
pub(crate) trait Elements {
    /// Returns the element with this key, if the card has it.
    fn find(&self, key: Key) -> Option<Element>;

    /// Returns whether an element can be written.
    fn is_writable(&self, element: &Element) -> bool;

    /// Reads all values of an element. Their content before the call is passed to the card, because
    /// some drivers answer depending on it.
    fn read(&self, element: &Element, values: &mut [i64]) -> Result<(), i32>;

    /// Writes all values of an element.
    fn write(&self, element: &Element, values: &[i64]) -> Result<(), i32>;
}

/// The open control interface of a card. Closed on drop.
#[derive(Debug)]
pub(crate) struct Controls {
    handle: NonNull<ffi::snd_ctl_t>,
}

// SAFETY: the library ties a handle to no thread; `Controls` is its only owner and is not `Sync`,
// so that calls of one handle come from one thread at a time.
unsafe impl Send for Controls {}

/// `SND_CTL_NONBLOCK`: opening a card that another program holds fails instead of waiting.
const NONBLOCK: i32 = 1;
/// Most values that the library's record has room for.
const MOST_VALUES: u32 = 128;
/// No card has more choices.
const MOST_CHOICES: u32 = 1024;

impl Controls {
    /// Opens the card of this number.
    pub(crate) fn open(card: u32) -> Result<Self, i32> {
        let name = CString::new(format!("hw:{card}")).map_err(|_| libc::EINVAL)?;
        crate::messages::report();
        let mut handle = null_mut();
        // SAFETY: `handle` outlives the call, `name` is zero-terminated.
        let result = unsafe { ffi::snd_ctl_open(&mut handle, name.as_ptr(), NONBLOCK) };
        let handle = NonNull::new(handle).filter(|_| result >= 0);
        handle.map(|handle| Self { handle }).ok_or(-result)
    }

    /// Fills the record with the card's description of the element that it names.
    fn ask(&self, info: &Info) -> Result<(), i32> {
        // SAFETY: handle and record are valid.
        check(unsafe { ffi::snd_ctl_elem_info(self.handle.as_ptr(), info.0.as_ptr()) })
    }

    /// Returns the names of an element's choices, in order.
    fn choices(&self, info: &Info) -> Vec<String> {
        // SAFETY: the record is valid and has been filled for an enumerated element.
        let count = unsafe { ffi::snd_ctl_elem_info_get_items(info.0.as_ptr()) };
        let name = |item| {
            // SAFETY: as above.
            unsafe { ffi::snd_ctl_elem_info_set_item(info.0.as_ptr(), item) };
            self.ask(info).ok()?;
            // SAFETY: as above; the name is zero-terminated, in the record, and copied before the
            // record changes.
            let name =
                unsafe { CStr::from_ptr(ffi::snd_ctl_elem_info_get_item_name(info.0.as_ptr())) };
            Some(name.to_string_lossy().into_owned())
        };
        (0..count.min(MOST_CHOICES)).map_while(name).collect()
    }
}

impl Elements for Controls {
    fn find(&self, key: Key) -> Option<Element> {
        let info = Info::of(key)?;
        self.ask(&info).ok()?;
        let record = info.0.as_ptr();
        // SAFETY: the record is valid and has been filled.
        let (kind, count) = unsafe {
            (ffi::snd_ctl_elem_info_get_type(record), ffi::snd_ctl_elem_info_get_count(record))
        };
        let kind = match kind {
            ffi::SND_CTL_ELEM_TYPE_BOOLEAN => Kind::Switches,
            ffi::SND_CTL_ELEM_TYPE_INTEGER => {
                // SAFETY: as above, and the element holds integers.
                Kind::Numbers { most: unsafe { ffi::snd_ctl_elem_info_get_max(record) } }
            }
            ffi::SND_CTL_ELEM_TYPE_ENUMERATED => Kind::Choices(self.choices(&info)),
            _ => return None,
        };
        (1..=MOST_VALUES).contains(&count).then_some(Element { key, kind, count })
    }

    fn is_writable(&self, element: &Element) -> bool {
        let Some(info) = Info::of(element.key) else { return false };
        // SAFETY: the record is valid and has been filled.
        self.ask(&info).is_ok()
            && unsafe { ffi::snd_ctl_elem_info_is_writable(info.0.as_ptr()) } != 0
    }

    fn read(&self, element: &Element, values: &mut [i64]) -> Result<(), i32> {
        let record = Values::of(element, values).ok_or(libc::ENOMEM)?;
        // SAFETY: handle and record are valid.
        check(unsafe { ffi::snd_ctl_elem_read(self.handle.as_ptr(), record.0.as_ptr()) })?;
        for (index, value) in (0..element.count).zip(values) {
            *value = record.get(element, index);
        }
        Ok(())
    }

    fn write(&self, element: &Element, values: &[i64]) -> Result<(), i32> {
        let record = Values::of(element, values).ok_or(libc::ENOMEM)?;
        // SAFETY: handle and record are valid.
        check(unsafe { ffi::snd_ctl_elem_write(self.handle.as_ptr(), record.0.as_ptr()) })
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and this is the last use of it.
        unsafe { ffi::snd_ctl_close(self.handle.as_ptr()) };
    }
}

/// The library's description of an element.
struct Info(NonNull<ffi::snd_ctl_elem_info_t>);

impl Info {
    fn of(key: Key) -> Option<Self> {
        let mut record = null_mut();
        // SAFETY: `record` outlives the call, which fills it with a new, empty record or fails.
        let result = unsafe { ffi::snd_ctl_elem_info_malloc(&mut record) };
        let info = Self(NonNull::new(record).filter(|_| result >= 0)?);
        // SAFETY: the record is valid, the name is zero-terminated and copied.
        unsafe {
            ffi::snd_ctl_elem_info_set_interface(record, key.interface.number());
            ffi::snd_ctl_elem_info_set_name(record, key.name.as_ptr());
            ffi::snd_ctl_elem_info_set_index(record, key.index);
        }
        Some(info)
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the record is valid, and this is the last use of it.
        unsafe { ffi::snd_ctl_elem_info_free(self.0.as_ptr()) };
    }
}

/// The library's record of an element's values.
struct Values(NonNull<ffi::snd_ctl_elem_value_t>);

impl Values {
    /// Returns a record with these values, as many as the element has.
    fn of(element: &Element, values: &[i64]) -> Option<Self> {
        let mut record = null_mut();
        // SAFETY: `record` outlives the call, which fills it with a new, empty record or fails.
        let result = unsafe { ffi::snd_ctl_elem_value_malloc(&mut record) };
        let new = Self(NonNull::new(record).filter(|_| result >= 0)?);
        // SAFETY: the record is valid, the name is zero-terminated and copied.
        unsafe {
            ffi::snd_ctl_elem_value_set_interface(record, element.key.interface.number());
            ffi::snd_ctl_elem_value_set_name(record, element.key.name.as_ptr());
            ffi::snd_ctl_elem_value_set_index(record, element.key.index);
        }
        for (index, value) in (0..element.count.min(MOST_VALUES)).zip(values) {
            // SAFETY: the record is valid, and has room for this many values.
            unsafe {
                match element.kind {
                    Kind::Choices(_) => {
                        let choice = u32::try_from(*value).unwrap_or_default();
                        ffi::snd_ctl_elem_value_set_enumerated(record, index, choice);
                    }
                    _ => ffi::snd_ctl_elem_value_set_integer(record, index, *value),
                }
            }
        }
        Some(new)
    }

    /// Returns value `index` of the element, which is below its count.
    fn get(&self, element: &Element, index: u32) -> i64 {
        let index = index.min(MOST_VALUES - 1);
        // SAFETY: the record is valid, and has room for this many values.
        unsafe {
            match element.kind {
                Kind::Choices(_) => {
                    ffi::snd_ctl_elem_value_get_enumerated(self.0.as_ptr(), index).into()
                }
                _ => ffi::snd_ctl_elem_value_get_integer(self.0.as_ptr(), index),
            }
        }
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        // SAFETY: the record is valid, and this is the last use of it.
        unsafe { ffi::snd_ctl_elem_value_free(self.0.as_ptr()) };
    }
}

impl Interface {
    fn number(self) -> ffi::snd_ctl_elem_iface_t {
        match self {
            Self::Mixer => ffi::SND_CTL_ELEM_IFACE_MIXER,
            Self::Hardware => ffi::SND_CTL_ELEM_IFACE_HWDEP,
            Self::Pcm => ffi::SND_CTL_ELEM_IFACE_PCM,
        }
    }
}

fn check(result: i32) -> Result<(), i32> {
    if result < 0 { Err(-result) } else { Ok(()) }
}
