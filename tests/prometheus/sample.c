/*
 * Writes what tools read of queues:
 *
 *     sample text      metrics of three queues, format 0.0.4
 *     sample json N    N snapshots with hostile names and keys, a line each: the name's
 *                      bytes and the key's in hexadecimal, and the JSON
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wq.h>

static int put(void *ctx, const char *text, size_t n)
{
	return fwrite(text, 1, n, ctx) == n ? 0 : -1;
}

static int text(void)
{
	static const char *const names[] = {"pods", "a \"name\"\\\n{with} all, of=it",
	                                    "\xc3\xa4 \xf0\x9f\x98\x80"};
	wq_registry *r;
	wq_queue *q[3] = {NULL};
	int rc = wq_registry_new(&r);

	for (int i = 0; rc == WQ_OK && i < 3; i++)
		rc = wq_new(&q[i], &(wq_options){.name = names[i], .registry = r});
	if (rc == WQ_OK)
		rc = wq_add_str(q[0], "a") == WQ_QUEUED ? WQ_OK : 1;
	if (rc == WQ_OK)
		rc = wq_metrics_write(r, WQ_PROMETHEUS, put, stdout);
	for (int i = 0; i < 3; i++)
		if (q[i])
			wq_free(q[i]);
	return rc == WQ_OK && wq_registry_free(r) == WQ_OK ? 0 : 1;
}

static uint64_t below(uint64_t *rng, uint64_t n)
{
	*rng = *rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*rng >> 33) % n;
}

/* Bytes of all kinds, mostly such that begin or go on with a character of several. */
static size_t hostile(uint64_t *rng, unsigned char *to, size_t max, int least)
{
	static const unsigned char pieces[] =
	    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\xed\xa0\xff\"\\/<";
	size_t n = below(rng, max);

	for (size_t i = 0; i < n; i++) {
		to[i] = (unsigned char)below(rng, 256);
		if (below(rng, 2))
			to[i] = pieces[below(rng, sizeof pieces - 1)];
		if (to[i] < least)
			to[i] = (unsigned char)least;
	}
	return n;
}

static void put_hex(const unsigned char *bytes, size_t n)
{
	putchar('.');
	for (size_t i = 0; i < n; i++)
		printf("%02x", bytes[i]);
	putchar(' ');
}

static int json(int count)
{
	uint64_t rng = 1;

	for (int i = 0; i < count; i++) {
		unsigned char name[256] = {0}, key[WQ_SAMPLE_BYTES];
		size_t name_len = hostile(&rng, name, sizeof name, 1);
		size_t key_len = hostile(&rng, key, sizeof key, 0);
		wq_snapshot s;
		wq_queue *q;

		if (wq_new(&q, NULL) != WQ_OK || wq_add(q, key, key_len) != WQ_QUEUED ||
		    wq_snapshot_take(q, &s) != WQ_OK)
			return 1;
		put_hex(name, name_len);
		put_hex(key, key_len);
		if (wq_snapshot_json(&s, (const char *)name, put, stdout) != WQ_OK)
			return 1;
		putchar('\n');
		wq_free(q);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "text") == 0)
		return text();
	if (argc == 3 && strcmp(argv[1], "json") == 0)
		return json(atoi(argv[2]));
	fprintf(stderr, "usage: sample text | sample json N\n");
	return 2;
}
