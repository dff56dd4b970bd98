/*
 * Metrics as text in both formats, and snapshots as JSON: every series is there with its
 * value, hostile names are escaped, whoever takes the text may stop it.
 * tests/prometheus asks the real Prometheus, and a real reader of JSON.
 */
#include "metrics_rig.h"

#include <math.h>

struct page {
	struct meter_rig rig;
	wq_registry *r;
	struct text t;
};

static void page_open(struct page *p, const char *name)
{
	wq_options o = {.name = name, .limiter = wq_limiter_fast_slow(0, 0, 1)};

	*p = (struct page){0};
	IS(wq_registry_new(&p->r), WQ_OK);
	o.registry = p->r;
	o.max_attempts = 2;
	fixture_open(&p->rig.f, &o);
}

static void page_close(struct page *p)
{
	text_free(&p->t);
	fixture_close(&p->rig.f, -1);
	IS(wq_registry_free(p->r), WQ_OK);
}

static const char *page_text(struct page *p, enum wq_metrics_format format)
{
	text_free(&p->t);
	IS(wq_metrics_write(p->r, format, text_write, &p->t), WQ_OK);
	assert_non_null(p->t.bytes);
	return p->t.bytes;
}

/* What stands behind the series at the beginning of a line; once. */
static const char *find_series(const char *text, const char *series)
{
	const char *found = NULL;
	size_t n = strlen(series);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += line != text;
		if (strncmp(line, series, n) != 0 || line[n] != ' ')
			continue;
		assert_null(found);
		found = line + n + 1;
	}
	return found;
}

static void value_is(const char *text, const char *series, int64_t expected, double unit)
{
	const char *at = find_series(text, series);

	if (!at)
		print_error("no %s\n", series);
	assert_non_null(at);
	if (llround(strtod(at, NULL) / unit) != expected)
		print_error("%s: %.40s\n", series, at);
	IS(llround(strtod(at, NULL) / unit), expected);
}

/* Everything happens once, or another small number of times, each a different one. */
static void busy_queue(struct fixture *f, wq_item *held)
{
	wq_item it;

	for (int i = 0; i < 2; i++) {
		IS(wq_add_str(f->q, "dropped"), WQ_QUEUED);
		get_is(f->q, &it, "dropped");
		IS(wq_settle(f->q, &it, WQ_DROP), WQ_OK);
	}
	IS(wq_add_str(f->q, "dead"), WQ_QUEUED);
	get_is(f->q, &it, "dead");
	wq_manual_clock_advance(f->mc, 1000);
	IS(wq_retry(f->q, &it), WQ_QUEUED);
	get_is(f->q, &it, "dead");
	IS(wq_retry(f->q, &it), WQ_DEAD);
	for (int i = 0; i < 3; i++)
		IS(wq_retry(f->q, &it), WQ_ESTALE);
	IS(wq_add_str(f->q, "held"), WQ_QUEUED);
	get_is(f->q, held, "held");
	IS(wq_add_str(f->q, "held"), WQ_MARKED);
	for (int i = 0; i < 5; i++)
		IS(wq_add_str(f->q, "held"), WQ_MERGED);
	wq_manual_clock_advance(f->mc, 2000);
	IS(wq_add_str(f->q, "a"), WQ_QUEUED);
	IS(wq_add_str(f->q, "b"), WQ_QUEUED);
	for (int i = 0; i < 7; i++)
		IS(wq_add_after(f->q, &i, sizeof i, 100), WQ_DELAYED);
	wq_manual_clock_advance(f->mc, 40);
}

