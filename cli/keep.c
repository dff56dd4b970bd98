/* Dead keys are appended as they die; what is left is written at the end. */
#include "cli/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/control.h"
#include "cli/source.h"

enum { BLOCK = 1 << 16 };

bool keep_open(struct run *r)
{
	if (r->opt->dead) {
		r->dead_fd = open(r->opt->dead, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (r->dead_fd < 0) {
			say("%s: %s", r->opt->dead, strerror(errno));
			return false;
		}
	}
	if (r->opt->leftover && !replace_open(&r->leftover, r->opt->leftover)) {
		say("%s: %s", r->opt->leftover, strerror(errno));
		return false;
	}
	return true;
}

void keep_dead(struct run *r, const void *key, size_t len)
{
	struct text line = {0};

	if (r->dead_fd < 0)
		return;
	text_add(&line, key, len);
	text_add(&line, &r->opt->delimiter, 1);
	if (!write_all(r->dead_fd, line.bytes, line.n)) {
		say("%s: %s; this key is not in it: %s", r->opt->dead, strerror(errno),
		    shown(key, len));
		r->trouble = true;
	}
	text_release(&line);
}

static void flush(struct run *r)
{
	if (r->leftover.path)
		replace_write(&r->leftover, r->rest.bytes, r->rest.n);
	r->rest.n = 0;
}

static void keep(struct run *r, const char *key, size_t len)
{
	r->left++;
	text_add(&r->rest, key, len);
	text_add(&r->rest, &r->opt->delimiter, 1);
	if (r->rest.n >= BLOCK)
		flush(r);
}

static int keep_key(void *ctx, const wq_key_info *info)
{
	/* A key that is only remembered has no state. */
	if (info->state != 0)
		keep(ctx, info->key, info->len);
	return 0;
}

void keep_rest(struct run *r)
{
	if (wq_walk(r->q, keep_key, r) < 0) {
		say("the keys that are left cannot be listed: out of memory");
		r->trouble = true;
	}
	r->unread = r->left;
	source_rest(r, keep);
	control_rest(r, keep);
	r->unread = r->left - r->unread;
	flush(r);
	if (r->leftover.path && !replace_commit(&r->leftover)) {
		say("%s: %s%s%s", r->opt->leftover, strerror(errno),
		    r->leftover.part ? "; what is left is in " : "",
		    r->leftover.part ? r->leftover.part : "");
		r->trouble = true;
		/* It is all there is of these keys, and stays. */
		free(r->leftover.part);
		r->leftover.part = NULL;
	}
}

void keep_close(struct run *r)
{
	text_release(&r->rest);
	replace_release(&r->leftover);
	if (r->dead_fd >= 0)
		close(r->dead_fd);
	r->dead_fd = -1;
}
