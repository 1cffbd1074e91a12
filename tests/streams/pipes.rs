//! Raw samples in FIFOs: written from a device, or played on one.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use harness::{Server, Sound, eventually, in_three_attempts};

use crate::{RATE_HZ, file, play_to_end, ramps, server, streams};

/// The samples of two channels as 16-bit integers, frame after frame, as PulseAudio has them.
fn bytes(sound: &Sound) -> Vec<u8> {
    let frames = sound.channels[0].iter().zip(&sound.channels[1]);
    let samples = frames.flat_map(|(left, right)| [*left, *right]);
    samples.flat_map(|sample| ((sample * 32_768.0) as i16).to_le_bytes()).collect()
}

/// Adds a pipe of this kind, and returns its FIFO.
fn add(server: &Server, kind: &str, words: &[&str]) -> PathBuf {
    let path = server.directory().join("fifo");
    let fifo = path.to_string_lossy();
    let words = [&["device", "add", kind, "--file", &fifo], words].concat();
    let added = server.consort(&words).expect_success().stdout;
    assert!(added.contains("s16le, 48000 Hz, 2 channels"), "{added}");
    path
}

/// Reads a FIFO until its writer is gone.
fn reader(path: &Path) -> std::thread::JoinHandle<Vec<u8>> {
    let path = path.to_owned();
    std::thread::spawn(move || {
        let mut read = Vec::new();
        File::open(path).expect("a FIFO").read_to_end(&mut read).expect("its bytes");
        read
    })
}

fn await_all_parked(server: &Server) {
    eventually("nothing plays", || {
        let devices = server.consort_json(&["status"])["further_devices"].clone();
        let parked = |device: &serde_json::Value| device["state"] == "parked";
        devices.as_array().expect("a list").iter().all(parked).then_some(())
    });
}

/// The frames of `bytes` that are not silent.
fn sounding(bytes: &[u8]) -> &[u8] {
    let frames = bytes.chunks_exact(4).map(|frame| frame != [0; 4]);
    let first = frames.clone().position(|sounds| sounds).unwrap_or(0);
    let end = frames.clone().rposition(|sounds| sounds).map_or(0, |last| last + 1);
    &bytes[4 * first..4 * end]
}

#[test]
fn what_is_played_on_a_pipe_sink_comes_out_of_its_fifo_sample_for_sample() {
    in_three_attempts(|| {
        let server = server(1024);
        let fifo = add(&server, "pipe-sink", &["--name", "piped"]);
        let sound = ramps(3 * RATE_HZ as usize);
        let path = file(&server, "played.wav", &sound);
        let reading = reader(&fifo);
        play_to_end(&server, &path, &["--device", "piped"])?;
        await_all_parked(&server);
        server.check_rendered()?;
        let list = server.consort(&["device", "list"]).expect_success().stdout;
        server.consort(&["device", "remove", "piped"]).expect_success();
        let read = reading.join().expect("it read");
        assert!(!fifo.exists(), "the FIFO was made for it");
        if !list.contains(" 0 gaps") {
            return Err(format!("the reader was late: {list}"));
        }
        if read.is_empty() {
            return Err("the reader came too late".into());
        }
        assert!(sounding(&read) == bytes(&sound), "{} bytes", read.len());
        Ok(())
    });
}