static void every_metric_has_its_value(void **state)
{
	(void)state;
	for (int format = WQ_PROMETHEUS; format <= WQ_OPENMETRICS; format++) {
		static const struct {
			const char *series;
			int64_t value;
			double unit;
		} rows[] = {
		    {"workqueue_depth{name=\"q\"}", 3, 1},
		    {"workqueue_adds_total{name=\"q\"}", 8, 1},
		    {"workqueue_queue_duration_seconds_sum{name=\"q\"}", 0, 1e-9},
		    {"workqueue_queue_duration_seconds_count{name=\"q\"}", 5, 1},
		    {"workqueue_queue_duration_seconds_bucket{name=\"q\",le=\"1e-08\"}", 5, 1},
		    {"workqueue_work_duration_seconds_sum{name=\"q\"}", 1000, 1e-9},
		    {"workqueue_work_duration_seconds_count{name=\"q\"}", 4, 1},
		    {"workqueue_work_duration_seconds_bucket{name=\"q\",le=\"1e-08\"}", 3, 1},
		    {"workqueue_work_duration_seconds_bucket{name=\"q\",le=\"1e-07\"}", 3, 1},
		    {"workqueue_work_duration_seconds_bucket{name=\"q\",le=\"1e-06\"}", 4, 1},
		    {"workqueue_work_duration_seconds_bucket{name=\"q\",le=\"+Inf\"}", 4, 1},
		    {"workqueue_unfinished_work_seconds{name=\"q\"}", 2040, 1e-9},
		    {"workqueue_longest_running_processor_seconds{name=\"q\"}", 2040, 1e-9},
		    {"workqueue_retries_total{name=\"q\"}", 8, 1},
		    {"wq_waiting{name=\"q\"}", 7, 1},
		    {"wq_running{name=\"q\"}", 1, 1},
		    {"wq_oldest_queued_seconds{name=\"q\"}", 40, 1e-9},
		    {"wq_delay_lateness_seconds_count{name=\"q\"}", 0, 1},
		    {"wq_delay_lateness_seconds_sum{name=\"q\"}", 0, 1},
		    {"wq_merged_total{name=\"q\"}", 5, 1},
		    {"wq_refused_total{name=\"q\"}", 0, 1},
		    {"wq_marked_total{name=\"q\"}", 2, 1},
		    {"wq_dropped_total{name=\"q\"}", 2, 1},
		    {"wq_left{name=\"q\"}", 0, 1},
		    {"wq_dead_total{name=\"q\"}", 1, 1},
		    {"wq_stale_total{name=\"q\"}", 3, 1},
		    {"wq_slow_handlers_total{name=\"q\"}", 0, 1},
		};
		struct page p;
		wq_item held, left;

		page_open(&p, "q");
		busy_queue(&p.rig.f, &held);
		page_text(&p, (enum wq_metrics_format)format);
		for (size_t i = 0; i < LENGTH(rows); i++)
			value_is(p.t.bytes, rows[i].series, rows[i].value, rows[i].unit);

		IS(wq_shutdown(p.rig.f.q), WQ_OK);
		IS(wq_add_str(p.rig.f.q, "x"), WQ_ESHUTDOWN);
		get_is(p.rig.f.q, &left, "a");
		IS(wq_retry(p.rig.f.q, &left), WQ_LEFT);
		page_text(&p, (enum wq_metrics_format)format);
		value_is(p.t.bytes, "wq_dropped_total{name=\"q\"}", 2, 1);
		value_is(p.t.bytes, "wq_refused_total{name=\"q\"}", 1, 1);
		value_is(p.t.bytes, "wq_waiting{name=\"q\"}", 0, 1);
		value_is(p.t.bytes, "wq_left{name=\"q\"}", 8, 1); /* the 7 that waited, and a */
		IS(wq_done(p.rig.f.q, &held), WQ_QUEUED);
		page_close(&p);
	}
}

static void the_buckets_of_both_formats(void **state)
{
	static const char *const bounds[2][WQ_BUCKETS] = {
	    {"1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1", "10", "100",
	     "1000", "+Inf"},
	    {"1e-08", "1e-07", "1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1.0", "10.0",
	     "100.0", "1000.0", "+Inf"},
	};
	static const char *const histograms[] = {"workqueue_queue_duration_seconds",
	                                         "workqueue_work_duration_seconds",
	                                         "wq_delay_lateness_seconds"};
	struct page p;
	wq_item it;

	(void)state;
	page_open(&p, "q");
	/* One in each bucket: a late key, in line and held as long. */
	for (unsigned i = 0; i < WQ_BUCKETS; i++) {
		int64_t took = i == WQ_BUCKETS - 1 ? 5000 * WQ_SECOND : wq_histogram_bound(i);

		IS(wq_add_after(p.rig.f.q, "a", 1, 1), WQ_DELAYED);
		wq_manual_clock_advance(p.rig.f.mc, 1 + took);
		get_is(p.rig.f.q, &it, "a");
		wq_manual_clock_advance(p.rig.f.mc, took);
		IS(wq_done(p.rig.f.q, &it), WQ_OK);
	}
	for (int format = WQ_PROMETHEUS; format <= WQ_OPENMETRICS; format++) {
		page_text(&p, (enum wq_metrics_format)format);
		for (size_t h = 0; h < LENGTH(histograms); h++)
			for (unsigned i = 0; i < WQ_BUCKETS; i++) {
				char series[128];

				snprintf(series, sizeof series, "%s_bucket{name=\"q\",le=\"%s\"}",
				         histograms[h], bounds[format][i]);
				value_is(p.t.bytes, series, i + 1, 1);
			}
	}
	page_close(&p);
}

