//! A parameter: what it may be, and what it is.

use std::ffi::{CString, c_char};
use std::sync::{Mutex, PoisonError};

use crate::value::{Kind, RawValue, Value};

/// What a value may be.
#[derive(Debug, Clone)]
pub enum Constraint {
    /// From the first to the second.
    Range(Value, Value),
    /// One of these, each with what it means.
    OneOf(Vec<(Value, CString)>),
}

/// A parameter of a server, a driver or a plug-in.
#[derive(Debug)]
pub struct Parameter {
    /// Its long option's name.
    pub name: CString,
    /// In some words.
    pub short: CString,
    /// In a sentence.
    pub long: CString,
    /// Its option's letter.
    pub id: c_char,
    /// What it is unless it is set.
    pub default: Value,
    /// What it may be; `None`: all of its type.
    pub constraint: Option<Constraint>,
    /// What it was set to.
    set: Mutex<Option<Value>>,
}

impl Parameter {
    /// A parameter that is not set. Its letter is an ASCII character.
    pub fn new(
        id: char,
        name: &str,
        default: Value,
        description: &str,
        constraint: Option<Constraint>,
    ) -> Self {
        let text = |text: &str| CString::new(text).unwrap_or_default();
        Self {
            name: text(name),
            short: text(description),
            long: text(description),
            id: id as c_char,
            default,
            constraint,
            set: Mutex::new(None),
        }
    }

    /// The type of its values.
    pub fn kind(&self) -> Kind {
        self.default.kind()
    }

    /// Its option's letter.
    pub fn letter(&self) -> char {
        char::from(self.id.cast_unsigned())
    }

    /// What it was set to.
    pub fn set_value(&self) -> Option<Value> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it is.
    pub fn value(&self) -> Value {
        self.set_value().unwrap_or_else(|| self.default.clone())
    }

    /// Sets it, or not any more; false if it may not be that.
    pub fn change(&self, value: Option<Value>) -> bool {
        if value.as_ref().is_some_and(|value| value.kind() != self.kind() || !self.permits(value)) {
            return false;
        }
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = value;
        true
    }

    fn permits(&self, value: &Value) -> bool {
        match &self.constraint {
            None => true,
            Some(Constraint::OneOf(values)) => values.iter().any(|(known, _)| known == value),
            Some(Constraint::Range(least, most)) => match (least, value, most) {
                (Value::Int(least), Value::Int(value), Value::Int(most)) => (least..=most).contains(&value),
                (Value::UInt(least), Value::UInt(value), Value::UInt(most)) => {
                    (least..=most).contains(&value)
                }
                _ => false,
            },
        }
    }

    /// One of the values that it may be, with its description.
    pub fn choice(&self, index: usize) -> Option<&(Value, CString)> {
        match &self.constraint {
            Some(Constraint::OneOf(values)) => values.get(index),
            _ => None,
        }
    }

    /// The smallest and the largest.
    pub fn range(&self) -> Option<(RawValue, RawValue)> {
        match &self.constraint {
            Some(Constraint::Range(least, most)) => Some((least.into(), most.into())),
            _ => None,
        }
    }
}
