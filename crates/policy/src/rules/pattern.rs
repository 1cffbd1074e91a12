//! Words of a line, and the patterns in them.

/// Splits a line at its spaces, but for those within double quotes; what follows a `#` at the
/// beginning of a word is a comment.
///
/// # Errors
/// A quote is not closed.
pub(super) fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '#' if word.is_none() && !is_quoted => break,
            letter if letter.is_whitespace() && !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    if is_quoted {
        return Err("a quotation mark (\") is not closed".into());
    }
    words.extend(word);
    Ok(words)
}

/// Returns whether a text is as a pattern says, in which `*` stands for anything.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        // The first place leaves the most for what follows.
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*b*c", "a1b2b3c"),
            ("a**", "a"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("a", "ab"),
            ("", "a"),
            ("a*", "ba"),
            ("*c", "abcd"),
            ("a*bc*c", "abc"),
            ("ab*ba", "aba"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn spaces_within_quotes_are_part_of_a_word() {
        let read = words("name=\"a b\"  role=x\t\"c#\" # more \"").expect("words");
        assert_eq!(read, ["name=a b", "role=x", "c#"]);
        assert!(words("name=\"a").is_err());
        assert_eq!(words("  # nothing").expect("words"), [""; 0]);
    }
}
