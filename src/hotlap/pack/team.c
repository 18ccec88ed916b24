/* Work in parts, by the OpenMP team that torch keeps for the calling thread: a batch that the training's own thread makes
   is made by all threads that were waiting for it anyway, and no second team spins beside the first. threads.one_thread
   makes it a team of one. The library is the one that torch has loaded, found by kernel.py; linking another would give
   a second team. */

#include "team.h"

#include <stddef.h>

typedef void Parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags);

static Parallel *parallel;
static int (*place)(void), (*count)(void);

/* GOMP_parallel, omp_get_thread_num, omp_get_num_threads; or nothing, where there is no team (any more). Other threads may
   be at work: who sees the first one sees the others. */
void set_team(void *gomp_parallel, void *thread_num, void *num_threads)
{
    if (gomp_parallel) {
        place = (int (*)(void))thread_num;
        count = (int (*)(void))num_threads;
    }
    __atomic_store_n(&parallel, (Parallel *)gomp_parallel, __ATOMIC_RELEASE);
}

typedef struct {
    Part *part;
    void *job;
    int64_t n;
} Split;

static void own_part(void *data)
{
    const Split *split = data;
    const int64_t of = count(), first = split->n * place() / of, behind = split->n * (place() + 1) / of;
    if (behind > first) split->part(split->job, first, behind);
}

/* part(job, first, behind) for stretches that make up 0 … n, at once where it is `worth` waking a team for (a few
   microseconds, or fifty where its threads sleep). */
void in_parts(Part *part, void *job, int64_t n, int worth)
{
    Split split = {part, job, n};
    Parallel *const team = worth && n > 1 ? __atomic_load_n(&parallel, __ATOMIC_ACQUIRE) : NULL;
    if (team)
        team(own_part, &split, 0, 0); /* 0: as many as the calling thread has */
    else
        part(job, 0, n);
}
