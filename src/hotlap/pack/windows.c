/* Windows of bytes (or int16) to floats in one pass: gather, mirror, convert, normalise, layout (fused.py).

   y = x * scale[c] + shift[c], product and sum rounded apart (-ffp-contract=off), as torch does it: same bits.

   A batch larger than the caches is written past them, from the registers: an ordinary store reads the line first that
   it overwrites, and a gather of bytes moves little else. Measured with one reader on the same core: 0.9x at 4.6 MiB,
   1.1x at 9.2 MiB, 1.3x where nobody reads (a copy to a device, another core). */

#include "team.h"

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { SCRATCH = 4096, STREAMED_BYTES = 6 << 20, TEAM_BYTES = 1 << 20, CACHE_LINE = 64, LINES_AHEAD = 4 };

/* n windows of c x h x w, the first `flipped` mirrored. A line's next byte lies `step` on, the next plane `plane` on. */
typedef struct {
    const uint8_t *base;
    const int64_t *starts;
    int64_t n, flipped, c, h, w, step, plane, line;
    const float *scale, *shift;
    int normalise;
    float *out;
    int64_t total; /* floats of the whole batch, of which these windows may be a part */
} Windows;

static int worth_a_team(int64_t floats) { return floats * (int64_t)sizeof(float) >= TEAM_BYTES; }

/* Whether rows of `count` floats at `out`, of a batch of `total`, are written past the caches. */
static int streams(const float *out, int64_t count, int64_t total)
{
#if defined(__SSE4_1__)
    return count % 4 == 0 && (uintptr_t)out % 16 == 0 && total * (int64_t)sizeof(float) >= STREAMED_BYTES;
#else
    (void)out, (void)count, (void)total;
    return 0;
#endif
}

/* What was streamed is seen by other threads from here on. */
static void finish(int streamed)
{
#if defined(__SSE2__)
    if (streamed) _mm_sfence();
#else
    (void)streamed;
#endif
}

/* Asks for the `bytes` that are read LINES_AHEAD lines later: the processor itself foresees little of a window, and of
   lines that are read back to front nothing. */
static void ask_ahead(const uint8_t *from, int64_t bytes, int64_t line)
{
#if defined(__GNUC__)
    for (int64_t x = 0; x < bytes; x += CACHE_LINE) __builtin_prefetch(from + LINES_AHEAD * line + x);
#else
    (void)from, (void)bytes, (void)line;
#endif
}

/* A row of bytes as floats; by `scale` and `shift` of each float, unless they are null. Whole lines of the cache leave
   the registers at once where they can. */
static void convert(const uint8_t *restrict from, int64_t count, const float *restrict scale,
                    const float *restrict shift, float *restrict to, int streamed)
{
#if defined(__AVX512F__)
    if (streamed && count % 16 == 0 && (uintptr_t)to % 64 == 0) {
        for (int64_t x = 0; x < count; x += 16) {
            __m512 y = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(from + x))));
            if (scale) y = _mm512_add_ps(_mm512_mul_ps(y, _mm512_loadu_ps(scale + x)), _mm512_loadu_ps(shift + x));
            _mm512_stream_ps(to + x, y);
        }
        return;
    }
#elif defined(__AVX2__)
    if (streamed && count % 8 == 0 && (uintptr_t)to % 32 == 0) {
        for (int64_t x = 0; x < count; x += 8) {
            __m256 y = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(from + x))));
            if (scale) y = _mm256_add_ps(_mm256_mul_ps(y, _mm256_loadu_ps(scale + x)), _mm256_loadu_ps(shift + x));
            _mm256_stream_ps(to + x, y);
        }
        return;
    }
#endif
#if defined(__SSE4_1__)
    if (streamed) {
        for (int64_t x = 0; x < count; x += 4) {
            int32_t four;
            memcpy(&four, from + x, 4);
            __m128 y = _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
            if (scale) y = _mm_add_ps(_mm_mul_ps(y, _mm_loadu_ps(scale + x)), _mm_loadu_ps(shift + x));
            _mm_stream_ps(to + x, y);
        }
        return;
    }
#endif
    (void)streamed;
    for (int64_t x = 0; x < count; x++) to[x] = (float)from[x];
    if (scale)
        for (int64_t x = 0; x < count; x++) {
            float product = to[x] * scale[x];
            to[x] = product + shift[x];
        }
}

/* `numbers`, of which there are c, for every float of `count`: one after the other, or the k-th alone. */
static void spread(const float *numbers, int64_t c, int64_t k, int64_t count, float *to)
{
    for (int64_t x = 0; x < count; x++) to[x] = numbers[k < 0 ? x % c : k];
}

