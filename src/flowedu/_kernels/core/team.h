/* fe_run runs a list of calls in order, on a team of threads, in one parallel region.
 *
 * Small calls run on thread 0 alone, without a barrier. Barriers surround only the calls that are
 * split. A call that fails ends the list, so that no later call (such as an optimizer update) reads
 * its output. polls: NULL, or one flag per call. Thread 0 calls `poll` after calls with a flag.
 * FE_SIGNAL from `poll` ends the list.
 */
#ifndef FLOWEDU_TEAM_H
#define FLOWEDU_TEAM_H
#include "abi.h"

enum { FE_SIGNAL = 100 }; /* a status that no kernel returns */
static int fe_run(fe_call *calls, int n, int nt, int *failed, const char *polls,
                  int (*poll)(void)) {
    *failed = -1;
#if defined(_OPENMP)
    if (nt > 1) {
        fe_barrier barrier = {0};
        int status = FE_OK;
#pragma omp parallel num_threads(nt)
        {
            fe_team team = {omp_get_thread_num(), omp_get_num_threads(), &barrier};
            fe_team solo = {0, 1, &barrier};
            int unseen = 0; /* thread 0 has written memory since the last barrier */
            for (int i = 0; i < n; i++) {
                int s = FE_OK;
                if (calls[i].parallel) {
                    if (unseen) fe_wait(&team);
                    if (barrier.stop && team.nt > 1) break;
                    s = calls[i].fn(&calls[i], &team, 0);
                    unseen = 0;
                } else if (team.tid == 0) {
                    if (!barrier.fail) s = calls[i].fn(&calls[i], &solo, 0);
                }
                if (s == FE_OK && polls && polls[i] && team.tid == 0 && !barrier.fail) s = poll();
                if (s != FE_OK && __sync_bool_compare_and_swap(&barrier.fail, 0, s))
                    *failed = i, status = s;
                if (calls[i].parallel) {
                    fe_wait(&team);
                    if (barrier.stop) break;
                } else unseen = 1;
                if (team.nt == 1 && barrier.fail) break;
            }
        }
        return status;
    }
#endif
    fe_team solo = {0, 1, 0};
    for (int i = 0; i < n; i++) {
        int s = calls[i].fn(&calls[i], &solo, 0);
        if (s == FE_OK && polls && polls[i]) s = poll();
        if (s != FE_OK) { *failed = i; return s; }
    }
    return FE_OK;
}

static int fe_has_threads(void) {
#if defined(_OPENMP)
    return 1;
#else
    return 0;
#endif
}
#endif
