//! A recording in a file.
//!
//! Twelve bytes that say what it is, then entries of one letter and a body, all numbers little-endian:
//! `O` the origin, `N` a client's name from here on, `R` a record's eight words, `L` how many records were lost
//! here, and at last `E` with the number of records, without which the file is cut off.

use std::io::{self, Write};

use rt::record::Record;
use rt::shm::RECORD_WORDS;

use super::timeline::{Origin, Timeline};

const MAGIC: &[u8; 8] = b"consrec\n";
/// Of the file, and of the records in it.
const VERSION: u32 = 1;
/// Of a name; longer ones are cut, at a character.
const LONGEST_TEXT: usize = 1024;

/// Why bytes are no recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadError {
    Foreign,
    Version(u32),
    CutOff(usize),
    Malformed(usize),
}

impl std::error::Error for ReadError {}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign => {
                f.write_str("it is no recording of consort's: make one with 'consort profile record'")
            }
            Self::Version(found) => write!(
                f,
                "it is a recording of version {found}, and this consort reads version {VERSION}: record it again"
            ),
            Self::CutOff(at) => {
                write!(f, "it is cut off at byte {at}: the recording was not ended, or not copied whole")
            }
            Self::Malformed(at) => write!(f, "it is damaged at byte {at}: record it again"),
        }
    }
}

/// Writes a recording, entry by entry.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    to: W,
    records: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut to: W, origin: &Origin) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        to.write_all(&VERSION.to_le_bytes())?;
        to.write_all(&[b'O', u8::from(origin.sync)])?;
        write_text(&mut to, &origin.server)?;
        write_text(&mut to, &origin.driver)?;
        Ok(Self { to, records: 0 })
    }

    pub(crate) fn name(&mut self, id: u32, name: &str) -> io::Result<()> {
        self.to.write_all(b"N")?;
        self.to.write_all(&id.to_le_bytes())?;
        write_text(&mut self.to, name)
    }

    pub(crate) fn record(&mut self, words: &[u64; RECORD_WORDS]) -> io::Result<()> {
        self.records += 1;
        self.to.write_all(b"R")?;
        words.iter().try_for_each(|word| self.to.write_all(&word.to_le_bytes()))
    }

    pub(crate) fn lost(&mut self, records: u64) -> io::Result<()> {
        self.to.write_all(b"L")?;
        self.to.write_all(&records.to_le_bytes())
    }

    /// Ends the recording; gives the number of its records.
    pub(crate) fn end(mut self) -> io::Result<u64> {
        self.to.write_all(b"E")?;
        self.to.write_all(&self.records.to_le_bytes())?;
        self.to.flush()?;
        Ok(self.records)
    }
}

fn write_text(to: &mut impl Write, text: &str) -> io::Result<()> {
    let text = &text[..text.floor_char_boundary(LONGEST_TEXT)];
    to.write_all(&(text.len() as u16).to_le_bytes())?;
    to.write_all(text.as_bytes())
}

/// The part of a file that is not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let taken = self.bytes.get(self.at..self.at.saturating_add(count));
        let taken = taken.ok_or(ReadError::CutOff(self.bytes.len()))?;
        self.at += count;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        self.take(N)?.try_into().map_err(|_| ReadError::Malformed(self.at))
    }

    fn word(&mut self) -> Result<u64, ReadError> {
        self.number().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a str, ReadError> {
        let (at, length) = (self.at, u16::from_le_bytes(self.number()?));
        if usize::from(length) > LONGEST_TEXT {
            return Err(ReadError::Malformed(at));
        }
        std::str::from_utf8(self.take(usize::from(length))?).map_err(|_| ReadError::Malformed(at))
    }
}

/// Reads a recording, all of it.
pub(crate) fn read(bytes: &[u8]) -> Result<Timeline, ReadError> {
    let beginning = bytes.get(..MAGIC.len().min(bytes.len())).unwrap_or_default();
    if bytes.is_empty() || !MAGIC.starts_with(beginning) {
        return Err(ReadError::Foreign);
    }
    let mut rest = Rest { bytes, at: 0 };
    rest.take(MAGIC.len())?;
    match u32::from_le_bytes(rest.number()?) {
        VERSION => {}
        other => return Err(ReadError::Version(other)),
    }
    if rest.take(1)? != b"O" {
        return Err(ReadError::Malformed(rest.at - 1));
    }
    let sync = rest.take(1)? != [0];
    let (server, driver) = (rest.text()?.to_owned(), rest.text()?.to_owned());
    let mut timeline = Timeline::new(Origin { server, driver, sync });
    let mut records = 0_u64;
    loop {
        let at = rest.at;
        match rest.take(1)? {
            b"N" => {
                let id = u32::from_le_bytes(rest.number()?);
                timeline.name(id, rest.text()?);
            }
            b"R" => {
                let mut words = [0; RECORD_WORDS];
                for word in &mut words {
                    *word = rest.word()?;
                }
                timeline.add(Record::from_words(&words).ok_or(ReadError::Malformed(at))?);
                records += 1;
            }
            b"L" => timeline.lost = timeline.lost.saturating_add(rest.word()?),
            b"E" if rest.word()? == records && rest.at == bytes.len() => return Ok(timeline),
            _ => return Err(ReadError::Malformed(at)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::timeline::tests::sample;
    use super::*;

    /// The file that a timeline would have come from.
    pub(crate) fn written(timeline: &Timeline) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &timeline.origin).unwrap();
        for (id, name) in (2..).zip(&timeline.names) {
            writer.name(id, name).unwrap();
        }
        for run in &timeline.runs {
            writer.record(&Record::Cycle(run.cycle).to_words()).unwrap();
            for (_, client) in &run.clients {
                writer.record(&Record::Client(*client).to_words()).unwrap();
            }
        }
        writer.end().unwrap();
        bytes
    }

    #[test]
    fn a_recording_comes_back_as_it_was() {
        let timeline = sample(5);
        assert_eq!(read(&written(&timeline)).unwrap(), timeline);
    }

    #[test]
    fn a_recording_that_was_cut_anywhere_says_so() {
        let whole = written(&sample(3));
        for length in 1..whole.len() {
            assert_eq!(read(&whole[..length]), Err(ReadError::CutOff(length)));
        }
    }

    #[test]
    fn other_files_and_damaged_ones_are_told_apart() {
        let whole = written(&sample(1));
        let changed = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            read(&bytes)
        };
        assert_eq!(read(b""), Err(ReadError::Foreign));
        assert_eq!(read(b"1333\t9\n"), Err(ReadError::Foreign));
        assert_eq!(changed(8, 9), Err(ReadError::Version(9)));
        assert_eq!(changed(12, b'R'), Err(ReadError::Malformed(12)));
        assert_eq!(changed(whole.len() - 9, b'?'), Err(ReadError::Malformed(whole.len() - 9)));
        assert_eq!(changed(whole.len() - 8, 1), Err(ReadError::Malformed(whole.len() - 9)), "another count");
        let longer = [&whole[..], b"more"].concat();
        assert_eq!(read(&longer), Err(ReadError::Malformed(whole.len() - 9)));
    }
}
