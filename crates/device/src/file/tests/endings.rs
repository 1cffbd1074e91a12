//! How playing and recording end.

use super::*;

#[test]
fn an_empty_input_ends_with_the_first_cycle() {
    let files = Files::new();
    let mut driver = open(files.options(&[vec![], vec![]]));
    assert_eq!(run(&mut driver, Mode::Sync, u32::MAX, |_| 64), 1);
    driver.stop();
    assert!(files.recorded() == [[0.0_f32; 0]; 2]);
}

#[test]
fn the_tail_after_the_input_is_recorded() {
    for mode in [Mode::Sync, Mode::Async] {
        let files = Files::new();
        let planes = samples(2, 1000);
        let mut driver = open(FileOptions { tail_frames: 500, ..files.options(&planes) });
        run(&mut driver, mode, u32::MAX, |_| 64);
        driver.stop();
        let with_tail = |plane: &Vec<f32>| [plane.as_slice(), &[0.0; 500]].concat();
        assert!(files.recorded() == planes.iter().map(with_tail).collect::<Vec<_>>(), "{mode:?}");
    }
}

#[test]
fn a_truncated_input_is_played_up_to_the_damage() {
    let files = Files::new();
    let planes = samples(1, 30_000);
    let options = files.options(&planes);
    let bytes = fs::read(files.path("in.wav")).unwrap();
    fs::write(files.path("in.wav"), &bytes[..bytes.len() - 4 * 10_000]).unwrap();
    let mut driver = open(options);
    run(&mut driver, Mode::Sync, u32::MAX, |_| 333);
    driver.stop();
    assert!(files.recorded() == [planes[0][..20_000].to_vec()]);
    let summary = driver.summary();
    assert!(summary.contains("ends after 20000 of 30000 frames"), "{summary}");
}

#[test]
fn without_an_input_the_driver_records_until_it_is_stopped() {
    let files = Files::new();
    let options = files.options(&samples(1, 10));
    let mut driver = open(FileOptions { input: None, ..options });
    // More than fits into a ring.
    assert_eq!(run(&mut driver, Mode::Sync, 1000, |_| 100), 1000);
    driver.stop();
    assert!(files.recorded() == vec![vec![9.0; 100_000]; 2]);
}

#[test]
fn without_an_output_the_driver_plays_to_the_end_of_the_input() {
    let files = Files::new();
    let mut driver = open(FileOptions { output: None, ..files.options(&samples(2, 1000)) });
    assert_eq!(run(&mut driver, Mode::Sync, u32::MAX, |_| 100), 10);
    assert!(!files.path("out.wav").exists());
}

#[test]
fn a_driver_that_is_stopped_early_has_recorded_every_cycle_until_then() {
    let files = Files::new();
    let planes = samples(2, 300_000);
    let mut driver = open(files.options(&planes));
    run(&mut driver, Mode::Sync, 7, |_| 100);
    driver.stop();
    driver.stop();
    assert!(
        files.recorded() == planes.iter().map(|plane| plane[..700].to_vec()).collect::<Vec<_>>()
    );
}

#[test]
fn a_driver_that_is_dropped_has_recorded_everything() {
    let files = Files::new();
    let planes = samples(1, 1000);
    let mut driver = open(files.options(&planes));
    run(&mut driver, Mode::Sync, u32::MAX, |_| 64);
    drop(driver);
    assert!(files.recorded() == planes);
}

#[test]
fn cycles_after_the_stop_are_silent() {
    let files = Files::new();
    let mut driver = open(files.options(&samples(1, 1000)));
    run(&mut driver, Mode::Sync, 1, |_| 64);
    driver.stop();
    let mut ports = Ports::new(1, 64);
    driver.read(&mut ports);
    driver.write(64, &mut ports);
    assert_eq!(ports.planes, [[0.0; 64]]);
    assert_eq!(files.recorded()[0].len(), 64);
}
