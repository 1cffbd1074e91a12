//! Markers in the source: `// MUTATION: name, name` above the statement that the
//! mutations of these names change.

use std::ops::Range;

const MARKER: &str = "// MUTATION: ";

/// One name at a marker, and the statement below it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Marked<'a> {
    pub(super) name: &'a str,
    /// Bytes of the source: whole lines, from the first line of code below the marker.
    pub(super) statement: Range<usize>,
}

/// Returns every name at every marker in `source`.
pub(super) fn marked(source: &str) -> Vec<Marked<'_>> {
    let mut found = Vec::new();
    let mut offset = 0;
    for line in source.split_inclusive('\n') {
        offset += line.len();
        if let Some(names) = line.trim().strip_prefix(MARKER) {
            let statement = statement(source, offset);
            found.extend(
                names.split(", ").map(|name| Marked { name, statement: statement.clone() }),
            );
        }
    }
    found
}

/// Returns the first statement, expression or match arm at or after byte `from`.
///
/// It begins at the first line that is no comment, and ends before the first line after it that is
/// indented less, or as much unless it continues with a bracket: rustfmt sees to that.
fn statement(source: &str, from: usize) -> Range<usize> {
    let mut lines = source[from..].split_inclusive('\n').peekable();
    let mut start = from;
    while let Some(comment) = lines.next_if(|line| line.trim().starts_with("//")) {
        start += comment.len();
    }
    let first = lines.next().unwrap_or_default();
    let (mut end, mut offset) = (start + first.len(), start + first.len());
    for line in lines {
        offset += line.len();
        if line.trim().is_empty() {
            continue;
        }
        let continues = line.trim_start().starts_with(['}', ')', ']', '{']);
        if indentation(line) < indentation(first)
            || indentation(line) == indentation(first) && !continues
        {
            break;
        }
        end = offset;
    }
    start..end
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statements(source: &str) -> Vec<(&str, &str)> {
        marked(source).into_iter().map(|found| (found.name, &source[found.statement])).collect()
    }

    #[test]
    fn a_marker_names_the_statement_below_it() {
        let source = "fn f() {\n    // Why.\n    // MUTATION: a.x, a.y\n    // Why, too.\n    \
                      one();\n    two();\n    // MUTATION: b\n    three()\n}\n\nfn g() {}\n";
        let [one, three] = ["    one();\n", "    three()\n"];
        assert_eq!(statements(source), [("a.x", one), ("a.y", one), ("b", three)]);
    }

    #[test]
    fn a_statement_of_several_lines_is_marked_whole() {
        let conditional =
            "if a\n    && b\n{\n    c();\n\n    d();\n} else {\n    e(\n        f,\n    );\n}\n";
        let source = format!("// MUTATION: a\n{conditional}\n// Next.\nnext();\n");
        assert_eq!(statements(&source), [("a", conditional)]);
    }
}
