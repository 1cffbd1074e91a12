use crate::planes::Planes;
use crate::{ChannelMap, Matrix, Mixing};

/// What PulseAudio does; the file says how it was measured.
const MEASURED: &str = include_str!("../../../measured/matrices.txt");

fn map(text: &str) -> ChannelMap {
    text.parse().unwrap()
}

/// Calls `check` with each measured matrix.
fn each_measured(mut check: impl FnMut(&str, Mixing, &ChannelMap, &ChannelMap, &[Vec<f32>])) {
    let mut lines = MEASURED.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(title) = lines.next() {
        let mut rows = Vec::new();
        while let Some(row) = lines.next_if(|line| line.starts_with("  ")) {
            rows.push(row.split_whitespace().map(|factor| factor.parse().unwrap()).collect());
        }
        let (mode, maps) = title.split_once(": ").unwrap();
        let (source, sink) = maps.split_once(" -> ").unwrap();
        let mixing = match mode {
            "remix" => Mixing::Mixed,
            "no-remix" => Mixing::ByPosition,
            "no-remap" => Mixing::ByNumber,
            _ => panic!("mode {mode}"),
        };
        check(title, mixing, &map(source), &map(sink), &rows);
    }
}

#[test]
fn channels_are_mixed_as_pulseaudio_mixes_them() {
    let (mut count, mut wrong) = (0, Vec::new());
    each_measured(|title, mixing, source, sink, measured| {
        let matrix = Matrix::new(source, sink, mixing);
        assert_eq!((measured.len(), matrix.sinks()), (sink.channels(), sink.channels()));
        for (to, row) in measured.iter().enumerate() {
            let differs = |(ours, theirs): (&f32, &f32)| (ours - theirs).abs() > 1e-6;
            assert_eq!((row.len(), matrix.row(to).len()), (source.channels(), source.channels()));
            if matrix.row(to).iter().zip(row).any(differs) {
                wrong.push(format!("{title}: {to}\n  {row:?}\n  {:?}", matrix.row(to)));
            }
        }
        count += 1;
    });
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(count, 32 * 32 + 2 * 10 * 10);
}

#[test]
fn a_map_is_mixed_into_itself_without_a_change() {
    each_measured(|title, mixing, source, sink, _| {
        let matrix = Matrix::new(source, sink, mixing);
        if source == sink {
            assert!(matrix.is_identity(), "{title}");
        }
        assert!(!matrix.is_identity() || source.channels() == sink.channels(), "{title}");
    });
    let swapped = Matrix::new(&map("left,right"), &map("right,left"), Mixing::Mixed);
    assert!(!swapped.is_identity());
}

#[test]
fn nothing_is_louder_than_full_scale() {
    each_measured(|title, mixing, source, sink, _| {
        let matrix = Matrix::new(source, sink, mixing);
        for to in 0..sink.channels() {
            let sum: f32 = matrix.row(to).iter().sum();
            assert!(sum < 1.000_001 && matrix.row(to).iter().all(|x| *x >= 0.0), "{title}");
        }
    });
}

#[test]
fn samples_are_multiplied_by_the_rows_and_added() {
    let (source, sink) = (map("left,right,center"), map("left,right,lfe,rear-left"));
    let matrix = Matrix::new(&source, &sink, Mixing::Mixed);
    let planes = [&[0.75, 0.0, 0.25][..], &[0.0, 0.75, 0.5], &[0.0, 0.0, 0.5]];
    let mut mixed = Planes::new(4, 8);
    mixed.as_mut_slice().fill(f32::NAN);
    matrix.mix(&planes, &mut mixed);
    mixed.emit(0, 3, &mut |mixed| {
        let expected = [[0.5, 0.0, 1.0 / 3.0], [0.0, 0.5, 0.5], [0.0; 3], [0.75, 0.0, 0.25]];
        for (plane, expected) in mixed.iter().zip(expected) {
            let is_near = |(a, b): (&f32, f32)| (a - b).abs() < 1e-6;
            assert!(plane.iter().zip(expected).all(is_near), "{mixed:?}");
        }
    });
}
