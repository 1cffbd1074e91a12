//! The library's records of parameters, freed on drop.

use std::ptr::{NonNull, null_mut};

use alsa_sys as ffi;

use crate::handle::Pcm;

/// The configurations that are still possible while one is chosen.
#[derive(Debug)]
pub(crate) struct HardwareParameters<'a> {
    record: NonNull<ffi::snd_pcm_hw_params_t>,
    pcm: &'a Pcm,
}

/// An `errno`.
pub(crate) type Errno = i32;

fn errno(result: i32) -> Result<i32, Errno> {
    if result < 0 { Err(-result) } else { Ok(result) }
}

/// Calls the library with the handle, the record and more arguments; returns its result.
macro_rules! call {
    ($self:ident.$function:ident($($argument:expr),*)) => {
        // SAFETY: handle and record are valid as long as `self`; the other arguments are numbers,
        // or results that outlive the call.
        errno(unsafe { ffi::$function($self.pcm.raw(), $self.record.as_ptr(), $($argument),*) })
    };
}

/// Reads a number from the record.
macro_rules! get {
    ($self:ident.$function:ident) => {{
        let mut value = 0;
        // SAFETY: the record is valid as long as `self`, the result outlives the call.
        errno(unsafe { ffi::$function($self.record.as_ptr(), &mut value) }).map(|_| value)
    }};
    ($self:ident.$function:ident with direction) => {{
        let (mut value, mut direction) = (0, 0);
        // SAFETY: the record is valid as long as `self`, the results outlive the call.
        errno(unsafe { ffi::$function($self.record.as_ptr(), &mut value, &mut direction) })
            .map(|_| value)
    }};
}

fn frames(value: ffi::snd_pcm_uframes_t) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl<'a> HardwareParameters<'a> {
    /// Returns everything that the device supports.
    pub(crate) fn any(pcm: &'a Pcm) -> Result<Self, Errno> {
        let mut record = null_mut();
        // SAFETY: `record` outlives the call, which fills it with a new record or fails.
        errno(unsafe { ffi::snd_pcm_hw_params_malloc(&mut record) })?;
        let record = NonNull::new(record).ok_or(libc::ENOMEM)?;
        let parameters = Self { record, pcm };
        call!(parameters.snd_pcm_hw_params_any())?;
        Ok(parameters)
    }

    pub(crate) fn set_access(&mut self, access: ffi::snd_pcm_access_t) -> Result<(), Errno> {
        call!(self.snd_pcm_hw_params_set_access(access)).map(drop)
    }

    pub(crate) fn has_format(&self, format: ffi::snd_pcm_format_t) -> bool {
        call!(self.snd_pcm_hw_params_test_format(format)).is_ok()
    }

    pub(crate) fn set_format(&mut self, format: ffi::snd_pcm_format_t) -> Result<(), Errno> {
        call!(self.snd_pcm_hw_params_set_format(format)).map(drop)
    }

    pub(crate) fn channels(&self) -> Result<(u32, u32), Errno> {
        Ok((
            get!(self.snd_pcm_hw_params_get_channels_min)?,
            get!(self.snd_pcm_hw_params_get_channels_max)?,
        ))
    }

    pub(crate) fn set_channels(&mut self, channels: u32) -> Result<(), Errno> {
        call!(self.snd_pcm_hw_params_set_channels(channels)).map(drop)
    }

    pub(crate) fn has_rate(&self, rate_hz: u32) -> bool {
        call!(self.snd_pcm_hw_params_test_rate(rate_hz, 0)).is_ok()
    }

    /// Returns the lowest and highest rate, Hz.
    pub(crate) fn rates(&self) -> Result<(u32, u32), Errno> {
        Ok((
            get!(self.snd_pcm_hw_params_get_rate_min with direction)?,
            get!(self.snd_pcm_hw_params_get_rate_max with direction)?,
        ))
    }

    pub(crate) fn set_rate(&mut self, rate_hz: u32) -> Result<(), Errno> {
        call!(self.snd_pcm_hw_params_set_rate(rate_hz, 0)).map(drop)
    }

    /// Fixes the length of a period.
    pub(crate) fn set_period(&mut self, period_frames: u32) -> Result<(), Errno> {
        call!(self.snd_pcm_hw_params_set_period_size(period_frames.into(), 0)).map(drop)
    }

    /// Limits the length of a period.
    pub(crate) fn set_period_at_most(&mut self, period_frames: u32) -> Result<(), Errno> {
        let (mut value, mut direction) = (ffi::snd_pcm_uframes_t::from(period_frames), 0);
        call!(self.snd_pcm_hw_params_set_period_size_max(&mut value, &mut direction)).map(drop)
    }

    /// Chooses a period of about this length.
    pub(crate) fn set_period_near(&mut self, period_frames: u32) -> Result<(), Errno> {
        let (mut value, mut direction) = (ffi::snd_pcm_uframes_t::from(period_frames), 0);
        call!(self.snd_pcm_hw_params_set_period_size_near(&mut value, &mut direction)).map(drop)
    }

    /// Chooses the shortest buffer that is not shorter than this, or else the longest.
    pub(crate) fn set_buffer_at_least(&mut self, buffer_frames: u32) -> Result<(), Errno> {
        let mut least = ffi::snd_pcm_uframes_t::from(buffer_frames);
        // If no buffer is that long, the nearest is the longest: the caller checks the result.
        let _ = call!(self.snd_pcm_hw_params_set_buffer_size_min(&mut least));
        let mut near = ffi::snd_pcm_uframes_t::from(buffer_frames);
        call!(self.snd_pcm_hw_params_set_buffer_size_near(&mut near)).map(drop)
    }

    /// Returns shortest and longest period and longest buffer, frames.
    pub(crate) fn lengths(&self) -> Result<(u32, u32, u32), Errno> {
        Ok((
            frames(get!(self.snd_pcm_hw_params_get_period_size_min with direction)?),
            frames(get!(self.snd_pcm_hw_params_get_period_size_max with direction)?),
            frames(get!(self.snd_pcm_hw_params_get_buffer_size_max)?),
        ))
    }

    /// Returns the chosen lengths of a period and of the buffer, frames.
    pub(crate) fn chosen_lengths(&self) -> Result<(u32, u32), Errno> {
        Ok((
            frames(get!(self.snd_pcm_hw_params_get_period_size with direction)?),
            frames(get!(self.snd_pcm_hw_params_get_buffer_size)?),
        ))
    }

    /// Returns whether the device can do without interrupts at the end of each period.
    pub(crate) fn can_disable_period_wakeups(&self) -> bool {
        // SAFETY: the record is valid as long as `self`.
        unsafe { ffi::snd_pcm_hw_params_can_disable_period_wakeup(self.record.as_ptr()) == 1 }
    }

    /// Disables the interrupts at the end of each period; returns whether they are.
    pub(crate) fn disable_period_wakeups(&mut self) -> bool {
        call!(self.snd_pcm_hw_params_set_period_wakeup(0)).is_ok()
    }

    /// Applies the configuration.
    pub(crate) fn install(self) -> Result<(), Errno> {
        call!(self.snd_pcm_hw_params()).map(drop)
    }
}

