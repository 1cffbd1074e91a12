"""Stands for BlueZ: an adapter, and a headset that is paired and connected.

Prints the name of each method that is called, and "begun" once its name is on the system's bus.
"""

import dbus
import dbus.lowlevel
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

ADAPTER = "/org/bluez/hci0"
ADDRESS = "00:11:22:33:44:55"
SINK = "0000110b-0000-1000-8000-00805f9b34fb"
SOURCE = "0000110a-0000-1000-8000-00805f9b34fb"


def properties(values):
    return dbus.Dictionary(values, signature="sv")


OBJECTS = {
    ADAPTER: {
        "org.bluez.Adapter1": properties(
            {
                "Address": "00:00:00:00:00:01",
                "Name": "adapter",
                "Alias": "adapter",
                "Powered": True,
                "UUIDs": dbus.Array([SOURCE], signature="s"),
            }
        ),
        "org.bluez.Media1": properties({}),
    },
    f"{ADAPTER}/dev_{ADDRESS.replace(':', '_')}": {
        "org.bluez.Device1": properties(
            {
                "Address": ADDRESS,
                "Name": "Headset",
                "Alias": "Headset",
                "Icon": "audio-headset",
                "Adapter": dbus.ObjectPath(ADAPTER),
                "Paired": True,
                "Connected": True,
                "UUIDs": dbus.Array([SINK], signature="s"),
            }
        ),
    },
}


def answer(connection, message):
    if message.get_type() != dbus.lowlevel.MESSAGE_TYPE_METHOD_CALL:
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED
    member = message.get_member()
    print(member, flush=True)
    reply = dbus.lowlevel.MethodReturnMessage(message)
    if member == "GetManagedObjects":
        reply.append(OBJECTS, signature="a{oa{sa{sv}}}")
    connection.send_message(reply)
    return dbus.lowlevel.HANDLER_RESULT_HANDLED


bus = dbus.SystemBus(mainloop=DBusGMainLoop())
bus.add_message_filter(answer)
bus.request_name("org.bluez")
print("begun", flush=True)
GLib.MainLoop().run()
