/*
 * Seeded bugs: mistakes that are easy to make in the queue, kept in the code
 * behind a switch that exists only in the schedule tests (WQ_SIM), so that
 * tests/sim can show that it finds each of them. Everywhere else WQ__BUG() is
 * the constant 0 and the compiler removes the branch.
 */
#ifndef WQ_BASE_BUG_H
#define WQ_BASE_BUG_H

/* X(name, what goes wrong) */
#define WQ__BUG_LIST(X)                                                                            \
	X(ADD_NO_WAKE, "an add of a new key wakes nobody")                                         \
	X(MANY_NOT_PASSED, "get_many does not wake the next though keys are left")                 \
	X(WAKE_NOT_PASSED, "a woken get does not wake the next though keys are left")              \
	X(WAIT_UNCHECKED,                                                                          \
	  "get goes to sleep without looking again after it was woken for nothing")                \
	X(MARK_AFTER_UNLOCK, "a waiter is marked as woken only after the lock is released")        \
	X(TIMEOUT_EATS_WAKE, "a get that times out swallows the wake-up that came meanwhile")      \
	X(INFLIGHT_LEAK, "a woken get that times out still counts as under way")                   \
	X(LOST_READD, "done forgets that the key was added meanwhile")                             \
	X(READD_NO_WAKE, "done queues a dirty key and wakes nobody")                               \
	X(TWO_WORKERS, "an add of a held key puts it in line at once")                             \
	X(STALE_DONE, "done does not compare the token")                                           \
	X(SHUTDOWN_WAKES_ONE, "shutdown wakes one get instead of all")                             \
	X(SHUTDOWN_DROPS_DIRTY, "a dirty key is not requeued once the queue is shut down")         \
	X(DRAIN_WAKES_ONE, "the end of a drain wakes one drainer instead of all")                  \
	X(DRAIN_ONLY_RUNNING, "a drain returns while keys are queued")                             \
	X(SHUTDOWN_KEEPS_DRAIN, "a shutdown does not release a drain that waits")                  \
	X(DRAIN_ENTERS_LATE, "a shutdown does not release a drain that lines up what is due")      \
	X(DRAIN_PAST_DUE, "a drain returns while another thread lines up what is due")             \
	X(REQUEUE_NO_WAKE, "requeue wakes nobody")                                                 \
	X(INTERRUPT_LOST, "an interrupt that finds nobody blocked is forgotten")                   \
	X(PUSH_TO_HEAD, "an add goes to the head of the line")                                     \
	X(FD_NOT_SIGNALLED, "a key that becomes ready does not make the descriptor readable")      \
	X(EARLIER_NO_WAKE, "a key that comes due earlier does not wake the leader")                \
	X(LEADER_LOST, "a leader that leaves is not replaced")                                     \
	X(ABSORB_NOTHING, "an add leaves the waiting copy of its key")                             \
	X(CUT_IGNORED, "keys come due after a shutdown")                                           \
	X(LEFT_FORGOTTEN, "a retry after a shutdown is forgotten instead of left over")            \
	X(LEFT_AS_DELAYED, "a retry after a shutdown counts as a delayed add")                     \
	X(LEFT_UNSAID, "a done after a shutdown says that the copy beside it will come due")       \
	X(OFFER_NO_WAKE, "a new head of the delay queue wakes nobody")                             \
	X(LEADER_NOT_PASSED, "a taker leaves with values behind it and wakes no new leader")       \
	X(CLOSE_WAKES_ONE, "closing a delay queue wakes one taker instead of all")                 \
	X(TAKE_UNLINKS_TWICE, "a take whose time-out and wake-up meet leaves the list twice")      \
	X(CALLING_TOO_LATE, "a callback counts as under way only after the lock is released")      \
	X(STOP_WAKES_ONE, "the end of a callback releases one stop instead of all")                \
	X(TIMER_NO_WAKE, "a timer that becomes the first does not wake the runner")                \
	X(TURN_PAST_GATE, "a worker takes one more key after a pause or a stop")                   \
	X(POOL_REST_NO_WAKE, "workers that rest are not woken")                                    \
	X(POOL_TOO_MANY_GO, "more workers leave than were to go")                                  \
	X(GATE_HOLD_LOST, "a pool ends though a key may come back")                                \
	X(GATE_NOT_WOKEN, "the end of the last hold does not wake a pool's workers")               \
	X(GATE_CANCEL, "a cancel of the last key does not wake a pool's workers")                  \
	X(LANE_OVERTAKES, "an add goes into the lane's line though others stand behind it")        \
	X(LANE_FINISH_STORES, "a done does not see that the key was marked meanwhile")             \
	X(LANE_MARK_STORES, "an add does not see that the hold has ended meanwhile")               \
	X(LANE_OLD_RECORD, "a record counts though the key was held again since")                  \
	X(LANE_NOT_SETTLED, "a whole queue has finished keys in its table")                        \
	X(LANE_LATE_STAMP, "a Get reads when the key was added after it has taken it")             \
	X(LANE_POLLER_KEEPS, "a Get that polled and counted as under way wakes nobody after it")   \
	X(LANE_POLLER_SLIPS, "a Get that polled and counted as under way is not whole after it")   \
	X(LANE_TAKEN_KEPT, "a whole queue counts keys as ready that its lane has handed out")      \
	X(LANE_RECORD_FIRST, "a done writes its record before the key is finished")                \
	X(LANE_REFILL_TURNS, "keys that move up into the line change places")                      \
	X(LANE_FIRST_LAST, "a full line gives its last key to the end of the list")                \
	X(LANE_FIRST_LOST, "a full line forgets its last key when one goes before all")            \
	X(LANE_REMOVE_HOLE, "a key that leaves the line leaves a hole")                            \
	X(LANE_REMOVE_KNOWN, "the last place of the line stays known though its key has gone")     \
	X(LANE_PUT_FULL, "an add does not see that the line is full")                              \
	X(LANE_DONES_FULL, "a done does not see that there is no room for its record")             \
	X(LANE_HOLD_KEPT, "a hold that a whole queue has ended stays among the lane's")            \
	X(LANE_DONE_UNWATCHED, "a done goes by the lane though somebody waits for it")             \
	X(LANE_ADD_EARLY, "an add goes by the lane though keys are due before it")                 \
	X(LANE_GATE_OPEN, "a Get goes by the lane though its pool is paused")                      \
	X(LANE_RETAKEN, "long work that goes on finds finished keys in the table")                 \
	X(LANE_MISSED,                                                                             \
	  "a call that waited for the front lock goes on without the lane made since")             \
	X(GROUP_STAYS_FULL, "a hold that ends does not give its group a place")                    \
	X(GROUP_NO_TURNS, "a group keeps its turn as long as it has keys")                         \
	X(GROUP_NO_PACE, "a group starts keys without tokens")                                     \
	X(GROUP_TOO_MANY, "a group may have one hold more than its limit")                         \
	X(GROUP_FREED_NO_WAKE, "a done that gives a group a place wakes nobody")                   \
	X(GROUP_LEADER_SLEEPS, "a group with a token soon does not wake the leader")               \
	X(GROUP_TOKEN_LOST, "a group that has a token again stays asleep")                         \
	X(GROUP_SHUT_LEFT, "a get leaves a shut queue though keys are blocked")                    \
	X(GROUP_LAST_NO_WAKE, "gets of a shut queue sleep on when its last blocked key has left")  \
	X(RAISE_DROPS, "a raise takes a key out of the line and does not put it back")             \
	X(MERGE_DROPS, "two values that merge are both lost")                                      \
	X(DIRTY_LOSES_VALUE, "a done forgets the value that was added meanwhile")                  \
	X(RAISE_LOST, "a queued key is not raised")                                                \
	X(RETRY_LOSES_RANK, "a retry forgets the priority of its hold")                            \
	X(RETRY_LOSES_VALUE, "a retry forgets the value of its hold")                              \
	X(LANE_BATCH_SLEEPS, "a batch that has to be whole wakes nobody for what it has added")    \
	X(POOL_STOP_WAKES_ONE, "the end of the last worker releases one stop instead of all")

#define WQ__BUG_ENUM(name, text) WQ__BUG_##name,
enum wq__bug { WQ__BUG_NONE, WQ__BUG_LIST(WQ__BUG_ENUM) WQ__BUG_COUNT };
#undef WQ__BUG_ENUM

#ifdef WQ_SIM
extern int wq__bug; /* the one that is switched on; defined by tests/sim */
#define WQ__BUG(name) (wq__bug == WQ__BUG_##name)

/*
 * Lost wake-ups, one for each call: the functions that wake others are macros
 * in the schedule tests (memory.h, at its end), and each place that calls one
 * stands in a section of its own, in which tests/sim finds it. So no call can be
 * forgotten here, and a new one is tested from its first day on.
 */
struct wq__call {
	const char *file, *function, *what;
	int line;
};

extern const struct wq__call *wq__lost_call; /* the one that does nothing; defined by tests/sim */

#define WQ__LOST(what)                                                                             \
	__extension__({                                                                            \
		static const struct wq__call here                                                  \
		    __attribute__((section("wq__calls"), used, aligned(8))) = {__FILE__, __func__, \
		                                                               what, __LINE__};    \
		wq__lost_call == &here;                                                            \
	})
#else
#define WQ__BUG(name) 0
#endif

#endif
