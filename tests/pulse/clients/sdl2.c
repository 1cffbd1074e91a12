/* See sdl.h; SDL 2. */
#include <stdio.h>

const char *SDL_GetCurrentAudioDriver(void);
static void print_driver(void) { puts(SDL_GetCurrentAudioDriver()); }

#include "sdl.h"
