"""A mixer that changes the volume of the default sink as often as its argument says, without a pause."""
import sys

import pulsectl

with pulsectl.Pulse("a storm") as pulse:
    sink = pulse.sink_list()[0]
    for change in range(int(sys.argv[1])):
        pulse.volume_set_all_chans(sink, (change % 100) / 100)
