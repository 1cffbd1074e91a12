//! A recording in a file.
//!
//! Eight bytes of magic and a version of four bytes come first, then entries of one letter and a
//! body; all numbers are little-endian. `O` is the origin, `N` a client's name from here on, `R`
//! the eight words of a record, `L` the number of records lost here. The last entry is `E` with the
//! number of records; without it the file is cut off.

use std::io::{self, Write};

use rt::record::Record;
use rt::shm::RECORD_WORDS;

use crate::timeline::{Origin, Timeline};

const MAGIC: &[u8; 8] = b"consrec\n";
/// Version of the file format and of the records in it.
const VERSION: u32 = 1;
/// Limit of a name in bytes. Longer names are cut at a character boundary.
const LONGEST_TEXT: usize = 1024;

/// Why bytes are not a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("it is not a recording of consort: make one with 'consort profile record'")]
    Foreign,
    #[error(
        "it is a recording of version {0}, and this consort reads version {VERSION}: record again"
    )]
    Version(u32),
    #[error("it is cut off at byte {0}: the recording was not finished, or not copied completely")]
    CutOff(usize),
    #[error("it is damaged at byte {0}: record again")]
    Malformed(usize),
}

/// Writes a recording entry by entry.
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

    /// Ends the recording; returns the number of its records.
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

/// Reads a file's bytes from front to back.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
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

/// Reads a complete recording.
pub(crate) fn read(bytes: &[u8]) -> Result<Timeline, ReadError> {
    let beginning = bytes.get(..MAGIC.len().min(bytes.len())).unwrap_or_default();
    if bytes.is_empty() || !MAGIC.starts_with(beginning) {
        return Err(ReadError::Foreign);
    }
    let mut reader = Reader { bytes, at: 0 };
    reader.take(MAGIC.len())?;
    match u32::from_le_bytes(reader.number()?) {
        VERSION => {}
        other => return Err(ReadError::Version(other)),
    }
    if reader.take(1)? != b"O" {
        return Err(ReadError::Malformed(reader.at - 1));
    }
    let sync = reader.take(1)? != [0];
    let (server, driver) = (reader.text()?.to_owned(), reader.text()?.to_owned());
    let mut timeline = Timeline::new(Origin { server, driver, sync });
    let mut records = 0_u64;
    loop {
        let at = reader.at;
        match reader.take(1)? {
            b"N" => {
                let id = u32::from_le_bytes(reader.number()?);
                timeline.name(id, reader.text()?);
            }
            b"R" => {
                let mut words = [0; RECORD_WORDS];
                for word in &mut words {
                    *word = reader.word()?;
                }
                timeline.add(Record::from_words(&words).ok_or(ReadError::Malformed(at))?);
                records += 1;
            }
            b"L" => timeline.lost = timeline.lost.saturating_add(reader.word()?),
            b"E" if reader.word()? == records && reader.at == bytes.len() => return Ok(timeline),
            _ => return Err(ReadError::Malformed(at)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::timeline::tests::sample;

    /// Returns the file that `timeline` would be read from.
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
    fn a_recording_is_read_as_it_was_written() {
        let timeline = sample(5);
        assert_eq!(read(&written(&timeline)).unwrap(), timeline);
    }

    #[test]
    fn a_recording_cut_anywhere_is_refused_as_cut_off() {
        let whole = written(&sample(3));
        for length in 1..whole.len() {
            assert_eq!(read(&whole[..length]), Err(ReadError::CutOff(length)));
        }
    }

    #[test]
    fn foreign_and_damaged_files_are_refused_for_different_reasons() {
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
        assert_eq!(
            changed(whole.len() - 8, 1),
            Err(ReadError::Malformed(whole.len() - 9)),
            "another count"
        );
        let longer = [&whole[..], b"more"].concat();
        assert_eq!(read(&longer), Err(ReadError::Malformed(whole.len() - 9)));
    }
}