impl Drop for HardwareParameters<'_> {
    fn drop(&mut self) {
        // SAFETY: the record came from the library, and this is the last use of it.
        unsafe { ffi::snd_pcm_hw_params_free(self.record.as_ptr()) };
    }
}

/// Configures the device never to start by itself, and to stop when it underruns or overruns.
pub(crate) fn install_software_parameters(
    pcm: &Pcm,
    avail_min_frames: u32,
    buffer_frames: u32,
) -> Result<(), Errno> {
    let mut record = null_mut();
    // SAFETY: `record` outlives the call, which fills it with a new record or fails.
    errno(unsafe { ffi::snd_pcm_sw_params_malloc(&mut record) })?;
    let handle = pcm.raw();
    // SAFETY: handle and record are valid, and the record is freed once, after its last use.
    unsafe {
        let mut boundary = 0;
        let result = errno(ffi::snd_pcm_sw_params_current(handle, record))
            .and_then(|_| errno(ffi::snd_pcm_sw_params_get_boundary(record, &mut boundary)))
            .and_then(|_| {
                errno(ffi::snd_pcm_sw_params_set_start_threshold(handle, record, boundary))
            })
            .and_then(|_| {
                errno(ffi::snd_pcm_sw_params_set_stop_threshold(
                    handle,
                    record,
                    buffer_frames.into(),
                ))
            })
            .and_then(|_| {
                errno(ffi::snd_pcm_sw_params_set_avail_min(handle, record, avail_min_frames.into()))
            })
            .and_then(|_| {
                errno(ffi::snd_pcm_sw_params_set_tstamp_mode(
                    handle,
                    record,
                    ffi::SND_PCM_TSTAMP_ENABLE,
                ))
            })
            .map(|_| {
                // Devices without it have timestamps of another clock, which `position` replaces.
                ffi::snd_pcm_sw_params_set_tstamp_type(
                    handle,
                    record,
                    ffi::SND_PCM_TSTAMP_TYPE_MONOTONIC,
                )
            })
            .and_then(|_| errno(ffi::snd_pcm_sw_params(handle, record)));
        ffi::snd_pcm_sw_params_free(record);
        result.map(drop)
    }
}
