"""A mixer on pulsectl: lists, sets volumes, and is notified of what it changes."""
import pulsectl

with pulsectl.Pulse("a mixer") as pulse:
    print("server", pulse.server_info().server_name)
    print("sinks", *(sink.name for sink in pulse.sink_list()))
    print("sources", *(source.name for source in pulse.source_list()))
    sink = pulse.sink_list()[0]
    pulse.volume_set_all_chans(sink, 0.5)
    print("sink volume", pulse.sink_list()[0].volume.value_flat)
    stream = pulse.sink_input_list()[0]
    pulse.volume_set_all_chans(stream, 0.25)
    pulse.mute(stream, True)
    stream = pulse.sink_input_info(stream.index)
    print("stream volume", stream.volume.value_flat, "muted", stream.mute)

    def on_event(event):
        print("event", event.t._value)
        raise pulsectl.PulseLoopStop

    pulse.event_mask_set("sink_input")
    pulse.event_callback_set(on_event)
    with pulsectl.Pulse("another") as other:
        other.mute(stream, False)
    pulse.event_listen(timeout=10)
    pulse.event_callback_set(None)
