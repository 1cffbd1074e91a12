"""Prints the channel maps that libpulse has for each number of channels.

python3 crates/convert/measured/maps.py > crates/convert/measured/maps.txt
"""

import ctypes

libpulse = ctypes.CDLL("libpulse.so.0")


class ChannelMap(ctypes.Structure):
    _fields_ = [("channels", ctypes.c_uint8), ("map", ctypes.c_int * 32)]


libpulse.pa_get_library_version.restype = ctypes.c_char_p
version = libpulse.pa_get_library_version().decode()
print(f"# libpulse {version}: pa_channel_map_init_auto and pa_channel_map_init_extend")
print("# made by: python3 crates/convert/measured/maps.py")
for function in ["auto", "extend"]:
    initialize = getattr(libpulse, f"pa_channel_map_init_{function}")
    initialize.restype = ctypes.c_void_p
    for number, standard in enumerate(["Aiff", "Alsa", "Aux", "WaveEx", "Oss"]):
        for channels in range(1, 33):
            channel_map = ChannelMap()
            if initialize(ctypes.byref(channel_map), channels, number):
                text = ctypes.create_string_buffer(1024)
                libpulse.pa_channel_map_snprint(text, 1024, ctypes.byref(channel_map))
                print(function, standard, channels, text.value.decode())
