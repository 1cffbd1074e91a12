//! The channels of one device, mixed into those of another.

use convert::Matrix;

/// Mixes blocks of frames.
#[derive(Debug)]
pub(super) struct Mix {
    matrix: Matrix,
    mixed: Vec<Vec<f32>>,
}

impl Mix {
    /// Allocates room for blocks of `most_frames`.
    pub(super) fn new(matrix: Matrix, most_frames: usize) -> Self {
        let mixed = vec![vec![0.0; most_frames]; matrix.sinks()];
        Self { matrix, mixed }
    }

    /// Mixes a slice for each channel of the source, all of the same length; returns one for each
    /// channel of the sink.
    pub(super) fn mix(&mut self, planes: &[&[f32]]) -> Vec<&[f32]> {
        let most = self.mixed.first().map_or(0, Vec::len);
        let frames = planes.iter().map(|plane| plane.len()).min().unwrap_or(0).min(most);
        for (sink, mixed) in self.mixed.iter_mut().enumerate() {
            mixed[..frames].fill(0.0);
            for (factor, plane) in self.matrix.row(sink).iter().zip(planes) {
                if *factor != 0.0 {
                    let samples = mixed.iter_mut().zip(&plane[..frames]);
                    samples.for_each(|(sum, sample)| *sum += factor * sample);
                }
            }
        }
        self.mixed.iter().map(|mixed| &mixed[..frames]).collect()
    }
}

#[cfg(test)]
mod tests {
    use convert::{ChannelMap, Mixing};

    use super::*;

    fn mixed(from: &str, to: &str, mixing: Mixing, planes: &[&[f32]]) -> Vec<Vec<f32>> {
        let map = |text: &str| text.parse::<ChannelMap>().expect("a map");
        let mut mix = Mix::new(Matrix::new(&map(from), &map(to), mixing), 4);
        mix.mix(planes).into_iter().map(<[f32]>::to_vec).collect()
    }

    #[test]
    fn channels_are_heard_where_their_positions_are() {
        let stereo: [&[f32]; 2] = [&[0.5, 0.25], &[-0.5, 0.125]];
        let swapped =
            mixed("front-left,front-right", "front-right,front-left", Mixing::Mixed, &stereo);
        assert_eq!(swapped, [[-0.5, 0.125], [0.5, 0.25]]);
        let both = mixed("mono", "front-left,front-right", Mixing::Mixed, &stereo[..1]);
        assert_eq!(both, [[0.5, 0.25], [0.5, 0.25]], "a microphone is heard on both sides");
        let average = mixed("front-left,front-right", "mono", Mixing::Mixed, &stereo);
        assert_eq!(average, [[0.0, 0.1875]]);
        let rear = mixed("rear-left", "front-left,rear-left", Mixing::ByPosition, &stereo[..1]);
        assert_eq!(rear, [[0.0, 0.0], [0.5, 0.25]]);
    }
}