static void push(void *ctx, wq_node *node, enum wq_where where)
{
	(void)where;
	node->link[0] = *(wq_node **)ctx;
	*(wq_node **)ctx = node;
}

static wq_node *pop(void *ctx)
{
	wq_node *top = *(wq_node **)ctx;

	*(wq_node **)ctx = top->link[0];
	return top;
}

/* Of an order of one's own nobody knows the head of the line: no age looks like a healthy one. */
static void an_age_that_nobody_knows(void **state)
{
	static const char series[] = "wq_oldest_queued_seconds{name=\"own\"}";
	wq_node *top = NULL;
	wq_order order = {.push = push, .pop = pop, .ctx = &top};
	struct page p;
	wq_item it;
	wq_queue *q;

	(void)state;
	page_open(&p, "fifo");
	IS(wq_new(&q, &(wq_options){.name = "own", .registry = p.r, .order = &order}), WQ_OK);
	value_is(page_text(&p, WQ_PROMETHEUS), series, 0, 1e-9);
	IS(wq_add_str(q, "a"), WQ_QUEUED);
	assert_null(find_series(page_text(&p, WQ_PROMETHEUS), series));
	assert_null(find_series(page_text(&p, WQ_OPENMETRICS), series));
	value_is(p.t.bytes, "wq_oldest_queued_seconds{name=\"fifo\"}", 0, 1e-9);
	value_is(p.t.bytes, "workqueue_longest_running_processor_seconds{name=\"own\"}", 0, 1e-9);
	/* Held and to come back is not in line. */
	get_is(q, &it, "a");
	IS(wq_add_str(q, "a"), WQ_MARKED);
	value_is(page_text(&p, WQ_PROMETHEUS), series, 0, 1e-9);
	value_is(p.t.bytes, "workqueue_depth{name=\"own\"}", 1, 1);
	IS(wq_done(q, &it), WQ_QUEUED);
	IS(wq_free(q), 1);
	page_close(&p);
}

/* A sum of days still goes up by a nanosecond. */
static void a_long_sum_loses_nothing(void **state)
{
	struct page p;
	wq_item it;

	(void)state;
	page_open(&p, "q");
	IS(wq_add_str(p.rig.f.q, "a"), WQ_QUEUED);
	get_is(p.rig.f.q, &it, "a");
	wq_manual_clock_advance(p.rig.f.mc, 1000000 * WQ_SECOND + 1);
	value_is(page_text(&p, WQ_PROMETHEUS), "workqueue_unfinished_work_seconds{name=\"q\"}",
	         1000000 * WQ_SECOND + 1, 1e-9);
	IS(wq_done(p.rig.f.q, &it), WQ_OK);
	value_is(page_text(&p, WQ_PROMETHEUS), "workqueue_work_duration_seconds_sum{name=\"q\"}",
	         1000000 * WQ_SECOND + 1, 1e-9);
	page_close(&p);
}

static int count_of(const char *text, const char *part)
{
	int n = 0;

	for (; (text = strstr(text, part)) != NULL; text++)
		n++;
	return n;
}

/* ---- priorities and groups ---------------------------------------------------- */

static void get_one(wq_queue *q, wq_item *it, const char *key)
{
	IS(wq_try_get(q, it), WQ_OK);
	assert_string_equal(it->key, key);
}

static void add_at(wq_queue *q, const char *key, int priority)
{
	IS(wq_add_with(q, key, strlen(key), &(wq_add_options){.priority = priority}), WQ_QUEUED);
}

