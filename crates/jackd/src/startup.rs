//! Plug-ins that a server loads at its start.

use std::path::PathBuf;
use std::str::FromStr;

/// A plug-in as jackd's `-I` names it: `[NAME:]OBJECT[/PARAMETERS]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalClient {
    /// The client's name.
    pub name: String,
    /// The plug-in's file, without directory and suffix.
    pub object: String,
    /// What it is given as its parameters.
    pub parameters: String,
}

impl FromStr for InternalClient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (names, parameters) = text.split_once('/').unwrap_or((text, ""));
        let (name, object) = names.split_once(':').unwrap_or((names, names));
        if name.is_empty() || object.is_empty() {
            return Err(format!("'{text}' is not a plug-in: write [NAME:]OBJECT[/PARAMETERS]"));
        }
        Ok(Self { name: name.into(), object: object.into(), parameters: parameters.into() })
    }
}

/// What is loaded as soon as the server runs: the plug-ins, then the contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartupLoad {
    /// The plug-ins, in this order.
    pub plug_ins: Vec<InternalClient>,
    /// A file as `jackctl_server_load_session_file` reads it.
    pub session: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plug_in_is_an_object_with_an_optional_name_and_parameters() {
        for (text, name, object, parameters) in [
            ("profiler", "profiler", "profiler", ""),
            ("meter:profiler", "meter", "profiler", ""),
            ("profiler/-c -p", "profiler", "profiler", "-c -p"),
            (
                "amp1:jalv/http://lv2plug.in/plugins/eg-amp",
                "amp1",
                "jalv",
                "http://lv2plug.in/plugins/eg-amp",
            ),
        ] {
            let expected = InternalClient {
                name: name.into(),
                object: object.into(),
                parameters: parameters.into(),
            };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["", ":", "a:", ":b", "/x", "a:/x"] {
            assert!(text.parse::<InternalClient>().is_err(), "{text}");
        }
    }
}
