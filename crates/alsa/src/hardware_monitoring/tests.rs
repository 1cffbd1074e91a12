use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::*;

/// Stands in for a card: the values of its elements, by key.
#[derive(Debug, Default)]
struct Card {
    elements: Vec<Element>,
    values: RefCell<HashMap<Key, Vec<i64>>>,
    /// Gains by source and destination.
    gains: RefCell<HashMap<(i64, i64), i64>>,
    errno: Cell<Option<i32>>,
}

impl Card {
    fn with(elements: &[(Key, Kind, u32)]) -> Rc<Self> {
        let element = |(key, kind, count): &(Key, Kind, u32)| Element {
            key: *key,
            kind: kind.clone(),
            count: *count,
        };
        Rc::new(Self { elements: elements.iter().map(element).collect(), ..Self::default() })
    }

    fn hammerfall() -> Rc<Self> {
        Self::with(&[(THRU, Kind::Switches, 26)])
    }

    fn hammerfall_dsp() -> Rc<Self> {
        Self::with(&[(MATRIX, Kind::Numbers { most: MATRIX_MOST }, 3)])
    }

    fn ice(outputs: u32, choices: &[&str]) -> Rc<Self> {
        let choices = Kind::Choices(choices.iter().map(|choice| (*choice).to_owned()).collect());
        let routes = (0..outputs).map(|index| (Key { index, ..ROUTE }, choices.clone(), 1));
        Self::with(&routes.collect::<Vec<_>>())
    }

    fn value(&self, key: Key, index: usize) -> i64 {
        self.values.borrow().get(&key).map_or(0, |values| values[index])
    }

    fn put(&self, key: Key, values: &[i64]) {
        self.values.borrow_mut().insert(key, values.to_vec());
    }

    fn refused(&self) -> Result<(), i32> {
        self.errno.get().map_or(Ok(()), Err)
    }
}

impl Elements for Rc<Card> {
    fn find(&self, key: Key) -> Option<Element> {
        self.elements.iter().find(|element| element.key == key).cloned()
    }

    fn is_writable(&self, _: &Element) -> bool {
        true
    }

    fn read(&self, element: &Element, values: &mut [i64]) -> Result<(), i32> {
        self.refused()?;
        if element.key == MATRIX {
            values[2] = self.gains.borrow().get(&(values[0], values[1])).copied().unwrap_or(0);
        } else {
            let held = self.values.borrow().get(&element.key).cloned();
            values.copy_from_slice(&held.unwrap_or_else(|| vec![0; element.count as usize]));
        }
        Ok(())
    }

    fn write(&self, element: &Element, values: &[i64]) -> Result<(), i32> {
        self.refused()?;
        assert_eq!(values.len(), element.count as usize, "all values are written");
        if element.key == MATRIX {
            self.gains.borrow_mut().insert((values[0], values[1]), values[2]);
        } else {
            self.put(element.key, values);
        }
        Ok(())
    }
}

fn paths(card: &Rc<Card>, long_name: &str) -> Paths<Rc<Card>> {
    Paths::of(Rc::clone(card), long_name, 48_000).expect("a card that monitors")
}

fn inputs(inputs: &[u32]) -> BTreeSet<u32> {
    inputs.iter().copied().collect()
}

const ICE1712: [&str; 5] = ["PCM Out", "H/W In 0", "H/W In 1", "H/W In 2", "IEC958 In L"];

#[test]
fn a_hammerfalls_switches_follow_only_for_requested_inputs() {
    let card = Card::hammerfall();
    let mut before = vec![0; 26];
    before[3] = 1;
    card.put(THRU, &before);
    let mut paths = paths(&card, "");
    assert_eq!((paths.inputs(18), paths.inputs(64)), (18, 26));
    paths.set(&inputs(&[0, 3, 25, 26])).unwrap();
    let on =
        |card: &Card| (0..26).filter(|index| card.value(THRU, *index) == 1).collect::<Vec<_>>();
    assert_eq!(on(&card), [0, 3, 25]);
    // Another program sets one meanwhile.
    let mut switches = card.values.borrow()[&THRU].clone();
    switches[7] = 1;
    card.put(THRU, &switches);
    paths.set(&inputs(&[25])).unwrap();
    assert_eq!(on(&card), [3, 7, 25], "what was on before stays on");
    drop(paths);
    assert_eq!(on(&card), [3, 7]);
    let light = Card::with(&[(THRU, Kind::Switches, 18)]);
    assert_eq!(self::paths(&light, "").inputs(64), 16);
}

