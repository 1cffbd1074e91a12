//! Invalid handles: null, foreign, of closed clients, of freed memory, of removed ports. Every
//! function of the headers that takes a handle is called with each of them, by a C program that is
//! generated from the headers.

use std::collections::BTreeSet;
use std::path::Path;

use harness::{Server, compile_c};

/// A function of the headers.
struct Function {
    answer: String,
    name: String,
    /// Types of the arguments, with the name of each.
    arguments: Vec<String>,
}

/// Functions that return 0 for an invalid handle: the number that was queried, or "no".
const ZERO_SAYS_NO: [&str; 25] = [
    "jack_client_thread_id",
    "jack_cpu_load",
    "jack_frame_time",
    "jack_frames_to_time",
    "jack_frames_since_cycle_start",
    "jack_get_buffer_size",
    "jack_get_max_delayed_usecs",
    "jack_get_sample_rate",
    "jack_get_xrun_delayed_usecs",
    "jack_internal_client_handle",
    "jack_internal_client_load",
    "jack_is_realtime",
    "jack_last_frame_time",
    "jack_port_get_latency",
    "jack_port_get_total_latency",
    "jack_port_is_mine",
    "jack_port_monitoring_input",
    "jack_port_type_get_buffer_size",
    "jack_port_type_id",
    "jack_port_uuid",
    "jack_cycle_wait",
    "jack_thread_wait",
    "jack_transport_query",
    "jack_get_current_transport_frame",
    "jack_time_to_frames",
];

/// The declarations of the headers, without comments.
fn functions() -> Vec<Function> {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/jack/include/jack");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(headers).expect("headers") {
        let path = entry.expect("an entry").path();
        let mut text = std::fs::read_to_string(&path).expect("a header");
        while let Some((begin, end)) = text.find("/*").zip(text.find("*/")) {
            text.replace_range(begin..end + 2, " ");
        }
        let text: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        found.extend(text.join(" ").split(';').filter_map(function));
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn function(declaration: &str) -> Option<Function> {
    // What precedes the name belongs to another declaration.
    let declaration = declaration.rsplit(['{', '}']).next()?;
    let (before, arguments) = declaration.split_once('(')?;
    let (answer, name) = before.trim().rsplit_once([' ', '*'])?;
    if !name.starts_with("jack_") || answer.contains("typedef") || name.len() + answer.len() == 0 {
        return None;
    }
    let pointer = if before.trim().ends_with(&format!("*{name}")) { " *" } else { "" };
    let (mut depth, mut end) = (1, 0);
    for (at, character) in arguments.char_indices() {
        depth += i32::from(character == '(') - i32::from(character == ')');
        if depth == 0 {
            end = at;
            break;
        }
    }
    let (mut list, mut depth) = (vec![String::new()], 0);
    for character in arguments[..end].chars() {
        depth += i32::from(character == '(') - i32::from(character == ')');
        match character {
            ',' if depth == 0 => list.push(String::new()),
            character => list.last_mut()?.push(character),
        }
    }
    let answer = answer.trim().replace("extern ", "");
    let arguments = list.iter().map(|argument| argument.trim().to_owned()).collect();
    Some(Function { answer: format!("{answer}{pointer}"), name: name.to_owned(), arguments })
}

/// A value for an argument of that type; handles are invalid ones.
fn value(argument: &str) -> &'static str {
    let is = |part: &str| argument.contains(part);
    match () {
        () if is("jack_client_t *") => "clients[bad]",
        () if is("jack_port_t *") => "ports[bad]",
        () if is("jack_session_event_t *") => "(void *)zeroes",
        () if is("(*") || is("Callback") || is("jack_thread_creator_t") => "NULL",
        () if is("const char *") && !is("**") => "\"nonsense\"",
        () if is("native_thread_t") && !is("*") => "0",
        () if is("*") || is("[") => "(void *)zeroes",
        () => "1",
    }
}

/// The call of each function with handles, and the check of its answer.
fn calls(functions: &[Function]) -> String {
    let mut calls = String::new();
    for Function { answer, name, arguments } in functions {
        let list: Vec<&str> = arguments
            .iter()
            .filter(|argument| *argument != "...")
            .map(|argument| value(argument))
            .collect();
        if !list.iter().any(|argument| argument.ends_with("[bad]")) {
            continue;
        }
        let call = format!("{name}({})", list.join(", "));
        calls += &match answer.as_str() {
            "void" => format!("        CALL({name}, ({call}, 0L), 1);\n"),
            answer if answer.contains('*') => {
                format!("        CALL({name}, (long)(intptr_t){call}, answer == 0);\n")
            }
            // Bits of jack_status_t, where JackFailure is 1.
            _ if ZERO_SAYS_NO.contains(&name.as_str()) => {
                format!("        CALL({name}, (long){call}, answer == 0);\n")
            }
            _ => format!("        CALL({name}, (long){call}, answer != 0);\n"),
        };
    }
    calls
}

