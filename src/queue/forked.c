/*
 * What a queue answers in the child of a fork: WQ_EFORKED, to everything. The queue's own table is
 * replaced by this one there, so that no call has to ask what process it is in.
 */
#define ANSWER WQ_EFORKED
#define TABLE wq__engine_forked
#include "queue/answers.h"
