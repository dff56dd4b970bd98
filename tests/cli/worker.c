/*
 * The command of test_lost.py:
 *
 *     worker DIR SEED KEY...
 *
 * KEY begins with a number, of which a byte of DIR/lock is locked: if somebody has it already, the
 * key is worked on twice at once, and DIR/twice says so. Chance, made of SEED, the first key and the
 * attempt, decides how it ends; keys that are done are appended to DIR/done.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* With their NULs, in one write, so that those of several workers do not mix. */
static void append(int dir, const char *file, char *const *keys)
{
	int fd = openat(dir, file, O_WRONLY | O_CREAT | O_APPEND, 0666);
	char bytes[4096];
	size_t n = 0;

	for (; *keys; keys++) {
		size_t len = strlen(*keys) + 1;

		if (len > sizeof bytes - n)
			abort();
		memcpy(bytes + n, *keys, len);
		n += len;
	}
	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		abort();
}

static int is_mine(int dir, uint64_t number)
{
	struct flock lock = {
	    .l_type = F_WRLCK,
	    .l_whence = SEEK_SET,
	    .l_start = (off_t)number,
	    .l_len = 1,
	};
	int fd = openat(dir, "lock", O_RDWR | O_CREAT, 0666);

	return fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
}

int main(int argc, char **argv)
{
	const char *attempt = getenv("WQ_ATTEMPT");
	uint64_t number, chance;
	sigset_t term;
	int dir;

	if (argc < 4 || !attempt || (dir = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0)
		return 100;
	for (char **key = argv + 3; *key; key++) {
		if (is_mine(dir, strtoull(*key, NULL, 10)))
			continue;
		append(dir, "twice", key);
		return 100;
	}
	number = strtoull(argv[3], NULL, 10);
	chance =
	    mix(mix(strtoull(argv[2], NULL, 10) + number) + strtoull(attempt, NULL, 10)) % 1000;
	if (chance < 5)
		return 100;
	if (chance < 10)
		raise(SIGKILL);
	if (chance < 200)
		return 1;
	if (chance < 210)
		printf("%s\n", argv[3]);
	fflush(stdout);
	/* Who is asked to end from here on is done all the same. */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	append(dir, "done", argv + 3);
	_exit(0);
}
