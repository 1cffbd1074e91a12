//! Modules that lines of the rules load.

use policy::Rules;

use super::*;

const S: u64 = 1_000_000_000;

impl Scene {
    /// The rules are these from now on.
    fn rule(&mut self, text: &str) {
        let (rules, complaints) = Rules::parse(text);
        assert_eq!(complaints, []);
        self.front_end.obey(rules);
        self.front_end.load_ruled_modules(self.now_ns);
    }

    fn modules(&mut self, client: u32) -> Vec<(u32, String)> {
        let all: Vec<ModuleInfo> = self.ask(client, &Command::GetModuleInfoList).expect("a list");
        let argument = |module: &ModuleInfo| module.argument.clone().unwrap_or_default();
        all.iter().map(|one| (one.index, argument(one).into_string().expect("text"))).collect()
    }

    /// Lets all time pass until nothing more is due.
    fn settle(&mut self) {
        for _ in 0..10 {
            self.now_ns += S;
            let is_due = self.front_end.deadline(self.now_ns).is_some_and(|ns| ns <= self.now_ns);
            if is_due {
                self.front_end.update(self.now_ns);
            }
        }
    }

    /// The process of the loopback that was started last passes frames on.
    fn begin_last_link(&mut self) -> u32 {
        let index = *self.links().keys().last().expect("a process");
        self.front_end.link_has_begun(index, Ok(()), self.now_ns);
        index
    }
}

fn null_sinks(names: &[&str]) -> String {
    names.iter().map(|name| format!("load-module module-null-sink sink_name={name}\n")).collect()
}

fn sinks(indices: &[(u32, &str)]) -> Vec<(u32, String)> {
    indices.iter().map(|(index, name)| (*index, format!("sink_name={name}"))).collect()
}

#[test]
fn the_modules_of_the_rules_are_there_as_long_as_their_lines() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.rule(&null_sinks(&["a", "b"]));
    assert_eq!(scene.modules(client), sinks(&[(0, "a"), (1, "b")]));
    scene.rule(&format!("# comes first\n{}", null_sinks(&["c", "b"])));
    assert_eq!(scene.modules(client), sinks(&[(1, "b"), (2, "c")]), "the one of before stays");
    assert!(scene.sink_named(client, "a").is_none());
    assert!(scene.sink_named(client, "c").is_some());
    scene.rule("");
    assert_eq!(scene.modules(client), []);
}

#[test]
fn a_line_whose_module_cannot_be_loaded_is_reported_once_and_costs_no_other() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    let text = format!("load-module module-nothing x=1\n{}", null_sinks(&["a"]));
    scene.rule(&text);
    let reason = "line 1 of the rules cannot load 'module-nothing x=1': there is no such module";
    assert_eq!(scene.reported(), [reason]);
    assert_eq!(scene.modules(client), sinks(&[(1, "a")]));
    scene.rule(&format!("{text}muted=yes name=b\n"));
    assert!(scene.reported().is_empty());
}

#[test]
fn a_module_of_the_rules_that_a_program_unloads_stays_away() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.rule(&null_sinks(&["a", "b"]));
    scene.tell(client, &Command::UnloadModule(0)).expect("unloaded");
    scene.rule(&null_sinks(&["a", "b", "c"]));
    assert_eq!(scene.modules(client), sinks(&[(1, "b"), (2, "c")]));
}

#[test]
fn modules_of_the_rules_come_with_the_server_and_again_with_the_next_one() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.front_end.devices_mut().is_away = true;
    scene.front_end.server_gone(0, 0);
    scene.rule(&null_sinks(&["a"]));
    assert_eq!(scene.modules(client), []);
    for index in 0..2 {
        scene.front_end.devices_mut().is_away = false;
        scene.front_end.server_found(0);
        assert_eq!(scene.modules(client), sinks(&[(index, "a")]));
        // All that it had goes with it, and is not waited for.
        scene.front_end.devices_mut().devices.truncate(1);
        scene.front_end.devices_mut().is_away = true;
        scene.front_end.server_gone(0, 0);
        scene.front_end.update(1);
    }
    assert!(scene.reported().is_empty());
}

