/* Windows of bytes (or int16) to floats in one pass: gather, mirror, convert, normalise, layout. See fused.py.

   y = x * scale[c] + shift[c], product and sum rounded apart (-ffp-contract=off), as torch does it: same bits. */

#include <stdint.h>

/* Planes to planes: n windows of c x h x w at base + starts[i], the first `flipped` mirrored. */
void planes_to_planes(const uint8_t *base, const int64_t *starts, int64_t n, int64_t flipped, int64_t c, int64_t h,
                      int64_t w, int64_t plane, int64_t line, const float *scale, const float *shift, int normalise,
                      float *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < c; k++) {
            const float a = normalise ? scale[k] : 1, b = normalise ? shift[k] : 0;
            for (int64_t y = 0; y < h; y++) {
                const uint8_t *restrict from = base + starts[i] + k * plane + y * line;
                float *restrict to = out + ((i * c + k) * h + y) * w;
                if (i < flipped) {
                    for (int64_t x = 0; x < w; x++) to[x] = (float)from[w - 1 - x];
                } else {
                    for (int64_t x = 0; x < w; x++) to[x] = (float)from[x];
                }
                if (normalise)
                    for (int64_t x = 0; x < w; x++) {
                        float product = to[x] * a;
                        to[x] = product + b;
                    }
            }
        }
}

/* Interleaved to interleaved (channels-last): n windows of h x w x c. */
void pixels_to_pixels(const uint8_t *base, const int64_t *starts, int64_t n, int64_t flipped, int64_t c, int64_t h,
                      int64_t w, int64_t line, const float *scale, const float *shift, int normalise, float *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t y = 0; y < h; y++) {
            const uint8_t *restrict from = base + starts[i] + y * line;
            float *restrict to = out + (i * h + y) * w * c;
            if (i < flipped) {
                for (int64_t x = 0; x < w; x++)
                    for (int64_t k = 0; k < c; k++) to[x * c + k] = (float)from[(w - 1 - x) * c + k];
            } else {
                for (int64_t x = 0; x < w * c; x++) to[x] = (float)from[x];
            }
            if (normalise)
                for (int64_t x = 0; x < w; x++)
                    for (int64_t k = 0; k < c; k++) {
                        float product = to[x * c + k] * scale[k];
                        to[x * c + k] = product + shift[k];
                    }
        }
}

/* int16 sounds to floats, scaled. */
void sounds(const uint8_t *base, const int64_t *starts, int64_t n, int64_t length, float scale, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const int16_t *restrict from = (const int16_t *)(base + starts[i]);
        float *restrict to = out + i * length;
        for (int64_t x = 0; x < length; x++) to[x] = (float)from[x] * scale;
    }
}
