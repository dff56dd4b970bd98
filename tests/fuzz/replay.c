/*
 * In place of libFuzzer: runs the files and folders that it is given, so that
 * every build replays the corpus.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TAPE_MAX = 1 << 20 };

static int run_file(const char *path)
{
	static uint8_t bytes[TAPE_MAX];
	FILE *f = fopen(path, "rb");

	if (!f) {
		perror(path);
		return -1;
	}
	size_t n = fread(bytes, 1, sizeof bytes, f);

	fclose(f);
	printf("%s (%zu bytes)\n", path, n);
	fflush(stdout);
	LLVMFuzzerTestOneInput(bytes, n);
	return 1;
}

/* How many files were run, or -1. */
static int run_path(const char *path)
{
	struct stat st;
	int count = 0;

	if (stat(path, &st) != 0) {
		perror(path);
		return -1;
	}
	if (!S_ISDIR(st.st_mode))
		return run_file(path);

	DIR *d = opendir(path);

	if (!d) {
		perror(path);
		return -1;
	}
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		char name[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", path, e->d_name);
		if (run_file(name) < 0)
			count = -1;
		if (count >= 0)
			count++;
	}
	closedir(d);
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int n = run_path(argv[i]);

		if (n < 0)
			return 1;
		total += n;
	}
	printf("%d tapes ok\n", total);
	return total > 0 ? 0 : 1;
}
