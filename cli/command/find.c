/* Where a command is, as a shell looks for it. */
#include "cli/command/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/say.h"

int find_judge(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXEC;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EACCES;
		return EXIT_NOT_EXEC;
	}
	return access(path, X_OK) == 0 ? 0 : EXIT_NOT_EXEC;
}

/* The first that can be executed, else why the best one cannot. */
static int search(const char *name, struct text *found)
{
	const char *path = getenv("PATH");
	int best = EXIT_NOT_FOUND, error = ENOENT;

	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	for (;;) {
		size_t n = strcspn(path, ":");
		int rc;

		found->n = 0;
		text_add(found, n > 0 ? path : ".", n > 0 ? n : 1);
		text_print(found, "/%s", name);
		text_add(found, "", 1);
		rc = find_judge(found->bytes);
		if (rc == 0)
			return 0;
		if (rc == EXIT_NOT_EXEC) {
			best = rc;
			error = errno;
		}
		if (path[n] == '\0')
			break;
		path += n + 1;
	}
	errno = error;
	return best;
}

int find(const char *name, struct text *path)
{
	path->n = 0;
	if (strchr(name, '/')) {
		text_add(path, name, strlen(name) + 1);
		return find_judge(name);
	}
	return search(name, path);
}
