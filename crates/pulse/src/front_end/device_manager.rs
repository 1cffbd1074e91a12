//! The extension of `module-device-manager`, as mixers use it.

use std::ffi::{CStr, CString};

use policy::{KnownDevice, KnownDevices, MAX_DESCRIPTION_BYTES, Role};
use pulseaudio::protocol::PulseError;

use super::{Answer, Answered, FrontEnd};
use crate::output::Devices;
use crate::wire::{self, AboutManager, ListedDevice};

impl<D: Devices> FrontEnd<D> {
    /// Answers what the extension is asked.
    pub(super) fn answer_about_devices(
        &mut self,
        client: u32,
        tag: u32,
        asked: &[u8],
        now_ns: u64,
    ) -> Answered {
        let (module, _) = self.modules.manager().ok_or(PulseError::NoExtension)?;
        let known = self.clients.get_mut(&client).ok_or(PulseError::NoEntity)?;
        let version = known.version();
        let asked = AboutManager::read(asked, version).ok_or(PulseError::Protocol)?;
        // MUTATION: device_manager.by_anyone
        let is_allowed = known.rights().control || !asked.changes();
        if !is_allowed {
            return Err(PulseError::AccessDenied);
        }
        match asked {
            AboutManager::Test => Ok(super::extensions::answer(tag, version)),
            AboutManager::Read => {
                let all = self.desktop.memory.known_devices().iter();
                let all: Vec<_> =
                    all.filter_map(|(key, device)| self.listed(key, device)).collect();
                Ok(Answer::Packet(wire::extension_reply(tag, version, &|values| {
                    all.iter().for_each(|device| wire::write_listed(values, device));
                })))
            }
            AboutManager::Rename { device, description } => {
                self.rename_device(&device, &description)
            }
            AboutManager::Delete(names) => {
                self.forget_devices(&names, now_ns);
                Ok(Answer::Done)
            }
            // Which moves all streams.
            AboutManager::Route(routes) if routes == self.modules.routes() => Ok(Answer::Done),
            AboutManager::Route(routes) => {
                self.modules.set_routes(routes);
                if routes {
                    self.route_streams(now_ns);
                } else {
                    self.stop_routing();
                }
                Ok(Answer::Done)
            }
            AboutManager::Reorder { role, devices } => {
                self.reorder_devices(&role, &devices, now_ns)
            }
            AboutManager::Subscribe(wants) => {
                known.follows_module = wants.then_some(module);
                Ok(Answer::Done)
            }
        }
    }

    /// Returns what is known of a device in the protocol's words.
    fn listed(&self, key: &str, device: &KnownDevice) -> Option<ListedDevice> {
        let (direction, name) = KnownDevices::device_of(key)?;
        let icon = Some(&*device.icon).filter(|icon| !icon.is_empty());
        Some(ListedDevice {
            name: CString::new(key).ok()?,
            description: CString::new(&*device.description).ok()?,
            icon: icon.and_then(|icon| CString::new(icon).ok()),
            index: self.index_of_device(direction, name),
            ranks: Role::all()
                .filter_map(|role| Some((CString::new(role.name()).ok()?, device.rank(role))))
                .collect(),
        })
    }

    fn rename_device(&mut self, device: &CStr, description: &CStr) -> Answered {
        let text = |text: &CStr| text.to_str().map(str::to_owned).map_err(|_| PulseError::Invalid);
        let (key, description) = (text(device)?, text(description)?);
        if description.len() > MAX_DESCRIPTION_BYTES {
            return Err(PulseError::TooLarge);
        }
        // As in PulseAudio, a device that is not known is not refused.
        if self.desktop.memory.known_devices_mut().rename(&key, &description) {
            self.known_devices_changed();
            self.notify_of_name(&key);
        }
        Ok(Answer::Done)
    }

    fn forget_devices(&mut self, names: &[CString], now_ns: u64) {
        let known = self.desktop.memory.known_devices_mut();
        let mut forgotten = names.iter().filter_map(|name| name.to_str().ok()).collect::<Vec<_>>();
        forgotten.retain(|key| known.forget(key));
        if !forgotten.is_empty() {
            self.known_devices_changed();
            self.route_streams(now_ns);
        }
        // They have their own names again.
        forgotten.into_iter().for_each(|key| self.notify_of_name(key));
    }

    fn reorder_devices(&mut self, role: &CStr, devices: &[CString], now_ns: u64) -> Answered {
        let role = role.to_str().ok().and_then(Role::named).ok_or(PulseError::Invalid)?;
        let devices = devices.iter().map(|key| key.to_str().ok().map(str::to_owned));
        let devices: Option<Vec<String>> = devices.collect();
        let devices = devices.ok_or(PulseError::Invalid)?;
        let known = self.desktop.memory.known_devices_mut();
        let has_changed = known.reorder(role, &devices).map_err(|_| PulseError::Invalid)?;
        if has_changed {
            self.known_devices_changed();
            self.route_streams(now_ns);
        }
        Ok(Answer::Done)
    }
}