/* A line of w pixels of c bytes, back to front. */
static void mirror(const uint8_t *restrict from, int64_t w, int64_t c, uint8_t *restrict to)
{
    int64_t x = 0;
#if defined(__SSSE3__)
    if (c == 3 && w >= 16) { /* three registers full at a time: `convert` soon reads the same sixteen bytes together */
        uint8_t places[3][3][16];
        for (int r = 0; r < 3; r++)
            for (int j = 0; j < 16; j++) {
                const int at = 45 - (16 * r + j) / 3 * 3 + (16 * r + j) % 3;
                for (int s = 0; s < 3; s++) places[r][s][j] = at / 16 == s ? (uint8_t)(at % 16) : 128;
            }
        for (; x + 16 <= w; x += 16) {
            const __m128i *here = (const __m128i *)(from + (w - x - 16) * 3);
            for (int r = 0; r < 3; r++) {
                __m128i back = _mm_setzero_si128();
                for (int s = 0; s < 3; s++)
                    back = _mm_or_si128(back, _mm_shuffle_epi8(_mm_loadu_si128(here + s),
                                                               _mm_loadu_si128((const __m128i *)places[r][s])));
                _mm_storeu_si128((__m128i *)(to + x * 3) + r, back);
            }
        }
    }
#endif
    if (c == 1)
        for (; x < w; x++) to[x] = from[w - 1 - x];
    for (; x < w; x++)
        for (int64_t k = 0; k < c; k++) to[x * c + k] = from[(w - 1 - x) * c + k];
}

/* Where the k-th bytes of sixteen pixels of three lie in the three registers that hold them, back to front if so asked;
   128 where another register has one. */
static void find_places(int64_t k, int backwards, uint8_t places[3][16])
{
    for (int r = 0; r < 3; r++)
        for (int j = 0; j < 16; j++) {
            const int at = 3 * (backwards ? 15 - j : j) + (int)k - 16 * r;
            places[r][j] = at >= 0 && at < 16 ? (uint8_t)at : 128;
        }
}

/* The k-th byte of each of `count` pixels of c bytes. */
static void pick(const uint8_t *restrict from, int64_t count, int64_t c, int64_t k, int backwards,
                 uint8_t places[3][16], uint8_t *restrict to)
{
    int64_t x = 0;
#if defined(__SSSE3__)
    const __m128i a = _mm_loadu_si128((const __m128i *)places[0]), b = _mm_loadu_si128((const __m128i *)places[1]),
                  d = _mm_loadu_si128((const __m128i *)places[2]);
    for (; c == 3 && x + 16 <= count; x += 16) {
        const __m128i *here = (const __m128i *)(from + 3 * (backwards ? count - x - 16 : x));
        const __m128i first = _mm_shuffle_epi8(_mm_loadu_si128(here), a);
        const __m128i second = _mm_shuffle_epi8(_mm_loadu_si128(here + 1), b);
        const __m128i third = _mm_shuffle_epi8(_mm_loadu_si128(here + 2), d);
        _mm_storeu_si128((__m128i *)(to + x), _mm_or_si128(_mm_or_si128(first, second), third));
    }
#else
    (void)places;
#endif
    for (; x < count; x++) to[x] = from[(backwards ? count - 1 - x : x) * c + k];
}

/* To planes. */
static void to_planes(void *job, int64_t first_window, int64_t behind)
{
    const Windows *a = job;
    const int64_t c = a->c, h = a->h, w = a->w, block = w < SCRATCH ? w : SCRATCH;
    const int streamed = streams(a->out, w, a->total);
    float scales[SCRATCH], shifts[SCRATCH];
    uint8_t row[SCRATCH], places[3][16];
    for (int64_t i = first_window; i < behind; i++) {
        const int mirrored = i < a->flipped;
        for (int64_t k = 0; k < c; k++) {
            find_places(k, mirrored, places);
            if (a->normalise) spread(a->scale, c, k, block, scales), spread(a->shift, c, k, block, shifts);
            for (int64_t y = 0; y < h; y++)
                for (int64_t first = 0; first < w; first += block) {
                    const int64_t count = w - first < block ? w - first : block;
                    const int64_t begin = mirrored ? w - first - count : first;
                    const uint8_t *from = a->base + a->starts[i] + k * a->plane + y * a->line + begin * a->step;
                    if (a->plane || !k) ask_ahead(from, count * a->step, a->line);
                    if (a->step > 1)
                        pick(from, count, a->step, k, mirrored, places, row), from = row;
                    else if (mirrored)
                        mirror(from, count, 1, row), from = row;
                    convert(from, count, a->normalise ? scales : NULL, shifts,
                            a->out + ((i * c + k) * h + y) * w + first, streamed);
                }
        }
    }
    finish(streamed);
}

