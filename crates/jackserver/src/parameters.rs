//! control.h's functions about parameters. Each answers 0, false or null for what is no parameter.

use std::ffi::c_char;
use std::ptr::null;

use crate::objects::{Handle, parameter};
use crate::parameter::{Constraint, Parameter};
use crate::value::RawValue;

fn of<R>(handle: Handle, otherwise: R, ask: impl FnOnce(&Parameter) -> R) -> R {
    parameter(handle).map_or(otherwise, |parameter| ask(&parameter))
}

/// Its long option's name, as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_name(parameter: Handle) -> *const c_char {
    of(parameter, null(), |parameter| parameter.name.as_ptr())
}

/// What it is, in some words, as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_short_description(parameter: Handle) -> *const c_char {
    of(parameter, null(), |parameter| parameter.short.as_ptr())
}

/// What it is, as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_long_description(parameter: Handle) -> *const c_char {
    of(parameter, null(), |parameter| parameter.long.as_ptr())
}

/// The type of its values: `jackctl_param_type_t`, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_type(parameter: Handle) -> u32 {
    of(parameter, 0, |parameter| parameter.kind() as u32)
}

/// Its option's letter.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_id(parameter: Handle) -> c_char {
    of(parameter, 0, |parameter| parameter.id)
}

/// Whether it was set, and not reset since.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_is_set(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.set_value().is_some())
}

/// Has it be its default again.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_reset(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.change(None))
}

/// What it is.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_value(parameter: Handle) -> RawValue {
    of(parameter, RawValue::ZERO, |parameter| (&parameter.value()).into())
}

/// Sets it; false, and it stays as it is, if it may not be that.
///
/// # Safety
/// `value` is null, or the member of the parameter's type was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jackctl_parameter_set_value(parameter: Handle, value: *const RawValue) -> bool {
    if value.is_null() {
        return false;
    }
    of(parameter, false, |parameter| {
        // SAFETY: the caller's promise.
        let value = unsafe { RawValue::read(value, parameter.kind()) };
        value.is_some_and(|value| parameter.change(Some(value)))
    })
}

/// What it is unless it is set.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_default_value(parameter: Handle) -> RawValue {
    of(parameter, RawValue::ZERO, |parameter| (&parameter.default).into())
}

/// Whether it has a smallest and a largest value.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_has_range_constraint(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.range().is_some())
}

/// Whether it is one of some values.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_has_enum_constraint(parameter: Handle) -> bool {
    of(parameter, false, |parameter| matches!(parameter.constraint, Some(Constraint::OneOf(_))))
}

/// How many values it may have; 0 if that is not limited.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_enum_constraints_count(parameter: Handle) -> u32 {
    of(parameter, 0, |parameter| match &parameter.constraint {
        Some(Constraint::OneOf(values)) => u32::try_from(values.len()).unwrap_or(u32::MAX),
        _ => 0,
    })
}

/// One of the values that it may have.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_enum_constraint_value(parameter: Handle, index: u32) -> RawValue {
    of(parameter, RawValue::ZERO, |parameter| {
        parameter.choice(index as usize).map_or(RawValue::ZERO, |(value, _)| value.into())
    })
}

/// What one of the values that it may have means, as long as the server; null if there are not so many.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_enum_constraint_description(
    parameter: Handle,
    index: u32,
) -> *const c_char {
    of(parameter, null(), |parameter| {
        parameter.choice(index as usize).map_or(null(), |(_, description)| description.as_ptr())
    })
}

/// The smallest and the largest value. Nothing is written if there are none.
///
/// # Safety
/// `min` and `max` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jackctl_parameter_get_range_constraint(
    parameter: Handle,
    min: *mut RawValue,
    max: *mut RawValue,
) {
    if let Some((least, most)) = of(parameter, None, Parameter::range) {
        // SAFETY: the caller's promise.
        unsafe {
            jack::convert::store(min, least);
            jack::convert::store(max, most);
        }
    }
}

/// Whether other values than those are refused: they always are.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_constraint_is_strict(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.constraint.is_some())
}

/// Whether the values that it may have stand for others: they never do.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_constraint_is_fake_value(_parameter: Handle) -> bool {
    false
}
