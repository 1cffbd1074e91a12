"""What it hears is what it says, through JACK-Client."""

import threading

import jack

client = jack.Client("through")
heard = client.inports.register("in")
said = client.outports.register("out")


@client.set_process_callback
def process(frames):
    said.get_buffer()[:] = heard.get_buffer()


with client:
    threading.Event().wait()
