/*
 * Linear time code by libltc, as 32-bit samples at 48 kHz in a file.
 *
 * ltc encode FILE FPS DROP HOURS MINUTES SECONDS LENGTH   writes LENGTH seconds from a time code on
 * ltc decode FILE                                         prints HH MM SS FF DROP REVERSE BEGIN of each frame
 */
#include <ltc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double RATE = 48000.0;

static int encode(FILE *file, char **words)
{
    double fps = strtod(words[0], NULL), left = strtod(words[5], NULL) * RATE;
    int drops = atoi(words[1]);
    if (fps > 29.0 && fps < 30.0)
        fps = 30000.0 / 1001.0;
    enum LTC_TV_STANDARD standard = fps == 25.0 ? LTC_TV_625_50 : fps == 24.0 ? LTC_TV_FILM_24 : LTC_TV_525_60;
    LTCEncoder *encoder = ltc_encoder_create(RATE, fps, standard, 0);
    if (!encoder)
        return 1;
    SMPTETimecode code = { .hours = atoi(words[2]), .mins = atoi(words[3]), .secs = atoi(words[4]) };
    ltc_encoder_set_timecode(encoder, &code);
    LTCFrame frame;
    ltc_encoder_get_frame(encoder, &frame);
    frame.dfbit = drops;
    ltc_frame_set_parity(&frame, standard);
    ltc_encoder_set_frame(encoder, &frame);
    while (left > 0) {
        ltc_encoder_encode_frame(encoder);
        ltcsnd_sample_t *samples;
        int count = ltc_encoder_get_bufferptr(encoder, &samples, 1);
        for (int i = 0; i < count && left > 0; i++, left--) {
            float sample = (samples[i] - 128) / 128.0f;
            fwrite(&sample, sizeof sample, 1, file);
        }
        ltc_encoder_inc_timecode(encoder);
    }
    ltc_encoder_free(encoder);
    return 0;
}

static int decode(FILE *file)
{
    LTCDecoder *decoder = ltc_decoder_create(1920, 64);
    float samples[256];
    size_t count;
    ltc_off_t position = 0;
    while ((count = fread(samples, sizeof *samples, 256, file)) > 0) {
        ltc_decoder_write_float(decoder, samples, count, position);
        position += count;
        LTCFrameExt frame;
        while (ltc_decoder_read(decoder, &frame)) {
            SMPTETimecode code;
            ltc_frame_to_time(&code, &frame.ltc, 0);
            printf("%d %d %d %d %d %d %lld\n", code.hours, code.mins, code.secs, code.frame, frame.ltc.dfbit,
                   frame.reverse, (long long)frame.off_start);
        }
    }
    ltc_decoder_free(decoder);
    return 0;
}

int main(int argc, char **argv)
{
    int encodes = argc == 9 && !strcmp(argv[1], "encode");
    if (!encodes && (argc != 3 || strcmp(argv[1], "decode")))
        return 2;
    FILE *file = fopen(argv[2], encodes ? "wb" : "rb");
    if (!file)
        return 1;
    int failed = encodes ? encode(file, argv + 3) : decode(file);
    return fclose(file) || failed;
}