/* By priority from the first that is not 0 on, also when nothing is queued; the sum is the depth. */
static void depth_by_priority(void **state)
{
	struct page p;
	wq_queue *q;
	wq_item it;

	(void)state;
	page_open(&p, "plain");
	IS(wq_new(&q, &(wq_options){.name = "q", .registry = p.r, .priorities = 1}), WQ_OK);
	for (int format = WQ_PROMETHEUS; format <= WQ_OPENMETRICS; format++) {
		if (format == WQ_PROMETHEUS) {
			add_at(q, "a", 0);
			add_at(q, "b", 0);
			value_is(page_text(&p, WQ_PROMETHEUS), "workqueue_depth{name=\"q\"}", 2, 1);
			IS(count_of(p.t.bytes, "priority="), 0);
			add_at(q, "c", 7);
			add_at(q, "d", -32768);
		}
		page_text(&p, (enum wq_metrics_format)format);
		assert_non_null(strstr(p.t.bytes, "workqueue_depth{name=\"plain\"} 0\n"
		                                  "workqueue_depth{name=\"q\",priority=\"7\"} 1\n"
		                                  "workqueue_depth{name=\"q\",priority=\"0\"} 2\n"
		                                  "workqueue_depth{name=\"q\",priority=\"-32768\"} "
		                                  "1\n# HELP"));
		IS(count_of(p.t.bytes, "priority="), 3);
	}
	get_one(q, &it, "c");
	add_at(q, "e", 7);
	IS(wq_add_str(q, "c"), WQ_MARKED);
	value_is(page_text(&p, WQ_PROMETHEUS), "workqueue_depth{name=\"q\",priority=\"7\"}", 1, 1);
	value_is(p.t.bytes, "workqueue_depth{name=\"q\",priority=\"dirty\"}", 1, 1);
	IS(wq_cancel(q, "c", 1, NULL), WQ_CANCELLED);
	IS(wq_done(q, &it), WQ_OK);
	for (int i = 0; i < 4; i++) {
		IS(wq_try_get(q, &it), WQ_OK);
		IS(wq_done(q, &it), WQ_OK);
	}
	value_is(page_text(&p, WQ_PROMETHEUS), "workqueue_depth{name=\"q\",priority=\"0\"}", 0, 1);
	IS(count_of(p.t.bytes, "priority="), 1);
	IS(wq_free(q), 0);
	page_close(&p);
}

/* However many there are. */
static void levels_are_bounded(void **state)
{
	struct page p;
	wq_queue *q;

	(void)state;
	page_open(&p, "plain");
	IS(wq_new(&q, &(wq_options){.name = "q", .registry = p.r, .priorities = 1}), WQ_OK);
	for (int i = 0; i < 1000; i++) {
		char key[16];

		snprintf(key, sizeof key, "%d", i);
		add_at(q, key, i - 500);
	}
	page_text(&p, WQ_PROMETHEUS);
	IS(count_of(p.t.bytes, "priority="), WQ_LEVELS + 1);
	value_is(p.t.bytes, "workqueue_depth{name=\"q\",priority=\"499\"}", 1, 1);
	value_is(p.t.bytes, "workqueue_depth{name=\"q\",priority=\"484\"}", 1, 1);
	value_is(p.t.bytes, "workqueue_depth{name=\"q\",priority=\"lower\"}", 984, 1);
	IS(wq_free(q), 1000);
	page_close(&p);
}

/* Groups are no labels, and no priorities. */
static void groups_are_no_labels(void **state)
{
	static wq_separator slash = {.byte = '/', .n = 1};
	wq_options o = {.name = "q", .group = wq_group_before, .group_ctx = &slash};
	struct page p;
	wq_queue *q;

	(void)state;
	page_open(&p, "plain");
	o.registry = p.r;
	IS(wq_new(&q, &o), WQ_OK);
	IS(wq_add_str(q, "a/1"), WQ_QUEUED);
	value_is(page_text(&p, WQ_PROMETHEUS), "workqueue_depth{name=\"q\"}", 1, 1);
	IS(count_of(p.t.bytes, "priority="), 0);
	IS(count_of(p.t.bytes, "group"), 0);
	IS(wq_free(q), 1);
	page_close(&p);
}

