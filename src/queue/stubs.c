/*
 * What an engine answers that has no function for a call: WQ_ENOTSUP. wq_new() copies the engine's
 * table over these, so an older, shorter table or a missing function is no special case elsewhere.
 */
#define ANSWER WQ_ENOTSUP
#define TABLE wq__engine_stubs
#include "queue/answers.h"
