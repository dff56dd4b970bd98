/* Threads of the server's own. */
#ifndef WQ_HTTP_THREAD_H
#define WQ_HTTP_THREAD_H

#include <pthread.h>

/*
 * It blocks all signals but faults, which are for the program's own threads, and has a name of at
 * most 15 bytes. WQ_OK or WQ_ENOMEM.
 */
int wq__http_thread(pthread_t *out, void *(*run)(void *arg), void *arg, const char *name);

#endif
