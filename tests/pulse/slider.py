"""A mixer whose slider is dragged: sets the volume of the only stream again and again, 100 times a second."""
import sys
import time

import pulsectl

with pulsectl.Pulse("a mixer") as pulse:
    stream = pulse.sink_input_list()[0]
    for volume in sys.argv[1:]:
        pulse.volume_set_all_chans(stream, float(volume))
        time.sleep(0.01)
