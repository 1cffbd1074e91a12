"""Records the screen of a GNOME compositor through PipeWire, and what is heard through PulseAudio's
protocol, into one film: recorder.py FILE PICTURES SOUNDS, a sound being 10 ms."""

import subprocess
import sys

from gi.repository import Gio, GLib

NAME = "org.gnome.Mutter.ScreenCast"

file, pictures, sounds = sys.argv[1:]
loop = GLib.MainLoop()
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
nodes = []


def call(path, interface, method, arguments=None):
    return bus.call_sync(NAME, path, interface, method, arguments, None, 0, -1, None).unpack()


def added(bus, sender, path, interface, signal, arguments):
    nodes.append(arguments.unpack()[0])
    loop.quit()


begin = GLib.Variant("(a{sv})", ({},))
(session,) = call("/org/gnome/Mutter/ScreenCast", NAME, "CreateSession", begin)
primary = GLib.Variant("(sa{sv})", ("", {}))
(stream,) = call(session, f"{NAME}.Session", "RecordMonitor", primary)
bus.signal_subscribe(NAME, f"{NAME}.Stream", "PipeWireStreamAdded", stream, None, 0, added)
call(session, f"{NAME}.Session", "Start")
loop.run()
pipeline = f"""
    matroskamux name=film ! filesink location={file}
    pipewiresrc path={nodes[0]} num-buffers={pictures} ! videoconvert ! jpegenc ! queue ! film.
    pulsesrc device=consort.monitor num-buffers={sounds} ! audio/x-raw,format=S16LE,rate=48000
        ! queue ! film.
"""
sys.exit(subprocess.run(["gst-launch-1.0", "-q", "-e", *pipeline.split()]).returncode)
