/* A program on OpenAL that plays FRAMES frames from a buffer, on the channels as they are. Prints its device. */
#include "ramps.h"

enum {
    AL_SOURCE_STATE = 0x1010,
    AL_PLAYING = 0x1012,
    AL_BUFFER = 0x1009,
    AL_FORMAT_STEREO16 = 0x1103,
    AL_DIRECT_CHANNELS_SOFT = 0x1033,
    ALC_FREQUENCY = 0x1007,
    ALC_OUTPUT_LIMITER_SOFT = 0x199A,
    ALC_ALL_DEVICES_SPECIFIER = 0x1013,
};

typedef struct device device;
typedef struct context context;

device *alcOpenDevice(const char *);
const char *alcGetString(device *, int);
context *alcCreateContext(device *, const int *);
int alcMakeContextCurrent(context *);
void alcDestroyContext(context *);
int alcCloseDevice(device *);
void alGenBuffers(int, unsigned *);
void alBufferData(unsigned, int, const void *, int, int);
void alGenSources(int, unsigned *);
void alSourcei(unsigned, int, int);
void alGetSourcei(unsigned, int, int *);
void alSourcePlay(unsigned);
int alGetError(void);

int main(int argc, char **argv) {
    long frames = argc > 1 ? atol(argv[1]) : RATE_HZ;
    /* A second of silence, so that it does not leave before its end is heard. */
    long all = frames + RATE_HZ;
    int16_t *samples = malloc((size_t)all * CHANNELS * sizeof *samples);
    ramps(samples, 0, all, frames);
    device *opened = alcOpenDevice(NULL);
    if (!opened)
        fail("alcOpenDevice", NULL);
    puts(alcGetString(opened, ALC_ALL_DEVICES_SPECIFIER));
    const int attributes[] = {ALC_FREQUENCY, RATE_HZ, ALC_OUTPUT_LIMITER_SOFT, 0, 0};
    context *made = alcCreateContext(opened, attributes);
    if (!made || !alcMakeContextCurrent(made))
        fail("alcCreateContext", NULL);
    unsigned buffer, source;
    alGenBuffers(1, &buffer);
    alBufferData(buffer, AL_FORMAT_STEREO16, samples, (int)(all * CHANNELS * (long)sizeof *samples), RATE_HZ);
    alGenSources(1, &source);
    alSourcei(source, AL_DIRECT_CHANNELS_SOFT, 1);
    alSourcei(source, AL_BUFFER, (int)buffer);
    alSourcePlay(source);
    if (alGetError() != 0)
        fail("alSourcePlay", NULL);
    int state;
    do {
        usleep(10000);
        alGetSourcei(source, AL_SOURCE_STATE, &state);
    } while (state == AL_PLAYING);
    alcMakeContextCurrent(NULL);
    alcDestroyContext(made);
    alcCloseDevice(opened);
    free(samples);
    return 0;
}
