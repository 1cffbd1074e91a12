"""A level meter of libpulse, as pavucontrol has it: 25 peaks a second of what leaves a sink.

Prints each as a line. The first argument names the source.
"""

import ctypes as c
import sys

pulse = c.CDLL("libpulse.so.0")
READY, FAILED = 4, 5  # pa_context_state_t
STREAM_FAILED = 3  # pa_stream_state_t
FLOAT32LE = 5
NO_AUTO_SPAWN = 1
# PA_STREAM_DONT_MOVE, PEAK_DETECT, ADJUST_LATENCY, DONT_INHIBIT_AUTO_SUSPEND
FLAGS = 0x0200 | 0x0800 | 0x2000 | 0x8000


class Spec(c.Structure):
    _fields_ = [("format", c.c_int), ("rate", c.c_uint32), ("channels", c.c_uint8)]


class Buffer(c.Structure):
    _fields_ = [(name, c.c_uint32) for name in ("maxlength", "tlength", "prebuf", "minreq", "fragsize")]


def function(name, result, *arguments):
    found = getattr(pulse, name)
    found.restype, found.argtypes = result, arguments
    return found


pointer = c.c_void_p
loop = function("pa_mainloop_new", pointer)()
api = function("pa_mainloop_get_api", pointer, pointer)(loop)
iterate = function("pa_mainloop_iterate", c.c_int, pointer, c.c_int, pointer)
context = function("pa_context_new", pointer, pointer, c.c_char_p)(api, b"a meter")
context_state = function("pa_context_get_state", c.c_int, pointer)
function("pa_context_connect", c.c_int, pointer, c.c_char_p, c.c_int, pointer)(
    context, None, NO_AUTO_SPAWN, None
)
while context_state(context) != READY:
    assert context_state(context) < FAILED, "no server"
    iterate(loop, 1, None)

spec = Spec(FLOAT32LE, 25, 1)
stream = function("pa_stream_new", pointer, pointer, c.c_char_p, c.POINTER(Spec), pointer)(
    context, b"peak detect", c.byref(spec), None
)
buffer = Buffer(0xFFFFFFFF, 0, 0, 0, 4)
connect = function(
    "pa_stream_connect_record", c.c_int, pointer, c.c_char_p, c.POINTER(Buffer), c.c_int
)
assert connect(stream, sys.argv[1].encode(), c.byref(buffer), FLAGS) == 0
stream_state = function("pa_stream_get_state", c.c_int, pointer)
peek = function("pa_stream_peek", c.c_int, pointer, c.POINTER(pointer), c.POINTER(c.c_size_t))
drop = function("pa_stream_drop", c.c_int, pointer)
while stream_state(stream) < STREAM_FAILED:
    iterate(loop, 1, None)
    data, length = pointer(), c.c_size_t()
    while stream_state(stream) == 2:
        peek(stream, c.byref(data), c.byref(length))
        if not length.value:
            break
        if data.value:
            for peak in (c.c_float * (length.value // 4)).from_address(data.value):
                print(f"{peak:.6f}", flush=True)
        drop(stream)
