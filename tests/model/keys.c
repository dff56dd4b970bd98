#include "keys.h"

#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The plain ones differ in length, to fall into different size classes. */
enum { PLAIN_MAX = 200 };

static const struct {
	const char *head; /* the first bytes; the rest is a pattern of the key's own */
	size_t nhead;
	size_t len;
} small[KEYS_SMALL] = {
    {"", 0, 0},
    {"\0", 1, 1},
    {"\0\0", 2, 2},
    {"a", 1, 1},
    {"a\0", 2, 2},
    {"a\0b", 3, 3},
    {"ab", 2, 2},
    {"\xff", 1, 1},
    {"default/pod-17", 14, 14},
    {"default/pod-18", 14, 14},
    {"ns-123/pod-45678", 16, 16},
    {"c", 1, 23},
    {"d", 1, 24},
    {"e", 1, 255},
    {"f", 1, 1000},
    {"g", 1, 1024},
    {"h", 1, 1100},
    {"i", 1, 5000},
    {"j", 1, WQ_KEY_MAX - 1},
    {"k", 1, WQ_KEY_MAX},
};

static struct {
	unsigned char *bytes;
	size_t len;
} keys[MODEL_KEYS];

static void make(int key)
{
	size_t len, nhead;
	char plain[16];
	const char *head;

	if (key < KEYS_SMALL) {
		head = small[key].head;
		nhead = small[key].nhead;
		len = small[key].len;
	} else {
		nhead = (size_t)snprintf(plain, sizeof plain, "#%04d", key);
		head = plain;
		len = nhead + (size_t)key * 7 % (PLAIN_MAX - nhead);
	}
	keys[key].len = len;
	keys[key].bytes = malloc(len + 1);
	if (!keys[key].bytes)
		abort();
	for (size_t i = 0; i < len; i++)
		keys[key].bytes[i] = i < nhead ? (unsigned char)head[i] : (unsigned char)(i * 31);
}

static void release(void)
{
	for (int key = 0; key < MODEL_KEYS; key++)
		free(keys[key].bytes);
}

void keys_init(void)
{
	if (keys[0].bytes)
		return;
	for (int key = 0; key < MODEL_KEYS; key++)
		make(key);
	atexit(release);
}

const void *keys_bytes(int key, size_t *len)
{
	*len = keys[key].len;
	return keys[key].bytes;
}

static int same(int key, const void *bytes, size_t len)
{
	return keys[key].len == len && memcmp(keys[key].bytes, bytes, len) == 0;
}

int keys_find(const void *bytes, size_t len)
{
	const char *s = bytes;

	if (len >= 5 && s[0] == '#') {
		int key = 0;

		for (int i = 1; i < 5; i++)
			key = key * 10 + (s[i] - '0');
		return key >= KEYS_SMALL && key < MODEL_KEYS && same(key, bytes, len) ? key : -1;
	}
	for (int key = 0; key < KEYS_SMALL; key++)
		if (same(key, bytes, len))
			return key;
	return -1;
}
