/*
 * Priorities: keys with a higher priority are handed out first.
 *
 *     if (wq_new(&q, &(wq_options){.priorities = 1, .aging_ns = WQ_SECOND}) < 0)
 *         return 1;
 *     wq_add_with(q, "resync", 6, &(wq_add_options){.priority = -100});
 *     wq_add_with(q, "click", 5, &(wq_add_options){.priority = 10});   // handed out first
 *
 * This header has no functions: priorities are options of wq_new() and wq_add_with(), and a field
 * of wq_item and wq_key_info. wq/queue.h includes it.
 *
 * [LEVEL] The queued keys of one priority are a level. A get takes the first key of the highest
 * level that has a ready key; inside a level keys are first in, first out. A priority is
 * WQ_PRIORITY_MIN to WQ_PRIORITY_MAX. An add that gives none has priority 0: wq_add() raises a key
 * whose priority is negative.
 *
 *   the key is    | an add with another priority
 *   --------------+------------------------------------------------------------------------------
 *   queued        | higher: the key goes to the tail of its new level; lower: no effect
 *   waiting       | higher: the key enters its new level when it comes due; lower: no effect
 *   held          | the highest of the adds since the get counts when the hold has ended; the
 *                 | key goes to the tail of that level
 *
 * Without aging, an add now that does not raise a waiting key queues it at the place that it would
 * have if it had been queued when it began to wait: before keys of its level that were queued
 * since.
 *
 * [KEPT] Retry, requeue and wq_again_after() keep the priority of the hold, unless an add since the
 * get gave a higher one. Done ends it: the next add begins anew. A reminder has the priority of its
 * own adds; if it comes due while the key is held, that of the hold counts if it is higher.
 *
 * [AGED] With wq_options.aging_ns = span, a key that has been queued for n times the span is n
 * levels higher, exactly on the queue's clock: each time it goes to the tail of the next level. So
 * the order of two queued keys never changes by itself, and a key with priority p goes before
 * every key with priority p + n that is added more than n spans after it. A raise to a level that
 * the key has reached by aging does not move it; a raise beyond that, a retry and a requeue begin
 * the time anew. Waiting keys do not age. Aging ends at the level wq_options.aging_max: keys do not
 * age beyond it, and keys above it do not age. wq_item.priority does not include aging. In a queue
 * with groups, the time counts from the last turn of the key's group if that is later.
 *
 * Cost: 8 bytes per key. A get takes the same time for any number of levels; with aging it is
 * O(log levels). More than 8 different priorities in a queue, or in a group, take 2 KiB, and 5 KiB
 * for each 256 neighbouring priorities of which one was used (with aging, 4 and 7 KiB); they are
 * freed with the queue or the group.
 */
#ifndef WQ_PRIORITY_H
#define WQ_PRIORITY_H

#include <wq/types.h>

#endif
