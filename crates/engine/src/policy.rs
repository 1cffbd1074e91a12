//! The policy: what a program may do, by rules that match what the kernel reports about it.

use confinement::Confinement;
use proto::request::RequestError;

/// What a program may do beyond having ports of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    /// Connect and disconnect its own ports.
    pub connect: bool,
    /// Also connect and disconnect other clients' ports, and set their names and properties.
    pub patch: bool,
    /// Feed other clients: they wait for it in each cycle. The driver's ports are open to all.
    pub play: bool,
    /// Hear other clients.
    pub record: bool,
    /// Hear what the driver captures.
    pub capture: bool,
    /// Change the quantum, freewheel, the transport and sessions, and stop the server.
    pub control: bool,
    /// Have the server open files and devices, and run plug-ins, as the server's user: only for
    /// that user and root.
    pub load: bool,
    /// Why a program has not all permissions where there is no policy.
    pub confinement: Option<Confinement>,
}

impl Permissions {
    /// The permissions without a policy.
    pub const ALL: Self = Self {
        connect: true,
        patch: true,
        play: true,
        record: true,
        capture: true,
        control: true,
        load: true,
        confinement: None,
    };
    /// Only ports of its own. Other programs may connect them with the driver's playback ports.
    pub const NONE: Self = Self {
        connect: false,
        patch: false,
        play: false,
        record: false,
        capture: false,
        control: false,
        load: false,
        confinement: None,
    };

    /// The permissions of a program where there is no policy.
    pub fn by_default(confinement: Option<Confinement>) -> Self {
        // MUTATION: by_default.confined_may_load
        Self { load: confinement.is_none(), confinement, ..Self::ALL }
    }

    /// Checks whether the program may have the server do `what`, which the server does as its user.
    ///
    /// # Errors
    /// [`RequestError::NotAllowed`]: why not, and what would allow it.
    pub fn check_load(&self, what: &str) -> Result<(), RequestError> {
        match self.confinement {
            _ if self.load => Ok(()),
            None => Err(refusal(what)),
            Some(why) => Err(RequestError::NotAllowed(format!(
                "a confined program may not {what} ({why}): ask from a program that is not \
                 confined, or start the server with a --policy that allows this one everything"
            ))),
        }
    }

    fn parse(words: &str) -> Option<Self> {
        match words {
            "everything" => return Some(Self::ALL),
            "nothing" => return Some(Self::NONE),
            _ => {}
        }
        words.split(',').try_fold(Self::NONE, |permissions, word| {
            Some(match word {
                "connect" => Self { connect: true, ..permissions },
                "patch" => Self { connect: true, patch: true, ..permissions },
                "play" => Self { play: true, ..permissions },
                "record" => Self { record: true, ..permissions },
                "capture" => Self { capture: true, ..permissions },
                "control" => Self { control: true, ..permissions },
                _ => return None,
            })
        })
    }
}

/// What the kernel reports about a program that has connected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its user when it connected.
    pub user_id: u32,
    /// Its groups, likewise.
    pub group_ids: Vec<u32>,
    /// The file that it runs.
    pub executable: Executable,
    /// Its path in the hierarchy of control groups; `None`: unknown.
    pub cgroup: Option<String>,
}

/// The file that a program runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Executable {
    /// The kernel does not report it.
    #[default]
    Unknown,
    /// One among other files than the server's, where the program can put any file at any path. No
    /// pattern matches it.
    Elsewhere,
    /// Its path, or the one that it had until it was deleted.
    Path(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    User(u32),
    Group(u32),
    Executable(String),
    Cgroup(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    permissions: Permissions,
    conditions: Vec<Condition>,
}

/// Rules, of which the first that matches decides. A program that none matches may do nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy(Vec<Rule>);

/// A line that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not a rule: {why}")]
pub struct PolicyError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl Policy {
    /// Parses rules, one per line: permissions, and then conditions that must all hold.
    ///
    /// # Errors
    /// [`PolicyError`]: the first line that is not a rule.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let lines =
            (1..).zip(text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()));
        let rules = lines.filter(|(_, line)| !line.is_empty());
        let rule = |(line, text)| parse_rule(text).map_err(|why| PolicyError { line, why });
        rules.map(rule).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether it restricts no program.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a rule needs to know more about a process than its socket reveals.
    pub fn looks_at_process(&self) -> bool {
        let looks = |condition: &Condition| {
            matches!(condition, Condition::Executable(_) | Condition::Cgroup(_))
        };
        self.0.iter().flat_map(|rule| &rule.conditions).any(looks)
    }

    /// Returns what a program may do by these rules: nothing if none matches, or if it is unknown
    /// whether one does. `None`: there is no rule.
    pub fn decide(&self, facts: &Facts) -> Option<Permissions> {
        if self.is_empty() {
            return None;
        }
        for rule in &self.0 {
            let fits: Vec<Option<bool>> =
                rule.conditions.iter().map(|condition| condition.fits(facts)).collect();
            if fits.contains(&Some(false)) {
                continue;
            }
            let is_unknown = fits.contains(&None);
            return Some(if is_unknown { Permissions::NONE } else { rule.permissions });
        }
        // MUTATION: decide.unmatched_may_everything
        Some(Permissions::NONE)
    }
}

