//! Search for the smallest setting that works, which the paper's authors did by hand.

/// Returns the index of the smallest of `count` ascending settings that `works`.
///
/// Bisection finds it, since settings above one that works should work as well. It is then tried
/// again. If it fails, the next larger one is tried, until one has worked `1 + confirmations`
/// times.
///
/// # Errors
/// The error of `works`, which ends the search.
pub(crate) fn smallest<E>(
    count: usize,
    confirmations: u32,
    mut works: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Option<usize>, E> {
    let (mut below, mut at) = (0, count);
    while below < at {
        let middle = below + (at - below) / 2;
        if works(middle)? {
            at = middle;
        } else {
            below = middle + 1;
        }
    }
    // The setting found by bisection has already worked once; larger ones may not have been tried.
    'setting: for setting in at..count {
        let needed = if setting == at { confirmations } else { 1 + confirmations };
        for _ in 0..needed {
            if !works(setting)? {
                continue 'setting;
            }
        }
        return Ok(Some(setting));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn search(count: usize, works: impl FnMut(usize) -> bool) -> (Option<usize>, Vec<usize>) {
        let (mut works, mut tried) = (works, Vec::new());
        let found = smallest(count, 2, |setting| {
            tried.push(setting);
            Ok::<_, Infallible>(works(setting))
        });
        (found.unwrap(), tried)
    }

    #[test]
    fn the_smallest_setting_that_works_is_found() {
        for count in 0..12 {
            for least in 0..=count {
                let (found, tried) = search(count, |setting| setting >= least);
                assert_eq!(found, (least < count).then_some(least), "{least} of {count}");
                let confirmed = tried.iter().filter(|setting| **setting == least).count();
                assert!(least == count || confirmed == 3, "{tried:?}");
                assert!(
                    least == 0 || count == 0 || tried.contains(&(least - 1)),
                    "the next smaller one has failed"
                );
            }
        }
    }

    #[test]
    fn a_setting_that_fails_later_is_replaced_by_a_larger_one() {
        let mut times = [0; 8];
        let (found, _) = search(8, |setting| {
            times[setting] += 1;
            setting > 4 || setting == 3 && times[3] == 1
        });
        assert_eq!(found, Some(5));
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(smallest(4, 1, |_| Err::<bool, _>("gone")), Err("gone"));
    }
}
