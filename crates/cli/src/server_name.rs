//! The server that a command line is about.

use crate::UsageError;

/// Returns the given name, or else the environment's, or else "default".
///
/// # Errors
/// No server can have the name.
pub fn server_name(
    given: Option<String>,
    environment: Option<String>,
) -> Result<String, UsageError> {
    let name = given
        .or_else(|| environment.filter(|name| !name.is_empty()))
        .unwrap_or_else(|| String::from("default"));
    match proto::names::check_server(&name) {
        Ok(()) => Ok(name),
        Err(error) => Err(UsageError(format!("'{name}' is not a valid server name: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_on_the_command_line_comes_before_the_environments() {
        let name = |given: Option<&str>, environment: Option<&str>| {
            server_name(given.map(String::from), environment.map(String::from))
        };
        assert_eq!(name(Some("a"), Some("b")), Ok("a".into()));
        assert_eq!(name(None, Some("b")), Ok("b".into()));
        assert_eq!(name(None, Some("")), Ok("default".into()));
        assert_eq!(name(None, None), Ok("default".into()));
        assert!(name(Some("../b"), None).is_err() && name(Some(""), None).is_err());
    }
}
