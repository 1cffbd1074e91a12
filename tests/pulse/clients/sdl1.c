/* See sdl.h; SDL 1.2. */
#include <stdio.h>

char *SDL_AudioDriverName(char *, int);
static void print_driver(void) {
    char name[32];
    puts(SDL_AudioDriverName(name, sizeof name) ? name : "none");
}

#include "sdl.h"
