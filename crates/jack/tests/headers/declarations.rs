//! What a C header declares, read from the compiler's own preprocessor, and the C that claims the
//! same of ours.

use std::fmt::Write;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// Runs gcc on `source` with our headers first in its search path if `ours`, else with the
/// system's.
pub(crate) fn gcc(source: &str, arguments: &[&str], ours: bool) -> Output {
    let mut gcc = Command::new("gcc");
    if ours {
        gcc.arg(concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include"));
    }
    let mut gcc = gcc
        .args(arguments)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("gcc can be started: xtask/setup/debian.sh installs it");
    gcc.stdin
        .take()
        .expect("standard input is a pipe")
        .write_all(source.as_bytes())
        .expect("gcc reads its input");
    gcc.wait_with_output().expect("gcc ends")
}

/// The C source that includes `headers` of the directory `jack`.
pub(crate) fn includes(headers: &[&str]) -> String {
    headers.iter().map(|header| format!("#include <jack/{header}>\n")).collect()
}

/// What Debian's headers declare: statements, comments and white space reduced, and macros.
pub(crate) struct Declarations {
    pub(crate) statements: Vec<String>,
    pub(crate) macros: Vec<(String, String)>,
}

impl Declarations {
    /// Preprocesses Debian's `headers` and keeps what stands in their own files.
    ///
    /// Panics when libjack-jackd2-dev is not installed.
    pub(crate) fn of_debian(headers: &[&str]) -> Self {
        let output = gcc(&includes(headers), &["-E", "-dD", "-x", "c"], false);
        assert!(
            output.status.success(),
            "Debian's JACK headers are missing: xtask/setup/debian.sh installs them\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).expect("headers are UTF-8");
        let (mut code, mut macros, mut in_jack) = (String::new(), Vec::new(), false);
        for line in text.lines() {
            if let Some(marker) = line.strip_prefix("# ") {
                // That one defines its functions.
                in_jack = marker.contains("/jack/") && !marker.contains("/jslist.h");
            } else if let Some(definition) = line.strip_prefix("#define ").filter(|_| in_jack) {
                let (name, value) = definition.split_once(' ').unwrap_or((definition, ""));
                let guard = name.to_ascii_lowercase().ends_with("_h__")
                    || name.ends_with("_H")
                    || name.ends_with("__INCLUDED");
                if !guard && !name.contains('(') {
                    macros.push((name.to_owned(), value.trim().to_owned()));
                }
            } else if in_jack && !line.starts_with('#') {
                code.push_str(line);
                code.push(' ');
            }
        }
        Self { statements: statements(&code), macros }
    }

    /// C source that compiles only if our `headers` declare all of this with the same types,
    /// layouts and values.
    pub(crate) fn claims(&self, headers: &[&str]) -> String {
        let mut source = includes(headers);
        for statement in &self.statements {
            match statement.split_once('{') {
                // A function, variable or type name may be declared twice in C if both agree.
                None => writeln!(source, "{statement};"),
                Some((head, body)) if head.contains("enum") => {
                    write!(source, "{}", enum_claims(body))
                }
                Some((head, body)) => write!(source, "{}", struct_claims(head, body)),
            }
            .expect("a String takes any text");
        }
        for (name, value) in &self.macros {
            writeln!(source, "#ifndef {name}\n#error {name} is not defined\n#endif")
                .expect("a String takes any text");
            let claim = match value.chars().next() {
                Some('"') => format!("__builtin_strcmp({name}, {value}) == 0"),
                Some('(' | '0'..='9') => format!("({name}) == ({value})"),
                _ => continue,
            };
            writeln!(source, "_Static_assert({claim}, \"{name}\");")
                .expect("a String takes any text");
        }
        source
    }
}

/// Splits C code at the semicolons outside of braces.
fn statements(code: &str) -> Vec<String> {
    let (mut found, mut current, mut depth) = (Vec::new(), String::new(), 0);
    for character in code.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                found.push(current.split_whitespace().collect::<Vec<_>>().join(" "));
                current.clear();
                continue;
            }
            _ => {}
        }
        current.push(character);
    }
    found
}

/// Claims that each enumerator of `body` has the same value in our headers.
fn enum_claims(body: &str) -> String {
    let (enumerators, _) = body.split_once('}').expect("an enum ends");
    let (mut source, mut implicit) = (String::new(), String::from("0"));
    for enumerator in enumerators.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let (name, value) = enumerator.split_once('=').unwrap_or((enumerator, &implicit));
        let (name, value) = (name.trim(), value.trim().to_owned());
        writeln!(source, "_Static_assert({name} == ({value}), \"{name}\");")
            .expect("a String takes any text");
        implicit = format!("({value}) + 1");
    }
    source
}

/// Declares Debian's struct under another name and claims that each member has the same type and
/// offset in ours.
fn struct_claims(head: &str, body: &str) -> String {
    let (members, tail) = body.split_once('}').expect("a struct ends");
    let packed = if tail.contains("__packed__") { "__attribute__((__packed__))" } else { "" };
    let type_name = tail.split_whitespace().last().filter(|word| !word.contains("__attribute__"));
    let ours = match type_name {
        Some(name) if head.starts_with("typedef") => name.to_owned(),
        _ => head.trim().to_owned(),
    };
    let (keyword, name) = match ours.strip_prefix("union ") {
        Some(name) => ("union", name),
        None => ("struct", ours.strip_prefix("struct ").unwrap_or(&ours)),
    };
    let theirs = format!("{keyword} their_{name}");
    let mut source = format!("{theirs} {{ {members} }} {packed};\n");
    let mut claim = |what: String| {
        writeln!(source, "_Static_assert({what}, \"{ours}\");").expect("a String takes any text");
    };
    claim(format!("sizeof({ours}) == sizeof({theirs})"));
    claim(format!("_Alignof({ours}) == _Alignof({theirs})"));
    for member in members.split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let name = member
            .split('[')
            .next()
            .and_then(|text| text.rsplit([' ', '*']).next())
            .expect("a member has a name");
        claim(format!("offsetof({ours}, {name}) == offsetof({theirs}, {name})"));
        claim(format!(
            "__builtin_types_compatible_p(__typeof__((({ours} *)0)->{name}), __typeof__((({theirs} *)0)->{name}))"
        ));
    }
    source
}
