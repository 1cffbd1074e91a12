//! A line that allows confined programs something.

use super::pattern::{matches, words};
use crate::rights::Rights;

/// What the programs of some control groups may do.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Allowance {
    pub rights: Rights,
    /// The path of a control group, by which the kernel says what a program is.
    cgroup: String,
}

impl Allowance {
    /// Reads a line; `None`: it is none that allows something.
    ///
    /// # Errors
    /// A sentence about what it has.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let words = words(text)?;
        let (mut rights, mut cgroup, mut other) = (None, None, None);
        for word in &words {
            match word.split_once('=') {
                Some(("allow", value)) => rights = Some(value),
                Some(("cgroup", value)) => cgroup = Some(value.to_owned()),
                _ => other = Some(word),
            }
        }
        let (rights, cgroup) = match (rights, cgroup, other) {
            (None, None, _) => return Ok(None),
            (Some(rights), Some(cgroup), None) => (rights, cgroup),
            (Some(_), Some(_), Some(word)) => {
                return Err(format!(
                    "'{word}' says nothing about a program that its sandbox could not: the only \
                     condition of 'allow' is cgroup=PATH"
                ));
            }
            (Some(_), None, _) => {
                return Err("'allow' needs the path of a control group: add cgroup=PATH".into());
            }
            (None, Some(_), _) => return Err("'cgroup' is a condition of 'allow': add it".into()),
        };
        let rights = Rights::parse(rights).ok_or_else(|| {
            format!("'{rights}' is not some of record,capture,patch,control, or everything")
        })?;
        Ok(Some(Self { rights, cgroup }))
    }

    pub fn is_for(&self, cgroup: &str) -> bool {
        matches(&self.cgroup, cgroup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_allows_something_names_control_groups_and_nothing_else() {
        for (line, part) in [
            ("allow=capture", "add cgroup=PATH"),
            ("cgroup=/a", "condition of 'allow'"),
            ("allow=capture cgroup=/a name=zoom", "'name=zoom'"),
            ("allow=capture cgroup=/a volume=50%", "'volume=50%'"),
            ("allow=capture,all cgroup=/a", "'capture,all' is not some of"),
        ] {
            let refusal = Allowance::parse(line).expect_err(line);
            assert!(refusal.contains(part), "{line}: {refusal}");
        }
        assert_eq!(Allowance::parse("volume=50% name=a"), Ok(None));
        assert_eq!(Allowance::parse("# allow=capture"), Ok(None));
    }

    #[test]
    fn words_are_the_rights_that_are_given() {
        let read = |text| Allowance::parse(text).expect("a line").expect("it allows").rights;
        let both = Rights { capture: true, record: true, ..Rights::NONE };
        assert_eq!(read("allow=capture,record cgroup=*"), both);
        assert_eq!(read("cgroup=* allow=everything"), Rights::ALL);
    }
}
