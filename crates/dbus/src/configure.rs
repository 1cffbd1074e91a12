//! `org.jackaudio.Configure`: the parameters that the next server is started with.

use std::sync::Arc;

use jack_parameters::{Parameter, Value};
use zbus::{OwnedVariant, Variant, interface};

// The macro recognizes a fallible method by this name of its return type.
use crate::failure::Answer as Result;
use crate::parameters::{constraint_values, letter, to_variant};
use crate::service::Service;

/// The interface.
pub(crate) struct Configure(pub(crate) Arc<Service>);

/// Type, name, short and long description.
type Listed = (u8, String, String, String);

/// Values, each with its meaning.
type Values = Vec<(OwnedVariant, String)>;

fn listed(parameter: &Parameter) -> Listed {
    let letter = letter(parameter.default.kind());
    (letter, parameter.name.into(), parameter.text.into(), parameter.text.into())
}

/// Fails only for file descriptors, which no parameter is.
fn owned(value: &Value) -> zbus::fdo::Result<OwnedVariant> {
    OwnedVariant::try_from(to_variant(value))
        .map_err(|error| zbus::fdo::Error::Failed(error.to_string()))
}

#[interface(name = "org.jackaudio.Configure")]
impl Configure {
    #[zbus(out_args("leaf", "children"))]
    fn read_container(&self, parent: Vec<String>) -> Result<(bool, Vec<String>)> {
        self.0.state().parameters.children(&parent)
    }

    fn get_parameters_info(&self, parent: Vec<String>) -> Result<Vec<Listed>> {
        Ok(self.0.state().parameters.listed(&parent)?.into_iter().map(listed).collect())
    }

    fn get_parameter_info(&self, parameter: Vec<String>) -> Result<(Listed,)> {
        Ok((listed(self.0.state().parameters.parameter(&parameter)?),))
    }

    #[zbus(out_args("is_range", "is_strict", "is_fake_value", "values"))]
    fn get_parameter_constraint(
        &self,
        parameter: Vec<String>,
    ) -> Result<(bool, bool, bool, Values)> {
        let constraint = self.0.state().parameters.parameter(&parameter)?.constraint;
        let (is_range, is_strict, values) = constraint_values(constraint);
        let mut listed = Vec::new();
        for (value, meaning) in values {
            listed.push((owned(&value).map_err(zbus::Error::from)?, meaning.to_owned()));
        }
        // Values without a meaning besides their name are what jackdbus calls fake.
        let is_fake = listed
            .iter()
            .all(|(value, meaning)| matches!(&**value, Variant::Str(name) if *name == **meaning));
        Ok((is_range, is_strict, is_fake && !listed.is_empty(), listed))
    }

    #[zbus(out_args("is_set", "default", "value"))]
    fn get_parameter_value(
        &self,
        parameter: Vec<String>,
    ) -> Result<(bool, OwnedVariant, OwnedVariant)> {
        let (is_set, default, value) = self.0.state().parameters.value(&parameter)?;
        let owned = |value: &Value| owned(value).map_err(zbus::Error::from);
        Ok((is_set, owned(&default)?, owned(&value)?))
    }

    fn set_parameter_value(&self, parameter: Vec<String>, value: Variant<'_>) -> Result<()> {
        self.0.configure(|parameters| parameters.set(&parameter, &value))
    }

    fn reset_parameter_value(&self, parameter: Vec<String>) -> Result<()> {
        self.0.configure(|parameters| parameters.reset(&parameter))
    }
}
