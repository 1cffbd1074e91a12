//! `org.jackaudio.Configure`: what the next server is started with.

use std::sync::Arc;

use zbus::{OwnedVariant, Variant, interface};

// The macro takes what is called so for what can fail.
use super::failure::Answer as Result;
use super::parameters::Value;
use super::service::Service;
use super::table::Parameter;

/// The interface.
pub(super) struct Configure(pub(super) Arc<Service>);

/// Type, name, short and long description.
type Listed = (u8, String, String, String);

/// Values, each with what it means.
type Values = Vec<(OwnedVariant, String)>;

fn listed(parameter: &Parameter) -> Listed {
    let letter = Value::from(parameter.default).letter();
    (letter, parameter.name.into(), parameter.summary.into(), parameter.description.into())
}

/// Whatever it is, it is no descriptor, whose copy could fail.
fn owned(value: &Value) -> zbus::fdo::Result<OwnedVariant> {
    OwnedVariant::try_from(value.to_variant()).map_err(|error| zbus::fdo::Error::Failed(error.to_string()))
}

#[interface(name = "org.jackaudio.Configure")]
impl Configure {
    #[zbus(out_args("leaf", "children"))]
    fn read_container(&self, parent: Vec<String>) -> Result<(bool, Vec<String>)> {
        self.0.state().parameters.children(&parent)
    }

    fn get_parameters_info(&self, parent: Vec<String>) -> Result<Vec<Listed>> {
        Ok(self.0.state().parameters.listed(&parent)?.iter().map(listed).collect())
    }

    fn get_parameter_info(&self, parameter: Vec<String>) -> Result<(Listed,)> {
        Ok((listed(self.0.state().parameters.parameter(&parameter)?),))
    }

    #[zbus(out_args("is_range", "is_strict", "is_fake_value", "values"))]
    fn get_parameter_constraint(&self, parameter: Vec<String>) -> Result<(bool, bool, bool, Values)> {
        let constraint = self.0.state().parameters.parameter(&parameter)?.constraint;
        let (is_range, is_strict, values) = constraint.values();
        let mut listed = Vec::new();
        for (value, meaning) in values {
            listed.push((owned(&value).map_err(zbus::Error::from)?, meaning.to_owned()));
        }
        // Where nothing has a meaning beside its name, jackdbus calls the values fake.
        let is_fake = listed
            .iter()
            .all(|(value, meaning)| matches!(&**value, Variant::Str(name) if *name == **meaning));
        Ok((is_range, is_strict, is_fake && !listed.is_empty(), listed))
    }

    #[zbus(out_args("is_set", "default", "value"))]
    fn get_parameter_value(&self, parameter: Vec<String>) -> Result<(bool, OwnedVariant, OwnedVariant)> {
        let (is_set, default, value) = self.0.state().parameters.value(&parameter)?;
        let owned = |value: &Value| owned(value).map_err(zbus::Error::from);
        Ok((is_set, owned(&default)?, owned(&value)?))
    }

    fn set_parameter_value(&self, parameter: Vec<String>, value: Variant<'_>) -> Result<()> {
        self.0.state().configure(|parameters| parameters.set(&parameter, &value))
    }

    fn reset_parameter_value(&self, parameter: Vec<String>) -> Result<()> {
        self.0.state().configure(|parameters| parameters.reset(&parameter))
    }
}
