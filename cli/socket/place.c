/* Names of sockets become paths in a folder that is its user's alone. */
#include "cli/socket/place.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/say.h"

enum { NAME_MAX_BYTES = 64 };

bool place_is_name(const char *given)
{
	return *given != '\0' && !strchr(given, '/');
}

/* A folder that nobody else can put anything into. */
static bool is_ours(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 022) == 0;
}

/* Where the folder of all sockets is, or would be. */
static void runtime(struct text *t)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");

	if (dir && *dir == '/')
		text_str(t, dir);
	else
		text_print(t, "/run/user/%" PRIuMAX, (uintmax_t)geteuid());
	text_add(t, "", 1);
}

bool place_exists(void)
{
	struct text t = {0};
	bool ours;

	runtime(&t);
	ours = is_ours(t.bytes);
	text_release(&t);
	return ours;
}

static bool is_good(const char *name)
{
	size_t n = strlen(name);

	if (n > NAME_MAX_BYTES || !isalnum((unsigned char)*name))
		return false;
	return strspn(name,
	              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@+-") == n;
}

bool place_path(const char *given, struct text *path)
{
	path->n = 0;
	if (!place_is_name(given)) {
		text_add(path, given, strlen(given) + 1);
		return true;
	}
	if (!is_good(given)) {
		say("%s: the name of a socket is up to %d letters, digits and _.@+-, the first a "
		    "letter or a digit; a path has a slash, ./NAME say",
		    shown(given, strlen(given)), NAME_MAX_BYTES);
		return false;
	}
	runtime(path);
	if (!is_ours(path->bytes)) {
		say("%s: no folder for named sockets: %s is not a folder that only this user can "
		    "write to; set XDG_RUNTIME_DIR, or give a path with a slash: ./%s",
		    given, shown(path->bytes, path->n - 1), given);
		return false;
	}
	path->n--;
	text_print(path, "/wq/%s", given);
	text_add(path, "", 1);
	return true;
}

bool place_make(const char *path)
{
	char *folder = grow(NULL, strlen(path) + 1);
	bool made;

	memcpy(folder, path, strlen(path) + 1);
	*strrchr(folder, '/') = '\0';
	made = mkdir(folder, 0700) == 0 || errno == EEXIST;
	if (!made)
		say("%s: %s", folder, strerror(errno));
	else if (!is_ours(folder))
		say("%s is not a folder that only this user can write to", folder);
	made = made && is_ours(folder);
	free(folder);
	return made;
}
