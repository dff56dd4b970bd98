/*
 * Where a file is: its directory, as a descriptor, and its name there.
 *
 * Paths are walked by descriptors, so nothing changes between a check and its use. In a directory
 * that everyone may write to and that is sticky (/tmp), links are followed, and existing files are
 * used, only if they belong to this user or to the directory's owner: as the kernel has it with
 * fs.protected_symlinks and fs.protected_regular, which may be off.
 */
#ifndef CLI_FILES_TARGET_H
#define CLI_FILES_TARGET_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Another user's link or file in such a directory. target_error() has the text. */
#define TARGET_FOREIGN EKEYREJECTED

struct target {
	int dir;    /* O_PATH; -1: none */
	char *name; /* without a slash */
	bool magic; /* a link in /proc, like /dev/stdout: no other name; is opened as is */
	bool slash; /* the path ends with a slash: only a directory is meant */
};

/*
 * Walk the path from the directory `at` (or AT_FDCWD), through links. The last part of it need not
 * exist. False: errno says why.
 */
bool target_find(struct target *p, int at, const char *path);

/* open() of it, with these flags and O_CLOEXEC; mode 0666. Not O_TRUNC. -1: errno says why. */
int target_open(const struct target *p, int flags);

/* What is there: lstat(). False: errno says why. */
bool target_stat(const struct target *p, struct stat *st);

/* May this user use what was found in that directory? */
bool target_trusts(const struct target *p, const struct stat *st);

void target_release(struct target *p);

/* strerror(), in words that fit files of ours. */
const char *target_error(int error);

#endif
