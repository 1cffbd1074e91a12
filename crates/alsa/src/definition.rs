//! What ALSA's configuration makes of a device's name.

use std::ffi::{CStr, CString};
use std::ptr::{NonNull, null, null_mut};

use alsa_sys as ffi;

/// Plug-ins that pass samples to a sound server, by their type in the configuration.
const SERVERS: [&str; 3] = ["pulse", "jack", "pipewire"];
/// How deep devices are looked into that are built from others.
const MOST_LEVELS: u32 = 8;

/// A part of the configuration, freed on drop.
struct Definition(NonNull<ffi::snd_config_t>);

impl Drop for Definition {
    fn drop(&mut self) {
        // SAFETY: it is ours, and this is the last use of it.
        unsafe { ffi::snd_config_delete(self.0.as_ptr()) };
    }
}

/// The configuration as it is, released on drop.
struct Configuration(NonNull<ffi::snd_config_t>);

impl Drop for Configuration {
    fn drop(&mut self) {
        // SAFETY: the reference was taken by `read`, and this is the last use of it.
        unsafe { ffi::snd_config_unref(self.0.as_ptr()) };
    }
}

impl Configuration {
    fn read() -> Option<Self> {
        crate::messages::report();
        let mut top = null_mut();
        // SAFETY: `top` outlives the call, which returns a reference in it or fails.
        let result = unsafe { ffi::snd_config_update_ref(&mut top) };
        NonNull::new(top).filter(|_| result >= 0).map(Self)
    }

    /// Returns the definition of a device, with the arguments that its name has.
    fn of_device(&self, name: &str) -> Option<Definition> {
        let name = CString::new(name).ok()?;
        let mut found = null_mut();
        // SAFETY: the configuration is alive, both strings are zero-terminated, and `found`
        // outlives the call, which makes a copy of what it finds, or fails.
        let result = unsafe {
            ffi::snd_config_search_definition(
                self.0.as_ptr(),
                c"pcm".as_ptr(),
                name.as_ptr(),
                &mut found,
            )
        };
        NonNull::new(found).filter(|_| result >= 0).map(Definition)
    }
}

/// Returns a part of a definition, which lives as long as that.
fn part(of: NonNull<ffi::snd_config_t>, key: &CStr) -> Option<NonNull<ffi::snd_config_t>> {
    let mut found = null_mut();
    // SAFETY: the definition is alive, the key is zero-terminated, `found` outlives the call.
    let result = unsafe { ffi::snd_config_search(of.as_ptr(), key.as_ptr(), &mut found) };
    NonNull::new(found).filter(|_| result >= 0)
}

fn text(of: NonNull<ffi::snd_config_t>) -> Option<String> {
    let mut text = null();
    // SAFETY: the part is alive, and `text` outlives the call.
    let result = unsafe { ffi::snd_config_get_string(of.as_ptr(), &mut text) };
    if result < 0 || text.is_null() {
        return None;
    }
    // SAFETY: the library returned a zero-terminated string that lives as long as the part.
    unsafe { CStr::from_ptr(text) }.to_str().ok().map(Into::into)
}

/// Returns the kind of sound server (`pulse`, `jack`, `pipewire`) to which a device of this name
/// passes its samples; `None`: to hardware, to none, or it is not defined.
///
/// Ordinary threads only.
#[must_use]
pub fn sound_server(name: &str) -> Option<&'static str> {
    if name.starts_with("hw:") || name.starts_with("plughw:") {
        return None;
    }
    let configuration = Configuration::read()?;
    let definition = configuration.of_device(name)?;
    of_definition(&configuration, definition.0, MOST_LEVELS)
}

fn of_definition(
    configuration: &Configuration,
    device: NonNull<ffi::snd_config_t>,
    levels: u32,
) -> Option<&'static str> {
    let kind = part(device, c"type").and_then(text);
    if let Some(server) = SERVERS.into_iter().find(|server| kind.as_deref() == Some(*server)) {
        return Some(server);
    }
    let levels = levels.checked_sub(1)?;
    let slaves = [c"slave.pcm", c"slave", c"playback.pcm", c"capture.pcm"];
    slaves.into_iter().filter_map(|key| part(device, key)).find_map(|slave| match text(slave) {
        Some(name) => {
            let definition = configuration.of_device(&name)?;
            of_definition(configuration, definition.0, levels)
        }
        None => of_definition(configuration, slave, levels),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_lead_to_a_sound_server_are_found_by_the_configuration() {
        // What Debian's alsa-lib defines itself.
        for name in
            ["null", "plug:null", "hw:0", "plughw:0", "plug:'file:/dev/null,raw'", "no such"]
        {
            assert_eq!(sound_server(name), None, "{name}");
        }
        let directory = std::env::temp_dir().join(format!("consort-alsa-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let file = directory.join("asound.conf");
        std::fs::write(
            &file,
            "pcm.!default { type pulse }
             pcm.card { type null }
             pcm.behind { type plug slave.pcm \"default\" }
             pcm.inline { type plug slave { pcm { type jack } } }
             pcm.both { type asym playback.pcm \"card\" capture.pcm { type pipewire } }
             pcm.circle { type plug slave.pcm \"circle\" }",
        )
        .expect("written");
        let names = ["default", "card", "behind", "inline", "both", "circle", "plug:behind"];
        // The library reads the variable of its process once: the test runs itself again.
        let own = std::env::current_exe().expect("the test");
        let child = std::process::Command::new(own)
            .args(["--exact", "definition::tests::what_a_configuration_says", "--nocapture"])
            .arg("--ignored")
            .env("ALSA_CONFIG_PATH", &file)
            .env("CONSORT_TEST_NAMES", names.join(" "))
            .output()
            .expect("it runs");
        let printed = String::from_utf8_lossy(&child.stdout).into_owned();
        std::fs::remove_dir_all(&directory).expect("removed");
        for line in [
            "default: Some(\"pulse\")",
            "card: None",
            "behind: Some(\"pulse\")",
            "inline: Some(\"jack\")",
            "both: Some(\"pipewire\")",
            "circle: None",
        ] {
            assert!(printed.contains(line), "{line}: {printed}");
        }
    }

    #[test]
    #[ignore = "run by the test above, with a configuration"]
    fn what_a_configuration_says() {
        for name in std::env::var("CONSORT_TEST_NAMES").unwrap_or_default().split(' ') {
            println!("{name}: {:?}", sound_server(name));
        }
    }
}
