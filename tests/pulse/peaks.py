"""Prints the peaks that a meter of one stream has, at two volumes."""
import sys
import time

import pulsectl

# pulsectl frees the callback of a stream that libpulse may still call, until the server has
# answered that the stream is gone.
library = pulsectl.pulsectl.c
make_callback, kept = library.PA_STREAM_REQUEST_CB_T, []


def callback(function):
    kept.append(make_callback(function))
    return kept[-1]


library.PA_STREAM_REQUEST_CB_T = callback

with pulsectl.Pulse("a meter") as pulse:
    def peak():
        return pulse.get_peak_sample(source.name, 0.5, stream.index)

    def await_peak(is_expected):
        until = time.monotonic() + 3
        while not is_expected(shown := peak()) and time.monotonic() < until:
            pass
        return shown

    named = [s for s in pulse.sink_input_list() if s.proplist["application.name"] == sys.argv[1]]
    stream = named[0]
    sink = pulse.sink_info(stream.sink)
    source = pulse.get_source_by_name(sink.monitor_source_name)
    print(f"at full volume {await_peak(lambda shown: shown > 0):.3f}")
    pulse.volume_set_all_chans(stream, 0.5)
    print(f"at half of it {await_peak(lambda shown: 0 < shown < 0.04):.3f}")
