/*
 * Which tools watch this process. The library itself need not be built for any of them: it asks
 * when it is loaded, and what it makes from then on lets them see what they could not.
 *
 *   what is watched | by                                              | what changes
 *   ----------------+-------------------------------------------------+-------------------------
 *   memory          | AddressSanitizer, HWAddressSanitizer, memcheck  | keys of items are copies
 *   threads         | ThreadSanitizer, helgrind, DRD                  | locks are pthread mutexes
 */
#ifndef WQ_BASE_TOOLS_H
#define WQ_BASE_TOOLS_H

enum wq__tools {
	WQ__TOOL_MEMORY = 1,
	WQ__TOOL_THREADS = 2,
};

/* WQ__TOOL_ bits. */
unsigned wq__tools(void);

#endif