/* ---- the form ---------------------------------------------------------------- */

static void the_forms_differ_where_they_must(void **state)
{
	struct page p;

	(void)state;
	page_open(&p, "q");
	page_text(&p, WQ_PROMETHEUS);
	IS(count_of(p.t.bytes, "# TYPE "), 19);
	IS(count_of(p.t.bytes, "# HELP "), 19);
	IS(count_of(p.t.bytes, "# TYPE workqueue_adds_total counter\n"), 1);
	IS(count_of(p.t.bytes, "# TYPE wq_delay_lateness_seconds histogram\n"), 1);
	IS(count_of(p.t.bytes, "# TYPE workqueue_depth gauge\n"), 1);
	IS(count_of(p.t.bytes, "EOF"), 0);
	IS(p.t.bytes[p.t.n - 1], '\n');
	page_text(&p, WQ_OPENMETRICS);
	IS(count_of(p.t.bytes, "# TYPE "), 19);
	IS(count_of(p.t.bytes, "# TYPE workqueue_adds counter\n"), 1);
	IS(count_of(p.t.bytes, "\nworkqueue_adds_total{"), 1);
	IS(count_of(p.t.bytes, "# EOF\n"), 1);
	assert_string_equal(p.t.bytes + p.t.n - 6, "# EOF\n");
	assert_string_equal(wq_metrics_type(WQ_PROMETHEUS),
	                    "text/plain; version=0.0.4; charset=utf-8");
	assert_string_equal(wq_metrics_type(WQ_OPENMETRICS),
	                    "application/openmetrics-text; version=1.0.0; charset=utf-8");
	page_close(&p);
}

static void names_are_escaped(void **state)
{
	struct page p;

	(void)state;
	page_open(&p, "a\"b\\c\nd\xc3\xa4{}, ");
	value_is(page_text(&p, WQ_PROMETHEUS),
	         "workqueue_depth{name=\"a\\\"b\\\\c\\nd\xc3\xa4{}, \"}", 0, 1);
	value_is(page_text(&p, WQ_OPENMETRICS),
	         "workqueue_depth{name=\"a\\\"b\\\\c\\nd\xc3\xa4{}, \"}", 0, 1);
	page_close(&p);
}

static void series_come_and_go_with_their_queue(void **state)
{
	struct page p;
	wq_queue *q;

	(void)state;
	page_open(&p, "b");
	IS(wq_new(&q, &(wq_options){.name = "a", .registry = p.r}), WQ_OK);
	page_text(&p, WQ_PROMETHEUS);
	assert_non_null(find_series(p.t.bytes, "workqueue_depth{name=\"a\"}"));
	/* In a family they stand together, by name. */
	assert_non_null(strstr(p.t.bytes, "workqueue_depth{name=\"a\"} 0\nworkqueue_depth{name="));
	IS(count_of(p.t.bytes, "# TYPE workqueue_depth "), 1);
	IS(wq_free(q), 0);
	page_text(&p, WQ_PROMETHEUS);
	IS(count_of(p.t.bytes, "name=\"a\""), 0);
	assert_non_null(find_series(p.t.bytes, "workqueue_depth{name=\"b\"}"));
	page_close(&p);
}

/* ---- whoever takes it ---------------------------------------------------------- */

static void a_writer_may_stop(void **state)
{
	static const int answers[] = {1, -1, 42, WQ_EIO};
	struct page p;
	wq_queue *more[20];

	(void)state;
	page_open(&p, "q");
	for (int i = 0; i < 20; i++) {
		char name[] = {(char)('A' + i), '\0'};

		IS(wq_new(&more[i], &(wq_options){.name = name, .registry = p.r}), WQ_OK);
	}
	page_text(&p, WQ_PROMETHEUS);
	assert_true(p.t.calls > 3);
	for (size_t i = 0; i < LENGTH(answers); i++)
		for (int at = 1; at <= 3; at++) {
			text_free(&p.t);
			p.t.stop_at = at;
			p.t.answer = answers[i];
			IS(wq_metrics_write(p.r, WQ_PROMETHEUS, text_write, &p.t), answers[i]);
			IS(p.t.calls, at);
		}
	for (int i = 0; i < 20; i++)
		IS(wq_free(more[i]), 0);
	page_close(&p);
}

