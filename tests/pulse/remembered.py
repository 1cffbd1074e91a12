"""What pavucontrol asks the extension of module-stream-restore, by libpulse.

Arguments: read; write NAME VOLUME MUTE [DEVICE]; delete NAME; follow (a line for each change).
"""

import ctypes as c
import sys

pulse = c.CDLL("libpulse.so.0")
READY, FAILED = 4, 5  # pa_context_state_t
NO_AUTO_SPAWN = 1
REPLACE = 2  # pa_update_mode_t


class Map(c.Structure):
    _fields_ = [("channels", c.c_uint8), ("map", c.c_int * 32)]


class Volumes(c.Structure):
    _fields_ = [("channels", c.c_uint8), ("values", c.c_uint32 * 32)]


class Info(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("map", Map),
        ("volume", Volumes),
        ("device", c.c_char_p),
        ("mute", c.c_int),
    ]


def function(name, result, *arguments):
    found = getattr(pulse, name)
    found.restype, found.argtypes = result, arguments
    return found


pointer = c.c_void_p
loop = function("pa_mainloop_new", pointer)()
api = function("pa_mainloop_get_api", pointer, pointer)(loop)
iterate = function("pa_mainloop_iterate", c.c_int, pointer, c.c_int, pointer)
context = function("pa_context_new", pointer, pointer, c.c_char_p)(api, b"a mixer")
context_state = function("pa_context_get_state", c.c_int, pointer)
function("pa_context_connect", c.c_int, pointer, c.c_char_p, c.c_int, pointer)(
    context, None, NO_AUTO_SPAWN, None
)
while context_state(context) != READY:
    assert context_state(context) < FAILED, "no server"
    iterate(loop, 1, None)

Done = c.CFUNCTYPE(None, pointer, c.c_int, pointer)
Test = c.CFUNCTYPE(None, pointer, c.c_uint32, pointer)
Read = c.CFUNCTYPE(None, pointer, c.POINTER(Info), c.c_int, pointer)
Changed = c.CFUNCTYPE(None, pointer, pointer)
results = []


def wait():
    while not results:
        iterate(loop, 1, None)
    result = results.pop()
    assert result, "refused"
    return result


done = Done(lambda _, success, __: results.append(success))
extension = "pa_ext_stream_restore_"


@Test
def tested(_, version, __):
    results.append(version)


@Read
def read(_, info, end, __):
    if end:
        return results.append(end)
    info = info.contents
    volumes = list(info.volume.values[: info.volume.channels])
    assert info.map.channels == info.volume.channels
    print(info.name.decode(), volumes, info.mute, (info.device or b"-").decode(), flush=True)


@Changed
def changed(_, __):
    print("changed", flush=True)


function(extension + "test", pointer, pointer, Test, pointer)(context, tested, None)
assert wait() == 1
command, *values = sys.argv[1:]
if command == "read":
    function(extension + "read", pointer, pointer, Read, pointer)(context, read, None)
    assert wait() > 0, "refused"
elif command == "write":
    info = Info(name=values[0].encode(), mute=int(values[2]))
    info.map.channels = info.volume.channels = 1
    info.volume.values[0] = int(values[1])
    info.device = values[3].encode() if len(values) > 3 else None
    write = function(
        extension + "write", pointer, pointer, c.c_int, c.POINTER(Info), c.c_uint, c.c_int, Done, pointer
    )
    write(context, REPLACE, c.byref(info), 1, 1, done, None)
    wait()
elif command == "delete":
    names = (c.c_char_p * 2)(values[0].encode(), None)
    delete = function(extension + "delete", pointer, pointer, c.POINTER(c.c_char_p), Done, pointer)
    delete(context, names, done, None)
    wait()
elif command == "follow":
    function(extension + "set_subscribe_cb", None, pointer, Changed, pointer)(context, changed, None)
    function(extension + "subscribe", pointer, pointer, c.c_int, Done, pointer)(context, 1, done, None)
    wait()
    print("following", flush=True)
    while context_state(context) == READY:
        iterate(loop, 1, None)
