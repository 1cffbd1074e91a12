/* What a plug-in reports, with more arguments of each kind than registers hold: printed by the
 * functions that it has set. */
#include <jack/jack.h>
#include <stdio.h>

void jack_error(const char *format, ...);
void jack_info(const char *format, ...);

static void error(const char *text) { printf("error: %s\n", text); }
static void info(const char *text) { printf("info: %s\n", text); }

int main(void)
{
    jack_set_error_function(error);
    jack_set_info_function(info);
    jack_error("%s %d %lld %d %d %d %d", "one", 2, 3LL, 4, 5, 6, 7);
    jack_info("%.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %s", 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5,
              7.5, 8.5, "nine");
    return 0;
}