static void bad_arguments(void **state)
{
	struct page p;
	wq_snapshot s = {0};

	(void)state;
	page_open(&p, "q");
	IS(wq_metrics_write(NULL, WQ_PROMETHEUS, text_write, &p.t), WQ_EINVAL);
	IS(wq_metrics_write(p.r, WQ_PROMETHEUS, NULL, &p.t), WQ_EINVAL);
	IS(wq_metrics_write(p.r, (enum wq_metrics_format)2, text_write, &p.t), WQ_EINVAL);
	IS(wq_snapshot_json(NULL, "q", text_write, &p.t), WQ_EINVAL);
	IS(wq_snapshot_json(&s, "q", NULL, &p.t), WQ_EINVAL);
	IS(p.t.calls, 0);
	page_close(&p);
}

static int write_and_use(void *ctx, const char *bytes, size_t n)
{
	struct page *p = ctx;
	wq_queue *q;

	/* It is outside all locks. */
	IS(wq_new(&q, &(wq_options){.name = "in between", .registry = p->r}), WQ_OK);
	IS(wq_free(q), 0);
	assert_true(wq_add_str(p->rig.f.q, "x") > 0);
	return text_write(&p->t, bytes, n);
}

static void a_writer_may_use_everything(void **state)
{
	struct page p;

	(void)state;
	page_open(&p, "q");
	IS(wq_metrics_write(p.r, WQ_PROMETHEUS, write_and_use, &p), WQ_OK);
	assert_true(p.t.calls > 0);
	page_close(&p);
}

/* ---- JSON ---------------------------------------------------------------------- */

static void a_snapshot_as_json(void **state)
{
	struct page p;
	wq_snapshot s;
	wq_item held;

	(void)state;
	page_open(&p, "q");
	IS(wq_snapshot_take(p.rig.f.q, &s), WQ_OK);
	IS(wq_snapshot_json(&s, NULL, text_write, &p.t), WQ_OK);
	IS(count_of(p.t.bytes, "\"name\""), 0);
	IS(count_of(p.t.bytes, "\"next_due_ns\":null"), 1);
	IS(count_of(p.t.bytes, "\"oldest_queued\":null"), 1);
	IS(count_of(p.t.bytes, "\"longest_running\":null"), 1);
	IS(p.t.bytes[p.t.n - 1], '}');
	busy_queue(&p.rig.f, &held);
	text_free(&p.t);
	IS(wq_snapshot_take(p.rig.f.q, &s), WQ_OK);
	IS(wq_snapshot_json(&s, "q\"\n", text_write, &p.t), WQ_OK);
	assert_string_equal(
	    p.t.bytes,
	    "{\"name\":\"q\\\"\\u000a\",\"now_ns\":1000000003040,\"queued\":2,\"running\":1,"
	    "\"dirty\":1,\"waiting\":7,\"left\":0,\"remembered\":0,\"adds\":8,\"retries\":8,"
	    "\"merged\":5,\"refused\":0,\"marked\":2,\"dead\":1,\"stale\":3,"
	    "\"slow_handlers\":0,\"dropped\":2,\"unfinished_ns\":2040,\"next_due_ns\":"
	    "1000000003100,"
	    "\"oldest_queued\":{\"key\":\"a\",\"len\":1,\"age_ns\":40},"
	    "\"longest_running\":{\"key\":\"held\",\"len\":4,\"age_ns\":2040},"
	    "\"queue\":{\"count\":[5,0,0,0,0,0,0,0,0,0,0,0,0],\"sum_ns\":0},"
	    "\"work\":{\"count\":[3,0,1,0,0,0,0,0,0,0,0,0,0],\"sum_ns\":1000},"
	    "\"late\":{\"count\":[0,0,0,0,0,0,0,0,0,0,0,0,0],\"sum_ns\":0}}");
	text_free(&p.t);
	p.t.stop_at = 1;
	p.t.answer = 7;
	IS(wq_snapshot_json(&s, "q", text_write, &p.t), 7);
	IS(p.t.calls, 1);
	IS(wq_done(p.rig.f.q, &held), WQ_QUEUED);
	page_close(&p);
}