/* Interleaved to interleaved; four pixels at most SCRATCH. */
static void to_pixels(void *job, int64_t first_window, int64_t behind)
{
    const Windows *a = job;
    const int64_t c = a->c, h = a->h, w = a->w, block = w * c <= SCRATCH ? w : SCRATCH / c / 4 * 4;
    const int streamed = streams(a->out, w * c, a->total);
    float scales[SCRATCH], shifts[SCRATCH];
    uint8_t mirrored[SCRATCH];
    if (a->normalise) spread(a->scale, c, -1, block * c, scales), spread(a->shift, c, -1, block * c, shifts);
    for (int64_t i = first_window; i < behind; i++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t first = 0; first < w; first += block) {
                const int64_t pixels = w - first < block ? w - first : block;
                const int64_t begin = i < a->flipped ? w - first - pixels : first;
                const uint8_t *from = a->base + a->starts[i] + y * a->line + begin * c;
                ask_ahead(from, pixels * c, a->line);
                if (i < a->flipped) mirror(from, pixels, c, mirrored), from = mirrored;
                convert(from, pixels * c, a->normalise ? scales : NULL, shifts,
                        a->out + ((i * h + y) * w + first) * c, streamed);
            }
    finish(streamed);
}

static void gather(Part *part, Windows *windows)
{
    in_parts(part, windows, windows->n, worth_a_team(windows->n * windows->c * windows->h * windows->w));
}

/* Planes to planes: n windows of c x h x w at base + starts[i], the first `flipped` mirrored. */
void planes_to_planes(const uint8_t *base, const int64_t *starts, int64_t n, int64_t flipped, int64_t c, int64_t h,
                      int64_t w, int64_t plane, int64_t line, const float *scale, const float *shift, int normalise,
                      float *out, int64_t total)
{
    Windows windows = {base, starts, n, flipped, c, h, w, 1, plane, line, scale, shift, normalise, out, total};
    gather(to_planes, &windows);
}

/* Interleaved to planes: n windows of h x w x c to c x h x w. */
void pixels_to_planes(const uint8_t *base, const int64_t *starts, int64_t n, int64_t flipped, int64_t c, int64_t h,
                      int64_t w, int64_t line, const float *scale, const float *shift, int normalise, float *out,
                      int64_t total)
{
    Windows windows = {base, starts, n, flipped, c, h, w, c, 0, line, scale, shift, normalise, out, total};
    gather(to_planes, &windows);
}

/* Interleaved to interleaved (channels-last): n windows of h x w x c. */
void pixels_to_pixels(const uint8_t *base, const int64_t *starts, int64_t n, int64_t flipped, int64_t c, int64_t h,
                      int64_t w, int64_t line, const float *scale, const float *shift, int normalise, float *out,
                      int64_t total)
{
    Windows windows = {base, starts, n, flipped, c, h, w, c, 0, line, scale, shift, normalise, out, total};
    gather(to_pixels, &windows);
}

typedef struct {
    const uint8_t *base;
    const int64_t *starts;
    int64_t n, length;
    float scale, *out;
} Sounds;

static void to_sounds(void *job, int64_t first, int64_t behind)
{
    const Sounds *a = job;
    const int64_t length = a->length;
    const int streamed = streams(a->out, length, a->n * length);
    for (int64_t i = first; i < behind; i++) {
        const int16_t *restrict from = (const int16_t *)(a->base + a->starts[i]);
        float *restrict to = a->out + i * length;
        int64_t x = 0;
#if defined(__AVX512F__)
        if (streamed && (uintptr_t)to % 64 == 0)
            for (; x + 16 <= length; x += 16) {
                const __m512i wide = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(from + x)));
                _mm512_stream_ps(to + x, _mm512_mul_ps(_mm512_cvtepi32_ps(wide), _mm512_set1_ps(a->scale)));
            }
#endif
#if defined(__SSE4_1__)
        if (streamed)
            for (; x + 4 <= length; x += 4) {
                const __m128i wide = _mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i *)(from + x)));
                _mm_stream_ps(to + x, _mm_mul_ps(_mm_cvtepi32_ps(wide), _mm_set1_ps(a->scale)));
            }
#endif
        for (; x < length; x++) to[x] = (float)from[x] * a->scale;
    }
    finish(streamed);
}

/* int16 sounds to floats, scaled. */
void sounds(const uint8_t *base, const int64_t *starts, int64_t n, int64_t length, float scale, float *out)
{
    Sounds all = {base, starts, n, length, scale, out};
    in_parts(to_sounds, &all, n, worth_a_team(n * length));
}