#[test]
fn a_loopback_of_the_rules_is_there_once_its_process_passes_frames_on() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.rule(&format!(
        "{}load-module module-loopback source=a.monitor\nload-module module-pipe-sink\n",
        null_sinks(&["a"])
    ));
    let names = ["module-null-sink"];
    assert_eq!(scene.module_names(client), names);
    scene.front_end.link_has_begun(1, Ok(()), 0);
    assert_eq!(scene.module_names(client), [names[0], "module-loopback"]);
    scene.front_end.link_has_begun(2, Err("no such directory".into()), 0);
    let reason = "line 3 of the rules cannot load 'module-pipe-sink': no such directory";
    assert_eq!(scene.reported(), [reason]);
    assert_eq!(scene.module_names(client), [names[0], "module-loopback"]);
}

#[test]
fn a_module_of_the_rules_whose_card_was_missing_is_there_whenever_the_card_is() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.rule("load-module module-loopback source=usb.monitor sink=consort\n");
    let title = "'module-loopback source=usb.monitor sink=consort'";
    let missing =
        format!("line 1 of the rules cannot load {title}: there is no source 'usb.monitor'");
    assert_eq!(scene.reported(), std::slice::from_ref(&missing));
    for _ in 0..2 {
        scene.plug("usb");
        scene.settle();
        let index = scene.begin_last_link();
        assert_eq!(scene.module_names(client), ["module-loopback"]);
        scene.unplug("usb");
        scene.front_end.link_has_ended(index, None, scene.now_ns);
        assert!(scene.module_names(client).is_empty() && scene.links().is_empty());
        let gone =
            format!("unloads {title} of line 1 of the rules: a device that it needs has gone");
        assert_eq!(scene.reported(), [gone]);
    }
    // Others come, and the reason stays the same.
    for name in ["other", "another"] {
        scene.plug(name);
        scene.settle();
    }
    assert_eq!(scene.reported(), [missing]);
}

#[test]
fn a_module_of_the_rules_is_there_although_its_card_came_back_before_it_had_ended() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.rule("load-module module-loopback source=usb.monitor sink=consort\n");
    scene.plug("usb");
    scene.settle();
    let index = scene.begin_last_link();
    scene.unplug("usb");
    scene.plug("usb");
    scene.settle();
    scene.front_end.link_has_ended(index, None, scene.now_ns);
    scene.settle();
    scene.begin_last_link();
    assert_eq!(scene.module_names(client), ["module-loopback"]);
}

#[test]
fn a_module_of_the_rules_that_fails_with_its_own_device_is_not_tried_without_end() {
    let mut scene = Scene::new();
    scene.rule("load-module module-pipe-sink\n");
    let mut tries = 0;
    for _ in 0..5 {
        while let Some(index) = scene.links().keys().last().copied() {
            tries += 1;
            scene.front_end.link_has_begun(index, Err("no such directory".into()), scene.now_ns);
        }
        scene.settle();
    }
    assert_eq!(tries, 1);
    assert_eq!(scene.front_end.deadline(scene.now_ns), None, "nothing more is due");
    let reason = "line 1 of the rules cannot load 'module-pipe-sink': no such directory";
    assert_eq!(scene.reported(), [reason]);
}

#[test]
fn a_module_of_the_rules_that_a_program_unloads_stays_away_when_devices_come() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.rule(&null_sinks(&["a"]));
    scene.tell(client, &Command::UnloadModule(0)).expect("unloaded");
    scene.plug("usb");
    scene.settle();
    assert_eq!(scene.modules(client), []);
}

#[test]
fn a_module_of_the_rules_is_tried_again_if_the_server_does_not_answer_in_time() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.front_end.devices_mut().is_away = true;
    scene.rule(&null_sinks(&["a"]));
    assert_eq!(scene.modules(client), []);
    scene.front_end.devices_mut().is_away = false;
    scene.settle();
    assert_eq!(scene.modules(client), sinks(&[(1, "a")]));
    assert!(scene.reported().is_empty());
}

#[test]
fn a_module_of_the_rules_is_there_once_its_device_captures() {
    let mut scene = Scene::new();
    let client = scene.admitted();
    scene.rule("load-module module-loopback source=consort.capture sink=consort\n");
    scene.settle();
    assert!(scene.links().is_empty());
    scene.front_end.devices_mut().devices[0].format.captured = 1;
    scene.front_end.devices_changed(scene.now_ns);
    scene.settle();
    scene.begin_last_link();
    assert_eq!(scene.module_names(client), ["module-loopback"]);
}
