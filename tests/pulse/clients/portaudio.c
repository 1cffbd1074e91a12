/* A program on PortAudio that plays FRAMES frames on ALSA's device "pulse", and a second of silence: it does not wait
 * for its end to be heard. */
#include "ramps.h"

typedef struct {
    int structVersion;
    const char *name;
    int hostApi, maxInputChannels, maxOutputChannels;
    double defaultLowInputLatency, defaultLowOutputLatency, defaultHighInputLatency, defaultHighOutputLatency;
    double defaultSampleRate;
} PaDeviceInfo;

typedef struct {
    int device, channelCount;
    unsigned long sampleFormat;
    double suggestedLatency;
    void *hostApiSpecificStreamInfo;
} PaStreamParameters;

enum { INT16 = 8, BLOCK_FRAMES = 1024 };

int Pa_Initialize(void);
int Pa_Terminate(void);
const char *Pa_GetErrorText(int);
int Pa_GetDeviceCount(void);
const PaDeviceInfo *Pa_GetDeviceInfo(int);
int Pa_OpenStream(void **, const PaStreamParameters *, const PaStreamParameters *, double, unsigned long,
                  unsigned long, void *, void *);
int Pa_StartStream(void *);
int Pa_WriteStream(void *, const void *, unsigned long);
int Pa_StopStream(void *);
int Pa_CloseStream(void *);

static void check(const char *what, int error) {
    if (error < 0)
        fail(what, Pa_GetErrorText(error));
}

int main(int argc, char **argv) {
    long end = argc > 1 ? atol(argv[1]) : RATE_HZ;
    check("Pa_Initialize", Pa_Initialize());
    PaStreamParameters output = {.device = -1, .channelCount = CHANNELS, .sampleFormat = INT16};
    for (int device = 0; device < Pa_GetDeviceCount(); device++)
        if (!strcmp(Pa_GetDeviceInfo(device)->name, "pulse"))
            output.device = device;
    if (output.device < 0)
        fail("Pa_GetDeviceInfo", "no device is named pulse");
    output.suggestedLatency = 0.5;
    void *stream;
    check("Pa_OpenStream", Pa_OpenStream(&stream, NULL, &output, RATE_HZ, BLOCK_FRAMES, 0, NULL, NULL));
    check("Pa_StartStream", Pa_StartStream(stream));
    int16_t samples[BLOCK_FRAMES * CHANNELS];
    for (long frame = 0; frame < end + RATE_HZ; frame += BLOCK_FRAMES) {
        ramps(samples, frame, BLOCK_FRAMES, end);
        check("Pa_WriteStream", Pa_WriteStream(stream, samples, BLOCK_FRAMES));
    }
    check("Pa_StopStream", Pa_StopStream(stream));
    check("Pa_CloseStream", Pa_CloseStream(stream));
    Pa_Terminate();
    return 0;
}
