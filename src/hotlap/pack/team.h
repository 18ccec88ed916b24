/* Work in parts, by the threads that the calling thread has for its parallel work (team.c). */

#include <stdint.h>

typedef void Part(void *job, int64_t first, int64_t behind);

void in_parts(Part *part, void *job, int64_t n, int worth);
