/*
 * A connection to a run's socket. Its first byte says what it is:
 *
 *   NUL        orders, each a frame (frame.h); the next is looked at when the answer to the one
 *              before has been read
 *   any other  keys, ended like those of the input; nothing is answered but complaints
 *
 * A connection has a bounded amount of memory, whatever the other side does: no more than one
 * order is read ahead, and an answer that is long lies in a file.
 */
#ifndef CLI_SOCKET_CONN_H
#define CLI_SOCKET_CONN_H

#include <sys/stat.h>

#include "cli/input/split.h"
#include "cli/run.h"

enum conn_kind { CONN_FRESH, CONN_KEYS, CONN_ORDERS };

/* What has to happen before an answer can be finished. */
enum conn_busy {
	BUSY_NOT,
	BUSY_ADD,  /* room in the queue, or to wait for more */
	BUSY_KEYS, /* certain keys, or units of work, are over */
	BUSY_ALL,  /* all keys are */
	BUSY_END   /* the run has ended */
};

struct conn {
	struct watch watch;
	struct run *run;
	struct conn *prev, *next;
	struct conn *next_held;
	long user;  /* whose it is */
	bool guest; /* neither ours nor root's: RIGHT_FEED */
	enum conn_kind kind;
	bool held;         /* in the list of those who go on when there is room */
	bool ended;        /* nothing more will come */
	bool closing;      /* once what is to be written is */
	bool broken;       /* nobody is there any more */
	bool told;         /* that the run ends */
	bool cut;          /* by us: what has no end is no key */
	int64_t active_ns; /* when bytes came or went last */
	struct text in;
	size_t in_at; /* before that it has been looked at */
	struct text out;
	size_t out_at; /* before that it is written */
	int file;      /* -1: none; it is written before out is */
	size_t file_at, file_n;
	int spill_error;    /* why an answer is not there */
	struct split split; /* of keys */
	/* of orders */
	enum conn_busy busy;
	size_t frame;  /* BUSY_ADD: how long the order is in all, */
	size_t add_at; /* and which of its bytes come next */
	int64_t after_ns;
	int32_t priority; /* of all keys that are given from now on, and their value */
	bool valued;
	struct text value;
	bool tracks;  /* what is given is waited for, too; */
	bool starved; /* there is no room to wait for more */
	uint64_t added, merged;
	int64_t so_far_ns; /* when it was told how many these are; 0: not yet */
	void *waited;      /* await.c: the keys */
	size_t nwaited;    /* of them */
	size_t waited_bytes;
	uint64_t died, cancelled; /* of those that were waited for */
	struct text ill;          /* the first of them, as messages show it */
};

enum { FAILURES = 32, FAILURE_BYTES = 160 };

/* A key that failed of late. */
struct failure {
	size_t len; /* of the whole key; 0: none here */
	char key[FAILURE_BYTES];
	uint32_t n;
	bool dead;
	int64_t at_ns;
};

struct control {
	struct run *run;
	struct watch listener;
	struct stat own; /* what lies at the path */
	struct conn *all;
	unsigned n, nguests; /* connections, and of those guests */
	struct conn *held, **held_end;
	struct conn *resumed; /* goes on first, if it is held again */
	int64_t accept_at_ns; /* there was no room for a connection; 0: there was */
	int64_t wanted_ns;    /* since when somebody is there for whom there is none; 0: nobody */
	bool told;            /* all who are there, that the run ends */
	unsigned nwaiting;    /* connections that wait for keys, or for all */
	double rate;          /* as it is now */
	int burst;
	struct failure failure[FAILURES];
};

struct conn *conn_new(struct run *r, int fd);
/* Does what can be done with what is there. The connection may be gone afterwards. */
void conn_go(struct conn *c);
void conn_close(struct conn *c);
/* A message for whoever is there; the connection is closed after it. */
void conn_refuse(struct conn *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* It has asked for nothing, or has got what it asked for. */
bool conn_is_idle(const struct conn *c);
/* It waits for the run: for room, for keys. */
bool conn_is_waiting(const struct conn *c);
/*
 * One of these two makes room for another; it is told. False: something has come just now, which
 * is taken first; it goes then by itself.
 */
bool conn_evict(struct conn *c);
/* The end of the run: keys that were never taken. */
void conn_rest(struct conn *c, void (*fn)(struct run *r, const struct record *rec));
/* Writes what can be written without waiting. */
void conn_flush(struct conn *c);
/* Not before there is room in the queue. */
void conn_hold(struct conn *c);

/* The answer to an order: pieces, then an end. */
void conn_piece(struct conn *c, const void *bytes, size_t n);
/* An empty one: the rest takes as long as it takes. */
void conn_heard(struct conn *c);
void conn_well(struct conn *c, const char *text);
void conn_not(struct conn *c, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Like these, of an answer that was put off: it is written in the next turn of the loop. */
void conn_wake(struct conn *c);

#endif
