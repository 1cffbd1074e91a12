//! Any words in the place of a client's assignments: reading them ends, and stays within them.
#![no_main]

use rt::shm::{ASSIGNMENT_WORDS, AssignmentReader, InputSource, MAX_EDGES};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let words: Vec<u32> = bytes
        .chunks_exact(4)
        .take(ASSIGNMENT_WORDS)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    let reader = AssignmentReader::new(&words);
    let _ = (reader.cpu(), reader.runs(), reader.driver_waits());
    assert!(reader.edges().count() as usize <= MAX_EDGES as usize);
    assert!(reader.followers().count() * 3 <= words.len());
    // Each group is read from words of its own, or from none past the end.
    let (mut groups, mut used) = (0, 0);
    for group in reader.groups() {
        groups += 1;
        used += group.sources.len() + group.inputs.len();
        for word in group.sources {
            let source = InputSource::from_word(*word);
            assert!(source.slot < 16 && source.to_word() == *word, "packing loses nothing");
        }
    }
    assert!(groups <= words.len() && used <= words.len());
});
