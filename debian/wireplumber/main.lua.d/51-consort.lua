-- Sound is consort's: PipeWire has cameras and screens, and opens no card. To have sound from
-- PipeWire as well, put an empty file of this name into /etc/wireplumber/main.lua.d.
alsa_monitor.enabled = false
