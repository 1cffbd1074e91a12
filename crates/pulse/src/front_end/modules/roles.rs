//! Modules for which streams of some roles hold others, or turn them down.

use policy::RoleModule;

use super::Modules;
use super::arguments::Arguments;
use super::kinds::Kind;

/// PulseAudio's, where a module names no others.
const TRIGGERS: &str = "phone";
const OTHERS: &str = "music,video";
const DUCKED_DB: f32 = -20.0;
/// The least that others are turned down to, dB.
const LEAST_DB: f32 = -100.0;
/// PulseAudio's number of an unchanged volume.
const FULL: f32 = 65_536.0;
/// Most groups of roles, and most roles, of one module: all are looked at whenever a stream is
/// heard, or not any more.
const MAX_GROUPS: usize = 32;
const MAX_ROLES: usize = 64;
/// Most groups of roles of all modules.
const MAX_GROUPS_OF_ALL: usize = 128;

/// Returns what the module of this index does: one thing for each group of roles. One that is not
/// about roles does nothing.
///
/// # Errors
/// A reason: its arguments make no sense, or have too many roles.
fn role_modules(index: u32, kind: Kind, arguments: &Arguments) -> Result<Vec<RoleModule>, String> {
    if !matches!(kind, Kind::RoleCork | Kind::RoleDucking) {
        return Ok(Vec::new());
    }
    let all = groups_of_roles(index, kind, arguments)?;
    if all.len() > MAX_GROUPS {
        let groups = all.len();
        return Err(format!(
            "trigger_roles has {groups} groups of roles, and {MAX_GROUPS} are the most: load \
             another module for the others"
        ));
    }
    let roles: usize = all.iter().map(|group| group.triggers.len() + group.roles.len()).sum();
    if roles > MAX_ROLES {
        return Err(format!(
            "it names {roles} roles, and {MAX_ROLES} are the most: load another module for the \
             others"
        ));
    }
    Ok(all)
}

fn groups_of_roles(
    index: u32,
    kind: Kind,
    arguments: &Arguments,
) -> Result<Vec<RoleModule>, String> {
    let is_global = arguments.boolean("global")?.unwrap_or(false);
    if arguments.boolean("use_source_trigger")? == Some(true) {
        return Err("use_source_trigger: only what plays does something to others".into());
    }
    let text = |key: &str, default: &str| arguments.text(key).unwrap_or_else(|| default.into());
    let triggers = text("trigger_roles", TRIGGERS);
    if kind == Kind::RoleCork {
        let (triggers, roles) = (list(&triggers), list(&text("cork_roles", OTHERS)));
        return Ok(vec![RoleModule { index, triggers, roles, decibels: None, is_global }]);
    }
    let (triggers, others) = (groups(&triggers), text("ducking_roles", OTHERS));
    let (others, volume) = (groups(&others), arguments.text("volume"));
    let decibels = match &volume {
        None => vec![DUCKED_DB; triggers.len()],
        Some(volume) => volume.split('/').map(decibels).collect::<Result<_, _>>()?,
    };
    if others.len() != triggers.len() || decibels.len() != triggers.len() {
        return Err(format!(
            "trigger_roles has {} groups of roles, ducking_roles {}, and volume {}: they belong to \
             each other",
            triggers.len(),
            others.len(),
            decibels.len()
        ));
    }
    let all = triggers.into_iter().zip(others).zip(decibels);
    let all = all.map(|((triggers, roles), decibels)| {
        let decibels = Some(decibels);
        RoleModule { index, triggers, roles, decibels, is_global }
    });
    Ok(all.collect())
}

fn groups(text: &str) -> Vec<Vec<String>> {
    text.split('/').map(list).collect()
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|role| !role.is_empty()).map(str::to_owned).collect()
}

/// Reads a volume as PulseAudio does: `-20dB`, `30%`, or a number up to 65536.
fn decibels(text: &str) -> Result<f32, String> {
    // A volume is the cube root of its factor.
    let of_volume = |volume: f32| (60.0 * volume.log10()).max(LEAST_DB);
    let number = |text: &str| text.trim().parse::<f32>().ok().filter(|number| number.is_finite());
    let read = match (text.strip_suffix("dB"), text.strip_suffix('%')) {
        (Some(decibels), _) => number(decibels),
        (_, Some(percent)) => number(percent).map(|percent| of_volume(percent / 100.0)),
        _ => number(text).map(|steps| of_volume(steps / FULL)),
    };
    read.filter(|decibels| (LEAST_DB..=0.0).contains(decibels)).ok_or_else(|| {
        format!(
            "volume is '{text}', and takes for example -20dB or 30%, and nothing louder than 0dB"
        )
    })
}

