//! A parameter that control.h hands out: its entry of the table, and the value that was set.

use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

use jack_parameters::{Constraint, Kind, Value};

use crate::value::{RawValue, STRING_BYTES};

/// A parameter of a server, a driver or a plug-in.
#[derive(Debug)]
pub struct Parameter {
    /// Its entry of the table.
    pub definition: &'static jack_parameters::Parameter,
    /// Its name, for C.
    pub name: CString,
    /// Its description, for C.
    pub text: CString,
    /// The meanings of the values of an enumeration, for C.
    meanings: Vec<CString>,
    /// The value that was set.
    set: Mutex<Option<Value>>,
}

impl Parameter {
    /// Returns a parameter that is not set.
    pub fn new(definition: &'static jack_parameters::Parameter) -> Self {
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let meanings = match definition.constraint {
            Constraint::OneOf(values) => values.iter().map(|(_, meaning)| text(meaning)).collect(),
            Constraint::Any | Constraint::Range(..) => Vec::new(),
        };
        Self {
            definition,
            name: text(definition.name),
            text: text(definition.text),
            meanings,
            set: Mutex::new(None),
        }
    }

    /// Returns the type of its values.
    pub fn kind(&self) -> Kind {
        self.definition.default.kind()
    }

    /// Returns its option's letter.
    pub fn letter(&self) -> char {
        self.definition.letter.unwrap_or_default()
    }

    /// Returns its option's letter, for C. All letters of the table are ASCII.
    pub fn id(&self) -> c_char {
        c_char::from_ne_bytes([u8::try_from(self.letter()).unwrap_or_default()])
    }

    /// Returns the value that was set, if any.
    pub fn set_value(&self) -> Option<Value> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns its value.
    pub fn value(&self) -> Value {
        self.set_value().unwrap_or_else(|| self.definition.default.clone())
    }

    /// Sets it, or resets it to its default. Returns false, and changes nothing, if the value is
    /// not allowed.
    pub fn change(&self, value: Option<Value>) -> bool {
        if value.as_ref().is_some_and(|value| !self.permits(value)) {
            return false;
        }
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = value;
        true
    }

    fn permits(&self, value: &Value) -> bool {
        let fits = !matches!(value, Value::Text(text) if text.len() >= STRING_BYTES);
        fits && value.kind() == self.kind() && self.definition.constraint.check(value).is_ok()
    }

    /// Returns the number of values of an enumeration.
    pub fn choices(&self) -> usize {
        self.meanings.len()
    }

    /// Returns a value of an enumeration with its meaning.
    pub fn choice(&self, index: usize) -> Option<(&'static Value, &CString)> {
        match self.definition.constraint {
            Constraint::OneOf(values) => Some((&values.get(index)?.0, self.meanings.get(index)?)),
            Constraint::Any | Constraint::Range(..) => None,
        }
    }

    /// Returns the smallest and the largest value of a range.
    pub fn range(&self) -> Option<(RawValue, RawValue)> {
        let Constraint::Range(min, max) = self.definition.constraint else { return None };
        let end = |number: i64| match self.kind() {
            Kind::Int => i32::try_from(number).ok().map(Value::Int),
            _ => u32::try_from(number).ok().map(Value::UInt),
        };
        Some(((&end(min)?).into(), (&end(max)?).into()))
    }
}
