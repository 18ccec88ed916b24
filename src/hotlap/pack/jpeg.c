/* Windows of JPEGs, decoded by a libjpeg-turbo that the process has loaded anyway (jpeg_windows.py): the lines above and
   below a window are not transformed, nor the blocks beside it, which is about half of the work of a whole picture.

   The pixels are the ones of the whole picture, to the bit: MARGIN more columns are decoded on either side, since the
   smooth upsampling of the colours looks one pixel further, and the decoder takes the window's edge for the picture's.

   A line is decoded into a place that is no multiple of 16 bytes: to one that is, the library writes past the caches,
   and it has to be read back from memory.

   The declarations below are those of the library's interface, version 6.2 (64-bit), as far as they are used here. The
   library refuses to begin if its own version or the size of its structure is another one, and the caller then decodes
   in the other way. */

#include "team.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION = 62, STRUCT_BYTES = 632, RGB = 2, MARGIN = 2, MOST_BLOCK = 32, CACHED = 8 };
enum { MOST_PIXELS = 64000000 }; /* of decode.py: a progressive picture is held whole, and its header may ask for anything */

typedef struct {
    void *err, *mem, *progress, *client_data;
    int is_decompressor, global_state;
    void *src;
    unsigned image_width, image_height;
    int num_components, jpeg_color_space, out_color_space;
    unsigned scale_num, scale_denom;
    double output_gamma;
    int choices[12];
    unsigned output_width, output_height;
    char rest[1024];
} Decoder;

typedef struct {
    void (*error_exit)(Decoder *);
    void (*emit_message)(Decoder *, int);
    void (*output_message)(Decoder *);
    char rest[1024];
    jmp_buf back;
} Errors;

/* In the order of jpeg_windows.py. */
typedef struct {
    void *(*std_error)(Errors *);
    void (*create)(Decoder *, int, size_t);
    void (*read_memory)(Decoder *, const uint8_t *, unsigned long);
    int (*read_header)(Decoder *, int);
    int (*start)(Decoder *);
    void (*crop)(Decoder *, unsigned *, unsigned *);
    unsigned (*skip)(Decoder *, unsigned);
    unsigned (*read)(Decoder *, uint8_t **, unsigned);
    void (*abort)(Decoder *);
    void (*destroy)(Decoder *);
} Library;

static void leave(Decoder *decoder) { longjmp(((Errors *)decoder->err)->back, 1); }

/* Below zero is a warning of damaged data. */
static void hear(Decoder *decoder, int level)
{
    if (level < 0) leave(decoder);
}

static void say_nothing(Decoder *decoder) { (void)decoder; }

typedef struct {
    const Library *library;
    const uint8_t *base;
    const int64_t *starts, *sizes;
    const double *down, *along;
    int64_t moving, h, w;
    uint8_t *out;
    int64_t damaged; /* the first that cannot be decoded */
} Job;

static void decode(void *data, int64_t first_window, int64_t behind_window)
{
    Job *const job = data;
    const Library *const library = job->library;
    const int64_t h = job->h, w = job->w;
    Decoder decoder;
    Errors errors;
    volatile int64_t i = first_window;
    uint8_t *const memory = malloc(3 * (size_t)(w + 2 * MARGIN + 2 * MOST_BLOCK) + CACHED + 16);
    if (memory) {
        uint8_t *line = memory + (16 - (uintptr_t)memory % 16) + CACHED;
        memset(&decoder, 0, sizeof decoder);
        decoder.err = library->std_error(&errors);
        errors.error_exit = leave;
        errors.emit_message = hear;
        errors.output_message = say_nothing;
        if (!setjmp(errors.back)) {
            library->create(&decoder, VERSION, STRUCT_BYTES);
            for (; i < behind_window; i++) {
                library->read_memory(&decoder, job->base + job->starts[i], (unsigned long)job->sizes[i]);
                library->read_header(&decoder, 1);
                const int64_t free_h = (int64_t)decoder.image_height - h, free_w = (int64_t)decoder.image_width - w;
                if (free_h < 0 || free_w < 0) leave(&decoder);
                if ((int64_t)decoder.image_height * decoder.image_width > MOST_PIXELS) leave(&decoder);
                const int64_t top = (int64_t)(job->down[i] * (double)(free_h + job->moving));
                const int64_t left = (int64_t)(job->along[i] * (double)(free_w + job->moving));
                decoder.out_color_space = RGB;
                library->start(&decoder);
                unsigned first = left > MARGIN ? (unsigned)(left - MARGIN) : 0, behind = (unsigned)(left + w + MARGIN);
                unsigned width = (behind < decoder.output_width ? behind : decoder.output_width) - first;
                library->crop(&decoder, &first, &width);
                if (first > left || first + width < left + w ||
                    decoder.output_width > w + 2 * MARGIN + 2 * MOST_BLOCK)
                    leave(&decoder);
                if (top) library->skip(&decoder, (unsigned)top);
                uint8_t *to = job->out + i * h * w * 3;
                for (int64_t y = 0; y < h; y++, to += 3 * w) {
                    if (library->read(&decoder, &line, 1) != 1) leave(&decoder);
                    memcpy(to, line + 3 * (left - first), 3 * (size_t)w);
                }
                library->abort(&decoder);
            }
        }
        library->destroy(&decoder);
        free(memory);
    }
    if (i < behind_window) { /* several threads may come here: the lowest number stays */
        int64_t known = __atomic_load_n(&job->damaged, __ATOMIC_RELAXED);
        while (i < known &&
               !__atomic_compare_exchange_n(&job->damaged, &known, i, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
    }
}

/* n windows of h x w x 3 into `out`, of JPEGs of sizes[i] bytes at base + starts[i]. A window's top is the part down[i]
   of the lines by which it can move, and `moving` (0 or 1); its left likewise. Returns how many were decoded before one
   that cannot be: damaged, of another kind, or smaller than the window. */
int64_t jpeg_windows(const Library *library, const uint8_t *base, const int64_t *starts, const int64_t *sizes, int64_t n,
                     const double *down, const double *along, int64_t moving, int64_t h, int64_t w, uint8_t *out)
{
    Job job = {library, base, starts, sizes, down, along, moving, h, w, out, n};
    in_parts(decode, &job, n, 1);
    return job.damaged;
}
