/*
 * Priorities: keys that are handed out before others.
 *
 *     if (wq_new(&q, &(wq_options){.priorities = 1, .aging_ns = WQ_SECOND}) < 0)
 *         return 1;
 *     wq_add_with(q, "resync", 6, &(wq_add_options){.priority = -100});
 *     wq_add_with(q, "click", 5, &(wq_add_options){.priority = 10});   // handed out first
 *
 * This header has no functions: priorities are options of wq_new() and wq_add_with(), and a field
 * of the item. wq/queue.h includes it.
 *
 * [LEVEL] All keys of one priority are a level. The highest level with a ready key goes first, and
 * inside a level keys are first in, first out. A priority is WQ_PRIORITY_MIN to WQ_PRIORITY_MAX;
 * an add without one has priority 0.
 *
 *   the key is        | an add with another priority
 *   ------------------+--------------------------------------------------------------------------
 *   queued            | higher: it goes to the tail of its new level; lower: no effect
 *   waiting           | higher: it enters its new level when it comes due; lower: no effect
 *   held              | the highest of the adds since the get counts, when the hold has ended
 *   held, with a copy | the same
 *
 * Without aging, a waiting key that is added now with no higher priority takes the place of its
 * first add.
 *
 * [KEPT] Retry, requeue, wq_again_after() and reminders that come due during a hold keep the
 * priority of the hold, unless an add since the get gave a higher one. Done ends it: the next add
 * begins anew.
 *
 * [AGED] With wq_options.aging_ns = span, a key that has been queued for n times the span is n
 * levels higher, exactly on the queue's clock: each time it goes to the tail of the next level. So
 * the order of two queued keys never changes by itself, and a key with priority p goes before every
 * key with priority p + n that is added more than n spans after it. Aging ends at the level
 * aging_max; higher levels are not reached and do not age. An add with a higher priority does not
 * move a key back that has risen above it. Time spent waiting does not count. The item shows the
 * priority that the key was added with. In a queue with groups, the time counts from the last turn
 * of the key's group if that is later.
 *
 * A get costs the same for any number of levels; with aging it is O(log levels).
 */
#ifndef WQ_PRIORITY_H
#define WQ_PRIORITY_H

#include <wq/types.h>

#endif
