/*
 * Two queues, to and fro: each thread gets a key from one queue, adds it to
 * the other and is done. Nobody but the other side can wake a sleeper, so one
 * lost wake-up stops everything.
 *
 *     test_stress_pingpong [--spin ...] [--one-cpu] [--seed N] [--scale X]
 */
#define _POSIX_C_SOURCE 200809L
#include "stress.h"

#include <stdio.h>
#include <string.h>

enum {
	TRIPS = 40000,
	TRIPS_ASLEEP = 15000, /* where each trip is a wake-up of the kernel's */
	BALLS = 3,
	PLAYERS = 3, /* on each side */
};

static struct stress st;
static wq_queue *queue[2];
static long trips;
static atomic_long made;
static _Atomic int with[BALLS]; /* is the ball in the air? */
static bool use_next;

static void play(void *ctx)
{
	int side = (int)(uintptr_t)ctx;
	wq_queue *from = queue[side], *to = queue[1 - side];
	wq_item it;
	int rc = wq_get(from, &it);

	while (rc == WQ_OK) {
		int ball;

		memcpy(&ball, it.key, sizeof ball);
		CHECK(it.len == sizeof ball && ball >= 0 && ball < BALLS);
		CHECK_EQ(atomic_exchange(&with[ball], 1), 0);
		atomic_store(&with[ball], 0);
		if (atomic_fetch_add(&made, 1) >= trips) {
			CHECK_EQ(wq_shutdown(queue[0]), WQ_OK);
			CHECK_EQ(wq_shutdown(queue[1]), WQ_OK);
		} else {
			/*
			 * Mostly new there; but who threw it last may not have
			 * said done yet, and then it is marked. The queues may
			 * be shut since.
			 */
			int added = wq_add(to, &ball, sizeof ball);

			CHECK(added == WQ_QUEUED || added == WQ_MARKED || added == WQ_ESHUTDOWN);
		}
		if (use_next) {
			rc = wq_next(from, &it);
		} else {
			CHECK(wq_done(from, &it) >= 0);
			rc = wq_get(from, &it);
		}
	}
	CHECK_EQ(rc, WQ_ESHUTDOWN);
}

static void game(int balls, int players, bool next)
{
	struct crew crew = {.n = 0};

	use_next = next;
	atomic_store(&made, 0);
	for (int i = 0; i < 2; i++) {
		queue[i] = stress_queue(&st, NULL);
		for (int p = 0; p < players; p++)
			crew_add(&crew, play, (void *)(uintptr_t)i);
	}
	crew_start(&crew);
	for (int ball = 0; ball < balls; ball++)
		CHECK_EQ(wq_add(queue[ball % 2], &ball, sizeof ball), WQ_QUEUED);
	crew_join(&crew);
	CHECK(atomic_load(&made) >= trips);
	CHECK_EQ(wq_free(queue[0]), 0);
	CHECK_EQ(wq_free(queue[1]), 0);
	printf("%d balls, %d players a side, %s: %ld trips\n", balls, players,
	       next ? "next" : "get", atomic_load(&made));
}

int main(int argc, char **argv)
{
	stress_init(&st, argc, argv, NULL);
	trips = stress_ops(&st, st.spin_ns == WQ_SPIN_NEVER ? TRIPS_ASLEEP : TRIPS);
	game(1, 1, false);
	game(1, 1, true);
	game(BALLS, 1, true);
	game(1, PLAYERS, false);
	game(BALLS, PLAYERS, false);
	game(BALLS, PLAYERS, true);
	return 0;
}