impl Modules {
    /// Returns what a module about roles does, if it may be loaded as the one of this index.
    ///
    /// # Errors
    /// A reason why it may not.
    pub(super) fn new_roles(
        &self,
        index: u32,
        kind: Kind,
        arguments: &Arguments,
    ) -> Result<Vec<RoleModule>, String> {
        let new = role_modules(index, kind, arguments)?;
        let loaded = self.all.values().map(|module| module.roles.len()).sum::<usize>();
        if !new.is_empty() && loaded + new.len() > MAX_GROUPS_OF_ALL {
            return Err(format!(
                "all modules would have {} groups of roles, and {MAX_GROUPS_OF_ALL} are the most: \
                 unload another one",
                loaded + new.len()
            ));
        }
        Ok(new)
    }

    /// Returns what modules have streams do to each other, those first that were loaded first.
    pub fn roles(&self) -> Vec<&RoleModule> {
        self.iter().flat_map(|(_, module)| &module.roles).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, text: &str) -> Result<Vec<RoleModule>, String> {
        role_modules(3, kind, &Arguments::read(text, kind.keys())?)
    }

    fn expected(triggers: &[&str], roles: &[&str], decibels: Option<f32>) -> RoleModule {
        let [triggers, roles] =
            [triggers, roles].map(|all| all.iter().map(|role| (*role).to_owned()).collect());
        RoleModule { index: 3, triggers, roles, decibels, is_global: false }
    }

    #[test]
    fn arguments_say_which_roles_do_what_to_which_others() {
        let phone = |decibels| vec![expected(&["phone"], &["music", "video"], decibels)];
        assert_eq!(read(Kind::RoleCork, ""), Ok(phone(None)));
        assert_eq!(read(Kind::RoleDucking, ""), Ok(phone(Some(-20.0))));
        let text = "trigger_roles=event,alarm/phone ducking_roles=music/any_role volume=-6dB/50%";
        let groups = read(Kind::RoleDucking, text).expect("two groups");
        assert_eq!(groups[0], expected(&["event", "alarm"], &["music"], Some(-6.0)));
        assert_eq!(groups[1].roles, ["any_role"]);
        assert!((groups[1].decibels.expect("quieter") + 18.06).abs() < 0.01, "0.5 cubed");
        let text = "trigger_roles=game cork_roles=no_role global=yes";
        let everywhere = RoleModule { is_global: true, ..expected(&["game"], &["no_role"], None) };
        assert_eq!(read(Kind::RoleCork, text), Ok(vec![everywhere]));
        let silent = read(Kind::RoleDucking, "volume=0").expect("nothing is left");
        assert_eq!(silent[0].decibels, Some(LEAST_DB));
    }

    #[test]
    fn arguments_that_do_not_belong_together_are_refused() {
        for (kind, text, reason) in [
            (Kind::RoleCork, "use_source_trigger=yes", "only what plays"),
            (Kind::RoleDucking, "volume=3dB", "nothing louder than 0dB"),
            (Kind::RoleDucking, "volume=150%", "nothing louder than 0dB"),
            (Kind::RoleDucking, "volume=quiet", "for example -20dB"),
            (Kind::RoleDucking, "volume=NaN%", "for example -20dB"),
            (Kind::RoleDucking, "trigger_roles=a/b", "trigger_roles has 2 groups"),
            (Kind::RoleDucking, "volume=-3dB/-6dB", "and volume 2"),
            (Kind::RoleDucking, "global=x", "takes yes or no"),
        ] {
            let refused = read(kind, text).expect_err(text);
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }

    #[test]
    fn one_module_has_no_more_roles_than_can_be_looked_at_at_every_stream() {
        let list = |count: usize, separator: &str| vec!["a"; count].join(separator);
        let ducking = |groups| {
            let roles = list(groups, "/");
            read(Kind::RoleDucking, &format!("trigger_roles={roles} ducking_roles={roles}"))
        };
        assert_eq!(ducking(MAX_GROUPS).map(|all| all.len()), Ok(MAX_GROUPS));
        let refused = ducking(MAX_GROUPS + 1).expect_err("too many groups");
        assert!(refused.contains("has 33 groups of roles, and 32 are the most"), "{refused}");
        let cork = |roles| {
            read(Kind::RoleCork, &format!("trigger_roles=a cork_roles={}", list(roles, ",")))
        };
        assert_eq!(cork(MAX_ROLES - 1).map(|all| all.len()), Ok(1));
        let refused = cork(MAX_ROLES).expect_err("too many roles");
        assert!(refused.contains("names 65 roles, and 64 are the most"), "{refused}");
    }
}
