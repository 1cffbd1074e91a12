//! control.h's functions for parameters. Each returns 0, false or null for an invalid handle.

use std::ffi::c_char;
use std::ptr::null;

use jack_parameters::Constraint;

use crate::objects::{Handle, parameter};
use crate::parameter::Parameter;
use crate::value::{RawValue, kind_number};

fn of<R>(handle: Handle, otherwise: R, ask: impl FnOnce(&Parameter) -> R) -> R {
    parameter(handle).map_or(otherwise, |parameter| ask(&parameter))
}

/// Returns the name of its long option. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_name(parameter: Handle) -> *const c_char {
    of(parameter, null(), |parameter| parameter.name.as_ptr())
}

/// Returns its short description. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_short_description(parameter: Handle) -> *const c_char {
    of(parameter, null(), |parameter| parameter.text.as_ptr())
}

/// Returns its long description. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_long_description(parameter: Handle) -> *const c_char {
    of(parameter, null(), |parameter| parameter.text.as_ptr())
}

/// Returns the type of its values: `jackctl_param_type_t`, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_type(parameter: Handle) -> u32 {
    of(parameter, 0, |parameter| kind_number(parameter.kind()))
}

/// Returns its option's letter.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_id(parameter: Handle) -> c_char {
    of(parameter, 0, Parameter::id)
}

/// Returns whether it was set and not reset since.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_is_set(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.set_value().is_some())
}

/// Resets it to its default.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_reset(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.change(None))
}

/// Returns its value.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_value(parameter: Handle) -> RawValue {
    of(parameter, RawValue::ZERO, |parameter| (&parameter.value()).into())
}

/// Sets its value. Returns false, and keeps the previous value, if the new one is not allowed.
///
/// # Safety
/// `value` is null, or the member of the parameter's type was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jackctl_parameter_set_value(
    parameter: Handle,
    value: *const RawValue,
) -> bool {
    if value.is_null() {
        return false;
    }
    of(parameter, false, |parameter| {
        // SAFETY: the caller's promise.
        let value = unsafe { RawValue::read(value, parameter.kind()) };
        value.is_some_and(|value| parameter.change(Some(value)))
    })
}

/// Returns its default.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_default_value(parameter: Handle) -> RawValue {
    of(parameter, RawValue::ZERO, |parameter| (&parameter.definition.default).into())
}

/// Returns whether it has a smallest and a largest value.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_has_range_constraint(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.range().is_some())
}

/// Returns whether its values are an enumeration.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_has_enum_constraint(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.choices() > 0)
}

/// Returns the number of enumerated values; 0 if there is no enumeration.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_enum_constraints_count(parameter: Handle) -> u32 {
    of(parameter, 0, |parameter| u32::try_from(parameter.choices()).unwrap_or(u32::MAX))
}

/// Returns one of the enumerated values.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_enum_constraint_value(
    parameter: Handle,
    index: u32,
) -> RawValue {
    of(parameter, RawValue::ZERO, |parameter| {
        parameter.choice(index as usize).map_or(RawValue::ZERO, |(value, _)| value.into())
    })
}

/// Returns the description of one of the enumerated values, valid as long as the server; null if
/// the index is out of range.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_get_enum_constraint_description(
    parameter: Handle,
    index: u32,
) -> *const c_char {
    of(parameter, null(), |parameter| {
        parameter.choice(index as usize).map_or(null(), |(_, description)| description.as_ptr())
    })
}

/// Returns the smallest and the largest value. Writes nothing if there are none.
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

/// Returns whether values outside the constraint are refused: always true.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_constraint_is_strict(parameter: Handle) -> bool {
    of(parameter, false, |parameter| parameter.definition.constraint != Constraint::Any)
}

/// Returns whether the allowed values stand for others: always false.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_parameter_constraint_is_fake_value(_parameter: Handle) -> bool {
    false
}
