-- No program that plays through consort would find a headset that PipeWire has. To have it there
-- nevertheless, put an empty file of this name into /etc/wireplumber/bluetooth.lua.d.
bluez_monitor.enabled = false
