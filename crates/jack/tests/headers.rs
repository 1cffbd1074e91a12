//! Our C headers: complete, and compatible with those that Debian's programs were built with.
//!
//! The compiler checks this: Debian's declarations are preprocessed and repeated after ours.

#[path = "headers/declarations.rs"]
mod declarations;

use std::fmt::Write;

use declarations::{Declarations, gcc, includes};

/// Debian's headers that contain only declarations.
const DECLARING: [&str; 16] = [
    "systemdeps.h",
    "weakmacros.h",
    "types.h",
    "transport.h",
    "thread.h",
    "jack.h",
    "intclient.h",
    "statistics.h",
    "midiport.h",
    "metadata.h",
    "session.h",
    "uuid.h",
    "ringbuffer.h",
    "weakjack.h",
    "control.h",
    "net.h",
];

/// The exported symbols: name, and whether it is data.
fn symbols() -> Vec<(&'static str, bool)> {
    include_str!("../abi/symbols.txt")
        .lines()
        .map(|line| line.strip_suffix(" DATA").map_or((line, false), |name| (name, true)))
        .collect()
}

/// Returns gcc's messages about `source` with our headers; empty if it compiles.
fn objections(source: &str) -> String {
    let output = gcc(
        source,
        &["-fsyntax-only", "-std=gnu11", "-Wno-deprecated-declarations", "-x", "c"],
        true,
    );
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.success(), !text.contains("error"), "{text}");
    if output.status.success() { String::new() } else { text }
}

#[test]
fn each_header_compiles_alone_as_c99_and_as_cpp() {
    for header in DECLARING.iter().copied().chain(["jslist.h"]) {
        // ISO C requires a declaration in every translation unit; some headers have only macros.
        let source = includes(&[header]) + "typedef int declaration;\n";
        for language in [
            ["-x", "c", "-std=c99"],
            ["-x", "c", "-std=c11"],
            ["-x", "c++", "-std=c++98"],
            ["-x", "c++", "-std=c++20"],
        ] {
            let strict =
                ["-fsyntax-only", "-Wall", "-Wextra", "-Wno-long-long", "-pedantic", "-Werror"];
            let output = gcc(&source, &[&strict[..], &language[..]].concat(), true);
            assert!(
                output.status.success(),
                "{header} {language:?}\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn every_declaration_of_debians_headers_agrees_with_ours() {
    let debian = Declarations::of_debian(&DECLARING);
    assert!(
        debian.statements.len() > symbols().len(),
        "only {} statements were read",
        debian.statements.len()
    );
    assert_eq!(objections(&debian.claims(&DECLARING)), "");
}

#[test]
fn a_declaration_that_differs_from_ours_is_noticed() {
    let debian = Declarations::of_debian(&DECLARING);
    for (what, theirs, different) in [
        ("a function's result", "int jack_port_flags", "long jack_port_flags"),
        (
            "a function's parameter",
            "jack_uuid_t subject, const char* key, char**",
            "int subject, const char* key, char**",
        ),
        ("a variadic function", "jack_status_t *status, ...)", "jack_status_t *status)"),
        ("a callback", "(*JackProcessCallback)(jack_nframes_t", "(*JackProcessCallback)(uint64_t"),
        (
            "a variable",
            "extern const char* JACK_METADATA_ORDER",
            "extern const int* JACK_METADATA_ORDER",
        ),
        ("an enumerator", "JackTransportLooping = 2", "JackTransportLooping = 9"),
        (
            "an implicit enumerator",
            "PropertyCreated, PropertyChanged",
            "PropertyChanged, PropertyCreated",
        ),
        ("a member's type", "int32_t bar;", "uint32_t bar;"),
        (
            "a member's place",
            "int32_t bar; int32_t beat;",
            "int32_t beat; int32_t bar; int32_t more;",
        ),
        (
            "a struct's packing",
            "jack_unique_t unique_2; } __attribute__((__packed__))",
            "jack_unique_t unique_2; }",
        ),
    ] {
        let statements: Vec<String> = debian
            .statements
            .iter()
            .map(|statement| statement.replace(theirs, different))
            .collect();
        assert_ne!(statements, debian.statements, "{what}: Debian's headers do not say {theirs}");
        let changed = Declarations { statements, macros: debian.macros.clone() };
        assert_ne!(objections(&changed.claims(&DECLARING)), "", "{what} may differ");
    }
    for (what, name, different) in [
        ("a number", "JACK_UUID_SIZE", "37"),
        ("a text", "JACK_DEFAULT_MIDI_TYPE", "\"8 bit\""),
        ("a name", "JACK_NEW", ""),
    ] {
        let mut macros = debian.macros.clone();
        macros.retain(|(known, _)| known != name);
        macros.push((name.to_owned(), different.to_owned()));
        let changed = Declarations { statements: debian.statements.clone(), macros };
        assert_ne!(objections(&changed.claims(&DECLARING)), "", "{what} may differ");
    }
}

#[test]
fn every_exported_symbol_is_declared() {
    let symbols = symbols();
    assert_eq!(symbols.len(), 178);
    assert!(symbols.is_sorted(), "abi/symbols.txt is sorted by name");
    let mut source = includes(&DECLARING);
    for (name, data) in symbols {
        // Only the name of a function may be dereferenced without a change of its type.
        let is_function =
            format!("__builtin_types_compatible_p(__typeof__({name}), __typeof__(*{name}))");
        writeln!(source, "_Static_assert({is_function} == {}, \"{name}\");", u8::from(!data))
            .expect("a String takes any text");
    }
    assert_eq!(objections(&source), "");
}

#[test]
fn everything_can_be_made_weak() {
    let mut source = String::from("#include <jack/weakjack.h>\n");
    source += &includes(&DECLARING);
    source += "int main(void) { return jack_activate ? jack_activate(0) : 0; }\n";
    let arguments = ["-x", "c", "-o", "/dev/null"];
    let output = gcc(&source, &arguments, true);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let strong =
        source.replace("#include <jack/weakjack.h>\n", "").replace(&includes(&["weakjack.h"]), "");
    assert!(!gcc(&strong, &arguments, true).status.success(), "a strong symbol needs a library");
}