/* What a queue without priorities, groups and values does not have. */
static void a_rich_snapshot_as_json(void **state)
{
	static wq_separator slash = {.byte = '/', .n = 1};
	struct text t = {0};
	wq_queue *q;
	wq_snapshot s;
	wq_item it;

	(void)state;
	IS(wq_new(&q, &(wq_options){.priorities = 1,
	                            .group = wq_group_before,
	                            .group_ctx = &slash,
	                            .group_limit = 1}),
	   WQ_OK);
	IS(wq_snapshot_take(q, &s), WQ_OK);
	IS(wq_snapshot_json(&s, NULL, text_write, &t), WQ_OK);
	IS(count_of(t.bytes, "blocked"), 0);
	text_free(&t);
	add_at(q, "h\"/1", 5);
	add_at(q, "h\"/2", -1);
	add_at(q, "g/1", 0);
	get_one(q, &it, "h\"/1");
	IS(wq_snapshot_take(q, &s), WQ_OK);
	s.merge_failed = 9;
	s.queued_lower = 8;
	IS(wq_snapshot_json(&s, NULL, text_write, &t), WQ_OK);
	assert_non_null(
	    strstr(t.bytes,
	           "\"late\":{\"count\":[0,0,0,0,0,0,0,0,0,0,0,0,0],\"sum_ns\":0},"
	           "\"blocked\":1,\"groups\":2,\"merge_failed\":9,"
	           "\"level\":[{\"priority\":0,\"queued\":1},{\"priority\":-1,\"queued\":1}],"
	           "\"queued_lower\":8,"
	           "\"busiest\":[{\"name\":\"h\\\"\",\"len\":2,\"queued\":1,\"running\":1},"
	           "{\"name\":\"g\",\"len\":1,\"queued\":1,\"running\":0}]}"));
	text_free(&t);
	IS(wq_done(q, &it), WQ_OK);
	IS(wq_free(q), 2);
}

/* All that fits into a snapshot, with names that take six bytes for one. */
static void the_longest_groups_as_json(void **state)
{
	struct text t = {0};
	wq_snapshot s = {.next_due_ns = WQ_NEVER, .groups = WQ_BUSIEST, .nbusiest = WQ_BUSIEST};
	char expected[32 + 6 * WQ_SAMPLE_BYTES] = "{\"name\":\"";

	(void)state;
	for (int i = 0; i < WQ_SAMPLE_BYTES - 1; i++)
		strcat(expected, "\\u0001");
	strcat(expected, "\",\"len\":1000,");
	s.nlevels = WQ_LEVELS;
	for (int i = 0; i < WQ_BUSIEST; i++) {
		memset(s.busiest[i].name, 1, WQ_SAMPLE_BYTES - 1);
		s.busiest[i].len = 1000;
		s.busiest[i].queued = s.busiest[i].running = UINT64_MAX;
	}
	IS(wq_snapshot_json(&s, NULL, text_write, &t), WQ_OK);
	IS(count_of(t.bytes, expected), WQ_BUSIEST);
	IS(count_of(t.bytes, "{\"priority\":0,\"queued\":0}"), WQ_LEVELS);
	IS(t.bytes[t.n - 1], '}');
	text_free(&t);
}

/* Each byte of it takes six: it is written in several pieces. */
static void a_long_name_of_control_characters(void **state)
{
	enum { LEN = 255 };
	struct text t = {0};
	wq_snapshot s = {.next_due_ns = WQ_NEVER};
	char name[LEN + 1], expected[16 + 6 * LEN] = "{\"name\":\"";

	(void)state;
	memset(name, 1, LEN);
	name[LEN] = '\0';
	for (int i = 0; i < LEN; i++)
		strcat(expected, "\\u0001");
	strcat(expected, "\",");
	IS(wq_snapshot_json(&s, name, text_write, &t), WQ_OK);
	assert_memory_equal(t.bytes, expected, strlen(expected));
	assert_true(t.calls > 1);
	text_free(&t);
}