#[test]
fn a_hammerfall_dsps_gains_are_restored_after_monitoring() {
    let card = Card::hammerfall_dsp();
    card.gains.borrow_mut().insert((16, 16), 1_000);
    let mut multiface = paths(&card, "RME Hammerfall DSP + Multiface at 0xe3000000, irq 22");
    assert_eq!(multiface.inputs(64), 18);
    multiface.set(&inputs(&[7, 8])).unwrap();
    let gain = |channel| card.gains.borrow().get(&(channel, channel)).copied().unwrap_or(0);
    assert_eq!((gain(7), gain(8), gain(16)), (MATRIX_UNITY, 0, MATRIX_UNITY));
    multiface.set(&inputs(&[])).unwrap();
    assert_eq!((gain(7), gain(16)), (0, 1_000));
    let mut digiface = paths(&card, "RME Hammerfall DSP + Digiface at 0xe3000000, irq 22");
    digiface.set(&inputs(&[8])).unwrap();
    assert_eq!((gain(8), gain(16)), (MATRIX_UNITY, 1_000));
}

#[test]
fn an_ice1712s_outputs_play_only_their_own_inputs() {
    let card = Card::ice(4, &ICE1712);
    let route = |index| Key { index, ..ROUTE };
    card.put(route(1), &[4]);
    let mut paths = paths(&card, "");
    assert_eq!(paths.inputs(10), 3);
    paths.set(&inputs(&[1, 2, 3, 8])).unwrap();
    let routed = || [0, 1, 2, 3].map(|index| card.value(route(index), 0));
    assert_eq!(routed(), [0, 2, 3, 0]);
    drop(paths);
    assert_eq!(routed(), [0, 4, 0, 0]);
    let maya = Card::ice(4, &["PCM Out", "Input 1", "Input 2", "Input 3", "Input 4"]);
    assert_eq!(Paths::of(maya, "", 96_000).unwrap().heard(3), 4);
}

#[test]
fn a_card_that_has_none_of_it_or_not_at_this_rate_says_so() {
    let none = |card: Rc<Card>| Paths::of(card, "", 48_000).err();
    for (what, card) in [
        ("nothing", Card::with(&[])),
        ("a mixer of another card", Card::with(&[(MATRIX, Kind::Numbers { most: 65_535 }, 3)])),
        ("thru of another kind", Card::with(&[(THRU, Kind::Numbers { most: 1 }, 26)])),
        ("routes without inputs", Card::ice(2, &["PCM Out", "IEC958 In L"])),
    ] {
        assert_eq!(none(card), Some(MonitoringError::None), "{what}");
    }
    for card in [Card::hammerfall(), Card::hammerfall_dsp()] {
        assert_eq!(Paths::of(card, "", 96_000).err(), Some(MonitoringError::Rate));
    }
}

#[test]
fn settings_are_written_again_after_being_forgotten_or_refused() {
    let card = Card::hammerfall();
    let mut paths = paths(&card, "");
    paths.set(&inputs(&[2])).unwrap();
    card.put(THRU, &[0; 26]);
    paths.renew().unwrap();
    assert_eq!(card.value(THRU, 2), 1);
    card.errno.set(Some(libc::EBUSY));
    assert_eq!(paths.set(&inputs(&[4])), Err(MonitoringError::Refused(libc::EBUSY)));
    assert!(paths.is_there());
    card.errno.set(None);
    paths.set(&inputs(&[4])).unwrap();
    assert_eq!((card.value(THRU, 2), card.value(THRU, 4)), (0, 1));
    card.errno.set(Some(libc::ENODEV));
    assert_eq!(paths.renew(), Err(MonitoringError::Gone));
    assert!(!paths.is_there());
}

#[test]
fn a_card_that_is_not_there_does_not_monitor() {
    assert_eq!(HardwareMonitoring::open(31, 48_000).err(), Some(MonitoringError::Gone));
}
