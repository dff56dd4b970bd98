/*
 * What has threads, or is shared with some, and is of no use in the child of a fork: it is in a
 * list of the process, and in the child each is told. So no call has to ask what process it is in.
 */
#ifndef WQ_BASE_FORK_H
#define WQ_BASE_FORK_H

struct wq__fork_list;

struct wq__fork_link {
	struct wq__fork_link *next, *prev;
	/* Two copies of the library in one process have a list each: who frees it may be the other. */
	struct wq__fork_list *list;
	/*
	 * In the child, in which the calling thread is the only one. Others may have been anywhere when
	 * it came to be: no lock may be taken, and nothing read that one guards.
	 */
	void (*forked)(struct wq__fork_link *link);
};

void wq__fork_join(struct wq__fork_link *link, void (*forked)(struct wq__fork_link *link));
/* Not in the child, where the list has ended. */
void wq__fork_leave(struct wq__fork_link *link);

/*
 * A callback has returned in the child, to a thread of the library's: it would go on with threads
 * that are not there. The process is stopped, by abort().
 */
_Noreturn void wq__fork_came_back(void);

#endif