/* Bytes that are no UTF-8 become one U+FFFD each. */
static void keys_that_are_no_text(void **state)
{
	static const struct {
		const char *key;
		const char *json;
	} rows[] = {
	    {"\xff", "\\ufffd"},
	    {"a\x80z", "a\\ufffdz"},
	    {"\xc3\xa4", "\xc3\xa4"},
	    {"\xc3", "\\ufffd"},
	    {"\xc0\x80", "\\ufffd\\ufffd"},
	    {"\xe2\x82\xac", "\xe2\x82\xac"},
	    {"\xe2\x82", "\\ufffd\\ufffd"},
	    {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* a surrogate */
	    {"\xe0\x9f\xbf", "\\ufffd\\ufffd\\ufffd"},
	    {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
	    {"\xf0\x8f\xbf\xbf", "\\ufffd\\ufffd\\ufffd\\ufffd"},
	    {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
	    {"\xf5\x80\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
	    {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
	     "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd"},
	    {"\x01\x1f \x7f\"\\/", "\\u0001\\u001f \\u007f\\\"\\\\/"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct text t = {0};
		wq_snapshot s = {.oldest_queued.age_ns = -1, .longest_running.age_ns = -1};
		char expected[128];

		IS(wq_snapshot_json(&s, rows[i].key, text_write, &t), WQ_OK);
		snprintf(expected, sizeof expected, "{\"name\":\"%s\",", rows[i].json);
		t.bytes[strlen(expected)] = '\0';
		assert_string_equal(t.bytes, expected);
		text_free(&t);
	}
}

/* A long key is cut between two characters; bytes that are none are cut anywhere. */
static void long_keys_are_cut_at_a_character(void **state)
{
	static const struct {
		const char *end; /* from byte `at` on */
		size_t at, shown;
	} rows[] = {
	    {"abc", 125, 127},
	    {"\xc3\xa4", 125, 127},
	    {"\xc3\xa4", 126, 126},
	    {"\xe2\x82\xac", 124, 127},
	    {"\xe2\x82\xac", 125, 125},
	    {"\xe2\x82\xac", 126, 126},
	    {"\xf0\x9f\x98\x80", 123, 127},
	    {"\xf0\x9f\x98\x80", 124, 124},
	    {"\xf0\x9f\x98\x80", 125, 125},
	    {"\xf0\x9f\x98\x80", 126, 126},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		wq_snapshot s = {.longest_running.age_ns = -1, .oldest_queued.len = 200};
		struct text t = {0};
		char key[WQ_SAMPLE_BYTES + 8] = {0};
		const char *from, *to;

		memset(key, 'k', sizeof key - 1);
		memcpy(key + rows[i].at, rows[i].end, strlen(rows[i].end));
		memcpy(s.oldest_queued.key, key, WQ_SAMPLE_BYTES - 1);
		IS(wq_snapshot_json(&s, NULL, text_write, &t), WQ_OK);
		from = strstr(t.bytes, "\"oldest_queued\":{\"key\":\"");
		assert_non_null(from);
		from += strlen("\"oldest_queued\":{\"key\":\"");
		to = strchr(from, '"');
		IS(to - from, (int64_t)rows[i].shown);
		assert_memory_equal(from, key, rows[i].shown);
		text_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_metric_has_its_value),
	    cmocka_unit_test(the_buckets_of_both_formats),
	    cmocka_unit_test(an_age_that_nobody_knows),
	    cmocka_unit_test(a_long_sum_loses_nothing),
	    cmocka_unit_test(depth_by_priority),
	    cmocka_unit_test(levels_are_bounded),
	    cmocka_unit_test(groups_are_no_labels),
	    cmocka_unit_test(the_forms_differ_where_they_must),
	    cmocka_unit_test(names_are_escaped),
	    cmocka_unit_test(series_come_and_go_with_their_queue),
	    cmocka_unit_test(a_writer_may_stop),
	    cmocka_unit_test(bad_arguments),
	    cmocka_unit_test(a_writer_may_use_everything),
	    cmocka_unit_test(a_snapshot_as_json),
	    cmocka_unit_test(a_rich_snapshot_as_json),
	    cmocka_unit_test(the_longest_groups_as_json),
	    cmocka_unit_test(a_long_name_of_control_characters),
	    cmocka_unit_test(keys_that_are_no_text),
	    cmocka_unit_test(long_keys_are_cut_at_a_character),
	};

	return cmocka_run_group_tests_name("metrics as text", tests, NULL, NULL);
}
