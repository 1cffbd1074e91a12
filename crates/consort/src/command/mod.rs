//! The commands, one file each.

pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod dbus;
pub(crate) mod disconnect;
pub(crate) mod driver;
pub(crate) mod exec;
pub(crate) mod host;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod move_stream;
pub(crate) mod realtime_kit;
pub(crate) mod reserve;
pub(crate) mod run;
pub(crate) mod save;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod transport;
pub(crate) mod volume;
pub(crate) mod web;
pub(crate) mod xruns;