fn source(functions: &[Function]) -> String {
    format!(
        r#"#include <jack/intclient.h>
#include <jack/jack.h>
#include <jack/metadata.h>
#include <jack/midiport.h>
#include <jack/session.h>
#include <jack/statistics.h>
#include <jack/thread.h>
#include <jack/transport.h>
#include <jack/uuid.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Wint-conversion"
#pragma GCC diagnostic ignored "-Wunused-value"

#define BAD 6
static _Alignas(64) char zeroes[65536];
static int failures;

#define CALL(name, call, is_error)                                                                                     \
    do {{                                                                                                               \
        last = #name;                                                                                                  \
        memset(zeroes, 0, sizeof zeroes);                                                                              \
        long answer = (call);                                                                                          \
        (void)answer;                                                                                                  \
        if (!(is_error)) {{                                                                                             \
            failures++;                                                                                                \
            printf("%s answers %ld to %s\n", #name, answer, kinds[bad]);                                               \
        }}                                                                                                              \
        printf("called %s\n", #name);                                                                                  \
    }} while (0)

static const char *const kinds[BAD] = {{"null", "1", "the last address", "a stack", "memory", "what was closed"}};
static const char *last = "nothing";

static void quiet(const char *message) {{ (void)message; }}

int main(void) {{
    int local = 0;
    jack_set_error_function(quiet);
    jack_set_info_function(quiet);
    jack_client_t *open = jack_client_open("open", JackNoStartServer, NULL);
    jack_client_t *closed = jack_client_open("closed", JackNoStartServer, NULL);
    if (!open || !closed)
        return 2;
    jack_port_t *gone = jack_port_register(open, "gone", JACK_DEFAULT_AUDIO_TYPE, JackPortIsInput, 0);
    jack_port_unregister(open, gone);
    jack_client_close(closed);
    void *freed = malloc(64);
    volatile uintptr_t address = (uintptr_t)freed;
    free(freed);
    jack_client_t *const clients[BAD] = {{NULL, (void *)1, (void *)UINTPTR_MAX, (void *)&local, (void *)address, closed}};
    /* 1 would be the handle of an existing port: handles are numbers. */
    jack_port_t *const ports[BAD] = {{NULL, (void *)(UINTPTR_MAX / 2), (void *)UINTPTR_MAX, (void *)&local, (void *)address, NULL}};
    for (int bad = 0; bad < BAD; bad++) {{
{calls}    }}
    /* A removed port still has a name and a kind, and nothing else. */
    char name[400];
    float *scratch = jack_port_get_buffer(gone, 64);
    if (!scratch || jack_port_connected(gone) != -1 || jack_port_unregister(open, gone) == 0 ||
        jack_port_set_alias(gone, "x") == 0 || jack_port_rename(open, gone, "x") == 0 || jack_port_is_mine(open, gone) != 0)
        failures++, printf("a port that is gone is taken for one\n");
    snprintf(name, sizeof name, "%s", jack_port_name(gone));
    if (strcmp(name, "open:gone") != 0)
        failures++, printf("a port that is gone is called %s\n", name);
    if (jack_client_close(open) != 0 || jack_client_close(open) == 0)
        failures++, printf("a client is closed once\n");
    return failures != 0;
}}
"#,
        calls = calls(functions)
    )
}

#[test]
fn invalid_handles_are_answered_with_each_functions_error() {
    let functions = functions();
    let server = Server::timer(256);
    let everything = || server.lsp(&["-c", "-p", "-A", "-t", "-U"]);
    let before = everything();
    let source_file = server.directory().join("handles.c");
    std::fs::write(&source_file, source(&functions)).expect("a file");
    let program = server.directory().join("handles");
    compile_c("jack", &source_file, &program);
    let ended = server.run(&program.to_string_lossy(), &[]);
    let wrong: Vec<&str> =
        ended.stdout.lines().filter(|line| !line.starts_with("called ")).collect();
    assert_eq!(
        (ended.code, ended.signal),
        (Some(0), None),
        "{wrong:#?}, then {:?}",
        ended.stdout.lines().last()
    );
    assert_eq!(everything(), before);

    let called: BTreeSet<&str> =
        ended.stdout.lines().filter_map(|line| line.strip_prefix("called ")).collect();
    let symbols = include_str!("../../crates/jack/abi/symbols.txt");
    let declared: BTreeSet<&str> =
        functions.iter().map(|function| function.name.as_str()).collect();
    for symbol in symbols.lines().filter(|symbol| !symbol.ends_with(" DATA")) {
        assert!(declared.contains(symbol), "{symbol} was not found in the headers");
    }
    assert!(called.len() > 100, "{called:?}");
}
