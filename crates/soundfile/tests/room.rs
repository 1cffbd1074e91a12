//! A disk that is full for a while: a limit on the length of files, which the kernel enforces in
//! the middle of a block.

use std::fs;
use std::path::Path;
use std::process::Command;

use consort_soundfile::{Reader, SoundFileError, Writer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Set in the process to which the limit applies.
const INNER: &str = "CONSORT_TEST_LIMITED_DIRECTORY";
const LIMIT_BYTES: u64 = 64 * 1024;

fn set_limit(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

fn read(path: &Path) -> Vec<Vec<f32>> {
    let mut reader = Reader::open(path).unwrap();
    let frames = reader.frames().unwrap() as usize;
    let mut planes = vec![vec![0.0; frames]; reader.channels()];
    assert_eq!(reader.read(&mut planes).unwrap(), frames);
    assert_eq!(reader.read(&mut [[0.0]]).unwrap(), 0);
    planes
}

fn write_against_the_limit(path: &Path) {
    let block = |number: u32| vec![vec![number as f32; 1000]; 3];
    let mut writer = Writer::create(path, 3, 48_000).unwrap();
    let mut expected = vec![Vec::new(); 3];
    set_limit(Some(LIMIT_BYTES));
    let mut number = 0;
    let failure = loop {
        match writer.write(&block(number)) {
            Ok(()) => {
                expected.iter_mut().zip(block(number)).for_each(|(all, block)| all.extend(block))
            }
            Err(failure) => break failure,
        }
        number += 1;
    };
    // A part of the block had room, but less than all of it.
    assert_eq!(number, 5);
    assert!(matches!(failure, SoundFileError::Write { .. }), "{failure:?}");
    for _ in 0..3 {
        assert_eq!(writer.frames(), 5000);
        assert_eq!(read(path), expected, "as it was before the block");
        writer.write(&block(number)).unwrap_err();
    }
    set_limit(None);
    for number in number..10 {
        writer.write(&block(number)).unwrap();
        expected.iter_mut().zip(block(number)).for_each(|(all, block)| all.extend(block));
        assert_eq!(read(path), expected);
    }
    writer.finish().unwrap();
    assert_eq!(read(path), expected);
}

#[test]
fn a_block_that_did_not_fit_can_be_written_once_there_is_room() {
    if let Some(directory) = std::env::var_os(INNER) {
        return write_against_the_limit(&Path::new(&directory).join("sound.wav"));
    }
    let directory = tempfile::tempdir().unwrap();
    // A process that ignores the signal gets an error instead, and so do the programs it executes.
    let inner = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" --exact \"$1\" --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .arg("a_block_that_did_not_fit_can_be_written_once_there_is_room")
        .env(INNER, directory.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&inner.stdout) + String::from_utf8_lossy(&inner.stderr);
    assert!(inner.status.success() && output.contains("1 passed"), "{output}");
    assert!(fs::metadata(directory.path().join("sound.wav")).unwrap().len() > LIMIT_BYTES);
}
