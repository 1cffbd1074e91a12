"""Plays a MIDI file of format 0 at a JACK port, over and over, to the frame: midi_file.py FILE SECONDS

Each round takes SECONDS. Prints 'ready' when it is active.
"""
import struct
import sys
import time

import jack


def variable_length(data, at):
    value = 0
    while True:
        value = value << 7 | data[at] & 0x7F
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def events(data):
    """(Ticks from the start, message) of each channel message; ticks of a quarter note."""
    magic, length, kind, tracks, division = struct.unpack(">4sIHHH", data[:14])
    assert (magic, length, kind, tracks) == (b"MThd", 6, 0, 1)
    magic, length = struct.unpack(">4sI", data[14:22])
    assert magic == b"MTrk" and len(data) == 22 + length
    at, now, found = 22, 0, []
    while at < len(data):
        delay, at = variable_length(data, at)
        now += delay
        status = data[at]
        if status == 0xFF:
            size, start = variable_length(data, at + 2)
            at = start + size
            continue
        size = 2 if status & 0xE0 == 0xC0 else 3
        found.append((now, data[at : at + size]))
        at += size
    return found, division


def main():
    with open(sys.argv[1], "rb") as file:
        found, division = events(file.read())
    client = jack.Client("player")
    port = client.midi_outports.register("out")
    # Without a tempo in the file, a quarter note takes half a second.
    per_tick = client.samplerate / 2 / division
    plan = [(round(ticks * per_tick), message) for ticks, message in found]
    round_frames = round(float(sys.argv[2]) * client.samplerate)
    position = 0

    @client.set_process_callback
    def process(frames):
        nonlocal position
        port.clear_buffer()
        for turn in (0, round_frames):
            for frame, message in plan:
                offset = frame + turn - position
                if 0 <= offset < frames:
                    port.write_midi_event(offset, message)
        position = (position + frames) % round_frames

    with client:
        print("ready", flush=True)
        time.sleep(600)


main()