#[test]
fn a_reader_that_stalls_or_goes_costs_only_its_own_samples() {
    in_three_attempts(|| {
        let server = server(1024);
        let fifo = add(&server, "pipe-sink", &["--name", "piped"]);
        let sound = ramps(3 * RATE_HZ as usize);
        let path = file(&server, "played.wav", &sound);
        // It reads nothing at first: a pipe has room for less than half a second, in half-full
        // pages.
        let mut open = std::fs::OpenOptions::new();
        let mut stalls = open.read(true).write(true).open(&fifo).expect("a FIFO");
        play_to_end(&server, &path, &["--device", "piped"])?;
        await_all_parked(&server);
        server.check_rendered()?;
        let list = server.consort(&["device", "list"]).expect_success().stdout;
        assert!(list.contains(" gaps") && !list.contains(" 0 gaps"), "{list}");
        let mut read = vec![0; 20_000];
        stalls.read_exact(&mut read).expect("what had room");
        let whole = bytes(&sound);
        assert!(whole.starts_with(sounding(&read)), "whole frames, from the first on");
        drop(stalls);
        // Another one gets what the first has left in the pipe, and all that is played from then
        // on; or, if the sink has seen meanwhile that there is no reader, what follows.
        let reading = reader(&fifo);
        play_to_end(&server, &path, &["--device", "piped"])?;
        await_all_parked(&server);
        server.check_rendered()?;
        server.consort(&["device", "remove", "piped"]).expect_success();
        let read = reading.join().expect("it read");
        let heard = sounding(&read);
        let is_end = heard.ends_with(&whole) || whole.ends_with(heard);
        assert!(is_end && !heard.is_empty(), "{} bytes", heard.len());
        Ok(())
    });
}

#[test]
fn what_is_written_into_the_fifo_of_a_pipe_source_is_heard_sample_for_sample_each_time() {
    in_three_attempts(|| {
        let server = server(1024);
        let fifo = add(&server, "pipe-source", &["--to", "system"]);
        let sound = ramps(RATE_HZ as usize);
        for _ in 0..2 {
            std::fs::OpenOptions::new()
                .write(true)
                .open(&fifo)
                .and_then(|mut pipe| pipe.write_all(&bytes(&sound)))
                .expect("all is taken");
            eventually("all of it was heard", || {
                let plays = streams(&server).iter().any(|stream| stream["plays"] == true);
                let parked = server.consort_json(&["status"])["device"] == "parked";
                (!plays && parked).then_some(())
            });
        }
        let list = server.consort(&["device", "list"]).expect_success().stdout;
        if !list.contains("200 ms, silent, 0 gaps") {
            return Err(list);
        }
        server.check_rendered()?;
        server.consort(&["device", "remove", "pipe-source"]).expect_success();
        let recorded = server.recorded();
        for channel in 0..2 {
            let heard = &recorded.sounding(channel).channels[0];
            let once = &sound.channels[channel];
            assert!(heard.starts_with(once) && heard.ends_with(once), "sample for sample");
            let between = &heard[once.len()..heard.len() - once.len()];
            assert!(between.iter().all(|sample| *sample == 0.0), "and nothing else");
        }
        Ok(())
    });
}

#[test]
fn a_pipe_that_cannot_be_is_refused_with_the_reason() {
    let server = server(1024);
    let plain = file(&server, "plain.wav", &ramps(100));
    let plain = plain.to_string_lossy();
    for (words, expected) in [
        (&["pipe-sink"][..], "needs --file"),
        (&["pipe-sink", "--file", &plain], "it is not a FIFO"),
        (&["pipe-sink", "--file", "fifo", "--to", "system"], "--to is not for"),
        (&["pipe-source", "--file", "fifo"], "needs --to"),
        (&["pipe-source", "--file", "fifo", "--to", "none"], "there is no device 'none'"),
        (&["loopback", "--from", "system", "--to", "system", "--file", "f"], "--file is not for"),
    ] {
        let refused = server.consort(&[&["device", "add"], words].concat());
        assert!(refused.code == Some(1) && refused.stderr.contains(expected), "{refused:?}");
    }
    let wrong = ["device", "add", "pipe-sink", "--file", "fifo", "--format", "s17"];
    assert!(server.consort(&wrong).stderr.contains("unknown sample format"));
    assert!(!server.directory().join("fifo").exists(), "none was left");
    let devices = server.consort_json(&["status"])["further_devices"].clone();
    assert_eq!(devices.as_array().map(Vec::len), Some(0), "none was left: {devices}");
}
