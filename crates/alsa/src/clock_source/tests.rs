use std::cell::RefCell;
use std::collections::HashMap;

use super::*;

/// Stands in for a card: its elements and their values.
#[derive(Debug)]
struct Card {
    elements: Vec<Element>,
    values: RefCell<HashMap<Key, i64>>,
    writes: RefCell<Vec<(Key, i64)>>,
    read_only: Vec<Key>,
    errno: Option<i32>,
}

impl Elements for &Card {
    fn find(&self, key: Key) -> Option<Element> {
        self.elements.iter().find(|element| element.key == key).cloned()
    }

    fn is_writable(&self, element: &Element) -> bool {
        !self.read_only.contains(&element.key)
    }

    fn read(&self, element: &Element, values: &mut [i64]) -> Result<(), i32> {
        values.fill(self.values.borrow().get(&element.key).copied().unwrap_or(0));
        Ok(())
    }

    fn write(&self, element: &Element, values: &[i64]) -> Result<(), i32> {
        assert_eq!(values.len(), element.count as usize, "all values are written");
        self.errno.map_or(Ok(()), Err)?;
        self.values.borrow_mut().insert(element.key, values[0]);
        self.writes.borrow_mut().push((element.key, values[0]));
        Ok(())
    }
}

fn card(elements: &[(Key, &[&str])]) -> Card {
    let element = |(key, choices): &(Key, &[&str])| Element {
        key: *key,
        kind: Kind::Choices(choices.iter().map(|choice| (*choice).to_owned()).collect()),
        count: 1,
    };
    Card {
        elements: elements.iter().map(element).collect(),
        values: RefCell::default(),
        writes: RefCell::default(),
        read_only: Vec::new(),
        errno: None,
    }
}

const MODE: Key = mixer(c"Sync Mode");
const PREFERRED: Key = mixer(c"Preferred Sync Source");

fn hammerfall() -> Card {
    card(&[(MODE, &["AutoSync", "Master", "Word Clock"]), (PREFERRED, &["ADAT1", "IEC958"])])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn every_choice_of_every_known_control_can_be_made() {
    for key in KNOWN {
        let card = card(&[(key, &["Internal", "External"])]);
        for (choice, name) in [(1, "External"), (0, "internal")] {
            ClockSources::of(&card).choose(&words(&[name])).unwrap();
            assert_eq!(card.values.borrow()[&key], choice, "{key:?}");
        }
    }
}

#[test]
fn a_card_of_two_controls_takes_a_choice_of_each() {
    let card = hammerfall();
    let sources = ClockSources::of(&card);
    sources.choose(&words(&["AutoSync", "IEC958"])).unwrap();
    assert_eq!(*card.writes.borrow(), [(PREFERRED, 1)], "the mode was AutoSync");
    let shown: Vec<String> = sources.controls().iter().map(ToString::to_string).collect();
    let expected =
        ["Sync Mode: [AutoSync], Master, Word Clock", "Preferred Sync Source: ADAT1, [IEC958]"];
    assert_eq!(shown, expected);
}

#[test]
fn an_unknown_choice_changes_nothing_and_the_error_has_all_choices() {
    let card = hammerfall();
    let error = ClockSources::of(&card).choose(&words(&["Master", "MADI"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it has no clock source 'MADI'; it has Sync Mode: [AutoSync], Master, Word Clock; \
         Preferred Sync Source: [ADAT1], IEC958"
    );
    assert!(card.writes.borrow().is_empty());
}

#[test]
fn a_card_without_such_a_control_or_that_refuses_says_so() {
    let mut none = card(&[]);
    none.elements.push(Element { key: MODE, kind: Kind::Switches, count: 1 });
    assert_eq!(ClockSources::of(&none).choose(&words(&["Master"])), Err(ClockError::None));
    let shown = Card { read_only: vec![MODE], ..hammerfall() };
    let error = ClockSources::of(&shown).choose(&words(&["Master"])).unwrap_err();
    assert!(
        error.to_string().ends_with("it has Preferred Sync Source: [ADAT1], IEC958"),
        "{error}"
    );
    let busy = Card { errno: Some(libc::EBUSY), ..hammerfall() };
    let error = ClockSources::of(&busy).choose(&words(&["Master"])).unwrap_err();
    assert!(error.to_string().contains("'Master': Device or resource busy"), "{error}");
}
