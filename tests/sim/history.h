/*
 * What happened in a run, and the judge of it: notes in the order of the lock's
 * sections, played through a stupid queue that must give the same answers.
 */
#ifndef WQ_SIM_HISTORY_H
#define WQ_SIM_HISTORY_H

#include "world.h"

enum kind {
	ADD,
	GOT,
	GOT_NOTHING,
	DONE_,
	REQUEUE,
	SHUT,
	DRAIN_END,
	IDLE,
	KEY_BEGIN,
	KEY_END,
	LEN,
	STATE,
};

/*
 * What the done part of next answered is not told. Whether the key came back
 * follows from the history.
 */
enum { UNTOLD = 1000 };

struct note {
	uint32_t section;
	uint32_t from; /* the call's first section */
	enum kind kind;
	int key;
	int rc;
	uint64_t value; /* a token, a length, the place of a requeue */
	enum wq_where where;
	wq_report report;
	int priority;           /* ADD, GOT */
	char text[TEXT_MAX];    /* the value */
	int64_t from_ns, to_ns; /* GOT: in between */
};

void history_reset(void);

/* One more note. Section 0: the latest one. */
struct note *note(enum kind kind, uint32_t section, int key, int rc, uint64_t value);

/* A number for a wait for one key, which its two notes share. */
uint64_t note_wait(void);

/* Fails the run unless everything was right. Returns how many keys are left in line. */
int history_judge(int touches);

#endif
