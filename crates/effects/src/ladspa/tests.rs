//! Plug-ins of Debian's `ladspa-sdk`.

use super::*;

fn options(plugin: &str, label: &str, control: Option<&str>) -> LadspaOptions {
    LadspaOptions {
        plugin: plugin.into(),
        label: label.into(),
        control: control.map(Into::into),
        inputs: None,
        outputs: None,
    }
}

fn amplifier(label: &str, gain: &str, channels: usize) -> Ladspa {
    Ladspa::open(&options("amp", label, Some(gain)), channels, 48_000).expect("ladspa-sdk's")
}

fn processed(ladspa: &mut Ladspa, planes: &[&[f32]]) -> Vec<Vec<f32>> {
    let mut planes: Vec<Vec<f32>> = planes.iter().map(|plane| plane.to_vec()).collect();
    let mut slices: Vec<&mut [f32]> = planes.iter_mut().map(|plane| &mut **plane).collect();
    ladspa.process(&mut slices);
    planes
}

fn refused(options: &LadspaOptions, channels: usize) -> String {
    format!("{:#}", Ladspa::open(options, channels, 48_000).expect_err("it does not suit"))
}

#[test]
fn a_plug_in_of_one_channel_has_an_instance_for_each() {
    let mut ladspa = amplifier("amp_mono", "0.5", 3);
    assert_eq!(ladspa.instances.len(), 3);
    let planes = processed(&mut ladspa, &[&[0.5, -0.25], &[1.0, 0.0], &[-1.0, 0.125]]);
    assert_eq!(planes, [[0.25, -0.125], [0.5, 0.0], [-0.5, 0.0625]]);
}

#[test]
fn a_plug_in_of_two_channels_has_an_instance_for_two() {
    let mut ladspa = amplifier("amp_stereo", "2", 4);
    assert_eq!(ladspa.instances.len(), 2);
    let planes = processed(&mut ladspa, &[&[0.125], &[0.25], &[-0.125], &[0.5]]);
    assert_eq!(planes, [[0.25], [0.5], [-0.25], [1.0]]);
}

#[test]
fn what_a_plug_in_keeps_goes_on_from_block_to_block() {
    // Delays by 3000 frames, of which it is given blocks of other lengths.
    let options = options("delay", "delay_5s", Some("0.0625,1"));
    let mut ladspa = Ladspa::open(&options, 1, 48_000).expect("ladspa-sdk's");
    let clicks: Vec<f32> =
        (0..9_000).map(|frame| if frame % 1_250 == 0 { 0.5 } else { 0.0 }).collect();
    let mut heard = Vec::new();
    for piece in clicks.chunks(700) {
        heard.extend(processed(&mut ladspa, &[piece]).remove(0));
    }
    let mut all_at_once = Ladspa::open(&options, 1, 48_000).expect("ladspa-sdk's");
    assert_eq!(processed(&mut all_at_once, &[&clicks]), [heard.clone()]);
    let expected: Vec<f32> =
        (0..9_000).map(|frame| if frame < 3_000 { 0.0 } else { clicks[frame - 3_000] }).collect();
    assert_eq!(heard, expected);
}

#[test]
fn samples_are_clamped_to_full_scale_and_what_is_no_number_is_silent() {
    let mut ladspa = amplifier("amp_mono", "4", 1);
    let planes = processed(&mut ladspa, &[&[0.5, -0.75, f32::NAN, f32::INFINITY, 3.0, 0.125]]);
    assert_eq!(planes, [[1.0, -1.0, 0.0, 0.0, 1.0, 0.5]]);
}

#[test]
fn a_plug_in_without_inputs_is_heard_instead() {
    let options = options("noise", "noise_white", Some("0.5"));
    let mut ladspa = Ladspa::open(&options, 2, 48_000).expect("ladspa-sdk's");
    let planes = processed(&mut ladspa, &[&[1.0; 2_000], &[1.0; 2_000]]);
    for plane in planes {
        assert!(plane.iter().all(|sample| sample.abs() <= 0.5));
        assert!(plane.iter().any(|sample| *sample > 0.4) && plane.iter().any(|it| *it < -0.4));
    }
}

#[test]
fn ports_are_in_the_order_that_is_given() {
    let port = |name: &str| {
        let hint = crate::library::ladspa::RangeHint { kinds: 0, lower: 0.0, upper: 0.0 };
        Port { name: name.into(), kind: PortKind::AudioInput, hint }
    };
    let ports = ["a", "left", "right", "b"].map(port);
    let order = |map| mapped(&ports, vec![1, 2], map).map_err(|error| error.to_string());
    assert_eq!(order(None), Ok(vec![1, 2]));
    assert_eq!(order(Some("right,left")), Ok(vec![2, 1]));
    assert_eq!(order(Some("right")), Ok(vec![2, 1]));
    for wrong in ["a", "left,left", "left,right,b"] {
        let refused = order(Some(wrong)).expect_err(wrong);
        assert!(refused.contains("there is no further port"), "{refused}");
    }
}

#[test]
fn a_plug_in_that_does_not_suit_is_refused_with_a_reason() {
    for (options, channels, reason) in [
        (options("none", "amp_mono", None), 1, "there is no plug-in 'none'"),
        (
            options("amp", "amp", None),
            1,
            "no plug-in with the label 'amp': it has amp_mono, amp_st",
        ),
        (options("amp", "amp_stereo", None), 3, "does not suit 3 channels"),
        (options("amp", "amp_mono", None), 0, "does not suit 0 channels"),
        (options("amp", "amp_mono", Some("1,2")), 1, "control has 2 values"),
        (options("amp", "amp_mono", Some("-1")), 1, "-1 is out of bounds: 'Gain'"),
        (
            LadspaOptions { inputs: Some("In".into()), ..options("amp", "amp_mono", None) },
            1,
            "input_ladspaport_map: there is no further port 'In': left are Input",
        ),
        (
            LadspaOptions { outputs: Some("Input".into()), ..options("amp", "amp_mono", None) },
            1,
            "output_ladspaport_map: there is no further port 'Input': left are Output",
        ),
    ] {
        let refused = refused(&options, channels);
        assert!(refused.contains(reason), "{refused}");
    }
}
