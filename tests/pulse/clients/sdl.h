/* A program on SDL that plays FRAMES frames and a second of silence. Both versions have these functions and this
 * structure: sdl1.c and sdl2.c are linked with one each. Prints the driver. */
#include "ramps.h"

enum { INIT_AUDIO = 0x10, S16LE = 0x8010 };

typedef struct {
    int freq;
    uint16_t format;
    uint8_t channels, silence;
    uint16_t samples, padding;
    uint32_t size;
    void (*callback)(void *, uint8_t *, int);
    void *userdata;
} SDL_AudioSpec;

int SDL_Init(uint32_t);
const char *SDL_GetError(void);
int SDL_OpenAudio(SDL_AudioSpec *, SDL_AudioSpec *);
void SDL_PauseAudio(int);
void SDL_CloseAudio(void);
void SDL_Quit(void);

static long end;
static volatile long played;

static void on_samples(void *argument, uint8_t *bytes, int length) {
    (void)argument;
    long count = length / (CHANNELS * (int)sizeof(int16_t));
    ramps((int16_t *)bytes, played, count, end);
    played += count;
}

int main(int argc, char **argv) {
    end = argc > 1 ? atol(argv[1]) : RATE_HZ;
    SDL_AudioSpec wanted = {.freq = RATE_HZ, .format = S16LE, .channels = CHANNELS, .samples = 8192,
                            .callback = on_samples};
    if (SDL_Init(INIT_AUDIO) != 0)
        fail("SDL_Init", SDL_GetError());
    if (SDL_OpenAudio(&wanted, NULL) != 0)
        fail("SDL_OpenAudio", SDL_GetError());
    print_driver();
    SDL_PauseAudio(0);
    while (played < end + RATE_HZ)
        usleep(10000);
    SDL_CloseAudio();
    SDL_Quit();
    return 0;
}