impl Condition {
    /// `None`: unknown.
    fn fits(&self, facts: &Facts) -> Option<bool> {
        match self {
            Self::User(user_id) => Some(*user_id == facts.user_id),
            Self::Group(group_id) => Some(facts.group_ids.contains(group_id)),
            Self::Executable(pattern) => match &facts.executable {
                Executable::Unknown => None,
                Executable::Elsewhere => Some(false),
                Executable::Path(path) => Some(matches(pattern, path)),
            },
            Self::Cgroup(pattern) => facts.cgroup.as_ref().map(|path| matches(pattern, path)),
        }
    }
}

fn parse_rule(text: &str) -> Result<Rule, String> {
    let mut words = text.split_whitespace();
    let permissions = words.next().unwrap_or_default();
    let permissions = Permissions::parse(permissions).ok_or_else(|| {
        format!(
            "'{permissions}' is not everything, nothing, or some of connect,patch,play,record,capture,control"
        )
    })?;
    let conditions = words.map(parse_condition).collect::<Result<_, _>>()?;
    Ok(Rule { permissions, conditions })
}

fn parse_condition(word: &str) -> Result<Condition, String> {
    let unknown = || format!("'{word}' is not uid=N, gid=N, exe=PATH or cgroup=PATH");
    let (what, value) = word.split_once('=').ok_or_else(unknown)?;
    let number = || value.parse().map_err(|_| format!("'{value}' is not a number"));
    match what {
        "uid" => number().map(Condition::User),
        "gid" => number().map(Condition::Group),
        "exe" => Ok(Condition::Executable(value.into())),
        "cgroup" => Ok(Condition::Cgroup(value.into())),
        _ => Err(unknown()),
    }
}

/// Returns whether `text` is `pattern`, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    true
}

/// The error of a request that the policy forbids.
pub fn refusal(what: &str) -> RequestError {
    RequestError::NotAllowed(format!("the server's policy does not allow this program to {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(user_id: u32, executable: Option<&str>) -> Facts {
        let executable =
            executable.map_or(Executable::Unknown, |path| Executable::Path(path.to_owned()));
        Facts { user_id, executable, ..Facts::default() }
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let text = "# who may do what\n\
            everything exe=/usr/bin/qjackctl  # by the user\n\
            \n\
            connect,capture uid=7 exe=/opt/*/bin/*\n\
            nothing uid=7";
        let policy = Policy::parse(text).unwrap();
        let connects = Permissions { connect: true, capture: true, ..Permissions::NONE };
        for (user_id, executable, permissions) in [
            (7, "/usr/bin/qjackctl", Some(Permissions::ALL)),
            (7, "/opt/box/bin/player", Some(connects)),
            (7, "/opt/box/player", Some(Permissions::NONE)),
            (8, "/opt/box/bin/player", Some(Permissions::NONE)),
        ] {
            assert_eq!(
                policy.decide(&facts(user_id, Some(executable))),
                permissions,
                "{executable}"
            );
        }
    }

    #[test]
    fn a_program_that_may_match_a_rule_may_do_nothing() {
        let policy = Policy::parse("everything exe=/usr/bin/a\nconnect uid=7\n").unwrap();
        assert!(policy.looks_at_process());
        assert_eq!(policy.decide(&facts(7, None)), Some(Permissions::NONE));
        let policy = Policy::parse("nothing uid=7 exe=/usr/bin/a\neverything").unwrap();
        let other = policy.decide(&facts(8, None));
        assert_eq!(other, Some(Permissions::ALL), "another user, whatever it runs");
    }

    #[test]
    fn a_policy_without_rules_decides_about_no_program() {
        assert_eq!(Policy::parse("# nothing yet").unwrap().decide(&facts(7, None)), None);
    }

    #[test]
    fn a_file_among_other_files_matches_no_path() {
        let policy = Policy::parse("everything exe=*\nconnect").unwrap();
        let elsewhere = Facts { executable: Executable::Elsewhere, ..facts(7, None) };
        let connect = Permissions { connect: true, ..Permissions::NONE };
        assert_eq!(policy.decide(&elsewhere), Some(connect));
        assert_eq!(policy.decide(&facts(7, Some("/a"))), Some(Permissions::ALL));
    }

    #[test]
    fn a_confined_program_has_everything_but_the_permission_to_load() {
        assert_eq!(Permissions::by_default(None), Permissions::ALL);
        let confined = Permissions::by_default(Some(Confinement::Mounts));
        assert!(!confined.load && confined.control && confined.patch && confined.record);
        let refused = confined.check_load("switch to this driver").unwrap_err().to_string();
        for words in ["may not switch to this driver", "it has other mounts", "--policy"] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
    }

    #[test]
    fn the_permission_to_patch_includes_connecting_own_ports() {
        assert_eq!(Permissions::parse("patch").map(|permissions| permissions.connect), Some(true));
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        for (text, line, word) in [
            ("everything\nevrything uid=1", 2, "evrything"),
            ("nothing uid=root", 1, "root"),
            ("nothing path=/bin/sh", 1, "path=/bin/sh"),
            ("nothing everyone", 1, "everyone"),
            ("connect,record,all", 1, "connect,record,all"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert!(error.line == line && error.why.contains(word), "{error}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("/usr/bin/a", "/usr/bin/a", true),
            ("/usr/bin/a", "/usr/bin/ab", false),
            ("*", "", true),
            ("/user.slice/*/app-*.scope", "/user.slice/user-7.slice/app-x.scope", true),
            ("/user.slice/*/app-*.scope", "/user.slice/user-7.slice/app-x.service", false),
            ("a*a", "a", false),
            ("a*b*b", "acb", false),
            ("*b", "aab", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
