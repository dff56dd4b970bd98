/* The limit is asked for each time: others may change it. */
#include "cli/budget.h"

#include <sys/resource.h>
#include <wq/pool.h>

enum { WANTED = 2048 }; /* connections for which the limit is raised */

uint64_t budget_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? UINT32_MAX : limit.rlim_cur;
}

void budget_raise(struct run *r, uint32_t workers)
{
	rlim_t wanted =
	    BUDGET_OWN + BUDGET_COMMAND * (rlim_t)workers + (r->opt->socket ? WANTED : 0);
	struct rlimit limit, old;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= wanted)
		return;
	old = limit;
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	/* Ours alone: commands get the limit that we got. */
	if (!r->raised)
		r->nofile = old;
	r->raised = true;
}

uint32_t budget_workers(const struct run *r)
{
	uint64_t limit = budget_limit(), kept = BUDGET_OWN + BUDGET_RESERVE, n;

	if (!r->opt->socket)
		return WQ_WORKERS_MAX;
	n = limit > kept ? (limit - kept) / BUDGET_COMMAND : 0;
	return n < 1 ? 1 : n > WQ_WORKERS_MAX ? WQ_WORKERS_MAX : (uint32_t)n;
}

unsigned budget_connections(const struct run *r)
{
	uint64_t limit = budget_limit(), kept = BUDGET_OWN + BUDGET_COMMAND * (uint64_t)r->workers;

	if (limit < kept + BUDGET_RESERVE)
		return BUDGET_RESERVE;
	limit -= kept;
	return limit < BUDGET_CONNECTIONS ? (unsigned)limit : BUDGET_CONNECTIONS;
}
